"""The tables of hooks and of MCP servers in agents' settings, which they write much alike: what programs they name.

Whatever has another form than the agents accept names nothing.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.launch.named_programs import HomeSettings, Kind, NamedProgram
from aileron_core.launch.plan import MCP_SERVER_NAME


def tables_in(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and tables in *value*, if it is a table of tables."""
    if isinstance(value, dict):
        for name, each in cast("dict[object, object]", value).items():
            if isinstance(each, dict):
                yield str(name), cast("dict[str, Any]", each)


def list_in(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def words_in(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in list_in(value))


def line_program(file: str, key: str, value: object, kind: Kind) -> Iterator[NamedProgram]:
    """Yield the program that a setting names as a line for a shell, if it does."""
    if isinstance(value, str) and value.strip():
        yield NamedProgram(file=file, key=key, command=value, kind=kind)


def module_program(
    settings: HomeSettings, file: PurePosixPath, module: PurePosixPath, key: str
) -> NamedProgram:
    """Return the program that is a module of the agent's own language, which *file* names under *key*."""
    return NamedProgram(
        file=settings.shown(file),
        key=key,
        command=(os.path.normpath(settings.absolute(module)),),
        kind="extension",
        module=True,
    )


def hook_programs(
    file: str,
    hooks: object,
    refusing: Collection[str],
    *,
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Iterator[NamedProgram]:
    """Yield the programs of *hooks*: by event a list of groups, each with its `hooks`.

    Args:
        refusing: the events of which a hook can refuse what the agent is about to do.
        folder: the plugin's, if it is one's; it has to be in the sandbox too.
        variables: what the agent replaces in a command: name -> value.
    """
    events = cast("dict[object, object]", hooks) if isinstance(hooks, dict) else {}
    for event, groups in events.items():
        for group in list_in(groups):
            inner = cast("dict[str, object]", group).get("hooks") if isinstance(group, dict) else ()
            for hook in list_in(inner):
                found = cast("dict[str, object]", hook) if isinstance(hook, dict) else {}
                line = found.get("command")
                if found.get("type", "command") != "command" or not isinstance(line, str):
                    continue  # another kind of hook starts no program
                args = words_in(found.get("args"))
                check = event in refusing and found.get("async") is not True
                yield NamedProgram(
                    file=file,
                    key=f"hooks.{event}",
                    command=_replaced((line, *args), variables)
                    if "args" in found
                    else _replaced((line,), variables)[0],
                    kind="check" if check else "hook",
                    folder=folder,
                )


def server_programs(
    file: str,
    key: str,
    servers: object,
    *,
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Iterator[NamedProgram]:
    """Yield the programs of the MCP servers in the table *servers* under *key*; a remote one has none."""
    for name, server in tables_in(servers):
        off = server.get("disabled") is True or server.get("enabled") is False
        if name == MCP_SERVER_NAME or off:
            continue
        command: object = server.get("command") or server.get("cmd")
        words = words_in(command)
        if isinstance(command, str):
            words = (command, *words_in(server.get("args")))
        if words:
            yield NamedProgram(
                file=file,
                key=f"{key}.{name}",
                command=_replaced(words, variables),
                kind="server",
                folder=folder,
            )
        yield from line_program(
            file, f"{key}.{name}.headersHelper", server.get("headersHelper"), "helper"
        )


def _replaced(words: tuple[str, ...], variables: Mapping[str, str] | None) -> tuple[str, ...]:
    for name, value in (variables or {}).items():
        words = tuple(
            word.replace(f"${{{name}}}", value).replace(f"${name}", value) for word in words
        )
    return words
