"""OpenCode: one JSON in the environment, merged over the person's own configuration (AGENT-CLIS 4.3)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.errors import InvalidRequest
from aileron_core.launch.plan import SERVER, AgentFolder, Context, Plan

__all__ = ["OPENCODE"]

_VARIABLE = "OPENCODE_CONFIG_CONTENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenCode:
    name: str = "opencode"
    title: str = "OpenCode"
    program: str = "opencode"
    package: str = "npm install -g opencode-ai"
    tried: tuple[str, ...] = ("1.18.33",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(path=PurePosixPath(".config/opencode"), leave_out=("node_modules",)),
        AgentFolder(
            path=PurePosixPath(".local/share/opencode"),
            credentials=("auth.json",),
            leave_out=("log", "storage", "snapshot", "project", "bin"),
        ),
    )
    needs: tuple[str, ...] = (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "OPENROUTER_API_KEY",
        _VARIABLE,
    )
    project_files: tuple[str, ...] = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json")
    denied_args: tuple[str, ...] = (
        "--port", "--hostname", "--mdns", "--mdns-domain", "--cors", "--attach", "--share", "--agent",
        "--dir", "--command", "--continue", "-c", "--session", "-s", "--fork", "--prompt", "--file",
        "-f", "--password", "-p", "--username", "-u", "--auto", "--pure",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are there as an MCP server; OpenCode asks nothing before them.",
        "One call may take 600 s.",
        "Update checks and downloads of language servers are off for this run.",
    )
    outside: tuple[str, ...] = (
        "Its shell and file tools: in the sandbox they reach the project, without it all you can.",
        "MCP servers and plugins of your own configuration: they run beside Aileron's.",
        "It installs its plugin package from the npm registry at each start; there is no switch.",
    )

    def plan(self, context: Context) -> Plan:
        """Return `opencode` with our settings in its environment."""
        settings: dict[str, Any] = {
            "mcp": {
                SERVER: {
                    "type": "local",
                    "command": [context.relay],
                    "enabled": True,
                    "timeout": context.call_seconds * 1000,
                }
            },
            "permission": {f"{SERVER}_*": "allow"},
        }
        if context.gateway is not None:
            base = {"options": {"baseURL": f"{context.gateway}/v1"}}
            google = {"options": {"baseURL": f"{context.gateway}/v1beta"}}
            settings["provider"] = {"anthropic": base, "openai": base, "google": google}
        return Plan(
            argv=(self.program, *context.words),
            env={
                _VARIABLE: _merged(context.env.get(_VARIABLE, ""), settings),
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            },
            call_seconds=float(context.call_seconds),
        )

    def shadows(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a project's opencode.json would take away."""
        found: list[str] = []
        for name, text in files.items():
            if f'"{SERVER}"' in text and '"mcp"' in text:
                found.append(f"{name} names an MCP server {SERVER}")
            found += [f"{name} sets {key}" for key in ("baseURL", "plugin") if f'"{key}"' in text]
        return tuple(found)


def _merged(person: str, ours: Mapping[str, Any]) -> str:
    """Return the JSON that *person* gives in the same variable with *ours* laid over it, table by table.

    Raises:
        InvalidRequest: it is no JSON object.
    """
    if not person.strip():
        return json.dumps(ours)
    try:
        table: Any = json.loads(person)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"Your own {_VARIABLE} is not JSON ({error}). Mend it, or unset it for this launch."
        ) from None
    if not isinstance(table, dict):
        raise InvalidRequest(f"Your own {_VARIABLE} is no JSON object. Mend it, or unset it.")
    return json.dumps(_over(cast("dict[str, Any]", table), ours))


def _over(under: dict[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(under)
    for key, value in ours.items():
        known = result.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[key] = (
            _over(cast("dict[str, Any]", known), cast("dict[str, Any]", value)) if both else value
        )
    return result


OPENCODE = _OpenCode()
