"""The programs and files that an agent's settings name: hooks, MCP servers, certificates and the like.

`resolve_programs` searches the settings, and finds what they name. What a project's
settings name is only said: they could name a private key as a program.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.canonical import sha256_hex
from aileron_core.containment.safe_paths import resolve_trusted_links
from aileron_core.launch.settings_files import read_settings

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProgram:
    """One program that an agent's settings name."""

    file: str
    """The settings file, `~/` for the person's home."""
    key: str
    """Where in the file: `hooks.PreToolUse`."""
    command: str | tuple[str, ...]
    """A line for a shell, or a program and its arguments; empty where only the file is known."""
    check: bool = False
    """Whether it can refuse what the agent is about to do."""
    module: bool = False
    """Whether `command` is a file that the agent loads itself, which is not executable."""
    by_key: bool = True
    """Whether its key says that it is a program; else that is known once one is there."""
    from_project: bool = False
    problem: str = ""
    """Why it is missing whatever is found, a clause."""

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
    missing_file: Path | None = None
    """What it is instead of a program, where the sandbox has not: a file."""

    @property
    def is_missing_check(self) -> bool:
        return bool(self.problem) and self.named.check

    def sentence(self) -> str:
        """Return what a person has to know of a missing program, not yet escaped."""
        named = self.named
        what = f"{named.file}, {named.key}" if named.key else named.file
        command = f" ({named.shown_command})" if named.shown_command else ""
        absence = "this check does not run, so it refuses nothing"
        if self.unknown:
            more = f", {absence}" if named.check else ", give it that with --read"
            return (
                f"May not work in the sandbox: {what}{command}: it {self.problem}. If it needs anything "
                f"that is missing there{more}."
            )
        if not named.check:
            absence = "if the agent needs it, give it with --read"
        return f"Not in the sandbox: {what}{command}: it {self.problem}; {absence}."


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

    def text(self, path: PurePosixPath, *, needed: bool = True) -> str | None:
        """Return the text of a settings file, None if it does not exist or cannot be read."""
        file = self.absolute(path)
        text, there = None, True
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = read_settings(file)
            there = text is not None or file.is_symlink()
        if text is None:
            if there and needed:
                self.unusable(path)
            return None
        try:
            resolve_trusted_links(file, self._home)
        except OSError:
            self._by_link.add(self.shown(path))
        return text

    def table(
        self,
        path: PurePosixPath,
        parse: Callable[[str], Mapping[str, Any] | None],
        *,
        needed: bool = True,
    ) -> Mapping[str, Any]:
        """Return the table in a settings file, an empty one if it does not exist or cannot be read.

        Args:
            parse: returns None for a text that holds no table.
            needed: note if it cannot be read or parsed: nobody knows then what it names.
        """
        text = self.text(path, needed=needed)
        table: Mapping[str, Any] | None = parse(text) if text is not None else {}
        if table is None and needed:
            self.unusable(path)
        return table or {}

    def unusable(self, path: PurePosixPath) -> None:
        """Note that a settings file cannot be read or parsed, so that nobody knows what it names."""
        self._unreadable[self.shown(path)] = None

    def matching(self, pattern: PurePosixPath) -> tuple[PurePosixPath, ...]:
        """Return the paths that fit a pattern, relative to the home or absolute, sorted."""
        anchor = Path("/") if pattern.is_absolute() else self._home
        inner = pattern.relative_to(anchor) if pattern.is_absolute() else pattern
        if "*" not in str(inner):
            found = [anchor / inner] if os.path.lexists(anchor / inner) else []
        else:
            found = sorted(anchor.glob(str(inner)))
        return tuple(PurePosixPath(each) for each in found)

    def complete(self, found: Iterable[NamedProgram]) -> tuple[NamedProgram, ...]:
        """Return *found* with what is known of the files: what a link keeps out, and what is unknown."""
        by_link = "is named in a file behind a link, which the sandbox does not follow"
        known = [
            replace(each, problem=by_link) if each.file in self._by_link else each
            for each in found
            if each.by_key or each.file not in self._by_link
        ]
        unknown = "cannot be read, so that what it names is not known"
        known += [
            NamedProgram(file=file, key="", command="", check=True, problem=unknown)
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
    missing = [each for each in resolved if each.problem]
    missing.sort(key=lambda each: not each.is_missing_check)
    return tuple(each.sentence() for each in missing)


def search_folders(resolved: Iterable[ResolvedProgram], path: str) -> tuple[str, ...]:
    """Return the folders of the search path *path* that programs were mounted from, in its order."""
    mounted = {str(inside.parent) for each in resolved for inside, _ in each.mounts}
    return tuple(folder for folder in path.split(os.pathsep) if folder in mounted)


def missing_files(title: str, resolved: Iterable[ResolvedProgram]) -> tuple[str, ...]:
    """Return a sentence about the files that settings name and the sandbox lacks, none if there is none."""
    found = {
        each.missing_file: f"{each.missing_file} ({each.named.file}: {each.named.key})"
        for each in resolved
        if each.missing_file is not None
    }
    if not found:
        return ()
    names = "; ".join([*found.values()][:_MOST_SHOWN])
    if len(found) > _MOST_SHOWN:
        names += f"; and {len(found) - _MOST_SHOWN} more"
    sentence = (
        f"Not in the sandbox, but named in {title}'s settings: {names}. What {title} needs of that, give it with "
        "--read, or under `[launch] read` in config.toml."
    )
    return (sentence,)
