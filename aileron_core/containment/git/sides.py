"""Both sides of one repository, the agent's and the person's, each read in a box of its own."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment import beneath
from aileron_core.containment.git.record import INSIDE_OBJECTS, OID, RepositoryRecord
from aileron_core.containment.git.sandboxed_git import GitFailed, SandboxedGit

_SMALL = 1024 * 1024
_BRANCH = re.compile(
    r"ref: refs/heads/(?!.*(?:\.\.|//|/\.|@\{|\.lock))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
"""HEAD on a branch; what a ref's name may hold is git's own rule (git-check-ref-format)."""
_FILES = frozenset((b"100644", b"100755", b"120000"))
_SHARED = ("objects", "refs", "packed-refs", "logs", "shallow")


@dataclass(frozen=True, slots=True, order=True)
class IndexEntry:
    """One entry of an index."""

    path: bytes
    stage: int
    mode: bytes
    oid: str

    @property
    def is_link(self) -> bool:
        """Whether it stands for another repository (a submodule), or git could take it for one.

        An index that no git wrote may say `040755` or `160644`, and git makes `160000` of that.
        """
        return self.mode not in _FILES


def parse_entries(listed: bytes) -> frozenset[IndexEntry]:
    """Return what `git ls-files --stage -z` printed.

    Raises:
        GitFailed: that is something else.
    """
    found: set[IndexEntry] = set()
    for line in listed.split(b"\0")[:-1]:
        facts, tab, path = line.partition(b"\t")
        words = facts.split(b" ")
        if not tab or len(words) != 3 or not OID.match(oid := words[1].decode("ascii", "replace")):
            raise GitFailed("git ls-files gave something that is no list of an index.")
        found.add(IndexEntry(path, int(words[2]), words[0], oid))
    return frozenset(found)


def read_small(path: Path) -> bytes | None:
    """Return a small regular file's bytes, without following a link or waiting for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    return beneath.read_small(descriptor, _SMALL)


class Sides:
    """The boxes around one repository of a session."""

    def __init__(self, bwrap: str, session: Path, kept: RepositoryRecord) -> None:
        self.bwrap = bwrap
        self.kept = kept
        self.place = session / str(kept.number)
        self.own = self.place / "git"
        """The agent's git folder; all in it is the agent's word."""
        self.git, self.common = Path(kept.git), Path(kept.common)
        self.base_index = self.place / "index"
        """The index as both sides last agreed."""
        self.check = self.place / "check"
        """A bare repository of ours in which what is new is checked."""

    @property
    def _objects(self) -> tuple[tuple[Path, str], ...]:
        return tuple(
            (Path(folder), self.objects_inside(number))
            for number, folder in enumerate(self.kept.objects)
        )

    def objects_inside(self, number: int) -> str:
        """Return where a folder of the person's objects is seen, in the sandbox and in these boxes."""
        return f"{INSIDE_OBJECTS}/{self.kept.number}/{number}"

    @property
    def _borrowed(self) -> dict[str, str]:
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(seen for _, seen in self._objects)}

    def agent(self) -> SandboxedGit:
        """Return a box with the agent's objects and refs under settings of ours: its own are not there."""
        return SandboxedGit(
            bwrap=self.bwrap,
            git_dir="/g",
            read=(
                *self._objects,
                (self.own, "/s"),
                (self.place / "config", "/g/config"),
                (self.place / "HEAD", "/g/HEAD"),
            ),
            links=tuple((f"/s/{name}", f"/g/{name}") for name in _SHARED),
            env={"GIT_INDEX_FILE": "/s/index", **self._borrowed},
        )

    def person(self, *, write: bool = False) -> SandboxedGit:
        """Return a box with the person's repository, read-only unless refs are to be moved."""
        inside = Path("/real", self.git.relative_to(self.common))
        there = ((self.common, "/real"),)
        return SandboxedGit(
            bwrap=self.bwrap,
            git_dir=str(inside),
            read=self._objects if write else (*self._objects, *there),
            write=there if write else (),
            env=self._borrowed,
        )

    def checker(self, *, write: bool = False, index: str = "/i/index") -> SandboxedGit:
        """Return a box with the bare repository of ours, and the copies of indexes beside it."""
        mounts = ((self.check, "/q"), (self.place, "/i"))
        return SandboxedGit(
            bwrap=self.bwrap,
            git_dir="/q",
            read=self._objects if write else (*self._objects, *mounts),
            write=mounts if write else (),
            env={"GIT_INDEX_FILE": index, **self._borrowed},
        )

    def person_refs(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the person's refs now: those that hold an object, and those that name another ref."""
        return _refs(self.person())

    def person_head(self) -> str:
        """Return the person's HEAD now: `ref: refs/heads/NAME`, or an object's id."""
        box = self.person()
        name = box.run("symbolic-ref", "-q", "HEAD", fails=True).decode("utf-8", "replace").strip()
        return f"ref: {name}" if name else box.run("rev-parse", "HEAD").decode().strip()

    def agent_refs(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the agent's refs; its HEAD is copied beside first, as far as it is one.

        Raises:
            GitFailed: HEAD names nothing that a person's could, or a file of git's is none.
        """
        for name in ("index", "packed-refs", "shallow"):
            path = self.own / name
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise GitFailed(f"the agent's {name} is no file.")
        self.agent_head()
        return _refs(self.agent())

    def agent_head(self) -> str:
        """Return the agent's HEAD.

        Raises:
            GitFailed: it names nothing that a person's could.
        """
        text = (read_small(self.own / "HEAD") or b"").decode("utf-8", "replace").strip()
        if not OID.match(text) and not _BRANCH.fullmatch(text):
            raise GitFailed("the agent's HEAD names no branch and no commit.")
        (self.place / "HEAD").write_text(f"{text}\n", encoding="utf-8")
        return text

    def agent_entries(self) -> frozenset[IndexEntry]:
        """Return what the agent's index holds."""
        return parse_entries(self.agent().run("ls-files", "--stage", "-z"))

    def base_entries(self) -> frozenset[IndexEntry]:
        """Return what the index held when both sides last agreed."""
        return parse_entries(self.checker().run("ls-files", "--stage", "-z"))

    def index_is_untouched(self, now: bytes) -> bool:
        """Tell whether the person's index *now* has the entries, and their marks, that it had."""
        before = self.base_index.read_bytes() if self.base_index.exists() else b""
        if now == before:
            return True
        if not now or not before:
            return False
        (self.place / "index.now").write_bytes(now)
        words = ("ls-files", "--stage", "-v", "-z")
        theirs = self.checker(index="/i/index.now").run(*words)
        return theirs == self.checker().run(*words)


def _refs(box: SandboxedGit) -> tuple[dict[str, str], dict[str, str]]:
    listed = box.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    plain: dict[str, str] = {}
    symbolic: dict[str, str] = {}
    for line in listed.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        words = line.split(" ")
        if len(words) != 3 or not OID.match(words[0]) or not words[1].startswith("refs/"):
            raise GitFailed("git for-each-ref gave something that is no list of refs.")
        if words[2]:
            symbolic[words[1]] = words[2]
        else:
            plain[words[1]] = words[0]
    return plain, symbolic


def peeled(box: SandboxedGit, oids: Mapping[str, str]) -> dict[str, str]:
    """Return the type of what each of *oids*, by name, leads to behind tags; `missing` where there is none."""
    given = "".join(f"{oid}^{{}}\n" for oid in oids.values())
    lines = box.run("cat-file", "--batch-check=%(objecttype)", given=given.encode()).splitlines()
    kinds = [line.decode("utf-8", "replace") for line in lines]
    return {
        name: kind if kind in ("commit", "tree", "blob") else "missing"
        for name, kind in zip(oids, kinds, strict=True)
    }
