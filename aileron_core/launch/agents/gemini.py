"""Gemini CLI (Google): an extension of ours, because it takes a server no other way (AGENT-CLIS 4.4)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from aileron_core.launch.plan import SERVER, Addition, AgentFolder, Context, Plan

__all__ = ["GEMINI"]

_POLICY = f"""\
[[rule]]
mcpName = "{SERVER}"
toolName = "*"
decision = "allow"
priority = 950
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gemini:
    name: str = "gemini"
    title: str = "Gemini CLI"
    program: str = "gemini"
    package: str = "npm install -g @google/gemini-cli"
    tried: tuple[str, ...] = ("0.61.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".gemini"),
            credentials=("oauth_creds.json",),
            leave_out=("tmp", "history"),
        ),
    )
    needs: tuple[str, ...] = (
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GEMINI_MODEL",
    )
    project_files: tuple[str, ...] = (".gemini/settings.json", ".gemini/.env")
    denied_args: tuple[str, ...] = (
        "--policy", "--admin-policy", "-y", "-s", "--extensions", "-e", "--include-directories",
        "--acp", "--experimental-acp", "--prompt", "-p", "--prompt-interactive", "-i", "--worktree",
        "-w", "--resume", "-r", "--session-file", "--delete-session", "--proxy", "--telemetry",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are there as an extension; Gemini asks nothing before them.",
        "One call may take 600 s.",
    )
    outside: tuple[str, ...] = (
        "Its shell and file tools: in the sandbox they reach the project, without it all you can.",
        "MCP servers and extensions of your own ~/.gemini: they run beside Aileron's.",
        "Usage statistics follow your own settings.json.",
    )

    def plan(self, context: Context) -> Plan:
        """Return `gemini` with a policy file, and the extension that names our server."""
        server: dict[str, Any] = {
            "command": context.relay,
            "args": [],
            "timeout": context.call_seconds * 1000,
        }
        manifest: dict[str, Any] = {
            "name": SERVER,
            "version": "0.0.1",
            "mcpServers": {SERVER: server},
        }
        env = {"GEMINI_CLI_NO_RELAUNCH": "true"}
        if context.gateway is not None:
            env["GOOGLE_GEMINI_BASE_URL"] = context.gateway
        return Plan(
            argv=(
                self.program,
                "--policy",
                f"{context.private}/gemini-policy.toml",
                *context.words,
            ),
            env=env,
            files={"gemini-policy.toml": _POLICY},
            additions=(
                Addition(
                    path=PurePosixPath(f".gemini/extensions/{SERVER}/gemini-extension.json"),
                    content=json.dumps(manifest, indent=2) + "\n",
                ),
            ),
            call_seconds=float(context.call_seconds),
        )

    def shadows(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a project's settings would take away."""
        found: list[str] = []
        for name, text in files.items():
            if "GOOGLE_GEMINI_BASE_URL" in text:
                found.append(f"{name} sets GOOGLE_GEMINI_BASE_URL")
            if f'"{SERVER}"' in text and "mcpServers" in text:
                found.append(f"{name} names an MCP server {SERVER}")
            if '"hooks"' in text:
                found.append(f"{name} sets hooks")
        return tuple(found)


GEMINI = _Gemini()
