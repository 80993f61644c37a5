"""Launching Goose (Block): `--with-extension` and environment variables of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from aileron_core.launch.agents.settings_files import (
    home_path,
    is_in_effect,
    names_in_effect,
    option_value,
    yaml_value,
)
from aileron_core.launch.plan import AgentFolder, ModelTraffic, Plan, PlanContext, ProviderName

_TAKES_EXTENSIONS = ("run", "session")
_HOSTS: Mapping[ProviderName, str] = {
    "openai": "OPENAI_HOST",
    "anthropic": "ANTHROPIC_HOST",
    "gemini": "GOOGLE_HOST",
}
_NAMES: Mapping[str, ProviderName] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
}
"""Goose's name of a provider -> the provider whose API it uses."""
_CHOSEN = ("GOOSE_PROVIDER", "active_provider", "GOOSE_LEAD_PROVIDER", "GOOSE_PLANNER_PROVIDER")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goose:
    name: str = "goose"
    title: str = "Goose"
    program: str = "goose"
    package: str = "npm install -g @aaif/goose"
    tested_versions: tuple[str, ...] = ("1.34.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(path=PurePosixPath(".config/goose"), credentials=("secrets.yaml",)),
        AgentFolder(path=PurePosixPath(".local/share/goose"), leave_out=("sessions",)),
    )
    env_names: tuple[str, ...] = (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GOOSE_PROVIDER",
        "GOOSE_MODEL",
        "OPENAI_BASE_PATH",
        *_HOSTS.values(),
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
        "Aileron's actions are available as an extension, alongside those of your profile.",
        "Telemetry is off for this run, and Goose does not use the keyring.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "Its other tools: Goose runs all of them without asking (GOOSE_MODE=auto), because "
            "this cannot be set for one extension."
        ),
        (
            "Long calls: Goose gives up on a call after 300 seconds. The approval keeps waiting, "
            "and check_action_status returns the result."
        ),
    )
    passes_gateway: str = (
        "Traffic to models of Anthropic, OpenAI and Google goes through the gateway."
    )
    bypasses_gateway: str = (
        "Traffic to other providers, or to a host of your own, bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `goose session` or `goose run` with the relay as an extension."""
        args = context.args or ("session",)
        if args[0] in _TAKES_EXTENSIONS:
            # The tools' prefix is the command's base name, so it is the relay by its own name.
            args = (args[0], "--with-extension", context.relay, *context.settings_args, *args[1:])
        env = {
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
        }
        if context.gateway is not None:
            env |= {
                _HOSTS[provider]: context.gateway
                for provider in sorted(self.traffic(context).providers)
            }
        return Plan(argv=(self.program, *args), env=env, call_seconds=300.0)

    def settings_paths(self, env: Mapping[str, str]) -> tuple[PurePosixPath, ...]:
        if root := env.get("GOOSE_PATH_ROOT"):
            return (PurePosixPath(root, "config", "config.yaml"),)
        return (home_path(env, "XDG_CONFIG_HOME", ".config") / "goose" / "config.yaml",)

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let OpenAI, Anthropic and Google pass, except those whose host is already configured."""
        if context.args and context.args[0] not in _TAKES_EXTENSIONS:
            # `goose configure` would offer to keep our base URL in the person's configuration.
            reason = (
                f"`goose {context.args[0]}` does not start a session; `goose session` and `goose run` "
                "do"
            )
            return ModelTraffic(providers=frozenset(), bypass_reasons=(reason,))
        past: list[str] = []
        through = set(_HOSTS)
        for provider, host in _HOSTS.items():
            where = _place(context, host)
            if where is not None:
                past.append(where)
                through.discard(provider)
        past += [
            f"the gateway does not support its provider {name}"
            for name in _providers(context)
            if name not in _NAMES
        ]
        return ModelTraffic(providers=frozenset(through), bypass_reasons=tuple(past))

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return nothing: Goose reads no settings from a project."""
        del files
        return ()


def _place(context: PlanContext, name: str) -> str | None:
    """Return a clause that says where *name* is set, None if it is not."""
    if names_in_effect(context.env, (name,)):
        return f"{name} is set"
    for path, text in context.settings.items():
        if is_in_effect(yaml_value(text, name)):
            return f"{path} sets {name}"
    return None


def _providers(context: PlanContext) -> list[str]:
    """Return the selected providers, as far as the command line and settings tell."""
    typed = option_value(context.all_args, "--provider")
    found = [typed] if typed else []
    for name in _CHOSEN:
        if name in ("GOOSE_PROVIDER", "active_provider") and typed:
            continue
        read = [yaml_value(text, name) for text in context.settings.values()]
        value = context.env.get(name) or next(filter(None, read), None)
        if value and value not in found:
            found.append(value)
    return found


GOOSE = _Goose()
