"""Pi: it has no MCP client and no permissions; an extension of ours is the client (AGENT-CLIS 4.5)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePosixPath

from aileron_core.launch.plan import AgentFolder, Context, Plan

__all__ = ["PI"]

_FILE = "aileron-pi.mjs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pi:
    name: str = "pi"
    title: str = "Pi"
    program: str = "pi"
    package: str = "npm install -g @earendil-works/pi-coding-agent"
    tried: tuple[str, ...] = ("0.87.1", "0.74.2")
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".pi"), credentials=("agent/auth.json",), leave_out=("sessions",)
        ),
    )
    needs: tuple[str, ...] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_OAUTH_TOKEN",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
    )
    project_files: tuple[str, ...] = (".pi/settings.json",)
    denied_args: tuple[str, ...] = (
        "-e", "--extension", "--no-extensions", "--system-prompt", "--append-system-prompt",
        "--tools", "-t", "--exclude-tools", "--no-tools", "--provider", "--api-key", "--skill", "--prompt-template",
        "--theme", "--session", "--session-dir", "--session-id", "--fork", "--export", "--continue",
        "-c", "--resume", "-r", "--mode", "--rpc", "--print", "-p",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are tools of an extension that lives for this run.",
        "A call waits as long as it takes: Pi has no time limit for tools.",
        "Telemetry is off for this run.",
    )
    outside: tuple[str, ...] = (
        "Its shell and file tools: in the sandbox they reach the project, without it all you can.",
        "Pi never asks before a tool; extensions of your own ~/.pi run beside Aileron's.",
    )

    def plan(self, context: Context) -> Plan:
        """Return `pi -e` with the extension, which knows the relay and no secret."""
        text = files("aileron_core.launch.agents").joinpath("pi_extension.mjs").read_text("utf-8")
        text = text.replace("__RELAY__", json.dumps(context.relay), 1)
        text = text.replace("__GATEWAY__", json.dumps(context.gateway), 1)
        return Plan(
            argv=(self.program, "-e", f"{context.private}/{_FILE}", *context.words),
            env={"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
            files={_FILE: text},
            call_seconds=float(context.call_seconds),
        )

    def shadows(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a project's settings would run inside Pi."""
        return tuple(
            f"{name} names extensions" for name, text in files.items() if '"extensions"' in text
        )


PI = _Pi()
