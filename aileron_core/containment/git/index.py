"""The person's index: locked while refs move, and made anew from the agent's entries if nobody touched it."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.git.sides import IndexEntry, Sides

_WAIT = 0.05


class IndexLock:
    """The lock that git itself takes on an index: while it is held no git of the person's commits or stages."""

    def __init__(self, sides: Sides, *, seconds: float) -> None:
        self._path = sides.git / "index"
        self._lock = sides.git / "index.lock"
        self._seconds = seconds
        self.held = False

    def __enter__(self) -> "IndexLock":
        """Take it; `held` tells whether that succeeded in time."""
        until = time.monotonic() + self._seconds
        while not self.held:
            try:
                os.close(os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
                self.held = True
            except FileExistsError:
                if time.monotonic() >= until:
                    break
                time.sleep(_WAIT)  # another program's lock; it tells nobody when it lets go
        return self

    def read(self) -> bytes:
        """Return the index, empty where there is none."""
        return self._path.read_bytes() if self._path.exists() else b""

    def commit(self, made: Path) -> None:
        """Put *made* in the index's place and let go of the lock."""
        mode = self._path.stat().st_mode & 0o777 if self._path.exists() else 0o644
        with self._lock.open("wb") as file, made.open("rb") as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        self._lock.chmod(mode)
        self._lock.replace(self._path)
        self.held = False

    def __exit__(self, *_: object) -> None:
        """Let go of the lock."""
        if self.held:
            self._lock.unlink(missing_ok=True)


def without_new_links(
    entries: Iterable[IndexEntry], before: Iterable[IndexEntry]
) -> tuple[frozenset[IndexEntry], list[bytes]]:
    """Return *entries* without repositories that stood at no such path *before*, and those paths."""
    known = {entry.path for entry in before if entry.is_link}
    new = {entry for entry in entries if entry.is_link and entry.path not in known}
    return frozenset(entries) - new, sorted({entry.path for entry in new})


def rebuild(sides: Sides, entries: frozenset[IndexEntry], before: frozenset[IndexEntry]) -> Path:
    """Return an index with *entries*: the person's, but for what differs from *before*.

    What git knows of unchanged files stays, so that nothing has to be read again and no file that the
    agent changed can pass for unchanged.

    Raises:
        GitFailed: git takes no such entries.
    """
    made = sides.place / "index.made"
    made.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(sides.base_index, made)
    paths = {entry.path for entry in entries ^ before}
    zeros = "0" * len(next(iter(entries | before)).oid) if entries | before else ""
    lines = [b"0 " + zeros.encode() + b"\t" + path for path in sorted(paths)]
    lines += [
        b"%s %s %d\t%s" % (entry.mode, entry.oid.encode(), entry.stage, entry.path)
        for entry in sorted(each for each in entries if each.path in paths)
    ]
    box = sides.checker(write=True, index="/i/index.made")
    box.run("update-index", "-z", "--index-info", given=b"".join(line + b"\0" for line in lines))
    return made
