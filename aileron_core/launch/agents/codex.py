"""Launching Codex (OpenAI): everything is set by `-c` flags over the person's own configuration."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Literal, cast

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
    ModelTraffic,
    OwnServer,
    Plan,
    PlanContext,
    not_gated,
)
from aileron_core.launch.settings_files import (
    home_path,
    is_in_effect,
    is_project_file,
    json_table,
    merged,
    names_in_effect,
    option_value,
    table_at,
    toml_table,
)

_FEATURES = (
    "shell_tool", "unified_exec", "view_image", "image_generation", "browser_use", "computer_use",
)  # fmt: skip
"""Its features with tools that act on files or run commands. None removes apply_patch, which the model decides."""
_WITHOUT_OWN_TOOLS = (*(f"features.{name}=false" for name in _FEATURES), 'sandbox_mode="read-only"')
"""Settings of a session in which Aileron's tools stand in place of its own; the sandbox is for apply_patch."""
_PLAIN_TOOLS = ["deferred", "code_mode"]
"""Where a server's tools are not put, so that every model is offered them from the start, by their names."""
_STAYS = (
    "Codex keeps apply_patch with newer models (gpt-5.5 and later). Its own sandbox is read-only in this session, so "
    "Codex refuses a patch or asks you itself, outside Aileron's gate."
)
_BYPASSES = ("--dangerously-bypass-approvals-and-sandbox", "--full-auto", "--yolo")


def _settings(table: Mapping[str, Any]) -> Iterator[str]:
    features = table_at(table, "features")
    yield from (f"features.{name}" for name in _FEATURES if features.get(name) is True)
    if table.get("sandbox_mode", "read-only") != "read-only":
        yield "sandbox_mode"


_SYSTEM = (PurePosixPath("/etc/codex/config.toml"), PurePosixPath("/etc/codex/managed_config.toml"))
_POLICIES = ("untrusted", "on-failure", "on-request", "never")
_CHATGPT = "it is signed in with a ChatGPT account, which the gateway does not support"
_OTHER_ACCOUNT = "CODEX_ACCESS_TOKEN is set, for an account, which the gateway does not support"
_NO_KEY = "Codex has no API key yet (set OPENAI_API_KEY, or run `codex login --with-api-key`)"
_PAYING = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}


def _plan(context: PlanContext) -> Plan:
    """Return `codex` with Aileron's settings over the person's; the person's flags come last."""
    server: dict[str, object] = {
        "command": context.relay,
        "args": [],
        "default_tools_approval_mode": "approve",
        "tool_timeout_sec": CALL_SECONDS,
        "startup_timeout_sec": 60,
        # Codex does not wait for a server's tools on the first turn without it.
        "required": True,
    }
    if context.builtins != "off":
        server["omit_tools_from"] = _PLAIN_TOOLS
    # The whole table first: set behind one of its servers, it would take that away.
    off = ", ".join(f"{json.dumps(each.name)} = {{enabled = false}}" for each in context.off)
    settings = [f"mcp_servers={{{off}}}"] if off else []
    settings.append(f"mcp_servers.{MCP_SERVER_NAME}={_toml(server)}")
    if context.gateway is not None and _traffic(context).providers:
        provider: dict[str, object] = {
            "name": MCP_SERVER_NAME,
            "base_url": f"{context.gateway}/v1",
            "wire_api": "responses",
        }
        login = _login(context)
        provider |= {"requires_openai_auth": True} if login == "file" else {"env_key": login}
        if paying := {header: name for header, name in _PAYING.items() if context.env.get(name)}:
            provider["env_http_headers"] = paying  # as its own provider sends them
        settings += [
            f"model_providers.{MCP_SERVER_NAME}={_toml(provider)}",
            f'model_provider="{MCP_SERVER_NAME}"',
        ]
    settings += [
        "features.mcp_tool_list_changed=true",
        "suppress_unstable_features_warning=true",
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
        "features.daemon_auto_start=false",
        "features.plugins=false",
        "features.apps=false",
    ]
    if context.builtins == "instead":
        settings += _WITHOUT_OWN_TOOLS
    if context.contained and (policy := _chosen_approval(context)):
        settings.insert(0, f'approval_policy="{policy}"')
    flags = [word for setting in settings for word in ("-c", setting)]
    return Plan(
        argv=("codex", *flags, *context.all_args),
        beside=_beside(context) if context.builtins == "instead" else (),
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    own = home_path(env, "CODEX_HOME", ".codex")
    attached = [word[2:] for word in args if word.startswith("-p") and word != "-p"]
    profile = option_value(args, "-p", "--profile", "--profile-v2") or "".join(attached[-1:])
    named = [f"{profile}.config.toml"] if profile and "/" not in profile else []
    names = ("config.toml", *named, "auth.json", ".env")
    return (*(own / name for name in names), *_SYSTEM)


def _own_login(context: PlanContext) -> str | None:
    """Return what its login file holds: that counts over its environment."""
    kinds = {"key": "auth.json holds a key", "account": "it is signed in with an account"}
    kind = _login_file(context)
    if names_in_effect(context.env, ("CODEX_ACCESS_TOKEN",)):
        return "CODEX_ACCESS_TOKEN is set"
    return None if kind is None else kinds[kind]


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let OpenAI's models pass, unless another provider or kind of login is configured."""
    return ModelTraffic.for_provider("openai", _elsewhere(context), _own_login(context))


def _servers(context: PlanContext) -> Iterator[OwnServer]:
    texts = sorted(context.settings.items(), key=lambda each: each[0] != str(_SYSTEM[0]))
    tables = ((path, toml_table(text) or {}) for path, text in texts if path.endswith(".toml"))
    return own_servers(((path, table_at(each, "mcp_servers")) for path, each in tables), _kept)


def _kept(files: Sequence[str]) -> str:
    """Return why none of its arguments switches off a server that *files* name."""
    if str(_SYSTEM[1]) in files:
        return f"{_SYSTEM[1]} counts over its arguments"
    # Codex starts with no setting of a server that it does not know, and may not read the project's.
    return "only the project's settings name it" if all(map(is_project_file, files)) else ""


def _overrides(name: str, text: str) -> Iterator[str]:
    table = toml_table(text)
    if table is None:
        yield f"{name} cannot be parsed as TOML"
        return
    if MCP_SERVER_NAME in table_at(table, "mcp_servers"):
        yield f"{name} sets mcp_servers.{MCP_SERVER_NAME}"
    keys = "profile", "model_provider", "model_providers", "openai_base_url", "notify", "hooks"
    yield from (f"{name} sets {key}" for key in keys if key in table)


def _beside(context: PlanContext) -> tuple[str, ...]:
    """Return what stays outside the gate: apply_patch, and what counts over `_WITHOUT_OWN_TOOLS`."""
    words = context.all_args
    found = [f"the arguments set {name}" for name in _settings(_typed_settings(words))]
    if option_value(words, "-s", "--sandbox") not in (None, "read-only"):
        found.append("the arguments contain --sandbox")
    found += [f"the arguments contain {word}" for word in words if word in _BYPASSES]
    found += [
        f"the arguments contain --enable {feature}"
        for option, feature in pairwise(words)
        if feature in _FEATURES and option == "--enable"
    ]
    for path, text in context.settings.items():
        if path.endswith("/managed_config.toml"):  # it counts over arguments
            found += [f"{path} sets {name}" for name in _settings(toml_table(text) or {})]
    return (_STAYS, *not_gated("Codex", found))


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to OpenAI's API, None if it does."""
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


def _typed_settings(words: Iterable[str]) -> dict[str, Any]:
    """Return the settings that arguments set (`-c key=value`), as a configuration has them."""
    found: dict[str, Any] = {}
    before = ""
    for word in words:
        text = word if before in ("-c", "--config") else ""
        if word.startswith("--config="):
            text = word.removeprefix("--config=")
        elif word.startswith("-c") and word != "-c":
            text = word.removeprefix("-c")
        key, _, value = text.partition("=")
        if key:
            typed = toml_table(f"{key} = {value}") or toml_table(f"{key} = {json.dumps(value)}")
            found = merged(found, typed or {})
        before = word
    if "--oss" in (given := [*words]) or "--local-provider" in given:
        found["model_provider"] = "oss"
    return found


def _login(context: PlanContext) -> str:
    """Return the source of its API key: `file` for the login file, or a variable; else why there is none.

    Checked in the same order as Codex does, so that the same account pays as before.
    """
    if "exec" in context.all_args and names_in_effect(context.env, ("CODEX_API_KEY",)):
        return "CODEX_API_KEY"
    if names_in_effect(context.env, ("CODEX_ACCESS_TOKEN",)):
        return _OTHER_ACCOUNT
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


def _chosen_approval(context: PlanContext) -> str | None:
    """Return the approval policy that the person's settings choose, None to pass none, as for a profile.

    Only an option counts over the policy that a conversation of an earlier launch has recorded, where
    the agent could have put another: one that goes on gets the default if the settings choose none.
    """
    tables = [
        toml_table(text) or {}
        for path, text in context.settings.items()
        if path.startswith("~/") and path.endswith("config.toml")
    ]
    policy = next((table.get("approval_policy") for table in tables), None)
    profiled = any(table.get("profile") for table in tables) or any(
        word.startswith(("-p", "--profile")) for word in context.all_args
    )
    words = {*context.all_args}
    if policy is None and words & {"resume", "fork"} and not words & {"exec", "e"}:
        policy = "on-request"  # without a person to ask (`exec`) it is `never` anyway
    return policy if isinstance(policy, str) and policy in _POLICIES and not profiled else None


def _toml(value: object) -> str:
    """Return *value* as inline TOML; strings are written as JSON, which TOML reads alike."""
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        items = ", ".join(f"{key} = {_toml(item)}" for key, item in table.items())
        return "{" + items + "}"
    return json.dumps(value)


CODEX = Agent(
    name="codex",
    title="Codex",
    package="npm install -g @openai/codex",
    tested_versions=("0.169.0",),
    folders=(
        AgentFolder(
            path=PurePosixPath(".codex"),
            settings=(
                "config.toml", "*.config.toml", ".env", "managed_config.toml", "requirements.toml", "*.md",
                "hooks.json", "hooks", "rules", "prompts", "skills", "agents", "themes",
                "models_cache.json", "version.json", "installation_id", ".personality_migration",
                ".sandbox_migration",
            ),
            credentials=("auth.json", ".credentials.json"),
            read_only=("packages",),
            state=("sessions", "archived_sessions", "thread-writer-locks"),
            state_files=("history.jsonl", "session_index.jsonl"),
            conversations=("sessions/*/*/*/*.jsonl", "archived_sessions/*.jsonl"),
        ),
    ),
    variables=("OPENAI_*", "CODEX_*", *CLOUDS),
    other_variables=CLOUD_LOGINS,
    variable_keys=("model_providers.*.env_key", "model_providers.*.env_http_headers.*"),
    hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    key_variables={"openai": ("OPENAI_API_KEY", "CODEX_API_KEY")},
    project_files=(".codex/config.toml",),
    reads_above=(".codex/config.toml",),
    checks=("*PreToolUse.*", "*PermissionRequest.*", "*UserPromptSubmit.*"),
    program_files=(*map(str, _SYSTEM), "/etc/codex/requirements.toml", "/etc/codex/hooks.json"),
    denied_args=(
        "-c", "--config", "--enable", "--disable", "-p", "--profile", "--profile-v2", "--full-auto",
        "-s", "-a", "--ask-for-approval", "--add-dir", "-C", "--cd", "--remote", "--oss",
        "--local-provider", "--ignore-user-config", "--ignore-rules", "--search", "-i", "--image",
        "-o", "--output-last-message", "--output-schema",
    ),
    controls=(
        "Aileron's actions are available from the first turn: Codex waits for Aileron's MCP server.",
        "Codex does not ask before it calls an action; Aileron's console does.",
        LONG_CALLS,
        "Telemetry, update checks, plugins, apps and the background server are off for this run.",
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "Its own sandbox: it cannot start inside Aileron's, so Codex's shell needs `--sandbox danger-full-access`.",
        "MCP servers and hooks in your own ~/.codex: they run alongside Aileron's, in the sandbox as far as it has their programs.",
        "Programs: models in code mode call tools from a program that they write. Each gated action still needs its own approval.",
    ),
    kept_tools=_STAYS,
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    servers=_servers,
    overrides=_overrides,
)  # fmt: skip
