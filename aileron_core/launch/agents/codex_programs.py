"""The programs that Codex' settings name: hooks, its notifier, MCP servers, and what prints a provider's key."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from aileron_core.launch.agents.program_settings import (
    hook_programs,
    server_programs,
    tables_in,
    words_in,
)
from aileron_core.launch.agents.settings_files import json_table, table_at, toml_table
from aileron_core.launch.named_programs import HomeSettings, NamedProgram

CODEX_SYSTEM = (
    PurePosixPath("/etc/codex/config.toml"),
    PurePosixPath("/etc/codex/managed_config.toml"),
)
_REFUSING_EVENTS = frozenset(("PreToolUse", "PermissionRequest", "UserPromptSubmit"))
"""The events of which a hook can refuse what is about to happen."""


def codex_programs(settings: HomeSettings) -> Iterator[NamedProgram]:
    """Yield the programs that the settings in the home and for all users name."""
    own = PurePosixPath(".codex")
    profiles = (own / name for name in settings.names(own) if name.endswith(".config.toml"))
    system = (*CODEX_SYSTEM, CODEX_SYSTEM[0].with_name("requirements.toml"))
    files = (own / "config.toml", *profiles, *system)
    tables = {path: settings.table(path, toml_table) for path in files}
    # The system's `requirements.toml` and settings count over the person's.
    hooks_off = any(
        table_at(table, "features").get(name) is False
        for table in tables.values()
        for name in ("hooks", "codex_hooks")
    )
    for path, table in tables.items():
        file = settings.shown(path)
        if words := words_in(table.get("notify")):
            yield NamedProgram(file=file, key="notify", command=words, kind="notifier")
        yield from server_programs(file, "mcp_servers", table.get("mcp_servers"))
        for name, provider in tables_in(table.get("model_providers")):
            auth = table_at(provider, "auth")
            if isinstance(command := auth.get("command"), str):
                yield NamedProgram(
                    file=file,
                    key=f"model_providers.{name}.auth",
                    command=(command, *words_in(auth.get("args"))),
                    kind="helper",
                )
        if not hooks_off:
            yield from hook_programs(file, table.get("hooks"), _REFUSING_EVENTS)
    for path in () if hooks_off else (own / "hooks.json", CODEX_SYSTEM[0].with_name("hooks.json")):
        hooks = settings.table(path, json_table).get("hooks")
        yield from hook_programs(settings.shown(path), hooks, _REFUSING_EVENTS)
