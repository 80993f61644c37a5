"""The programs that Claude Code's settings name: hooks, helpers, MCP servers, and those of plugins."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.launch.agents.program_settings import (
    hook_programs,
    line_program,
    list_in,
    server_programs,
    tables_in,
)
from aileron_core.launch.agents.settings_files import json_table, table_at, yaml_table
from aileron_core.launch.named_programs import HomeSettings, Kind, NamedProgram

_OWN = PurePosixPath(".claude")
CLAUDE_MANAGED = PurePosixPath("/etc/claude-code/managed-settings.json")
_REFUSING_EVENTS = frozenset(
    ("PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion", "ConfigChange",
     "Elicitation", "ElicitationResult", "TaskCreated", "TaskCompleted", "PreModelSwitch")
)  # fmt: skip
"""The events of which a hook can refuse what is about to happen, as its program describes them."""
_COMMANDS: Mapping[str, Kind] = {
    "statusLine": "status line",
    "subagentStatusLine": "status line",
    "apiKeyHelper": "helper",
    "awsAuthRefresh": "helper",
    "awsCredentialExport": "helper",
    "gcpAuthRefresh": "helper",
    "proxyAuthHelper": "helper",
    "otelHeadersHelper": "helper",
    "fileSuggestion": "helper",
}
"""Its other settings that name a program: the setting itself, or its `command`."""


def claude_programs(settings: HomeSettings, project: PurePosixPath) -> Iterator[NamedProgram]:
    """Yield the programs that the settings in the home and for all users name, and those of the plugins that are on.

    `disableAllHooks` in the person's own settings switches off hooks and status line, but for those
    that are for all users.
    """
    own = settings.table(_OWN / "settings.json", json_table)
    off = own.get("disableAllHooks") is True
    for each in _all_programs(settings, project):
        hook = each.key.startswith(("hooks.", "statusLine"))
        if not (off and hook and each.file.startswith("~/")):
            yield each


def _all_programs(settings: HomeSettings, project: PurePosixPath) -> Iterator[NamedProgram]:
    for path in (_OWN / "settings.json", *_managed(settings)):
        table = settings.table(path, json_table)
        yield from _programs_of(settings.shown(path), table)
        if table_at(table, "enabledPlugins"):
            yield from _plugins(settings, table_at(table, "enabledPlugins"))
    table, file = settings.table(_OWN.with_suffix(".json"), json_table), "~/.claude.json"
    yield from server_programs(file, "mcpServers", table.get("mcpServers"))
    here = table_at(table, "projects", str(project)).get("mcpServers")
    yield from server_programs(file, f"projects.{project}.mcpServers", here)
    for path in _described(settings):
        table, file = settings.table(path, _front_matter), settings.shown(path)
        yield from hook_programs(file, table.get("hooks"), _REFUSING_EVENTS)
        yield from server_programs(file, "mcpServers", table.get("mcpServers"))
    managed = CLAUDE_MANAGED.with_name("managed-mcp.json")
    servers = settings.table(managed, json_table).get("mcpServers")
    yield from server_programs(str(managed), "mcpServers", servers)


def _described(settings: HomeSettings) -> Iterator[PurePosixPath]:
    """Yield the files of the person's agents, commands and skills, which may name hooks of their own."""
    for folder in (_OWN / "agents", _OWN / "commands"):
        yield from (folder / name for name in settings.names(folder) if name.endswith(".md"))
    for name in settings.names(_OWN / "skills"):
        yield _OWN / "skills" / name / "SKILL.md"


def _front_matter(text: str) -> dict[str, Any]:
    """Return the table above a Markdown text, an empty one where there is none that can be read."""
    if not text.startswith("---\n"):
        return {}
    return yaml_table(text[4:].partition("\n---")[0]) or {}


def _managed(settings: HomeSettings) -> tuple[PurePosixPath, ...]:
    """Return the settings files that whoever runs this system has for all users."""
    more = CLAUDE_MANAGED.with_name("managed-settings.d")
    return (
        CLAUDE_MANAGED,
        *(more / name for name in settings.names(more) if name.endswith(".json")),
    )


def _programs_of(file: str, table: Mapping[str, Any]) -> Iterator[NamedProgram]:
    if table.get("disableAllHooks") is not True:
        yield from hook_programs(file, table.get("hooks"), _REFUSING_EVENTS)
    for key, kind in _COMMANDS.items():
        value = table.get(key)
        line = cast("dict[str, Any]", value).get("command") if isinstance(value, dict) else value
        yield from line_program(file, key, line, kind)


def _plugins(settings: HomeSettings, enabled: Mapping[str, Any]) -> Iterator[NamedProgram]:
    """Yield what the plugins name that are switched on in the person's settings."""
    listed = settings.table(PurePosixPath(".claude/plugins/installed_plugins.json"), json_table)
    for name, found in table_at(listed, "plugins").items():
        for _, plugin in tables_in({"": found, **dict(enumerate(list_in(found)))}):
            root = plugin.get("installPath")
            if enabled.get(name) is True and isinstance(root, str) and root.startswith("/"):
                yield from _plugin(settings, PurePosixPath(root))


def _plugin(settings: HomeSettings, root: PurePosixPath) -> Iterator[NamedProgram]:
    """Yield what the plugin in *root* names, in its manifest or in the files that it has by default."""
    manifest = root / ".claude-plugin" / "plugin.json"
    table = settings.table(manifest, json_table)
    variables = {"CLAUDE_PLUGIN_ROOT": str(root)}
    for key, usual in (("hooks", "hooks/hooks.json"), ("mcpServers", ".mcp.json")):
        given: object = table.get(key)
        named = [given] if isinstance(given, str) else map(str, list_in(given))
        sources: list[tuple[PurePosixPath, object]] = [(manifest, given)]
        for path in dict.fromkeys(root / each for each in (usual, *named)):
            inner = settings.table(path, json_table)
            sources.append((path, inner.get(key, inner)))
        for path, found in sources:
            file, folder = settings.shown(path), str(root)
            if key == "hooks":
                yield from hook_programs(
                    file, found, _REFUSING_EVENTS, folder=folder, variables=variables
                )
            else:
                yield from server_programs(file, key, found, folder=folder, variables=variables)
