"""An agent's own MCP servers beside Aileron's: the same one is switched off for a launch, or named where it stays."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from aileron_core.connectors.servers.packages import PackageRequest, package_request
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import InvalidRequest
from aileron_core.launch.plan import MCP_SERVER_NAME, OwnServer
from aileron_core.launch.settings_files import merged, tables_in, words_at

_SECRET = re.compile(r"\$\{secret\.[^{}]*\}")
"""Stands in an accepted command for what an import put into the vault."""
_MOST_NAME = 80
_MOST_SHOWN = 64
"""Characters of a name, and servers on a session's page: a project's file may have any."""


VARIABLE: Final = re.compile(
    r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}|\{env:(\w+)\}|(?<!\\)\$([A-Za-z_]\w*)"
)
"""A variable in a settings file, in the words of any agent: its name is in group 1, 3 or 4, what stands for it in 2."""


def own_servers(
    found: Iterable[tuple[str, Mapping[str, Any]]],
    kept: Callable[[Sequence[str]], str] = lambda files: "",
) -> Iterator[OwnServer]:
    """Yield the servers in *found*, tables of them by file; a later one of a name is laid over an earlier.

    Args:
        kept: returns why one that these files name cannot be switched off; empty where it can.
    """
    tables: dict[str, dict[str, Any]] = {}
    files: dict[str, list[str]] = {}
    for file, servers in found:
        for name, table in tables_in(servers):
            tables[name] = merged(tables.get(name, {}), table)
            files.setdefault(name, []).append(file)
    for name, table in tables.items():
        command, url = server_command(table), server_url(table)
        if (command or url) and not is_off(table) and name != MCP_SERVER_NAME:
            yield OwnServer(
                name=name,
                file=files[name][-1],
                command=() if url else command,
                url=url,
                kept=kept(files[name]),
            )


def server_command(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line of a server in a settings file, whatever the agent's words for it; empty without one."""
    command = words_at(entry, "command", "cmd")
    return command and command + words_at(entry, "args")


def server_url(entry: Mapping[str, Any]) -> str:
    """Return the address of such a server; empty without one."""
    found = (entry.get(key) for key in ("httpUrl", "url", "uri"))
    return next((each for each in found if each and isinstance(each, str)), "")


def is_off(entry: Mapping[str, Any]) -> bool:
    return entry.get("enabled") is False or entry.get("disabled") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubles:
    """The servers of an agent's own that Aileron has too."""

    off: tuple[OwnServer, ...] = ()
    remaining: tuple[str, ...] = ()
    """Those that the agent starts nevertheless, with the reason; not yet escaped."""
    sentences: tuple[str, ...] = ()
    """What a person is told of all of them before the agent starts, not yet escaped."""


def doubles(
    title: str,
    own: Iterable[OwnServer],
    accepted: Mapping[str, ServerTable],
    env: Mapping[str, str],
) -> Doubles:
    """Return what of the *own* servers of the agent *title*, started in *env*, is in *accepted*, Aileron's by name."""
    off: list[OwnServer] = []
    remaining: list[str] = []
    sentences: list[str] = []
    for each in own:
        shown = f"{each.name[:_MOST_NAME]} ({each.file})"
        forms = each, _filled(each, env)
        same = next(
            (
                name
                for name, table in accepted.items()
                if any(_is_same(form, table) for form in forms)
            ),
            "",
        )
        if same and not each.kept:
            off.append(each)
            sentences.append(
                f"{title} does not start its own MCP server {shown}: Aileron has it, as {same}."
            )
        elif same:
            why = f"it is Aileron's {same}, but {each.kept}"
            remaining.append(f"{shown}: {why}")
            sentences.append(
                f"{title} starts its own MCP server {shown}: {why}. What its tools do is not gated."
            )
    return Doubles(
        off=tuple(off), remaining=tuple(remaining[:_MOST_SHOWN]), sentences=tuple(sentences)
    )


def _filled(own: OwnServer, env: Mapping[str, str]) -> OwnServer:
    def value(match: re.Match[str]) -> str:
        return env.get(next(filter(None, match.group(1, 3, 4))), match[2] or match[0])

    command = tuple(VARIABLE.sub(value, word) for word in own.command)
    return replace(own, command=command, url=VARIABLE.sub(value, own.url))


def _is_same(own: OwnServer, table: ServerTable) -> bool:
    """Return whether both are one address, or one command whatever the version of its package."""
    if own.url or table.url:
        return _address(own.url) == _address(table.url)
    package, wanted = _package(own.command), _package(table.run)
    if package is not None and wanted is not None:
        bare = [replace(each, version="", extras="", args=()) for each in (package, wanted)]
        return bare[0] == bare[1] and _are_words(package.args, wanted.args)
    (program, *args), (known, *others) = own.command, table.run
    names = PurePosixPath(program).name, PurePosixPath(known).name
    is_program = program == known or (names[0] == names[1] and names[0] in (program, known))
    return is_program and _are_words(args, others)


def _are_words(own: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether both are the same words, with any secret where *wanted* names one."""
    patterns = [".+".join(map(re.escape, _SECRET.split(each))) for each in wanted]
    return len(own) == len(wanted) and all(map(re.fullmatch, patterns, own))


def _package(command: Sequence[str]) -> PackageRequest | None:
    """Return the package that *command* fetches and starts; None for any other command."""
    try:
        return package_request(command) if command else None
    except InvalidRequest:
        return None


def _address(url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url, "", None, ""
    return parts.scheme, parts.hostname or "", port, f"{parts.path.rstrip('/')}?{parts.query}"
