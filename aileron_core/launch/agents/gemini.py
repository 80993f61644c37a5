"""Launching Gemini CLI (Google): a temporary extension, because it accepts an MCP server no other way."""

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.launch.own_servers import own_servers
from aileron_core.launch.plan import (
    CALL_SECONDS,
    CLOUD_LOGINS,
    CLOUDS,
    ITS_OWN_TOOLS,
    LONG_CALLS,
    MCP_SERVER_NAME,
    Agent,
    AgentFolder,
    InjectedFile,
    ModelTraffic,
    OwnServer,
    Plan,
    PlanContext,
    not_gated,
)
from aileron_core.launch.settings_files import (
    home_path,
    json_table,
    merged,
    names_in_effect,
    option_value,
    parse_env_file,
    table_at,
)

_ELSEWHERE = (
    "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT",
    "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
)  # fmt: skip
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_KEY = "gemini-api-key"
_KEPT_KEYS = "gemini-credentials.json"
"""Where it has keys, encrypted, on a machine without a keyring."""
_SETTINGS = "~/.gemini/settings.json"
_ALLOWED = "--allowed-mcp-server-names"
_SYSTEM = PurePosixPath("/etc/gemini-cli/settings.json")
_LOGINS = {"oauth-personal": "Google", "vertex-ai": "Vertex AI"}

_KEYRING = (
    "One in the system's keyring is not in the sandbox. Set GEMINI_API_KEY, or run `aileron gateway "
    "key set gemini`."
)
_OWN_TOOLS = (
    "glob", "grep_search", "list_background_processes", "list_directory", "read_background_output",
    "read_file", "read_many_files", "replace", "run_shell_command", "write_file",
)  # fmt: skip
"""Its tools that act on files or run commands."""
_POLICY = f"""\
[[rule]]
mcpName = "{MCP_SERVER_NAME}"
toolName = "*"
decision = "allow"
priority = 950
"""
_WITHOUT_OWN_TOOLS = f"""{_POLICY}
[[rule]]
toolName = {json.dumps(_OWN_TOOLS)}
decision = "deny"
priority = 999
denyMessage = "This tool is off in this session. Call the tool of Aileron's that does the same."
"""
"""For sub-agents too, and over what is always allowed, which has the priority 950."""


def _plan(context: PlanContext) -> Plan:
    """Return `gemini` with a policy file, and the extension that names Aileron's MCP server."""
    server: dict[str, Any] = {
        "command": context.relay,
        "args": [],
        "timeout": CALL_SECONDS * 1000,
    }
    manifest: dict[str, Any] = {
        "name": MCP_SERVER_NAME,
        "version": "0.0.1",
        "mcpServers": {MCP_SERVER_NAME: server},
    }
    env: dict[str, str] = {}
    if context.gateway is not None and _traffic(context).providers:
        env["GOOGLE_GEMINI_BASE_URL"] = context.gateway
    return Plan(
        argv=(
            "gemini",
            "--policy",
            f"{context.launch_dir}/gemini-policy.toml",
            *(f"--policy={each}" for each in _own_policies(context)),
            *context.all_args,
        ),
        env=env,
        files={
            "gemini-policy.toml": _WITHOUT_OWN_TOOLS if context.builtins == "instead" else _POLICY
        },
        injected_files=(
            InjectedFile(
                path=PurePosixPath(f".gemini/extensions/{MCP_SERVER_NAME}/gemini-extension.json"),
                content=json.dumps(manifest, indent=2) + "\n",
            ),
        ),
        home_files=_without_off(context),
        beside=_beside(context),
        lost_key=_lost_key(context),
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    """Return its settings, and the `.env` files that it reads."""
    own = home_path(env, "GEMINI_CLI_HOME", ".") / ".gemini"
    defaults = _SYSTEM.with_name("system-defaults.json")
    names = ("settings.json", ".env", _KEPT_KEYS)
    return (*(own / name for name in names), PurePosixPath(".env"), defaults, _SYSTEM)


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let the Gemini API with an API key pass; Google accounts use another endpoint.

    No login of its own counts over its environment: `.env` files do not, and an account is elsewhere.
    """
    return ModelTraffic.for_provider("gemini", _elsewhere(context))


def _servers(context: PlanContext) -> Iterator[OwnServer]:
    kept = ""
    if not context.contained:
        kept = "without a sandbox Gemini CLI takes no such setting for one launch"
    elif context.env.get("GEMINI_CLI_HOME"):
        kept = "GEMINI_CLI_HOME is set"
    elif option_value(context.all_args, _ALLOWED) is not None:
        kept = f"its arguments contain {_ALLOWED}"
    tables = [(path, json_table(text) or {}) for path, text in context.settings.items()]
    excluded = {name for _, each in tables for name in _excluded(each)}
    found = ((path, table_at(each, "mcpServers")) for path, each in tables)
    return (each for each in own_servers(found, lambda _: kept) if each.name not in excluded)


def _excluded(settings: Mapping[str, Any]) -> list[str]:
    found: object = table_at(settings, "mcp").get("excluded")
    return [*map(str, cast("list[object]", found))] if isinstance(found, list) else []


def _without_off(context: PlanContext) -> dict[str, str]:
    """Return its settings with the servers excluded that it does not start; nothing where it starts all."""
    if not context.off:
        return {}
    own = json_table(context.settings.get(_SETTINGS, "")) or {}
    names = [*_excluded(own), *(each.name for each in context.off)]
    settings = merged(own, {"mcp": {"excluded": names}})
    return {_SETTINGS.removeprefix("~/"): json.dumps(settings)}


def _overrides(name: str, text: str) -> Iterator[str]:
    if name.endswith(".env"):
        moved = names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES))
        yield from (f"{name} sets {variable}" for variable in moved)
    elif '"selectedType"' in text:
        yield f"{name} sets selectedType"
    if f'"{MCP_SERVER_NAME}"' in text and "mcpServers" in text:
        yield f"{name} defines an MCP server called {MCP_SERVER_NAME}"
    if '"hooks"' in text:
        yield f"{name} sets hooks"


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to the Gemini API with an API key, None if it does."""
    if found := names_in_effect(context.env, _ELSEWHERE):
        return f"{found[0]} is set"
    if found := names_in_effect(context.env, _PROXIES):
        # It sends even loopback through the proxy, whatever NO_PROXY says (read in 0.61.0).
        return f"{found[0]} is set, and Gemini CLI sends all its traffic to that proxy"
    if option_value(context.all_args, "--proxy") is not None:
        return "its arguments contain --proxy, and Gemini CLI sends all its traffic to that proxy"
    for path, text in context.settings.items():
        if path.endswith(".env"):
            if found := names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES)):
                return f"{path} sets {found[0]}"
        elif not path.endswith(_KEPT_KEYS) and json_table(text) is None:
            return f"{path} cannot be parsed"
    chosen = _chosen_login(context)
    if chosen == _KEY:
        return None
    if not chosen:
        return f"{_SETTINGS} does not choose how to sign in yet"
    named = _LOGINS.get(chosen, "another kind of account")
    return f"it is signed in with {named}, which the gateway does not support"


def _chosen_login(context: PlanContext) -> str:
    """Return how its settings choose to sign in: the project's, which come last, count."""
    chosen = ""
    for text in context.settings.values():
        login = table_at(json_table(text) or {}, "security", "auth")
        chosen = str(login.get("selectedType") or chosen)
    return chosen


def _own_policies(context: PlanContext) -> list[str]:
    """Return the policies that it would read of the person's, which any `--policy` replaces (read in 0.61.0)."""
    if option_value(context.all_args, "--policy") is not None:
        return []
    named: list[str] = []
    for path, text in context.settings.items():
        found: object = (json_table(text) or {}).get("policyPaths")
        if path.startswith(("~", "/")) and isinstance(found, list):  # not the project's
            named += [each for each in cast("list[object]", found) if isinstance(each, str)]
    own = home_path(context.env, "GEMINI_CLI_HOME", "~") / ".gemini" / "policies"
    return named or [str(own)]


def _beside(context: PlanContext) -> tuple[str, ...]:
    if context.builtins != "instead" or option_value(context.all_args, "--admin-policy") is None:
        return ()
    return not_gated("Gemini CLI", ("the arguments contain --admin-policy",))


def _lost_key(context: PlanContext) -> str:
    """Return that its key may be in the keyring alone; nothing if it has one, or needs none."""
    files = [text for path, text in context.settings.items() if path.endswith(".env")]
    places = [context.env, *map(parse_env_file, files)]
    kept = any(path.endswith(_KEPT_KEYS) for path in context.settings)
    if kept or any(each.get("GEMINI_API_KEY") for each in places):
        return ""
    if not context.contained or _chosen_login(context) != _KEY:
        return ""
    return (
        "Its settings choose an API key, which is neither in your environment nor in a .env file. "
        f"{_KEYRING}"
    )


GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",
    package="npm install -g @google/gemini-cli",
    tested_versions=("0.61.0",),
    folders=(
        AgentFolder(
            path=PurePosixPath(".gemini"),
            settings=(
                "settings.json", ".env", "*.md", "commands", "skills", "agents", "policies",
                "extensions", "keybindings.json", "trustedFolders.json", "google_accounts.json",
                "gemini-credentials.json", "mcp-oauth-tokens*.json", "a2a-oauth-tokens.json",
                "mcp-server-enablement.json", "installation_id", "user_id", "state.json",
            ),
            credentials=("oauth_creds.json",),
            state=("tmp/{slug}/chats", "tmp/{slug}/logs", "tmp/{slug}/plans", "tmp/{slug}/tasks"),
            conversations=("tmp/*/chats/*.jsonl",),
        ),
    ),
    variables=(
        "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*", "CODE_ASSIST_*", "CLOUD_SHELL", *CLOUDS,
    ),
    other_variables=CLOUD_LOGINS,
    variable_keys=("model.*", "security.auth.*"),
    hosts=("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"),
    key_variables={"gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")},
    project_files=(".gemini/settings.json", ".gemini/.env"),
    reads_above=(".gemini/.env", ".env"),
    checks=("*BeforeTool.*", "*BeforeAgent.*", "*BeforeModel.*", "*BeforeToolSelection.*", "source"),
    program_files=("/etc/gemini-cli/*.json",),
    denied_args=(
        "--policy", "--admin-policy", "-y", "-s", "--extensions", "-e", "--include-directories",
        "--acp", "--experimental-acp", "--prompt", "-p", "--prompt-interactive", "-i", "--worktree",
        "-w", "--resume", "-r", "--session-file", "--delete-session", "--proxy", "--telemetry",
    ),
    controls=(
        "Aileron's actions are available as an extension. Gemini CLI does not ask before it calls them.",
        LONG_CALLS,
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "MCP servers, hooks and extensions in your own ~/.gemini: they run alongside Aileron's, in the sandbox as far as it has their programs.",
        "Usage statistics: your own settings.json decides whether they are sent.",
    ),
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    servers=_servers,
    overrides=_overrides,
)  # fmt: skip
