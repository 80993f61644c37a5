"""Making a rehearsal's changes for real: all of them, or none.

Each change is made beside its place first and put there in one step, which keeps what was there; that is
compared then once more, so that nobody's change in between is lost. Whatever fails, everything that was done is
undone. All of it happens within the mounts of the worker's own sandbox, which the kernel holds to
what is read-only or hidden.
"""

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aileron_core.connectors.builtin.worker.overlays import Layer
from aileron_core.connectors.builtin.worker.problems import OpFailed
from aileron_core.connectors.builtin.worker.upper_changes import (
    Change,
    identity,
    open_beneath,
    own_attributes,
    printable,
    take_content,
)
from aileron_core.containment.safe_paths import remove_tree

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20
_NO_REPLACE, _EXCHANGE = 1, 2
"""RENAME_* of linux/fs.h."""

Keep = Callable[[Change, int, str], None]


class Conflict(Exception):
    """Something is not as it was at the rehearsal; names it."""


class Commit:
    """The changes of one rehearsal, on their way into the folders that they belong to."""

    def __init__(
        self,
        layers: Sequence[Layer],
        upper: int,
        changes: Sequence[Change],
        keep: Keep | None = None,
        *,
        since: str = "the command was rehearsed",
    ) -> None:
        """Begin with nothing changed.

        Args:
            upper: what has the new files: of `overlays.new_upper`.
            keep: called with each file that is replaced or deleted, before it is gone.
            since: when everything has to have been as it is now, for the sentence that says it is not.
        """
        self._layers = layers
        self._keep = keep or _keep_nothing
        self._since = since
        self._uppers = {
            number: os.open(f"{number}/up", _FOLDER, dir_fd=upper)
            for number in {each.layer for each in changes if stat.S_ISREG(each.mode)}
        }
        self._changes = changes
        self._deleted = {(each.layer, each.path) for each in changes if each.kind == "deleted"}
        self._undo: list[Callable[[], None]] = []
        self._finish: list[Callable[[], None]] = []

    def holds(self) -> bool:
        """Return whether what the changes are made to is as it was."""
        try:
            for change in self._changes:
                self._check(change)
        except (Conflict, OSError):
            return False
        finally:
            for handle in self._uppers.values():
                os.close(handle)
        return True

    def apply(self) -> None:
        """Make the changes.

        Raises:
            OpFailed: `conflict` or `io`; nothing has changed.
        """
        try:
            for change in self._changes:
                self._check(change)
            for change in self._changes:
                self._make(change)
        except Conflict as conflict:
            self._take_back()
            raise OpFailed(
                "conflict",
                f"{conflict} is not as it was when {self._since}. Nothing was changed.",
            ) from None
        except OSError as error:
            self._take_back()
            raise OpFailed(
                "io", f"The changes could not be made ({error}). Nothing was changed."
            ) from None
        except BaseException:
            self._take_back()
            raise
        for finish in reversed(self._finish):
            with contextlib.suppress(OSError):
                finish()

    def _shown(self, change: Change) -> str:
        return printable(str(self._layers[change.layer].path / change.path))

    def _open_above(self, change: Change) -> int:
        """Open the folder that *change* is in.

        Raises:
            Conflict: it is another one by now.
        """
        try:
            root = self._layers[change.layer].handle
            above = open_beneath(root, change.path.parent, _FOLDER)
        except OSError:
            raise Conflict(self._shown(change)) from None
        if change.above is not None and os.fstat(above).st_ino != change.above:
            os.close(above)
            raise Conflict(self._shown(change))
        return above

    def _check(self, change: Change) -> None:
        """Compare what is there with what was there.

        Raises:
            Conflict: it differs.
        """
        if change.above is None and change.was is None:
            return  # in a folder that is to be made
        above = self._open_above(change)
        try:
            status = os.stat(change.path.name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            status = None
        try:
            self._compare(change, above, change.path.name, status, renamed=False)
        finally:
            os.close(above)

    def _compare(
        self, change: Change, above: int, name: str, status: os.stat_result | None, *, renamed: bool
    ) -> None:
        """Compare the entry *name* with what *change* is of.

        Args:
            renamed: it was moved by us, which changes when it was last changed.
        """
        if change.was is None or status is None:
            # What is deleted first, for something else in its place, is compared with the deletion.
            if status is not None and (change.layer, change.path) not in self._deleted:
                raise Conflict(self._shown(change))
            if change.was is not None:
                raise Conflict(self._shown(change))
            return
        now, was = identity(status), change.was
        if stat.S_ISDIR(status.st_mode):
            # Others may have made something in it meanwhile; what of it is to change is compared itself.
            if now[:2] != was[:2]:
                raise Conflict(self._shown(change))
            return
        if now[:4] != was[:4] or (not renamed and now != was):
            raise Conflict(self._shown(change))
        if change.before is not None and not _has_content(above, name, change.before.sha256):
            raise Conflict(self._shown(change))

    def _make(self, change: Change) -> None:
        if change.within:
            return
        above = self._open_above(change)
        self._finish.append(lambda: os.close(above))
        if change.kind == "deleted":
            self._delete(change, above)
        elif stat.S_ISDIR(change.mode):
            self._folder(change, above)
        else:
            self._replace(change, above)

    def _delete(self, change: Change, above: int) -> None:
        name, aside = change.path.name, _aside()
        self._rename(change, above, name, aside, _NO_REPLACE)
        self._undo.append(lambda: _rename(above, aside, name, _NO_REPLACE))
        status = os.stat(aside, dir_fd=above, follow_symlinks=False)
        self._compare(change, above, aside, status, renamed=True)
        self._keep(change, above, aside)
        if stat.S_ISDIR(status.st_mode):
            self._compare_inside(change, above, aside)
        self._finish.append(lambda: _remove(above, aside))

    def _compare_inside(self, change: Change, above: int, aside: str) -> None:
        """Compare a folder that was moved aside, with everything in it, with what was to be deleted."""
        prefix = change.path
        left = {
            each.path.relative_to(prefix): each
            for each in self._changes
            if each.within and each.layer == change.layer and each.path.is_relative_to(prefix)
        }
        waiting = [PurePosixPath()]
        while waiting:
            here = waiting.pop()
            try:
                folder = open_beneath(above, PurePosixPath(aside) / here, _FOLDER)
            except OSError:
                raise Conflict(self._shown(change)) from None
            try:
                for name in os.listdir(folder):  # noqa: PTH208 - of the open folder
                    expected = left.pop(here / name, None)
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if expected is None:
                        raise Conflict(self._shown(change))
                    self._compare(expected, folder, name, status, renamed=False)
                    self._keep(expected, folder, name)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(here / name)
            finally:
                os.close(folder)
        if left:
            raise Conflict(self._shown(change))

    def _folder(self, change: Change, above: int) -> None:
        name, mode = change.path.name, stat.S_IMODE(change.mode)
        if change.kind == "made":
            try:
                os.mkdir(name, 0o700, dir_fd=above)
            except FileExistsError:
                raise Conflict(self._shown(change)) from None
            self._undo.append(lambda: os.rmdir(name, dir_fd=above))
        handle = os.open(name, _FOLDER, dir_fd=above)
        self._finish.append(lambda: os.close(handle))
        before = os.fstat(handle)
        if change.was is not None and identity(before)[:2] != change.was[:2]:
            raise Conflict(self._shown(change))
        self._finish.append(lambda: os.fchmod(handle, mode))

    def _replace(self, change: Change, above: int) -> None:
        """Put a file or link in its place, and compare what was there."""
        name, aside = change.path.name, _aside()
        self._undo.append(lambda: os.unlink(aside, dir_fd=above))
        self._write(change, above, aside)
        if change.was is None:
            self._rename(change, above, aside, name, _NO_REPLACE)
            self._undo.append(lambda: _rename(above, name, aside, _NO_REPLACE))
            return
        self._rename(change, above, aside, name, _EXCHANGE)
        self._undo.append(lambda: _rename(above, aside, name, _EXCHANGE))
        status = os.stat(aside, dir_fd=above, follow_symlinks=False)
        self._compare(change, above, aside, status, renamed=True)
        self._keep(change, above, aside)
        self._finish.append(lambda: os.unlink(aside, dir_fd=above))

    def _rename(self, change: Change, above: int, old: str, new: str, flags: int) -> None:
        try:
            _rename(above, old, new, flags)
        except (FileNotFoundError, FileExistsError):
            raise Conflict(self._shown(change)) from None

    def _write(self, change: Change, above: int, name: str) -> None:
        """Make what *change* asks for under another name."""
        if stat.S_ISLNK(change.mode):
            os.symlink(change.target, name, dir_fd=above)
            return
        upper = self._uppers[change.layer]
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        source = open_beneath(upper, change.path, _FILE)
        with (
            os.fdopen(source, "rb", buffering=0) as reader,
            os.fdopen(os.open(name, flags, 0o600, dir_fd=above), "wb", buffering=0) as writer,
        ):
            _copy(reader, writer)
            folder = open_beneath(upper, change.path.parent, _FOLDER)
            try:
                _copy_attributes(own_attributes(folder, change.path.name), writer.fileno())
            finally:
                os.close(folder)
            os.fchmod(writer.fileno(), stat.S_IMODE(change.mode))
            status = os.fstat(source)
            os.utime(writer.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))

    def _take_back(self) -> None:
        for undo in reversed(self._undo):
            with contextlib.suppress(OSError):
                undo()


def _aside() -> str:
    return f".aileron-{secrets.token_hex(8)}"


def _rename(folder: int, old: str, new: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(folder, os.fsencode(old), folder, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        if number == errno.EINVAL:
            raise OSError(number, "this file system cannot exchange files")
        raise OSError(number, os.strerror(number), new)


def _has_content(folder: int, name: str, sha256: str | None) -> bool:
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return False
    return take_content(PurePosixPath(name), handle).sha256 == sha256


def _copy(reader: BinaryIO, writer: BinaryIO) -> None:
    while chunk := reader.read(_CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[writer.write(view) :]


def _copy_attributes(attributes: Mapping[str, bytes], target: int) -> None:
    for name, value in attributes.items():
        with contextlib.suppress(OSError):  # where it goes may have none
            os.setxattr(target, name, value)


def _remove(folder: int, name: str) -> None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        remove_tree(Path(f"/proc/self/fd/{folder}/{name}"))
    else:
        os.unlink(name, dir_fd=folder)


def _keep_nothing(change: Change, above: int, name: str) -> None:
    """What cannot be taken back keeps nothing."""
