"""The programs that an agent's settings in the person's home name: hooks, MCP servers and the like.

An agent's module says what its settings name (`Agent.programs`); `resolve_programs` finds each. A
project's settings are never read for this: they could name a private key as a program.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from aileron_core.canonical import sha256_hex
from aileron_core.containment.safe_paths import resolve_trusted_links

Kind = Literal[
    "check", "hook", "status line", "helper", "server", "extension", "notifier", "formatter",
    "language server", "tool source", "shell",
]  # fmt: skip
"""What the agent uses a program for. A `check` can refuse what the agent is about to do."""
ABSENCE: dict[Kind, str] = {
    "check": "this check does not run, so it refuses nothing",
    "hook": "this hook does not run",
    "status line": "the status line stays empty",
    "helper": "the agent gets nothing from it, such as a key",
    "server": "the agent does not have the tools of this MCP server",
    "extension": "this extension is not loaded, and refuses nothing",
    "notifier": "you are not notified",
    "formatter": "files are not formatted with it",
    "language server": "this language server does not start",
    "tool source": "the agent does not have the tools that it provides",
    "shell": "the agent uses no shell, or another one",
}
"""What follows when a program is missing."""

_SETTINGS_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProgram:
    """One program that an agent's settings name."""

    file: str
    """The settings file, `~/` for the person's home."""
    key: str
    """Where in the file: `hooks.PreToolUse`."""
    command: str | tuple[str, ...]
    """A line for a shell, or a program and its arguments; empty where only the file is known."""
    kind: Kind
    module: bool = False
    """Whether `command` is a file that the agent loads itself, which is not executable."""
    folder: str = ""
    """An absolute folder that the sandbox needs to contain besides, of a plugin for one."""
    problem: str = ""
    """Why it is missing whatever is found, a clause."""

    @property
    def can_refuse(self) -> bool:
        return self.kind in ("check", "extension")

    @property
    def shown_command(self) -> str:
        """The command as one line, not yet escaped."""
        return self.command if isinstance(self.command, str) else " ".join(self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedProgram:
    """A named program as one sandbox has it."""

    named: NamedProgram
    mounts: tuple[tuple[Path, Path], ...] = ()
    """What to mount read-only for it: the path in the sandbox, and the file or folder outside."""
    problem: str = ""
    """Why it is missing, a clause not yet escaped; empty where it is there."""
    unknown: bool = False
    """Whether it may work all the same: nobody knows what its command starts, or does without."""

    @property
    def is_missing_check(self) -> bool:
        return bool(self.problem) and self.named.can_refuse

    def sentence(self) -> str:
        """Return what a person has to know of a missing program, not yet escaped."""
        named = self.named
        what = f"{named.file}, {named.key}" if named.key else named.file
        command = f" ({named.shown_command})" if named.shown_command else ""
        if self.unknown:
            return (
                f"May not work in the sandbox: {what}{command}: it {self.problem}. If it needs anything "
                f"that is missing there, {ABSENCE[named.kind]}."
            )
        return f"Not in the sandbox: {what}{command}: it {self.problem}; {ABSENCE[named.kind]}."


class HomeSettings:
    """Reads an agent's settings in the person's *home*, and remembers what it could not read or by what link."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._unreadable: dict[str, None] = {}
        self._by_link: set[str] = set()

    def shown(self, path: PurePosixPath) -> str:
        """Return a path, relative to the home or absolute, as a person is shown it."""
        absolute = self.absolute(path)
        inside = absolute.is_relative_to(self._home)
        return f"~/{absolute.relative_to(self._home)}" if inside else str(absolute)

    def absolute(self, path: PurePosixPath | str) -> Path:
        return self._home / path

    def text(self, path: PurePosixPath) -> str | None:
        """Return the text of a settings file, None if it does not exist or cannot be read."""
        file = self.absolute(path)
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _SETTINGS_BYTES:
                raise OSError(errno.EINVAL, "not a settings file")
            text = file.read_bytes().decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            if file.is_symlink():
                self.unusable(path)
            return None
        except (OSError, UnicodeDecodeError):
            self.unusable(path)
            return None
        try:
            resolve_trusted_links(file, self._home)
        except OSError:
            self._by_link.add(self.shown(path))
        return text

    def table(
        self, path: PurePosixPath, parse: Callable[[str], dict[str, Any] | None]
    ) -> dict[str, Any]:
        """Return the table in a settings file, an empty one if it does not exist or cannot be read.

        Args:
            parse: returns None for a text that holds no table.
        """
        text = self.text(path)
        table = parse(text) if text is not None else {}
        if table is None:
            self.unusable(path)
        return table or {}

    def unusable(self, path: PurePosixPath) -> None:
        """Note that a settings file cannot be read or parsed, so that nobody knows what it names."""
        self._unreadable[self.shown(path)] = None

    def names(self, folder: PurePosixPath) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where it cannot be listed."""
        try:
            return tuple(sorted(each.name for each in self.absolute(folder).iterdir()))
        except OSError:
            return ()

    def complete(self, found: Iterable[NamedProgram]) -> tuple[NamedProgram, ...]:
        """Return *found* with what is known of the files: what a link keeps out, and what is unknown."""
        by_link = "is named in a file behind a link, which the sandbox does not follow"
        known = [
            replace(each, problem=by_link) if each.file in self._by_link else each for each in found
        ]
        unknown = "cannot be read, so that what it names is not known"
        known += [
            NamedProgram(file=file, key="", command="", kind="check", problem=unknown)
            for file in self._unreadable
        ]
        return tuple(dict.fromkeys(known))


def missing_checks_digest(agent: str, resolved: Iterable[ResolvedProgram]) -> str | None:
    """Return the SHA-256 of the missing checks of *agent*, which a person accepts; None if none is missing."""
    checks = sorted(
        (each.named.file, each.named.key, each.named.shown_command)
        for each in resolved
        if each.is_missing_check
    )
    if not checks:
        return None
    # Not JCS: a command may hold half of a surrogate pair, which has no UTF-8.
    return sha256_hex(json.dumps({"v": 1, "agent": agent, "missing_checks": checks}).encode())


def missing_sentences(resolved: Iterable[ResolvedProgram]) -> tuple[str, ...]:
    """Return a sentence for each program that is missing, checks first, not yet escaped."""
    missing = sorted((each for each in resolved if each.problem), key=_checks_first)
    return tuple(each.sentence() for each in missing)


def _checks_first(each: ResolvedProgram) -> bool:
    return not each.is_missing_check


def search_folders(resolved: Iterable[ResolvedProgram], path: str) -> tuple[str, ...]:
    """Return the folders of the search path *path* that programs were mounted from, in its order."""
    mounted = {str(inside.parent) for each in resolved for inside, _ in each.mounts}
    return tuple(folder for folder in path.split(os.pathsep) if folder in mounted)


def program_settings(resolved: Iterable[ResolvedProgram]) -> frozenset[tuple[str, str]]:
    """Return the settings whose programs the sandbox has: the file, and the value in it."""
    found: set[tuple[str, str]] = set()
    for each in resolved:
        if not each.problem:
            named = each.named
            value = named.command if isinstance(named.command, str) else named.command[0]
            found |= {(named.file, value), (named.file, f"!{value}")}  # Pi marks a command so
    return frozenset(found)
