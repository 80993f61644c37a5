"""The journal of a commit: all that it is about to do, on the disk before the first of it is done.

So whoever comes after a commit that was ended in the middle can take it back, or finish what was only left
to tidy up. The journal is a descriptor that the launcher opened, of a file that no sandbox has a path to.
What it says is trusted; what lies in the folders is not: nothing is replaced or removed there but what the
commit made, as far as its content and the inode of what was there before tell.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker.upper_changes import open_beneath, take_content
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.safe_paths import READ_FILE, READ_FOLDER, remove_tree

_PATH = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_AT_FDCWD = -100
_NO_LINKS = 0x02 | 0x04
"""RESOLVE_NO_MAGICLINKS and RESOLVE_NO_SYMLINKS of linux/openat2.h."""
NO_REPLACE, EXCHANGE = 1, 2
"""RENAME_* of linux/fs.h."""
_DONE = "done\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One path that a commit changes, and the name beside it that it uses for that."""

    root: str
    """Where the layer is mounted."""
    above: str
    """The folder that it is in, relative to that."""
    above_inode: int | None
    """None where the commit makes it."""
    name: str
    aside: str
    was: int | None
    """Inode of what was there."""
    mode: int
    """Type and permissions of what will be there; 0: nothing."""
    target: str = ""
    """Of a link."""
    sha256: str | None = None
    """Of a file."""

    @property
    def path(self) -> str:
        return str(PurePosixPath(self.root, self.above, self.name))


class Journal:
    """The file, as one helper at a time has it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def begin(self, steps: Sequence[Step]) -> None:
        """Write what is to be done; return when the disk has it and no other commit is under way.

        What one left whose helper was killed is taken back, or finished, before.
        """
        fcntl.lockf(self._handle, fcntl.LOCK_EX)
        self._settle()
        self._write(json.dumps([asdict(each) for each in steps]).encode("ascii") + b"\n")

    def done(self, roots: Mapping[str, int]) -> None:
        """Note that all is done, once the disk has it."""
        for each in roots.values():
            folder = open_beneath(each, PurePosixPath(), READ_FOLDER)
            ctypes.CDLL(None).syncfs(folder)
            os.close(folder)
        os.lseek(self._handle, 0, os.SEEK_END)
        self._write(_DONE.encode("ascii"))

    def clear(self) -> None:
        """Note that nothing is under way."""
        self._empty()
        fcntl.lockf(self._handle, fcntl.LOCK_UN)

    def _empty(self) -> None:
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.fsync(self._handle)

    def recover(self) -> dict[str, Any] | None:
        """Take back or finish what is under way; None if nothing is. See `recover`."""
        fcntl.lockf(self._handle, fcntl.LOCK_EX)
        found = self._settle()
        fcntl.lockf(self._handle, fcntl.LOCK_UN)
        return found

    def _settle(self) -> dict[str, Any] | None:
        found = recover(os.pread(self._handle, os.fstat(self._handle).st_size, 0).decode("ascii"))
        self._empty()
        return found

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]
        os.fsync(self._handle)


def recover(text: str) -> dict[str, Any] | None:
    """Take back or finish the commit of a journal's *text*, in a sandbox with its folders.

    Returns:
        `done`, whether it was finished, and `left`, the paths where somebody has changed something since
        and which were left as they are; None if nothing had been begun.
    """
    first, end, rest = text.partition("\n")
    if not end:  # the disk had not all of it, so nothing was done
        return None
    steps = [Step(**each) for each in json.loads(first)]
    roots: dict[str, int] = {}
    for root in {each.root for each in steps}:
        with contextlib.suppress(OSError):  # gone with the session: its own home and /tmp
            roots[root] = openat2(_AT_FDCWD, os.fsencode(root), _PATH, _NO_LINKS)
    steps = [each for each in steps if each.root in roots]
    done = rest == _DONE
    left = finish(steps, roots) if done else take_back(steps, roots)
    return {"done": done, "left": left}


def take_back(steps: Sequence[Step], roots: Mapping[str, int]) -> list[str]:
    """Undo what was done of *steps*; return the paths where that would undo what somebody else did."""
    return _each(reversed(steps), roots, _take_back)


def finish(steps: Sequence[Step], roots: Mapping[str, int]) -> list[str]:
    """Remove what was there before all of *steps*, and give folders their modes; return the paths where that failed."""
    return _each(reversed(steps), roots, _finish)


def _each(
    steps: Iterator[Step], roots: Mapping[str, int], act: Callable[[Step, int], bool]
) -> list[str]:
    left: list[str] = []
    for step in steps:
        try:
            above = open_beneath(roots[step.root], PurePosixPath(step.above), READ_FOLDER)
        except OSError:
            if step.above_inode is not None:
                left.append(step.path)
            continue
        try:
            same = step.above_inode in (None, os.fstat(above).st_ino)
            if not same or not act(step, above):
                left.append(step.path)
        except OSError:
            left.append(step.path)
        finally:
            os.close(above)
    return left


def _take_back(step: Step, above: int) -> bool:
    """Return whether what was there is there again."""
    here, aside = _inode(above, step.name), _inode(above, step.aside)
    if stat.S_ISDIR(step.mode):
        if step.was is None and here is not None:
            with contextlib.suppress(NotADirectoryError):
                os.rmdir(step.name, dir_fd=above)
        return True
    if step.mode == 0:
        if aside is not None:
            rename(above, step.aside, step.name, NO_REPLACE)
        return True
    if aside is None:
        if step.was is None and here is not None:
            if not _is_made(step, above, step.name):
                return False
            # Looked at again under the other name, where nobody else changes it.
            rename(above, step.name, step.aside, NO_REPLACE)
            if not _is_made(step, above, step.aside):
                rename(above, step.aside, step.name, NO_REPLACE)
                return False
            os.unlink(step.aside, dir_fd=above)
        return True
    if step.was is not None and here != step.was and not _is_made(step, above, step.aside):
        if here is None:
            rename(above, step.aside, step.name, NO_REPLACE)
            return True
        rename(above, step.aside, step.name, EXCHANGE)
        if not _is_made(step, above, step.aside):  # somebody has changed what the commit made
            rename(above, step.aside, step.name, EXCHANGE)
            return False
    os.unlink(step.aside, dir_fd=above)
    return True


def _finish(step: Step, above: int) -> bool:
    if stat.S_ISDIR(step.mode):
        handle = os.open(step.name, READ_FOLDER, dir_fd=above)
        try:
            if step.was in (None, os.fstat(handle).st_ino):
                os.fchmod(handle, stat.S_IMODE(step.mode))
        finally:
            os.close(handle)
    elif _inode(above, step.aside) is not None:
        if stat.S_ISDIR(os.stat(step.aside, dir_fd=above, follow_symlinks=False).st_mode):
            return remove_tree(Path(f"/proc/self/fd/{above}/{step.aside}"))
        os.unlink(step.aside, dir_fd=above)
    return True


def _inode(folder: int, name: str) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
    return None


def _is_made(step: Step, folder: int, name: str) -> bool:
    """Return whether *name* is what the commit makes of *step*."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(step.mode) or not stat.S_ISREG(status.st_mode):
        is_link = stat.S_ISLNK(step.mode) and stat.S_ISLNK(status.st_mode)
        return is_link and os.readlink(name, dir_fd=folder) == step.target
    return (
        take_content(PurePosixPath(name), os.open(name, READ_FILE, dir_fd=folder)).sha256
        == step.sha256
    )


def rename(folder: int, old: str, new: str, flags: int) -> None:
    """Rename within an open *folder*, by the flags of `renameat2`.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(folder, os.fsencode(old), folder, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        if number == errno.EINVAL:
            raise OSError(number, "this file system cannot exchange files")
        raise OSError(number, os.strerror(number), new)
