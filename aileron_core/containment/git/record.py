"""The persistent record of a session's repositories, from which a later start can resume.

Its fields are the file format: records of earlier versions must stay readable.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aileron_core.errors import AileronError

INSIDE_GIT = "/run/aileron/git"
"""Where the git directory of a work tree with a `.git` file is mounted in the sandbox."""
INSIDE_OBJECTS = "/run/aileron/objects"
"""Where the person's object stores are mounted, read-only."""
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")

_NAME = "record.json"


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
    """What HEAD was when both sides last agreed: `ref: refs/heads/NAME`, or an object's id."""
    refs: dict[str, str] = field(default_factory=dict[str, str])
    """What each ref was when both sides last agreed."""
    shallow: list[str] = field(default_factory=list[str])
    settings: list[str] = field(default_factory=list[str])
    """The names of the settings that the session began with."""
    moved: list[str] = field(default_factory=list[str])
    """Refs of the person's that were updated for the agent."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """What did not pass git's own checks, and why."""
    told: list[str] = field(default_factory=list[str])
    """Sentences that a person has to read, in order."""

    def tell(self, sentence: str) -> None:
        """Add *sentence* to the notices for the person, once."""
        if sentence not in self.told:
            self.told.append(sentence)


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """The repositories of one session, and what its project contained at the start."""

    session: str
    project: str
    entries: dict[str, list[int]]
    """Everything called `.git` at the start, with device and inode."""
    shapes: list[str]
    """Folders of a repository's shape at the start."""
    repositories: list[RepositoryRecord] = field(default_factory=list[RepositoryRecord])
    covered: bool = False
    """Whether an empty `.git` was put into the project, so that its agent can make none there."""


def write_record(folder: Path, record: SessionRecord) -> None:
    """Write *record* into *folder* atomically."""
    temporary = folder / f"{_NAME}.new"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / _NAME)


def read_record(folder: Path) -> SessionRecord | None:
    """Return the record in *folder*, None if the session ended before one was written.

    Raises:
        AileronError: it cannot be parsed.
    """
    try:
        text = (folder / _NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        repositories = [RepositoryRecord(**each) for each in found.pop("repositories")]
        return SessionRecord(**found, repositories=repositories)
    except (ValueError, TypeError, KeyError) as error:
        raise AileronError(
            f"{folder / _NAME} is damaged ({type(error).__name__}). What the agent did in git lies "
            "beside it; look at it, then remove the folder."
        ) from None
