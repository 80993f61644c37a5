"""Codex (OpenAI): everything by `-c` flags over the person's own configuration (AGENT-CLIS 4.2)."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import cast

from aileron_core.launch.plan import SERVER, AgentFolder, Context, Plan

__all__ = ["CODEX"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codex:
    name: str = "codex"
    title: str = "Codex"
    program: str = "codex"
    package: str = "npm install -g @openai/codex"
    tried: tuple[str, ...] = ("0.169.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".codex"),
            variable="CODEX_HOME",
            credentials=("auth.json",),
            leave_out=("log", "sessions", "archived_sessions", "tmp"),
        ),
    )
    needs: tuple[str, ...] = ("OPENAI_API_KEY", "CODEX_API_KEY")
    project_files: tuple[str, ...] = (".codex/config.toml",)
    denied_args: tuple[str, ...] = (
        "-c", "--config", "--enable", "--disable", "-p", "--profile", "--profile-v2", "--full-auto",
        "-s", "-a", "--ask-for-approval", "--add-dir", "-C", "--cd", "--remote", "--oss",
        "--local-provider", "--ignore-user-config", "--ignore-rules", "--search", "-i", "--image",
        "-o", "--output-last-message", "--output-schema",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are there from the first turn, as an MCP server that Codex waits for.",
        "Codex asks nothing of its own before an action: Aileron's console does.",
        "One call may take 600 s.",
        "Telemetry, update checks, plugins and apps are off for this run.",
    )
    outside: tuple[str, ...] = (
        "Its shell and file tools: in the sandbox they reach the project, without it all you can.",
        "MCP servers of your own ~/.codex/config.toml: they run beside Aileron's.",
        "With models in code mode its tool calls are a program; each action still asks by itself.",
    )

    def plan(self, context: Context) -> Plan:
        """Return `codex` with our settings laid over the person's; the person's flags come last."""
        server: dict[str, object] = {
            "command": context.relay,
            "args": [],
            "default_tools_approval_mode": "approve",
            "tool_timeout_sec": context.call_seconds,
            "startup_timeout_sec": 60,
            # Codex does not wait for a server's tools on the first turn without it (AGENT-CLIS 3.1).
            "required": True,
        }
        settings = [f"mcp_servers.{SERVER}={_toml(server)}"]
        if context.gateway is not None:
            provider: dict[str, object] = {
                "name": SERVER,
                "base_url": f"{context.gateway}/v1",
                "wire_api": "responses",
                "requires_openai_auth": "OPENAI_API_KEY" not in context.env,
            }
            if "OPENAI_API_KEY" in context.env:
                provider["env_key"] = "OPENAI_API_KEY"
            settings += [
                f"model_providers.{SERVER}={_toml(provider)}",
                f'model_provider="{SERVER}"',
            ]
        settings += [
            "features.mcp_tool_list_changed=true",
            "suppress_unstable_features_warning=true",
            "analytics.enabled=false",
            "check_for_update_on_startup=false",
            "features.plugins=false",
            "features.apps=false",
        ]
        flags = [word for setting in settings for word in ("-c", setting)]
        return Plan(
            argv=(self.program, *flags, *context.words), call_seconds=float(context.call_seconds)
        )

    def shadows(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a project's config.toml would take away."""
        found: list[str] = []
        for name, text in files.items():
            try:
                table = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                found.append(f"{name} cannot be parsed ({error})")
                continue
            if SERVER in table.get("mcp_servers", {}):
                found.append(f"{name} sets mcp_servers.{SERVER}")
            found += [
                f"{name} sets {key}"
                for key in (
                    "model_provider",
                    "model_providers",
                    "openai_base_url",
                    "notify",
                    "hooks",
                )
                if key in table
            ]
        return tuple(found)


def _toml(value: object) -> str:
    """Return *value* as an inline TOML value; its strings are JSON strings, which TOML reads alike."""
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        items = ", ".join(f"{key} = {_toml(item)}" for key, item in table.items())
        return "{" + items + "}"
    return json.dumps(value)


CODEX = _Codex()
