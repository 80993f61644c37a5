"""Goose (Block): `--with-extension` and its own variables (AGENT-CLIS 4.6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from aileron_core.launch.plan import AgentFolder, Context, Plan

__all__ = ["GOOSE"]

_TAKES_EXTENSIONS = ("run", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goose:
    name: str = "goose"
    title: str = "Goose"
    program: str = "goose"
    package: str = "npm install -g @aaif/goose"
    tried: tuple[str, ...] = ("1.34.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(path=PurePosixPath(".config/goose"), credentials=("secrets.yaml",)),
        AgentFolder(path=PurePosixPath(".local/share/goose"), leave_out=("sessions",)),
    )
    needs: tuple[str, ...] = (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GOOSE_PROVIDER",
        "GOOSE_MODEL",
    )
    project_files: tuple[str, ...] = ()
    denied_args: tuple[str, ...] = (
        "--with-extension", "--with-builtin", "--with-remote-extension", "--container",
        "--with-streamable-http-extension", "--no-profile", "--recipe", "--sub-recipe",
        "--instructions", "-i", "--text", "-t", "--system", "--params", "--path", "-p", "--name", "-n",
        "--session-id", "--resume", "-r", "--provider", "--additional-sub-recipes", "--fork",
        "--edit", "--history",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are there as an extension, beside those of your profile.",
        "Telemetry and the keyring are off for this run.",
    )
    outside: tuple[str, ...] = (
        "Its shell and file tools: in the sandbox they reach the project, without it all you can.",
        "It runs every tool without asking (GOOSE_MODE=auto): it has no switch for one extension.",
        "A call that takes over 300 s ends there; its approval waits on, and check_action_status tells.",
    )

    def plan(self, context: Context) -> Plan:
        """Return `goose session` or `goose run` with our extension."""
        args = context.args or ("session",)
        if args[0] in _TAKES_EXTENSIONS:
            # The tools' prefix is the command's base name, so it is the relay by its own name.
            args = (args[0], "--with-extension", context.relay, *context.standing, *args[1:])
        env = {
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
        }
        if context.gateway is not None:
            env |= {"OPENAI_HOST": context.gateway, "ANTHROPIC_HOST": context.gateway}
        return Plan(argv=(self.program, *args), env=env, call_seconds=300.0)

    def shadows(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return nothing: Goose reads no settings from a project."""
        del files
        return ()


GOOSE = _Goose()
