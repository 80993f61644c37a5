"""Launching Goose (Block): `--with-extension` and environment variables of its own."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from aileron_core.launch.own_servers import own_servers
from aileron_core.launch.plan import (
    CLOUD_LOGINS,
    CLOUDS,
    IN_PROJECT,
    ITS_OWN_TOOLS,
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
    tables_in,
    yaml_table,
)

_CONTENT = (
    "'text', 'image', 'toolRequest', 'toolResponse', 'thinking', 'redactedThinking', 'reasoning', "
    "'systemNotification'"
)
"""The parts of a message that are kept: none that asks for a confirmation, or for a call elsewhere."""
_TODO = """json_extract(extension_data, '$."todo.v0".content')"""


def _time(value: object) -> datetime:
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def _export(rows: Rows) -> object:
    session = rows["sessions"][0]
    messages = [
        {
            "id": row["message_id"],
            "role": row["role"],
            "created": row["created_timestamp"],
            "content": json_object(f'{{"content": {row["content_json"]}}}')["content"],
            "metadata": json_object(
                row["metadata_json"] or '{"userVisible": true, "agentVisible": true}'
            ),
        }
        for row in rows["messages"]
    ]
    times = {name: _time(session[name]).isoformat() for name in ("created_at", "updated_at")}
    return {
        **{name: session[name] for name in ("id", "working_dir", "name", "session_type")},
        **times,
        "extension_data": {},
        "conversation": messages,
        "message_count": len(messages),
    }


GOOSE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("sessions/sessions.db"),
    tables={
        "sessions": {
            **dict.fromkeys(
                (
                    "schedule_id", "recipe_json", "user_recipe_values_json", "provider_name",
                    "model_config_json", "project_id",
                ),
                "NULL",
            ),
            "goose_mode": "'auto'",
            "extension_data": f"iif({_TODO} IS NULL, '{{}}', "
            f"json_object('todo.v0', json_object('content', {_TODO})))",
            "working_dir": IN_PROJECT.format("working_dir"),
        },
        "messages": {
            "content_json": "(SELECT json_group_array(json(value)) FROM json_each(content_json) "
            f"WHERE json_extract(value, '$.type') IN ({_CONTENT}))",
            "metadata_json": "json_object('userVisible', json(iif(json_extract(metadata_json, "
            "'$.userVisible') IS FALSE, 'false', 'true')), 'agentVisible', json(iif(json_extract("
            "metadata_json, '$.agentVisible') IS FALSE, 'false', 'true')))",
        },
    },
    versions=("schema_version",),
    only={"sessions": "session_type = 'user'"},
    is_numbered=True,
    modified="updated_at",
    modified_at=lambda value: _time(value).timestamp(),
    export=_export,
)  # fmt: skip
"""What of Goose's database is conversations: no extension, recipe, provider or schedule, and not its mode."""


_EXTENSIONS = "EXTENSIONS"
"""Goose takes each setting from the environment first: this one as the whole list of its extensions."""
_KEPT = frozenset(("chatrecall", "skills", "todo", "tom"))
"""Those of its own that act on no file and run no command."""
_OF_ITS_OWN = ("builtin", "platform")
_ARGUMENTS: Mapping[str, str] = {  # each option -> what it brings back
    "--with-builtin": "extensions of its own",
    "--recipe": "the extensions of a recipe",
    "--resume": "those of the conversation's first launch",
    "-r": "those of the conversation's first launch",
    "--fork": "those of the conversation's first launch",
}


def _extensions(context: PlanContext) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield its settings of extensions by file, one for the whole system under the person's."""
    if typed := json_table(context.env.get(_EXTENSIONS, "")):
        yield _EXTENSIONS, typed
        return
    texts = sorted(context.settings.items(), key=lambda each: not each[0].startswith("/etc/"))
    for path, text in texts:
        if path.endswith("/config.yaml"):
            yield path, table_at(yaml_table(text) or {}, "extensions")


def _servers(context: PlanContext) -> Iterator[OwnServer]:
    return own_servers(_extensions(context)) if _starts_session(context) else iter(())


def _kept_extensions(context: PlanContext) -> str:
    """Return the value of its variable for its extensions: those in use, less what is off and its own tools."""
    found: Mapping[str, Any] = {}
    for _, table in _extensions(context):
        found = merged(found, table)
    instead = context.builtins == "instead"
    off = {each.name for each in context.off}
    kept = {
        name: each
        for name, each in tables_in(found)
        if name not in off and (not instead or each.get("type") not in _OF_ITS_OWN or name in _KEPT)
    }
    return json.dumps(kept)


def _brought_back(args: Iterable[str]) -> tuple[str, ...]:
    """Return what *args* bring back of its own tools, a sentence for each option."""
    named = dict.fromkeys(word.partition("=")[0] for word in args)
    brought = (f"{word} brings back {_ARGUMENTS[word]}" for word in named if word in _ARGUMENTS)
    return not_gated("Goose", brought)


_TAKES_EXTENSIONS = ("run", "session")


def _starts_session(context: PlanContext) -> bool:
    return not context.args or context.args[0] in _TAKES_EXTENSIONS


_HOSTS: Mapping[ProviderName, str] = {
    "openai": "OPENAI_HOST",
    "anthropic": "ANTHROPIC_HOST",
    "gemini": "GOOGLE_HOST",
}
_KEYS: Mapping[ProviderName, str] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GOOGLE_API_KEY",
}
_SECRETS = "secrets.yaml"
_CHOSEN = ("GOOSE_PROVIDER", "active_provider", "GOOSE_PLANNER_PROVIDER")


def _plan(context: PlanContext) -> Plan:
    """Return `goose session` or `goose run` with the relay as an extension."""
    args = context.args or ("session",)
    if _starts_session(context):
        # The tools' prefix is the command's base name, so it is the relay by its own name.
        args = (args[0], "--with-extension", context.relay, *context.settings_args, *args[1:])
    env = {
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
    }
    if context.gateway is not None:
        env |= {
            _HOSTS[provider]: context.gateway for provider in sorted(_traffic(context).providers)
        }
    # Any other command, `goose configure` say, could keep our list in the person's configuration.
    instead = context.builtins == "instead" and _starts_session(context)
    if instead or context.off:
        env[_EXTENSIONS] = _kept_extensions(context)
    return Plan(
        argv=("goose", *args),
        env=env,
        private=frozenset((_EXTENSIONS,)) & env.keys(),
        beside=_brought_back(args) if instead else (),
        lost_key=_lost_key(context),
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    own = home_path(env, "XDG_CONFIG_HOME", ".config") / "goose"
    if root := env.get("GOOSE_PATH_ROOT"):
        own = PurePosixPath(root, "config")
    system = PurePosixPath("/etc/goose/config.yaml")
    return (own / "config.yaml", own / _SECRETS, own / "custom_providers" / "*.json", system)


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let OpenAI, Anthropic and Google pass, except those whose host is already configured.

    No login of its own counts over its environment: its file of secrets does not.
    """
    if not _starts_session(context):
        # `goose configure` would offer to keep our base URL in the person's configuration.
        reason = f"`goose {context.args[0]}` does not start a session; `goose session` and `goose run` do"
        return ModelTraffic(frozenset(), (reason,))
    past: list[str] = []
    through = set(_HOSTS)
    for provider in _HOSTS:
        if (where := _elsewhere(context, provider)) is not None:
            past.append(where)
            through.discard(provider)
    past += [
        f"the gateway does not support its provider {name}"
        for name in _providers(context)
        if name not in PROVIDER_NAMES
    ]
    return ModelTraffic(frozenset(through), tuple(past))


def _lost_key(context: PlanContext) -> str:
    """Return that a key which the gateway could give may be in the keyring alone; nothing if there is one."""
    files = [text for path, text in context.settings.items() if path.endswith(f"/{_SECRETS}")]
    secrets = (yaml_table(files[0]) or {}) if files else {}
    for name in _providers(context) if context.contained else ():
        if (provider := PROVIDER_NAMES.get(name)) is None:
            continue
        key = _KEYS[provider]
        has = context.env.get(key) or secrets.get(key) or _elsewhere(context, provider) is not None
        if not has:
            return (
                f"Its provider {name} is chosen, and {key} is neither in your environment nor in {_SECRETS}. A key in "
                f"the system's keyring is not in the sandbox. Set {key}, or run `aileron gateway key set {provider}`."
            )
    return ""


def _setting(text: str, name: str) -> str:
    value = (yaml_table(text) or {}).get(name)
    return value if isinstance(value, str) else ""


def _elsewhere(context: PlanContext, provider: ProviderName) -> str | None:
    """Return a clause that says where another host of *provider* is set, None if it is not."""
    for name in (_HOSTS[provider], *(["OPENAI_BASE_URL"] if provider == "openai" else [])):
        if names_in_effect(context.env, (name,)):
            return f"{name} is set"
        for path, text in context.settings.items():
            if is_in_effect(_setting(text, name)):
                return f"{path} sets {name}"
    return None


def _providers(context: PlanContext) -> list[str]:
    """Return the selected providers, as far as the command line and settings tell."""
    typed = option_value(context.all_args, "--provider")
    found = [typed] if typed else []
    for name in _CHOSEN:
        if name in ("GOOSE_PROVIDER", "active_provider") and typed:
            continue
        read = [_setting(text, name) for text in context.settings.values()]
        value = context.env.get(name) or next(filter(None, read), None)
        if value and value not in found:
            found.append(value)
    return found


GOOSE = Agent(
    name="goose",
    title="Goose",
    package="curl -fsSL https://github.com/aaif-goose/goose/releases/download/stable/download_cli.sh | bash",
    tested_versions=("1.34.0",),
    folders=(
        AgentFolder(
            path=PurePosixPath(".config/goose"),
            settings=(
                "config.yaml", "permission.yaml", "permissions", "custom_providers",
                "declarative_providers", "recipes", "prompts", "skills", "agents", "memory",
                ".goosehints", "*.md",
            ),
            credentials=("secrets.yaml",),
        ),
        AgentFolder(
            path=PurePosixPath(".local/share/goose"), settings=("permissions", "recipes", "skills"),
            database=GOOSE_CONVERSATIONS,
        ),
    ),
    variables=(
        "GOOSE_*", "SECURITY_*", "XDG_*_HOME", "GOOGLE_HOST", "ATOMIC_CHAT_*", "DATABRICKS_*", "OMLX_*", "SAGEMAKER_*",
        "SNOWFLAKE_*", "TANZU_AI_*", *PROVIDERS, *CLOUDS,
    ),
    other_variables=(*CLOUD_LOGINS, "GITHUB_COPILOT_*", "*_API_KEY"),
    variable_keys=("api_key_env",),
    other_logins=(
        ".config/goose/chatgpt_codex", ".config/goose/databricks", ".config/goose/gemini_oauth",
        ".config/goose/githubcopilot", ".config/goose/kimicode",
    ),
    hosts=PROVIDER_HOSTS,
    key_variables={provider: (key,) for provider, key in _KEYS.items()},
    checks=("*PreToolUse.*", "*BeforeReadFile.*", "*BeforeShellExecution.*"),
    program_files=("/etc/goose/config.yaml", ".agents/plugins/*/hooks/hooks.json"),
    denied_args=(
        "--with-extension", "--with-builtin", "--with-remote-extension", "--container",
        "--with-streamable-http-extension", "--no-profile", "--recipe", "--sub-recipe",
        "--instructions", "-i", "--text", "-t", "--system", "--params", "--path", "-p", "--name", "-n",
        "--session-id", "--resume", "-r", "--provider", "--additional-sub-recipes", "--fork",
        "--edit", "--history",
    ),
    controls=(
        "Aileron's actions are available as an extension, alongside those of your profile.",
        "Telemetry is off for this run, and Goose does not use the keyring.",
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "Its other tools: Goose runs all of them without asking (GOOSE_MODE=auto), because this cannot be set for one extension.",
        "Long calls: Goose gives up on a call after 300 seconds. The approval keeps waiting, and check_action_status returns the result.",
    ),
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    servers=_servers,
)  # fmt: skip
