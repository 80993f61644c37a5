"""What a rehearsed command has changed, read from the folders that its overlays wrote.

Nothing of it comes from the command. What lies below is looked at beneath an open folder, without
following links or entering other mounts, and its identity is kept: a commit applies to exactly that.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import BinaryIO, Literal

from aileron_core.connectors.builtin.worker.file_content import (
    Snapshot,
)
from aileron_core.connectors.builtin.worker.overlays import Layer
from aileron_core.connectors.builtin.worker.text_diff import MAX_DIFFED
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.safe_paths import READ_FILE, READ_FOLDER

_OPAQUE = "user.overlay.opaque"
MAX_READ = 1 << 30
"""Bytes of what a rehearsal left, and of what was there before, that are read: by the sizes that files say they have."""
_MAX_BEFORE = 256 << 20
"""Bytes of a file that is there now and whose content is read; a larger one is compared without."""
MAX_PATHS = 5000
"""In all folders, also those that are not shown."""
_BENEATH = 0x01 | 0x02 | 0x04 | 0x08
"""RESOLVE_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS and _BENEATH of linux/openat2.h."""
_CHUNK = 1 << 20

Kind = Literal["made", "changed", "deleted", "mode", "link"]
Identity = tuple[int, int, int, int, int]
"""Inode, mode, size, time of change of content, and of anything."""


class NotShowable(Exception):
    """A change that no commit could make, or no person could be shown; the end of a sentence about the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that is different."""

    layer: int
    path: PurePosixPath
    """Relative to the layer."""
    kind: Kind
    mode: int = 0
    """Type and permissions that it will have."""
    target: str = ""
    """Of a link."""
    was: Identity | None = None
    """What is there now; None where nothing is."""
    before: Snapshot | None = None
    """The regular file that is there now, where its content was read."""
    after: Snapshot | None = None
    link_before: str | None = None
    above: int | None = None
    """Inode of the folder that it is in; None where that is made too."""
    within: bool = False
    """It goes with the folder above it, which is deleted too."""


def printable(name: str) -> str:
    """Return a path as a line of a diff can have it: what is not UTF-8, or not printed, as escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def identity(status: os.stat_result) -> Identity:
    return (
        status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip


def open_beneath(root: int, path: PurePosixPath, flags: int) -> int:
    """Open *path* on the very mount of *root*, without following a link.

    Raises:
        OSError: it leads elsewhere, or there is none.
    """
    return openat2(root, os.fsencode(str(path)), flags, _BENEATH)


@dataclass(frozen=True, slots=True)
class _Folder:
    names: frozenset[str]
    inode: int


class UpperReader:
    """Reads the changes of one layer."""

    def __init__(self, number: int, layer: Layer, upper: int, left: int = MAX_READ) -> None:
        """Begin at the top.

        Args:
            upper: of `overlays.new_upper`.
            left: bytes that may be read.
        """
        self.left = left
        self._number = number
        self._root = layer.handle
        self._is_own = layer.purpose == "own"
        self._upper = os.open(f"{number}/up", READ_FOLDER, dir_fd=upper)

    def changes(self) -> Iterator[Change]:
        """Yield them, folders before what is in them.

        Raises:
            NotShowable: one of them cannot be committed.
            OSError: what lies below changes at the moment.
        """
        if os.fstat(self._upper).st_mode != os.fstat(self._root).st_mode:
            raise NotShowable("changes the mode of a folder that is mounted by itself")
        top = PurePosixPath()
        yield from self._folder(top, self._upper, self._lower_folder(top))

    def _lower_folder(self, path: PurePosixPath) -> _Folder | None:
        """Return the folder *path* below, None if there is none."""
        try:
            handle = open_beneath(self._root, path, READ_FOLDER)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            names = os.listdir(handle)  # noqa: PTH208 - of the open folder
            return _Folder(frozenset(names), os.fstat(handle).st_ino)
        finally:
            os.close(handle)

    def _lower(self, path: PurePosixPath) -> os.stat_result | None:
        try:
            above = open_beneath(self._root, path.parent, READ_FOLDER)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return os.stat(path.name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            return None
        finally:
            os.close(above)

    def _folder(self, path: PurePosixPath, upper: int, lower: _Folder | None) -> Iterator[Change]:
        names = sorted(os.listdir(upper))
        if lower is not None and _is_opaque(upper):
            for name in sorted(lower.names - {*names}):
                yield from self._deleted(path / name)
        for name in names:
            status = os.stat(name, dir_fd=upper, follow_symlinks=False)
            there = self._lower(path / name) if lower is not None else None
            for change in self._entry(path / name, upper, status, there):
                if change.path == path / name and lower is not None:
                    change = replace(change, above=lower.inode)
                yield change

    def _entry(
        self, path: PurePosixPath, upper: int, status: os.stat_result, there: os.stat_result | None
    ) -> Iterator[Change]:
        mode = status.st_mode
        if stat.S_ISCHR(mode) and status.st_rdev == 0:
            if there is not None:
                yield from self._deleted(path)
            return
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            if self._is_own:
                return  # whoever had it open has ended
            raise NotShowable(
                f"makes {printable(str(path))}, which is a socket, a pipe or a device"
            )
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            raise NotShowable(
                f"gives {printable(str(path))} the rights of its owner or group (set-uid, set-gid)"
            )
        was_folder = there is not None and stat.S_ISDIR(there.st_mode)
        if there is not None and was_folder != stat.S_ISDIR(mode):
            yield from self._deleted(path)
            there = None
        if stat.S_ISDIR(mode):
            yield from self._made_folder(path, upper, status, there)
        else:
            change = self._file(path, upper, status, there)
            if change is not None:
                yield change

    def _made_folder(
        self, path: PurePosixPath, upper: int, status: os.stat_result, there: os.stat_result | None
    ) -> Iterator[Change]:
        if there is None:
            yield Change(layer=self._number, path=path, kind="made", mode=status.st_mode)
        elif there.st_mode != status.st_mode:
            yield Change(
                layer=self._number, path=path, kind="mode", mode=status.st_mode, was=identity(there)
            )
        _let_in(upper, path.name)
        handle = os.open(path.name, READ_FOLDER, dir_fd=upper)
        try:
            lower = self._lower_folder(path) if there is not None else None
            yield from self._folder(path, handle, lower)
        finally:
            os.close(handle)

    def _file(
        self, path: PurePosixPath, upper: int, status: os.stat_result, there: os.stat_result | None
    ) -> Change | None:
        """Return how a file or link differs, None if it does not."""
        is_link = stat.S_ISLNK(status.st_mode)
        if status.st_nlink > 1:
            raise NotShowable(f"gives {printable(str(path))} a second name (a hard link)")
        after = target = None
        if is_link:
            target = os.readlink(path.name, dir_fd=upper)
        else:
            _let_in(upper, path.name)
            handle = os.open(path.name, READ_FILE, dir_fd=upper)
            after = self._read(path, handle)
        was, before, link_before = self._content(path, there)
        if (
            there is not None
            and before is not None
            and after is not None
            and before.sha256 == after.sha256
            and before.sha256 is not None
        ):
            if there.st_mode == status.st_mode and there.st_mtime_ns == status.st_mtime_ns:
                return None  # it was opened for writing
            kind: Kind = "mode" if there.st_mode != status.st_mode else "changed"
        else:
            kind = "link" if is_link else "made" if there is None else "changed"
        if there is not None and stat.S_ISREG(there.st_mode) and there.st_nlink > 1:
            raise NotShowable(
                f"changes {printable(str(path))}, a file that has several names (hard links)"
            )
        return Change(
            layer=self._number,
            path=path,
            kind=kind,
            mode=status.st_mode,
            target=target or "",
            was=was,
            before=before,
            after=after,
            link_before=link_before,
        )

    def _content(
        self, path: PurePosixPath, there: os.stat_result | None
    ) -> tuple[Identity | None, Snapshot | None, str | None]:
        """Return the identity of what is at *path* below, with its content or target."""
        if there is None:
            return None, None, None
        if stat.S_ISREG(there.st_mode) and there.st_size <= _MAX_BEFORE:
            handle = open_beneath(self._root, path, READ_FILE)
            status = os.fstat(handle)
            return identity(status), self._read(path, handle), None
        link = None
        if stat.S_ISLNK(there.st_mode):
            above = open_beneath(self._root, path.parent, READ_FOLDER)
            try:
                link = os.readlink(path.name, dir_fd=above)
            finally:
                os.close(above)
        return identity(there), None, link

    def _read(self, path: PurePosixPath, handle: int) -> Snapshot:
        self.left -= os.fstat(handle).st_size
        if self.left < 0:
            os.close(handle)
            raise NotShowable("leaves or changes files of more than 1 GiB, too much to read")
        return take_content(path, handle)

    def _deleted(self, path: PurePosixPath, *, within: bool = False) -> Iterator[Change]:
        """Yield a deletion, and those of everything in a folder."""
        there = self._lower(path)
        if there is None:
            return
        was, before, link = self._content(path, there)
        yield Change(
            layer=self._number, path=path, kind="deleted", was=was, before=before,
            link_before=link, within=within,
        )  # fmt: skip
        if stat.S_ISDIR(there.st_mode):
            folder = self._lower_folder(path)
            for name in sorted(folder.names if folder else ()):
                yield from self._deleted(path / name, within=True)


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(f"/proc/self/fd/{folder}", _OPAQUE) == b"y"
    except OSError:
        return False


def _let_in(folder: int, name: str) -> None:
    """Let the owner read what the command has closed; the mode is kept in the change."""
    path = f"/proc/self/fd/{folder}/{name}"
    status = os.lstat(path)
    if not stat.S_ISLNK(status.st_mode) and not status.st_mode & stat.S_IRUSR:
        os.chmod(path, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)  # noqa: PTH101


def take_content(path: PurePosixPath, handle: int) -> Snapshot:
    """Return the open file as it is, without the data of one that no diff is made of, and close it."""
    try:
        status = os.fstat(handle)
        digest = hashlib.sha256()
        beginning = b""
        left = status.st_size  # and no more: somebody may be adding to it
        while left and (chunk := os.read(handle, min(left, _CHUNK))):
            left -= len(chunk)
            beginning = beginning or chunk
            digest.update(chunk)
        data = beginning if len(beginning) == status.st_size <= MAX_DIFFED else None
        return Snapshot(path, status, digest.hexdigest(), data, beginning, status.st_size - left)
    finally:
        os.close(handle)


def copy_bytes(reader: BinaryIO, writer: BinaryIO, size: int) -> None:
    """Copy what *reader* has, at most *size* bytes, to an unbuffered *writer*."""
    while size and (chunk := reader.read(min(size, _CHUNK))):
        size -= len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[writer.write(view) :]
