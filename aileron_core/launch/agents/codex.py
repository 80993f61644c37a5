"""Launching Codex (OpenAI): everything is set by `-c` flags over the person's own configuration."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from aileron_core.launch.agents.settings_files import (
    home_path,
    is_in_effect,
    json_table,
    names_in_effect,
    table_at,
    toml_table,
)
from aileron_core.launch.plan import MCP_SERVER_NAME, AgentFolder, ModelTraffic, Plan, PlanContext

_SYSTEM = (PurePosixPath("/etc/codex/config.toml"), PurePosixPath("/etc/codex/managed_config.toml"))
_CHATGPT = "it is signed in with a ChatGPT account, which the gateway does not support"
_NO_KEY = "Codex has no API key yet (set OPENAI_API_KEY, or run `codex login --with-api-key`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codex:
    name: str = "codex"
    title: str = "Codex"
    program: str = "codex"
    package: str = "npm install -g @openai/codex"
    tested_versions: tuple[str, ...] = ("0.169.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".codex"),
            variable="CODEX_HOME",
            credentials=("auth.json",),
            leave_out=("log", "sessions", "archived_sessions", "tmp"),
        ),
    )
    env_names: tuple[str, ...] = ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL")
    project_files: tuple[str, ...] = (".codex/config.toml",)
    denied_args: tuple[str, ...] = (
        "-c", "--config", "--enable", "--disable", "-p", "--profile", "--profile-v2", "--full-auto",
        "-s", "-a", "--ask-for-approval", "--add-dir", "-C", "--cd", "--remote", "--oss",
        "--local-provider", "--ignore-user-config", "--ignore-rules", "--search", "-i", "--image",
        "-o", "--output-last-message", "--output-schema",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are available from the first turn: Codex waits for Aileron's MCP server.",
        "Codex does not ask before it calls an action; Aileron's console does.",
        "A call can take up to 600 seconds.",
        "Telemetry, update checks, plugins and apps are off for this run.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "Its own sandbox: it cannot start inside Aileron's, so Codex's shell needs "
            "`--sandbox danger-full-access`."
        ),
        "MCP servers in your own ~/.codex/config.toml: they run alongside Aileron's.",
        (
            "Programs: models in code mode call tools from a program that they write. Each gated "
            "action still needs its own approval."
        ),
    )
    passes_gateway: str = "With an OpenAI API key, its model traffic goes through the gateway."
    bypasses_gateway: str = (
        "With a ChatGPT account or another provider, its model traffic bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `codex` with Aileron's settings over the person's; the person's flags come last."""
        server: dict[str, object] = {
            "command": context.relay,
            "args": [],
            "default_tools_approval_mode": "approve",
            "tool_timeout_sec": context.call_seconds,
            "startup_timeout_sec": 60,
            # Codex does not wait for a server's tools on the first turn without it.
            "required": True,
        }
        settings = [f"mcp_servers.{MCP_SERVER_NAME}={_toml(server)}"]
        if context.gateway is not None and self.traffic(context).providers:
            provider: dict[str, object] = {
                "name": MCP_SERVER_NAME,
                "base_url": f"{context.gateway}/v1",
                "wire_api": "responses",
            }
            login = _login(context)
            provider |= {"requires_openai_auth": True} if login == "file" else {"env_key": login}
            settings += [
                f"model_providers.{MCP_SERVER_NAME}={_toml(provider)}",
                f'model_provider="{MCP_SERVER_NAME}"',
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
            argv=(self.program, *flags, *context.all_args), call_seconds=float(context.call_seconds)
        )

    def settings_paths(self, env: Mapping[str, str]) -> tuple[PurePosixPath, ...]:
        own = home_path(env, "CODEX_HOME", ".codex")
        return (own / "config.toml", own / "auth.json", *_SYSTEM)

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let OpenAI's models pass, unless another provider or kind of login is configured."""
        return ModelTraffic.for_provider("openai", _elsewhere(context))

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        found: list[str] = []
        for name, text in files.items():
            try:
                table = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                found.append(f"{name} cannot be parsed ({error})")
                continue
            if MCP_SERVER_NAME in table.get("mcp_servers", {}):
                found.append(f"{name} sets mcp_servers.{MCP_SERVER_NAME}")
            found += [
                f"{name} sets {key}"
                for key in (
                    "profile",
                    "model_provider",
                    "model_providers",
                    "openai_base_url",
                    "notify",
                    "hooks",
                )
                if key in table
            ]
        return tuple(found)


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to OpenAI's API, None if it does."""
    if names_in_effect(context.env, ("OPENAI_BASE_URL",)):
        return "OPENAI_BASE_URL is set"
    if (typed := _typed(context.all_args)) is not None:
        return f"its arguments contain {typed}"
    for path, text in context.settings.items():
        if not path.endswith(".toml"):
            continue
        table = toml_table(text)
        if table is None:
            return f"{path} cannot be parsed"
        if (key := _named(table)) is not None:
            return f"{path} sets {key}"
    login = _login(context)
    return None if login in ("file", "OPENAI_API_KEY", "CODEX_API_KEY") else login


def _named(table: Mapping[str, Any]) -> str | None:
    """Return the key of a configuration that selects another provider, address or kind of login."""
    profile = table.get("profile")
    chosen = table_at(table, "profiles", profile) if isinstance(profile, str) else {}
    for name, each in (("model_provider", table), (f"profiles.{profile}.model_provider", chosen)):
        if each.get("model_provider", "openai") != "openai":
            return name
    if is_in_effect(table.get("openai_base_url")):
        return "openai_base_url"
    if table_at(table, "model_providers", "openai"):
        return "model_providers.openai"
    if table.get("forced_login_method") == "chatgpt":
        return "forced_login_method"
    return None


def _typed(words: Iterable[str]) -> str | None:
    """Return the first argument that selects a provider, or a profile that may."""
    for word in words:
        if word.startswith(("--oss", "--local-provider", "--profile")) or word[:2] == "-p":
            return word.partition("=")[0]
        setting = word.removeprefix("--config=").removeprefix("-c").strip()
        for key in ("model_provider", "openai_base_url", "profile"):
            if setting.startswith((f"{key}=", f"{key}s.", f"{key} ")):
                return key
    return None


def _login(context: PlanContext) -> str:
    """Return the source of its API key: `file` for the login file, or a variable; else why there is none.

    Checked in the same order as Codex does, so that the same account pays as before.
    """
    if "exec" in context.all_args and names_in_effect(context.env, ("CODEX_API_KEY",)):
        return "CODEX_API_KEY"
    kind = _login_file(context)
    if kind == "key":
        return "file"
    if kind == "account":
        return _CHATGPT
    return "OPENAI_API_KEY" if names_in_effect(context.env, ("OPENAI_API_KEY",)) else _NO_KEY


def _login_file(context: PlanContext) -> Literal["key", "account"] | None:
    """Return what the login file holds; a login kept elsewhere counts as an account."""
    for path, text in context.settings.items():
        table = json_table(text) if path.endswith("auth.json") else None
        if table is None:
            where = toml_table(text) if path.endswith("config.toml") else None
            if where and where.get("cli_auth_credentials_store", "file") != "file":
                return "account"  # a keyring: not known without asking it
            continue
        mode = str(table.get("auth_mode") or "").lower()
        if table.get("OPENAI_API_KEY") and mode in ("", "apikey"):
            return "key"
        if mode or table.get("tokens"):
            return "account"
    return None


def _toml(value: object) -> str:
    """Return *value* as inline TOML; strings are written as JSON, which TOML reads alike."""
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        items = ", ".join(f"{key} = {_toml(item)}" for key, item in table.items())
        return "{" + items + "}"
    return json.dumps(value)


CODEX = _Codex()
