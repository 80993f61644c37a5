"""Launching Gemini CLI (Google): a temporary extension, because it accepts an MCP server no other way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from aileron_core.launch.agents.settings_files import (
    home_path,
    json_table,
    names_in_effect,
    option_value,
    parse_env_file,
    table_at,
)
from aileron_core.launch.plan import (
    MCP_SERVER_NAME,
    AgentFolder,
    InjectedFile,
    ModelTraffic,
    Plan,
    PlanContext,
)

_ELSEWHERE = (
    "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT",
    "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
)  # fmt: skip
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_KEY = "gemini-api-key"
_LOGINS = {"oauth-personal": "Google", "vertex-ai": "Vertex AI"}

_POLICY = f"""\
[[rule]]
mcpName = "{MCP_SERVER_NAME}"
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
    tested_versions: tuple[str, ...] = ("0.61.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".gemini"),
            credentials=("oauth_creds.json",),
            leave_out=("tmp", "history"),
        ),
    )
    env_names: tuple[str, ...] = (
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GEMINI_MODEL",
        *_ELSEWHERE,
    )
    project_files: tuple[str, ...] = (".gemini/settings.json", ".gemini/.env")
    denied_args: tuple[str, ...] = (
        "--policy", "--admin-policy", "-y", "-s", "--extensions", "-e", "--include-directories",
        "--acp", "--experimental-acp", "--prompt", "-p", "--prompt-interactive", "-i", "--worktree",
        "-w", "--resume", "-r", "--session-file", "--delete-session", "--proxy", "--telemetry",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        (
            "Aileron's actions are available as an extension. Gemini CLI does not ask before it "
            "calls them."
        ),
        "A call can take up to 600 seconds.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        "MCP servers and extensions in your own ~/.gemini: they run alongside Aileron's.",
        "Usage statistics: your own settings.json decides whether they are sent.",
    )
    passes_gateway: str = "With an API key, its model traffic goes through the gateway."
    bypasses_gateway: str = (
        "With a Google account, Vertex AI or a proxy, its model traffic bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `gemini` with a policy file, and the extension that names Aileron's MCP server."""
        server: dict[str, Any] = {
            "command": context.relay,
            "args": [],
            "timeout": context.call_seconds * 1000,
        }
        manifest: dict[str, Any] = {
            "name": MCP_SERVER_NAME,
            "version": "0.0.1",
            "mcpServers": {MCP_SERVER_NAME: server},
        }
        env = {"GEMINI_CLI_NO_RELAUNCH": "true"}
        if context.gateway is not None and self.traffic(context).providers:
            env["GOOGLE_GEMINI_BASE_URL"] = context.gateway
        return Plan(
            argv=(
                self.program,
                "--policy",
                f"{context.launch_dir}/gemini-policy.toml",
                *context.all_args,
            ),
            env=env,
            files={"gemini-policy.toml": _POLICY},
            injected_files=(
                InjectedFile(
                    path=PurePosixPath(
                        f".gemini/extensions/{MCP_SERVER_NAME}/gemini-extension.json"
                    ),
                    content=json.dumps(manifest, indent=2) + "\n",
                ),
            ),
            call_seconds=float(context.call_seconds),
        )

    def settings_paths(self, env: Mapping[str, str]) -> tuple[PurePosixPath, ...]:
        """Return its settings, and the `.env` files that it reads."""
        own = home_path(env, "GEMINI_CLI_HOME", ".") / ".gemini"
        return (own / "settings.json", own / ".env", PurePosixPath(".env"))

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let the Gemini API with an API key pass; Google accounts use another endpoint."""
        return ModelTraffic.for_provider("gemini", _elsewhere(context))

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        found: list[str] = []
        for name, text in files.items():
            if name.endswith(".env"):
                moved = names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES))
                found += [f"{name} sets {variable}" for variable in moved]
            elif '"selectedType"' in text:
                found.append(f"{name} sets selectedType")
            if f'"{MCP_SERVER_NAME}"' in text and "mcpServers" in text:
                found.append(f"{name} defines an MCP server called {MCP_SERVER_NAME}")
            if '"hooks"' in text:
                found.append(f"{name} sets hooks")
        return tuple(found)


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to the Gemini API with an API key, None if it does."""
    if found := names_in_effect(context.env, _ELSEWHERE):
        return f"{found[0]} is set"
    if found := names_in_effect(context.env, _PROXIES):
        # It sends even loopback through the proxy, whatever NO_PROXY says (read in 0.61.0).
        return f"{found[0]} is set, and Gemini CLI sends all its traffic to that proxy"
    if option_value(context.all_args, "--proxy") is not None:
        return "its arguments contain --proxy, and Gemini CLI sends all its traffic to that proxy"
    chosen = ""
    for path, text in context.settings.items():
        if path.endswith(".env"):
            if found := names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES)):
                return f"{path} sets {found[0]}"
            continue
        table = json_table(text)
        if table is None:
            return f"{path} cannot be parsed"
        login = table_at(table, "security", "auth")
        chosen = str(login.get("selectedType") or chosen)  # the project's comes last and counts
    if chosen == _KEY:
        return None
    if not chosen:
        return "~/.gemini/settings.json does not choose how to sign in yet"
    named = _LOGINS.get(chosen, "another kind of account")
    return f"it is signed in with {named}, which the gateway does not support"


GEMINI = _Gemini()
