"""Git's `index.lock`, and making an index anew with the agent's entries; `import_changes` says when."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from aileron_core.containment.git.session_repository import IndexEntry, SessionRepository

_WAIT = 0.05


class IndexLock:
    """Git's own `index.lock`: while it is held, no git command commits or stages."""

    def __init__(self, repository: SessionRepository, *, seconds: float) -> None:
        self._path = repository.git_dir / "index"
        self._lock = repository.git_dir / "index.lock"
        self._seconds = seconds
        self.is_held = False

    def __enter__(self) -> "IndexLock":
        """Try to take the lock; `is_held` says whether that succeeded in time."""
        until = time.monotonic() + self._seconds
        while not self.is_held:
            try:
                os.close(os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
                self.is_held = True
            except FileExistsError:
                if time.monotonic() >= until:
                    break
                time.sleep(_WAIT)  # another program's lock: nothing tells when it is released
        return self

    def read(self) -> bytes:
        """Return the index's bytes, empty if there is none."""
        return self._path.read_bytes() if self._path.exists() else b""

    def commit(self, rebuilt: Path) -> None:
        """Replace the index by the file *rebuilt* and release the lock."""
        mode = self._path.stat().st_mode & 0o777 if self._path.exists() else 0o644
        with self._lock.open("wb") as file, rebuilt.open("rb") as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        self._lock.chmod(mode)
        self._lock.replace(self._path)
        self.is_held = False

    def __exit__(self, *_: object) -> None:
        if self.is_held:
            self._lock.unlink(missing_ok=True)


def without_new_gitlinks(
    entries: Iterable[IndexEntry], before: Iterable[IndexEntry]
) -> tuple[frozenset[IndexEntry], list[bytes]]:
    """Return *entries* without the gitlinks whose paths had none *before*, and those paths."""
    known = {entry.path for entry in before if entry.is_gitlink}
    new = {entry for entry in entries if entry.is_gitlink and entry.path not in known}
    return frozenset(entries) - new, sorted({entry.path for entry in new})


def rebuild_index(
    repository: SessionRepository, entries: frozenset[IndexEntry], before: frozenset[IndexEntry]
) -> Path:
    """Write an index with *entries*, starting from the person's, and return its path.

    Git's cached stat data of unchanged files is kept, so nothing has to be read again, and no file
    that the agent changed can pass for unchanged.

    Raises:
        GitFailed: git rejects the entries.
    """
    made = repository.folder / "index.made"
    made.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(repository.base_index, made)
    paths = {entry.path for entry in entries ^ before}
    zeros = "0" * len(next(iter(entries | before)).oid) if entries | before else ""
    lines = [b"0 " + zeros.encode() + b"\t" + path for path in sorted(paths)]
    lines += [
        b"%s %s %d\t%s" % (entry.mode, entry.oid.encode(), entry.stage, entry.path)
        for entry in sorted(each for each in entries if each.path in paths)
    ]
    git = repository.quarantine_git(write=True, index="/i/index.made")
    git.run("update-index", "-z", "--index-info", stdin=b"".join(line + b"\0" for line in lines))
    return made
