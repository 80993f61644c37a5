"""Launching Claude Code (Anthropic): `--mcp-config` and `--settings` add to the person's own settings."""

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from aileron_core.launch.model_traffic import bypass_proxies
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
)
from aileron_core.launch.settings_files import (
    home_path,
    json_table,
    names_in_effect,
    option_value,
    table_at,
    tables_in,
)

_MANAGED = PurePosixPath("/etc/claude-code/managed-settings.json")
_ELSEWHERE = (
    "ANTHROPIC_BASE_URL", "ANTHROPIC_UNIX_SOCKET", "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX",
)  # fmt: skip
"""Variables that send its model's traffic to another place, as its program names them."""
_LOGINS = ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_MODES = ("default", "manual", "plan", "acceptEdits", "auto", "dontAsk")
"""Permission modes that settings may choose; the one that bypasses permissions is left to its own option."""

_KEPT_TOOLS = (
    "Agent", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ListAgents", "ReportFindings",
    "SendMessage", "Skill", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
    "TodoWrite", "WebFetch", "WebSearch",
)  # fmt: skip
"""Its tools that act on no file and run no command; its sub-agents get no others either."""
_DENIED_TOOLS = (
    "Bash", "Edit", "EnterWorktree", "ExitWorktree", "Glob", "Grep", "LSP", "Monitor", "NotebookEdit",
    "Read", "Workflow", "Write",
)  # fmt: skip
"""Its tools that do, refused as well: more may be added to those kept, by `--tools`, but none of these."""
_GOES_ON = ("--continue", "-c", "--resume", "-r", "--from-pr")
"""Options that bring an earlier conversation back."""


def _plan(context: PlanContext) -> Plan:
    """Return `claude` with MCP server and settings in files."""
    server: dict[str, Any] = {
        "type": "stdio",
        "command": context.relay,
        "args": [],
        "env": {},
        "timeout": CALL_SECONDS * 1000,
        "alwaysLoad": True,
    }
    env: dict[str, str] = {
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    }
    if context.gateway is not None and _traffic(context).providers:
        env["ANTHROPIC_BASE_URL"] = context.gateway
        if own := _variables(context):
            # A proxy in its settings counts over the environment, so ours must be there too.
            host = urlsplit(context.gateway).hostname or ""
            env |= bypass_proxies({**context.env, **own}, host)
    settings: dict[str, Any] = {
        "env": env,
        "permissions": {"allow": [f"mcp__{MCP_SERVER_NAME}"]},
    }
    if context.off:
        settings["deniedMcpServers"] = [
            {"serverUrl": each.url} if each.url else {"serverCommand": [*each.command]}
            for each in context.off
        ]
    # `--mcp-config` takes a list: a prompt right behind it would be read as one more file.
    flags = (
        f"--mcp-config={context.launch_dir}/claude-mcp.json",
        "--settings",
        f"{context.launch_dir}/claude-settings.json",
    )
    if context.contained and (mode := _chosen_mode(context)):
        flags = (*flags, f"--permission-mode={mode}")
    if context.builtins == "instead":
        flags = (
            *flags,
            f"--tools={','.join(_KEPT_TOOLS)}",
            f"--disallowedTools={','.join(_DENIED_TOOLS)}",
        )
    return Plan(
        argv=("claude", *flags, *context.all_args),
        files={
            "claude-mcp.json": json.dumps({"mcpServers": {MCP_SERVER_NAME: server}}),
            "claude-settings.json": json.dumps(settings),
        },
        private=frozenset(("claude-settings.json",) if context.off else ()),
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    own = home_path(env, "CLAUDE_CONFIG_DIR", ".claude")
    logins = own / ".credentials.json"
    more = _MANAGED.with_name("managed-settings.d") / "*.json"
    return (logins, own / "settings.json", PurePosixPath(".claude.json"), _MANAGED, more)


def _own_login(context: PlanContext) -> str | None:
    """Return its account, or a key in its settings: these count over its environment, or would no more count."""
    if found := names_in_effect(context.env, _LOGINS):
        return f"{found[0]} is set"
    for path, text in context.settings.items():
        table = json_table(text) or {}
        if found := names_in_effect(table_at(table, "env"), (*_LOGINS, "ANTHROPIC_API_KEY")):
            return f"{path} sets env.{found[0]}"
        for key in ("apiKeyHelper", "primaryApiKey"):
            if table.get(key):
                return f"{path} sets {key}"
        if table.get("claudeAiOauth") or table.get("oauthAccount"):
            return "it is signed in with an account"
    return None


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let Anthropic's models pass; an account login passes just like an API key."""
    return ModelTraffic.for_provider("anthropic", _elsewhere(context), _own_login(context))


def _servers(context: PlanContext) -> Iterator[OwnServer]:
    typed = option_value(context.all_args, "--settings") is not None
    kept = "its arguments contain --settings, which replaces Aileron's settings" if typed else ""
    for path, text in context.settings.items():
        table = json_table(text) or {}
        of_project = (
            each
            for folder, each in tables_in(table.get("projects"))
            if context.project.is_relative_to(folder)
        )
        for each in (table, *of_project):  # what is denied is a command, in whatever place
            yield from own_servers([(path, table_at(each, "mcpServers"))], lambda _: kept)


def _overrides(name: str, text: str) -> Iterator[str]:
    """Report settings that redirect model traffic, replace Aileron's server, or run commands unseen."""
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield f"{name} cannot be parsed ({error})"
        return
    table = table_at({"": parsed}, "")
    if MCP_SERVER_NAME in table_at(table, "mcpServers"):
        yield f"{name} defines an MCP server called {MCP_SERVER_NAME}"
    if table.get("hooks"):
        yield f"{name} sets hooks"
    for key in table_at(table, "env"):
        if key.startswith("ANTHROPIC_") or key in _ELSEWHERE or key.upper().endswith("_PROXY"):
            yield f"{name} sets env.{key}"
    if table.get("apiKeyHelper"):
        yield f"{name} sets apiKeyHelper"


def _chosen_mode(context: PlanContext) -> str | None:
    """Return the permission mode that the person's settings choose, None to pass none.

    Only an option counts over the mode that a conversation of an earlier launch has recorded, where
    the agent could have put another: one that goes on gets the default if the settings choose none.
    """
    modes = {
        path: table_at(json_table(text) or {}, "permissions").get("defaultMode")
        for path, text in context.settings.items()
    }
    if any(modes[path] for path in modes if not path.startswith(("~/", "/"))):
        return None  # the project's, which Claude Code itself reads by its own rules
    chosen = [mode for mode in modes.values() if mode in _MODES]
    if option_value(context.all_args, "--permission-mode") is not None:
        return None
    if chosen:
        return str(chosen[-1])
    goes_on = option_value(context.all_args, *_GOES_ON) is not None
    unsafe = any(modes.values()) or "--dangerously-skip-permissions" in context.all_args
    return "default" if goes_on and not unsafe else None


def _variables(context: PlanContext) -> dict[str, str]:
    """Return the environment variables set in its settings files, later files over earlier ones."""
    found: dict[str, str] = {}
    for text in context.settings.values():
        found |= {
            name: str(value) for name, value in table_at(json_table(text) or {}, "env").items()
        }
    return found


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to Anthropic's API, None if it does."""
    if option_value(context.all_args, "--settings") is not None:
        return "its arguments contain --settings, which replaces Aileron's settings"
    if found := names_in_effect(context.env, _ELSEWHERE):
        return f"{found[0]} is set"
    for path, text in context.settings.items():
        if path.endswith("/.credentials.json"):
            continue
        table = json_table(text)
        if table is None:
            return f"{path} cannot be parsed"
        if found := names_in_effect(table_at(table, "env"), _ELSEWHERE):
            return f"{path} sets env.{found[0]}"
    return None


CLAUDE = Agent(
    name="claude",
    title="Claude Code",
    package="npm install -g @anthropic-ai/claude-code",
    tested_versions=("2.1.330", "2.1.197"),
    folders=(
        AgentFolder(
            path=PurePosixPath(".claude"),
            settings=(
                "settings.json", "settings.local.json", "*.md", "keybindings.json", "agents",
                "commands", "hooks", "output-styles", "routines", "rules", "skills", "themes",
                "workflows", "agent-memory", "remote-settings.json*", "policy-limits.json*",
                "plugins/*.json",
            ),
            credentials=(".credentials.json",),
            read_only=("local", "plugins/cache/*/*/*", "plugins/marketplaces/*"),
            state=("projects", "todos", "tasks", "plans", "file-history", "paste-cache", "image-cache"),
            state_files=("history.jsonl",),
            conversations=("projects/*/*.jsonl",),
        ),
        AgentFolder(path=PurePosixPath(".claude.json")),
    ),
    variables=("ANTHROPIC_*", "CLAUDE_*", "_CLAUDE_CODE_*", *CLOUDS),
    other_variables=CLOUD_LOGINS,
    other_logins=(".config/anthropic",),
    hosts=("api.anthropic.com", "platform.claude.com"),
    key_variables={"anthropic": ("ANTHROPIC_API_KEY",)},
    project_files=(".mcp.json", ".claude/settings.json", ".claude/settings.local.json"),
    checks=(
        "*PreToolUse.*", "*PermissionRequest.*", "*UserPromptSubmit.*", "*UserPromptExpansion.*", "*ConfigChange.*",
        "*Elicitation.*", "*ElicitationResult.*", "*TaskCreated.*", "*TaskCompleted.*", "*PreModelSwitch.*",
        "*.installPath",
    ),
    program_files=(
        "/etc/claude-code/*.json", "/etc/claude-code/managed-settings.d/*.json",
        ".claude/plugins/cache/*/*/*/hooks/hooks.json", ".claude/plugins/cache/*/*/*/.mcp.json",
        ".claude/plugins/cache/*/*/*/.claude-plugin/plugin.json",
    ),
    denied_args=(
        "--mcp-config", "--strict-mcp-config", "--settings", "--setting-sources", "--add-dir",
        "--tools", "--plugin-dir", "--plugin-url", "--agents", "--agent", "--system-prompt",
        "--append-system-prompt", "--ide", "--chrome", "--bare", "--resume", "-r", "--continue",
        "-c", "--worktree", "-w", "--tmux", "--debug-file", "--remote", "--remote-control", "--from-pr",
        "--file", "-d", "--fork-session", "--session-id", "--teleport",
    ),
    controls=(
        "Aileron's actions are available as tools from the start. Claude Code does not ask before it calls them.",
        LONG_CALLS,
        "Telemetry and automatic installs from the marketplace are off for this run.",
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "MCP servers, hooks and plugins in your own settings: they run alongside Aileron's, in the sandbox as far as it has their programs.",
        "The first prompt: in interactive use it may be sent before Claude Code has connected to its MCP servers.",
    ),
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    servers=_servers,
    overrides=_overrides,
)  # fmt: skip
