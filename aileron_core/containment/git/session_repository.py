"""One repository of a session: the person's side and the agent's side, each read by a sandboxed git."""

import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from aileron_core.containment import safe_paths
from aileron_core.containment.git.record import (
    OBJECT_ID_PATTERN,
    SANDBOX_OBJECTS_DIR,
    RepositoryRecord,
)
from aileron_core.containment.git.sandboxed_git import GitFailed, SandboxedGit

_SMALL = 1024 * 1024
_BRANCH = re.compile(
    r"ref: refs/heads/(?!.*(?:\.\.|//|/\.|@\{|\.lock))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
"""HEAD on a branch; what a ref's name may hold is git's own rule (git-check-ref-format)."""
_FILES = frozenset((b"100644", b"100755", b"120000"))
OPERATION_FILES = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD")
"""What a merge, cherry-pick or revert under way consists of: the session continues it."""
_SHARED = ("objects", "refs", "packed-refs", "logs", "shallow")


@dataclass(frozen=True, slots=True, order=True)
class IndexEntry:
    """One entry of a git index."""

    path: bytes
    stage: int
    mode: bytes
    oid: str

    @property
    def is_gitlink(self) -> bool:
        """Whether the entry is a submodule, or has a mode that git could read as one.

        An index that git did not write may say `040755` or `160644`, which git turns into `160000`.
        """
        return self.mode not in _FILES


def parse_entries(listed: bytes) -> frozenset[IndexEntry]:
    """Parse the output of `git ls-files --stage -z`.

    Raises:
        GitFailed: it is malformed.
    """
    entries: set[IndexEntry] = set()
    for line in listed.split(b"\0")[:-1]:
        header, tab, path = line.partition(b"\t")
        words = header.split(b" ")
        if (
            not tab
            or len(words) != 3
            or not OBJECT_ID_PATTERN.match(oid := words[1].decode("ascii", "replace"))
        ):
            raise GitFailed("git ls-files returned something that is not an index listing.")
        entries.add(IndexEntry(path, int(words[2]), words[0], oid))
    return frozenset(entries)


def read_small_file(path: Path) -> bytes | None:
    """Return the bytes of a small regular file, without following a link or blocking on a FIFO."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    return safe_paths.read_small_file(descriptor, _SMALL)


class SessionRepository:
    """One repository of a session, and how git is run on each part of it."""

    def __init__(self, bwrap: str, session: Path, record: RepositoryRecord) -> None:
        self.bwrap = bwrap
        self.record = record
        self.session = session.name
        self.folder = session / str(record.number)
        self.session_git_dir = self.folder / "git"
        """Written by the agent, so nothing in it is trusted."""
        self.git_dir, self.common_dir = Path(record.git), Path(record.common)
        self.base_index = self.folder / "index"
        """The index when the repositories last matched."""
        self.quarantine = self.folder / "check"
        """A bare repository of ours in which new objects are checked."""

    def objects_inside(self, number: int) -> str:
        """Return the path at which the person's object store *number* is mounted in every sandbox."""
        return f"{SANDBOX_OBJECTS_DIR}/{self.record.number}/{number}"

    def _git(
        self, git_dir: str, *shown: tuple[Path, str], write: bool = False, index: str = ""
    ) -> SandboxedGit:
        """Return git on *git_dir* in a sandbox that shows the person's objects, read-only, and what is *shown*."""
        objects = [
            (Path(folder), self.objects_inside(number))
            for number, folder in enumerate(self.record.objects)
        ]
        env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(inside for _, inside in objects)}
        if index:
            env["GIT_INDEX_FILE"] = index
        how = "--bind" if write else "--ro-bind"
        mounts = [("--ro-bind", str(path), inside) for path, inside in objects]
        mounts += [(how, str(path), inside) for path, inside in shown]
        words = tuple(word for mount in mounts for word in mount)
        return SandboxedGit(bwrap=self.bwrap, git_dir=git_dir, mounts=words, env=env)

    def agent_git(self) -> SandboxedGit:
        """Return git on the session's objects and refs, with safe settings: the agent's are not mounted."""
        own = ((self.folder / name, f"/g/{name}") for name in ("config", "HEAD"))
        git = self._git("/g", (self.session_git_dir, "/s"), *own, index="/s/index")
        links = (word for name in _SHARED for word in ("--symlink", f"/s/{name}", f"/g/{name}"))
        return replace(git, mounts=(*git.mounts, *links))

    def person_git(self, *, write: bool = False) -> SandboxedGit:
        """Return git on the person's repository, read-only unless *write*."""
        inside = Path("/real", self.git_dir.relative_to(self.common_dir))
        return self._git(str(inside), (self.common_dir, "/real"), write=write)

    def quarantine_git(self, *, write: bool = False, index: str = "/i/index") -> SandboxedGit:
        """Return git on the quarantine, and on the copies of indexes beside it."""
        shown = ((self.quarantine, "/q"), (self.folder, "/i"))
        return self._git("/q", *shown, write=write, index=index)

    def make_quarantine(self) -> None:
        """Make the quarantine, empty."""
        shutil.rmtree(self.quarantine, ignore_errors=True)
        for folder in ("objects/info", "objects/pack", "refs"):
            (self.quarantine / folder).mkdir(mode=0o700, parents=True)
        (self.quarantine / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        shutil.copyfile(self.folder / "config", self.quarantine / "config")

    def person_refs(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the person's current refs: ids by ref, and the targets of symbolic refs."""
        return _refs(self.person_git())

    def person_head(self) -> str:
        """Return the person's current HEAD: `ref: refs/heads/NAME`, or an object id."""
        git = self.person_git()
        name = (
            git.run("symbolic-ref", "-q", "HEAD", may_fail=True).decode("utf-8", "replace").strip()
        )
        return f"ref: {name}" if name else git.run("rev-parse", "HEAD").decode().strip()

    def agent_refs(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the agent's refs: ids by ref, and the targets of symbolic refs.

        Raises:
            GitFailed: HEAD names no branch and no commit, or one of git's files is not a regular
                file.
        """
        for name in ("index", "packed-refs", "shallow"):
            path = self.session_git_dir / name
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise GitFailed(f"the agent's {name} is not a file.")
        self.agent_head()
        return _refs(self.agent_git())

    def agent_head(self) -> str:
        """Return the agent's HEAD, after copying it to where `agent_git` finds it.

        Raises:
            GitFailed: it names no branch and no commit.
        """
        text = (
            (read_small_file(self.session_git_dir / "HEAD") or b"")
            .decode("utf-8", "replace")
            .strip()
        )
        if not OBJECT_ID_PATTERN.match(text) and not _BRANCH.fullmatch(text):
            raise GitFailed("the agent's HEAD is neither a branch nor a commit.")
        (self.folder / "HEAD").write_text(f"{text}\n", encoding="utf-8")
        return text

    def agent_entries(self) -> frozenset[IndexEntry]:
        return parse_entries(self.agent_git().run("ls-files", "--stage", "-z"))

    def base_entries(self) -> frozenset[IndexEntry]:
        """Return the index entries from when the repositories last matched."""
        return parse_entries(self.quarantine_git().run("ls-files", "--stage", "-z"))

    def index_is_untouched(self) -> bool:
        """Return whether the person's index still has the entries and flags from when the repositories last matched."""
        index = self.git_dir / "index"
        now, before = (
            each.read_bytes() if each.exists() else b"" for each in (index, self.base_index)
        )
        if now == before:
            return True
        if not now or not before:
            return False
        (self.folder / "index.now").write_bytes(now)
        words = ("ls-files", "--stage", "-v", "-z")
        theirs = self.quarantine_git(index="/i/index.now").run(*words)
        return theirs == self.quarantine_git().run(*words)


def _refs(git: SandboxedGit) -> tuple[dict[str, str], dict[str, str]]:
    listed = git.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    plain: dict[str, str] = {}
    symbolic: dict[str, str] = {}
    for line in listed.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        words = line.split(" ")
        if (
            len(words) != 3
            or not OBJECT_ID_PATTERN.match(words[0])
            or not words[1].startswith("refs/")
        ):
            raise GitFailed("git for-each-ref returned something that is not a list of refs.")
        if words[2]:
            symbolic[words[1]] = words[2]
        else:
            plain[words[1]] = words[0]
    return plain, symbolic


def peeled(git: SandboxedGit, oids: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return by name the type and the id of each object, with tags followed; `missing` if there is none."""
    stdin = "".join(f"{oid}^{{}}\n" for oid in oids.values())
    words = ("cat-file", "--batch-check=%(objecttype) %(objectname)")
    lines = git.run(*words, stdin=stdin.encode()).decode("utf-8", "replace").splitlines()
    pairs = [line.split(" ") for line in lines]
    return {
        name: (kind, oid) if kind in ("commit", "tree", "blob") else ("missing", "")
        for name, (kind, oid) in zip(oids, pairs, strict=True)
    }
