"""The persistent record of a session's repositories, from which a later start can resume.

Its fields are the file format, under the keys of `_STORED_KEYS` where those differ: records of
earlier versions must stay readable.
"""

import contextlib
import json
import os
import re
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aileron_core.errors import AileronError

SANDBOX_GIT_DIR = "/run/aileron/git"
"""Where the git directory of a work tree with a `.git` file is mounted in the sandbox."""
SANDBOX_OBJECTS_DIR = "/run/aileron/objects"
"""Where the person's object stores are mounted, read-only."""
OBJECT_ID_PATTERN = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")

_NAME = "record.json"
_HIDDEN_NAME = "hidden.json"
_STORED_KEYS = {"notices": "told", "updated_refs": "moved", "has_empty_git_dir": "covered"}
"""Keys of the file that are not the field's name."""
_FIELDS = {stored: name for name, stored in _STORED_KEYS.items()}


@dataclass(slots=True, kw_only=True)
class RepositoryRecord:
    """One repository of the project for which the session has its own git directory."""

    worktree: str
    """Relative to the project; `.` is the project itself."""
    git: str
    """The person's git directory of this work tree."""
    common: str
    """The directory that all work trees of the repository share (`git rev-parse --git-common-dir`)."""
    objects: list[str]
    """The person's object stores, the repository's own first, then its alternates."""
    number: int
    """Names its folder in the session's."""
    is_file: bool = False
    """Whether its `.git` is a file that names it (an additional work tree, a submodule)."""
    head: str = ""
    """HEAD when the repositories last matched: `ref: refs/heads/NAME`, or an object's id."""
    refs: dict[str, str] = field(default_factory=dict[str, str])
    """Each ref when the repositories last matched."""
    shallow: list[str] = field(default_factory=list[str])
    read_only: list[str] = field(default_factory=list[str])
    """What the agent could not change in the project; relative to that."""
    settings: list[str] = field(default_factory=list[str])
    """The names of the settings that the session began with."""
    updated_refs: list[str] = field(default_factory=list[str])
    """Refs of the person's that were updated for the agent."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """What did not pass git's own checks, and why."""
    notices: list[str] = field(default_factory=list[str])
    """Sentences that a person has to read, in order."""

    def add_notice(self, sentence: str) -> None:
        """Add *sentence* to the notices for the person, once."""
        if sentence not in self.notices:
            self.notices.append(sentence)


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """The repositories of one session, and what its project contained at the start."""

    session: str
    project: str
    entries: dict[str, list[int]]
    """Everything called `.git` at the start, with device and inode."""
    shapes: list[str]
    """Folders of a repository's shape at the start."""
    heads: list[str] | None = None
    """Other folders with a HEAD at the start; None in a record of an earlier version."""
    repositories: list[RepositoryRecord] = field(default_factory=list[RepositoryRecord])
    has_empty_git_dir: bool = False
    """Whether an empty `.git` was put into the project, so that its agent can make none there."""


@dataclass(slots=True, kw_only=True)
class HiddenFolder:
    """What was hidden from the person while the agent runs: in their sight something harmless stands in its place."""

    number: int
    """Names where it is kept."""
    name: str
    """Its path in the project: a `.git`, or `refs` or `commondir` of a repository under another name."""
    stand_in: list[int]
    """Device and inode of what stands in its place."""


@dataclass(slots=True, kw_only=True)
class HiddenRecord:
    """What one session has hidden; a file of its own, for a thread of its own writes it."""

    bwrap: int
    """The process that started the session's sandbox."""
    tools: list[int] = field(default_factory=list[int])
    """Those that started the sandboxes of the built-in tools in which commands run."""
    hidden: list[HiddenFolder] = field(default_factory=list[HiddenFolder])
    notices: list[str] = field(default_factory=list[str])
    """Sentences that a person has to read, in order."""


def write_record(folder: Path, record: SessionRecord) -> None:
    """Write *record* into *folder* atomically."""
    _write(folder / _NAME, asdict(record, dict_factory=_to_stored))


def write_hidden(folder: Path, record: HiddenRecord) -> None:
    """Write *record* into *folder* atomically."""
    _write(folder / _HIDDEN_NAME, asdict(record))


def _write(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_record(folder: Path) -> SessionRecord | None:
    """Return the record in *folder*, None if the session ended before one was written.

    Raises:
        AileronError: it cannot be parsed.
    """
    with _reading(folder / _NAME) as stored:
        if stored is None:
            return None
        repositories = [RepositoryRecord(**_to_fields(each)) for each in stored.pop("repositories")]
        return SessionRecord(**_to_fields(stored), repositories=repositories)


def read_hidden(folder: Path) -> HiddenRecord:
    """Return what the session of *folder* has hidden.

    Raises:
        AileronError: it cannot be parsed.
    """
    with _reading(folder / _HIDDEN_NAME) as stored:
        if stored is None:
            return HiddenRecord(bwrap=0)
        hidden = [HiddenFolder(**each) for each in stored.pop("hidden")]
        return HiddenRecord(**stored, hidden=hidden)


@contextlib.contextmanager
def _reading(path: Path) -> Generator[dict[str, Any] | None, None, None]:
    """Yield what the file *path* holds, None without one; what fails to make sense of it says that it is damaged."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = "null"
    try:
        yield json.loads(text)
    except (ValueError, TypeError, KeyError) as error:
        raise AileronError(
            f"{path} is damaged ({type(error).__name__}). The agent's git folder is next to it. "
            "Copy what you need, then remove the folder."
        ) from None


def _to_stored(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_STORED_KEYS.get(name, name): value for name, value in fields}


def _to_fields(stored: dict[str, Any]) -> dict[str, Any]:
    return {_FIELDS.get(key, key): value for key, value in stored.items()}
