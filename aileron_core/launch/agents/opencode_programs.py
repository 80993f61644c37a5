"""The programs that OpenCode's settings name: MCP servers, formatters, language servers, and plugins by path."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.launch.agents.program_settings import (
    module_program,
    server_programs,
    tables_in,
    words_in,
)
from aileron_core.launch.agents.settings_files import json_table
from aileron_core.launch.named_programs import HomeSettings, Kind, NamedProgram


def opencode_programs(settings: HomeSettings) -> Iterator[NamedProgram]:
    """Yield the programs and plugins that the settings in the home name."""
    own = PurePosixPath(".config/opencode")
    for name in ("config.json", "opencode.json", "opencode.jsonc"):
        path = own / name
        yield from _programs_of(settings, path, settings.table(path, json_table))
    for folder in (own / "plugin", own / "plugins"):
        for name in settings.names(folder):
            if name.endswith((".js", ".ts")):
                yield module_program(settings, folder / name, folder / name, "")


def _programs_of(
    settings: HomeSettings, path: PurePosixPath, table: Mapping[str, Any]
) -> Iterator[NamedProgram]:
    file = settings.shown(path)
    yield from server_programs(file, "mcp", table.get("mcp"))
    kinds: tuple[tuple[str, Kind], ...] = (("formatter", "formatter"), ("lsp", "language server"))
    for key, kind in kinds:
        for name, each in tables_in(table.get(key)):
            words = words_in(each.get("command"))
            if words and each.get("disabled") is not True:
                yield NamedProgram(file=file, key=f"{key}.{name}", command=words, kind=kind)
    plugins = table.get("plugin")
    for each in cast("list[object]", plugins) if isinstance(plugins, list) else []:
        named = words_in(each)[:1] or ((each,) if isinstance(each, str) else ())
        for source in named:
            plugin = source.removeprefix("file://")
            if plugin.startswith(("/", "./", "../")):
                yield module_program(settings, path, path.parent / plugin, "plugin")
            # Any other is a package of a registry, which OpenCode installs itself.
