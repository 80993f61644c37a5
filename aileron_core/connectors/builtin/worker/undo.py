"""Taking a committed rehearsal back: the same changes the other way round, of what was kept of the content before."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aileron_core.connectors.builtin.worker.overlays import UNDO, Layer
from aileron_core.connectors.builtin.worker.upper_changes import (
    Change,
    Kind,
    copy_bytes,
    identity,
    open_beneath,
)
from aileron_core.containment.safe_paths import remove_tree

MAX_KEPT = 64 * 1024 * 1024
"""Bytes of earlier contents that are kept of one commit."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class Before:
    """The files and links that a commit replaces or deletes, copied into the rehearsal's own memory."""

    upper: int
    """Of `overlays.new_upper`."""
    is_whole: bool = True
    """Nothing was too large to be kept."""
    _bytes: int = 0

    @property
    def root(self) -> int:
        """Return a descriptor of the folder that takes the place of *upper* in the commit that takes it back."""
        return os.open(UNDO, _FOLDER, dir_fd=self.upper)

    def keep(self, change: Change, above: int, name: str) -> None:
        """Copy the entry *name* of the open folder *above*, which is what *change* replaces.

        Anything but a file or link is left; so is everything once it is too much.
        """
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
        if not self.is_whole or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):
            return
        if not stat.S_ISREG(status.st_mode):
            self.is_whole = False
            return
        self._bytes += status.st_size
        if self._bytes > MAX_KEPT:
            self.is_whole = False
            return
        copy = Path(f"/proc/self/fd/{self.upper}/{UNDO}/{change.layer}/up/{change.path}")
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            source = os.open(name, _FILE, dir_fd=above)
            with (
                os.fdopen(source, "rb", buffering=0) as reader,
                copy.open("xb", buffering=0) as writer,
            ):
                copy_bytes(reader, writer, status.st_size)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError:
            self.is_whole = False

    def forget_rehearsal(self) -> None:
        """Give back the memory of the overlays."""
        top = Path(f"/proc/self/fd/{self.upper}")
        for each in [*top.iterdir()]:
            if each.name != UNDO:
                remove_tree(each)


def reversed_changes(layers: Sequence[Layer], changes: Sequence[Change]) -> list[Change]:
    """Return what takes *changes* back, once they are made.

    Raises:
        OSError: one of them is not there any more.
    """
    deleted = {(each.layer, each.path) for each in changes if each.kind == "deleted"}
    there = [each for each in changes if each.kind != "deleted"]
    new = [each for each in there if each.was is None]
    folders = {(each.layer, each.path) for each in new if stat.S_ISDIR(each.mode)}
    gone = [
        _now(layers, each, kind="deleted", within=_lies_in(each, folders), mode=0) for each in new
    ]
    kept = [
        _now(layers, each, kind="mode" if stat.S_ISDIR(each.mode) else "changed", mode=each.was[1])
        for each in there
        if each.was is not None
    ]
    back = [_back(layers, each, deleted) for each in changes if each.kind == "deleted"]
    return [*gone, *kept, *back]


def _lies_in(change: Change, folders: set[tuple[int, PurePosixPath]]) -> bool:
    return any((change.layer, each) in folders for each in change.path.parents)


def _now(
    layers: Sequence[Layer], change: Change, *, kind: Kind, mode: int, within: bool = False
) -> Change:
    """Return the reverse of a *change* whose result is there now."""
    above = open_beneath(layers[change.layer].handle, change.path.parent, _FOLDER)
    try:
        status = os.stat(change.path.name, dir_fd=above, follow_symlinks=False)
        return Change(
            layer=change.layer,
            path=change.path,
            kind=kind,
            mode=mode,
            target=(change.link_before or "") if kind != "deleted" else "",
            was=identity(status),
            before=change.after,
            after=change.before,
            above=os.fstat(above).st_ino,
            within=within,
        )
    finally:
        os.close(above)


def _back(
    layers: Sequence[Layer], change: Change, deleted: set[tuple[int, PurePosixPath]]
) -> Change:
    """Return what makes again what *change* deleted."""
    assert change.was is not None
    inode = None
    if not any((change.layer, each) in deleted for each in change.path.parents):
        above = open_beneath(layers[change.layer].handle, change.path.parent, _FOLDER)
        inode = os.fstat(above).st_ino
        os.close(above)
    return Change(
        layer=change.layer, path=change.path, kind="made", mode=change.was[1],
        target=change.link_before or "", after=change.before, above=inode,
    )  # fmt: skip
