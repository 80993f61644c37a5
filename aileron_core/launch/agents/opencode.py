"""Launching OpenCode: a JSON document in the environment, merged over the person's configuration."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import quote

from aileron_core.errors import InvalidRequest
from aileron_core.launch.own_servers import own_servers
from aileron_core.launch.plan import (
    CALL_SECONDS,
    CLOUD_LOGINS,
    CLOUDS,
    IN_PROJECT,
    ITS_OWN_TOOLS,
    LONG_CALLS,
    MCP_SERVER_NAME,
    PROVIDER_NAMES,
    PROVIDERS,
    Agent,
    AgentFolder,
    ConversationDatabase,
    ModelTraffic,
    OwnServer,
    Plan,
    PlanContext,
    ProviderName,
    Rows,
    json_object,
    not_gated,
)
from aileron_core.launch.settings_files import (
    PROVIDER_HOSTS,
    home_path,
    is_in_effect,
    json_table,
    merged,
    names_in_effect,
    option_value,
    table_at,
)

_PARTS = "'text', 'reasoning', 'tool', 'file', 'step-start', 'step-finish', 'compaction'"
"""The parts of a message that are kept: none that OpenCode would carry out, or restore files from."""
_WITHOUT_A_PERSON = "'question', 'plan_enter', 'plan_exit'"
"""What `opencode run` denies in its conversations, because nobody can answer."""
_DENIED = (
    "(SELECT nullif(json_group_array(json(value)), '[]') FROM json_each(permission) WHERE "
    f"json_extract(value, '$.permission') IN ({_WITHOUT_A_PERSON}) "
    "AND json_extract(value, '$.action') = 'deny')"
)
_MESSAGE = (
    "json_set(json_remove(data, '$.tools', '$.system', '$.mode'), '$.agent', 'earlier', "
    "iif(json_extract(data, '$.role') = 'user', '$.agent', '$.mode'), 'earlier')"
)
"""No agent has the name, so that OpenCode goes on with that of a new conversation."""


def _export(rows: Rows) -> object:
    session = rows["session"][0]
    parts: dict[object, list[object]] = {}
    for row in sorted(rows["part"], key=lambda row: str(row["id"])):
        ids = {"id": row["id"], "sessionID": row["session_id"], "messageID": row["message_id"]}
        parts.setdefault(row["message_id"], []).append({**json_object(row["data"]), **ids})
    messages = [
        {
            "info": {**json_object(row["data"]), "id": row["id"], "sessionID": row["session_id"]},
            "parts": parts.get(row["id"], []),
        }
        for row in sorted(rows["message"], key=lambda row: str(row["id"]))
    ]
    info = {
        **{name: session[name] for name in ("id", "slug", "directory", "title", "version")},
        "projectID": session["project_id"],
        "time": {"created": session["time_created"], "updated": session["time_updated"]},
    }
    return {"info": info, "messages": messages}


OPENCODE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("history/opencode.db"),
    tables={
        "session": {
            **dict.fromkeys(
                ("workspace_id", "path", "share_url", "metadata", "agent", "model"), "NULL"
            ),
            "summary_diffs": "NULL",
            "revert": "iif(revert IS NULL, NULL, json_patch('{}', json_object('messageID', "
            "json_extract(revert, '$.messageID'), 'partID', json_extract(revert, '$.partID'))))",
            "permission": _DENIED,
            "directory": IN_PROJECT.format("directory"),
        },
        "message": {"data": _MESSAGE},
        "part": {},
        "todo": {},
        "project": {"worktree": ":project", "sandboxes": "'[]'", "commands": "NULL"},
    },
    versions=("migration", "data_migration"),
    only={
        "part": f"json_extract(data, '$.type') IN ({_PARTS}) AND (json_extract(data, '$.type') != 'file' "
        "OR json_extract(data, '$.url') LIKE 'data:%')",
    },
    is_numbered=False,
    modified="time_updated",
    modified_at=lambda value: value / 1000,
    export=_export,
)
"""What of OpenCode's database is conversations: no account, share, command or allowed call, and not their agent."""


_PLUGIN = "aileron-opencode.mjs"
_OWN_TOOLS = ("bash", "edit", "glob", "grep", "list", "lsp", "read")
"""The permissions of its tools that act on files or run commands; `edit` is that of all that write."""
_CONFIG = "OPENCODE_CONFIG_CONTENT"
_SYSTEM = PurePosixPath("/etc/opencode")
_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_GENERATIVE_AI_API_KEY",
}
_VERSIONS = {"anthropic": "v1", "openai": "v1", "google": "v1beta"}
"""What stands between a provider's address and the paths that OpenCode puts behind it."""


_COPIED = (
    "opencode.json", "opencode.jsonc", "config.json", "tui.json", "tui.jsonc", "*.md",
    "agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins",
    "skill", "skills", "tool", "tools", "themes", "package.json", "package-lock.json",
    "bun.lock", ".gitignore",
)  # fmt: skip
"""Its settings, in both folders that may have them."""
_IN_PROJECT = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json")


def _plan(context: PlanContext) -> Plan:
    """Return `opencode` with Aileron's settings in its environment."""
    settings: dict[str, Any] = {
        "mcp": {
            **{each.name: {"enabled": False} for each in context.off},
            MCP_SERVER_NAME: {
                "type": "local",
                "command": [context.relay],
                "enabled": True,
                "timeout": CALL_SECONDS * 1000,
            },
        },
        "permission": {f"{MCP_SERVER_NAME}_*": "allow"},
    }
    if context.gateway is not None:
        through = _traffic(context).providers
        settings["provider"] = {
            name: {"options": {"baseURL": f"{context.gateway}/{_VERSIONS[name]}"}}
            for name, provider in PROVIDER_NAMES.items()
            if provider in through
        }
    own_files: dict[str, str] = {}
    own_env: dict[str, str] = {}
    if context.builtins == "instead":
        own_files[_PLUGIN] = _plugin()
        # Before it loads a plugin it waits for its package of npm's, over a minute where there is no network.
        own_env["npm_config_fetch_retries"] = "0"
        settings["plugin"] = [f"file://{quote(f'{context.launch_dir}/{_PLUGIN}')}"]
        settings["permission"] |= dict.fromkeys(_OWN_TOOLS, "deny")
    own_place = {"OPENCODE_DB": str(OPENCODE_CONVERSATIONS.path)} if context.contained else {}
    return Plan(
        argv=("opencode", *context.all_args),
        env={
            **own_place,
            **own_env,
            _CONFIG: _merged(context.env.get(_CONFIG, ""), settings),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        files=own_files,
        beside=_beside(context),
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    own = home_path(env, "XDG_CONFIG_HOME", ".config") / "opencode"
    more = [PurePosixPath(env["OPENCODE_CONFIG"])] if env.get("OPENCODE_CONFIG") else []
    if folder := env.get("OPENCODE_CONFIG_DIR"):
        more += [PurePosixPath(folder, name) for name in ("opencode.json", "opencode.jsonc")]
    logins = home_path(env, "XDG_DATA_HOME", ".local/share") / "opencode" / "auth.json"
    names = ("config.json", "opencode.json", "opencode.jsonc")
    used = home_path(env, "XDG_STATE_HOME", ".local/state") / "opencode" / "model.json"
    home = PurePosixPath(".opencode")
    more += [folder / name for folder in (home, _SYSTEM) for name in names[1:]]
    return (logins, used, *(own / name for name in names), *more)


def _own_login(context: PlanContext, name: str) -> str | None:
    """Return a login, or a key in a configuration: these count over its environment."""
    for path, text in _configurations(context):
        table = json_table(text) or {}
        if _is_logins(path):
            if table_at(table, name):
                return f"{path} has a login for {name}"
        elif table_at(table, "provider", name, "options").get("apiKey"):
            return f"{path} sets provider.{name}.options.apiKey"
    return None


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let the providers with an API key and no configured address pass."""
    through: set[ProviderName] = set()
    past: list[str] = []
    logins: dict[ProviderName, str] = {
        provider: login
        for name, provider in PROVIDER_NAMES.items()
        if (login := _own_login(context, name)) is not None
    }
    known: dict[str, Mapping[str, Any]] = {}
    for path, text in _configurations(context):
        if (table := json_table(text)) is None:
            return ModelTraffic(frozenset(), (f"{path} cannot be parsed",), logins)
        if table:
            known[path] = table
    for name, provider in PROVIDER_NAMES.items():
        if (reason := _elsewhere(name, known)) is not None:
            past.append(reason)
        elif names_in_effect(context.env, (moved := f"{name.upper()}_BASE_URL",)):
            past.append(f"{moved} is set")
        elif _has_key(name, known, context):
            # One without a key stays out: OpenCode would offer its models, and they would fail.
            through.add(provider)
    chosen = _chosen(known, context)
    if chosen not in ("", *PROVIDER_NAMES):
        past.append(f"the gateway does not support its provider {chosen}")
    if not through and not past:
        past.append("OpenCode has no API key for Anthropic, OpenAI or Google")
    return ModelTraffic(frozenset(through), tuple(past), logins)


def _servers(context: PlanContext) -> Iterator[OwnServer]:
    tables = ((path, json_table(text) or {}) for path, text in _configurations(context))
    return own_servers(((path, table_at(each, "mcp")) for path, each in tables), _kept)


def _kept(files: Sequence[str]) -> str:
    managed = [each for each in files if each.startswith(f"{_SYSTEM}/")]
    return f"{managed[-1]} counts over what Aileron sets" if managed else ""


def _overrides(name: str, text: str) -> Iterator[str]:
    if f'"{MCP_SERVER_NAME}"' in text and '"mcp"' in text:
        yield f"{name} defines an MCP server called {MCP_SERVER_NAME}"
    yield from (f"{name} sets {key}" for key in ("baseURL", "api", "plugin") if f'"{key}"' in text)


def _beside(context: PlanContext) -> tuple[str, ...]:
    if context.builtins != "instead":
        return ()
    named = {word.partition("=")[0] for word in context.all_args}
    found: list[str] = []
    if "--pure" in named or names_in_effect(context.env, ("OPENCODE_PURE",)):
        found.append("--pure leaves Aileron's plugin out, so an agent's own permissions count")
    if not named.isdisjoint(("attach", "--attach")):
        found.append("it attaches to a server that was not started by this launch")
    return not_gated("OpenCode", found)


def _plugin() -> str:
    text = files("aileron_core.launch.agents").joinpath("opencode_plugin.mjs").read_text("utf-8")
    return text.replace("__OFF__", json.dumps(_OWN_TOOLS), 1)


_Tables = Mapping[str, Mapping[str, Any]]
"""What its configurations and its logins say, by path; the later ones count."""


def _configurations(context: PlanContext) -> Iterator[tuple[str, str]]:
    """Return the texts of its settings and logins."""
    yield from context.settings.items()
    yield _CONFIG, context.env.get(_CONFIG, "")


def _is_logins(path: str) -> bool:
    return path.endswith("/auth.json")


def _used(path: str, table: Mapping[str, Any]) -> str | None:
    """Return the model that was used last, which counts while no setting chooses one; None if *path* has none."""
    recent: Any = table.get("recent") if path.endswith("/opencode/model.json") else None
    last = cast("list[Any]", recent)[0] if isinstance(recent, list) and recent else None
    used = table_at({"last": last}, "last")
    return f"{used.get('providerID')}/{used.get('modelID')}" if used else None


def _elsewhere(name: str, tables: _Tables) -> str | None:
    """Return why a provider's traffic does not go to its own API, None if it does."""
    for path, table in tables.items():
        if _is_logins(path):
            if table_at(table, name).get("type", "api") != "api":
                return f"its {name} is signed in with an account"
        elif is_in_effect(table_at(table, "provider", name, "options").get("baseURL")):
            return f"{path} sets provider.{name}.options.baseURL"
        elif is_in_effect(table_at(table, "provider", name).get("api")):
            return f"{path} sets provider.{name}.api"
    return None


def _has_key(name: str, tables: _Tables, context: PlanContext) -> bool:
    return bool(names_in_effect(context.env, (_KEYS[name],))) or any(
        table_at(table, name) if _is_logins(path) else table_at(table, "provider", name)
        for path, table in tables.items()
    )


def _chosen(tables: _Tables, context: PlanContext) -> str:
    """Return the provider of the selected model, empty if none is selected."""
    model = option_value(context.all_args, "-m", "--model") or ""
    used = [_used(path, table) for path, table in tables.items()]
    for table in tables.values() if not model else ():
        model = str(table.get("model") or model)
    model = model or next(filter(None, used), "")
    return model.partition("/")[0] if "/" in model else ""


def _merged(person: str, ours: Mapping[str, Any]) -> str:
    """Return the JSON of *person* (the variable's current value) with *ours* merged over it, table by table.

    Raises:
        InvalidRequest: *person* is not a JSON object.
    """
    if not person.strip():
        return json.dumps(ours)
    try:
        table: Any = json.loads(person)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"Your own {_CONFIG} is not JSON ({error}). Fix it, or unset it for this launch."
        ) from None
    if not isinstance(table, dict):
        raise InvalidRequest(f"Your own {_CONFIG} is not a JSON object. Fix it, or unset it.")
    theirs = cast("dict[str, Any]", table)
    both = merged(theirs, ours)
    if isinstance(theirs.get("plugin"), list) and "plugin" in ours:
        both["plugin"] = [*theirs["plugin"], *ours["plugin"]]
    return json.dumps(both)


OPENCODE = Agent(
    name="opencode",
    title="OpenCode",
    package="npm install -g opencode-ai",
    tested_versions=("1.18.33",),
    folders=(
        AgentFolder(path=PurePosixPath(".config/opencode"), settings=_COPIED, read_only=("node_modules",)),
        AgentFolder(path=PurePosixPath(".opencode"), settings=_COPIED, read_only=("bin", "node_modules")),
        AgentFolder(
            path=PurePosixPath(".local/share/opencode"),
            settings=("mcp-auth.json",),
            credentials=("auth.json",),
            read_only=("bin",),
            database=OPENCODE_CONVERSATIONS,
        ),
        AgentFolder(path=PurePosixPath(".local/state/opencode"), settings=("model.json",)),
        AgentFolder(
            path=PurePosixPath(".cache/opencode"),
            settings=("models.json", "version"),
            read_only=("bin", "node_modules", "packages"),
        ),
    ),
    variables=(
        "XDG_*_HOME", "CF_AIG_TOKEN", "NEON_AI_*", "PRIVATEMODE_*", "SNOWFLAKE_CORTEX_*", "SNOWFLAKE_ACCOUNT", "WATSONX_*",
        *PROVIDERS, *CLOUDS,
    ),
    other_variables=(
        *CLOUD_LOGINS, "CLOUDFLARE_*", "DATABRICKS_*", "DIGITALOCEAN_*", "GITHUB_TOKEN", "GITLAB_*", "HF_TOKEN", "VERCEL_*",
        "AICORE_*", "*_API_KEY",
    ),
    variable_keys=("*.env",),
    hosts=PROVIDER_HOSTS,
    key_variables={PROVIDER_NAMES[name]: (key,) for name, key in _KEYS.items()},
    project_files=_IN_PROJECT,
    reads_above=_IN_PROJECT,
    checks=("plugin",),
    program_files=("/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc"),
    denied_args=(
        "--port", "--hostname", "--mdns", "--mdns-domain", "--cors", "--attach", "--share", "--agent",
        "--dir", "--command", "--continue", "-c", "--session", "-s", "--fork", "--prompt", "--file",
        "-f", "--password", "-p", "--username", "-u", "--auto", "--pure",
    ),
    controls=(
        "Aileron's actions are available through an MCP server. OpenCode does not ask before it calls them.",
        LONG_CALLS,
        "Update checks and language server downloads are off for this run.",
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "MCP servers and plugins in your own configuration: they run alongside Aileron's, in the sandbox as far as it has their programs.",
        "Its plugin package: OpenCode installs it from the npm registry at each start, and has no setting against that.",
    ),
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    servers=_servers,
    overrides=_overrides,
)  # fmt: skip
