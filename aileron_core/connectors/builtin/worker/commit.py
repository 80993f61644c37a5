"""Making a rehearsal's changes for real, all of them or none; and taking them back, of what was kept of the content before.

Each change is made beside its place first and put there in one step, which keeps what was there; that is
compared then once more, so that nobody's change in between is lost. Whatever fails, everything that was done is
undone, by the journal also where this process is killed. All of it happens within the mounts of the worker's own
sandbox, which the kernel holds to what is read-only or hidden.
"""

import os
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.journal import (
    EXCHANGE,
    NO_REPLACE,
    Journal,
    Step,
    finish,
    rename,
    take_back,
)
from aileron_core.connectors.builtin.worker.overlays import UNDO, Layer
from aileron_core.connectors.builtin.worker.upper_changes import (
    Change,
    Kind,
    copy_bytes,
    identity,
    open_beneath,
    printable,
    take_content,
)
from aileron_core.containment.safe_paths import READ_FILE, READ_FOLDER, remove_tree

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
        journal: Journal | None = None,
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
            number: os.open(f"{number}/up", READ_FOLDER, dir_fd=upper)
            for number in {each.layer for each in changes if stat.S_ISREG(each.mode)}
        }
        self._changes = changes
        self._deleted = {(each.layer, each.path) for each in changes if each.kind == "deleted"}
        self._journal = journal
        self._steps: dict[tuple[int, PurePosixPath, str], Step] = {}
        self._begun: list[Step] = []

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
        changes = [each for each in self._changes if not each.within]
        self._steps = {(each.layer, each.path, each.kind): self._step(each) for each in changes}
        steps = [*self._steps.values()]
        layers = [self._layers[number] for number in {each.layer for each in changes}]
        roots = {str(each.path): each.handle for each in layers}
        journal = self._journal or Journal(os.memfd_create("journal"))
        try:
            journal.begin(
                steps
            )  # first, for its lock: what is checked then stays so for other commits
            for change in self._changes:
                self._check(change)
            for change in changes:
                self._make(change)
            journal.done(roots)
        except BaseException as error:
            take_back(self._begun, roots)
            journal.clear()
            if isinstance(error, Conflict):
                raise OpFailed(
                    "conflict",
                    f"{error} is not as it was when {self._since}. Nothing was changed.",
                ) from None
            if isinstance(error, OSError):
                raise OpFailed(
                    "io", f"The changes could not be made ({error}). Nothing was changed."
                ) from None
            raise
        finish(steps, roots)
        journal.clear()

    def _step(self, change: Change) -> Step:
        return Step(
            root=str(self._layers[change.layer].path),
            above=str(change.path.parent),
            above_inode=change.above,
            name=change.path.name,
            aside=f".aileron-{secrets.token_hex(8)}",
            was=change.was[0] if change.was is not None else None,
            mode=change.mode,
            target=change.target,
            sha256=change.after.sha256 if change.after is not None else None,
        )

    def _shown(self, change: Change) -> str:
        return printable(str(self._layers[change.layer].path / change.path))

    def _open_above(self, change: Change) -> int:
        """Open the folder that *change* is in.

        Raises:
            Conflict: it is another one by now.
        """
        try:
            root = self._layers[change.layer].handle
            above = open_beneath(root, change.path.parent, READ_FOLDER)
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
        step = self._steps[change.layer, change.path, change.kind]
        above = self._open_above(change)
        try:
            if change.kind == "deleted":
                self._delete(change, above, step)
            elif stat.S_ISDIR(change.mode):
                self._folder(change, above, step)
            else:
                self._replace(change, above, step)
        finally:
            os.close(above)

    def _delete(self, change: Change, above: int, step: Step) -> None:
        self._begun.append(step)
        self._rename(change, above, step.name, step.aside, NO_REPLACE)
        status = os.stat(step.aside, dir_fd=above, follow_symlinks=False)
        self._compare(change, above, step.aside, status, renamed=True)
        self._keep(change, above, step.aside)
        if stat.S_ISDIR(status.st_mode):
            self._compare_inside(change, above, step.aside)

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
                folder = open_beneath(above, PurePosixPath(aside) / here, READ_FOLDER)
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

    def _folder(self, change: Change, above: int, step: Step) -> None:
        """Make a folder; it gets its mode once everything is in it."""
        if change.kind == "made":
            try:
                os.mkdir(step.name, 0o700, dir_fd=above)
            except FileExistsError:
                raise Conflict(self._shown(change)) from None
            self._begun.append(step)
        status = os.stat(step.name, dir_fd=above, follow_symlinks=False)
        if change.was is not None and identity(status)[:2] != change.was[:2]:
            raise Conflict(self._shown(change))

    def _replace(self, change: Change, above: int, step: Step) -> None:
        """Put a file or link in its place, and compare what was there."""
        self._begun.append(step)
        self._write(change, above, step.aside)
        if change.was is None:
            self._rename(change, above, step.aside, step.name, NO_REPLACE)
            return
        self._rename(change, above, step.aside, step.name, EXCHANGE)
        status = os.stat(step.aside, dir_fd=above, follow_symlinks=False)
        self._compare(change, above, step.aside, status, renamed=True)
        self._keep(change, above, step.aside)

    def _rename(self, change: Change, above: int, old: str, new: str, flags: int) -> None:
        try:
            rename(above, old, new, flags)
        except (FileNotFoundError, FileExistsError):
            raise Conflict(self._shown(change)) from None

    def _write(self, change: Change, above: int, name: str) -> None:
        """Make what *change* asks for under another name."""
        if stat.S_ISLNK(change.mode):
            os.symlink(change.target, name, dir_fd=above)
            return
        upper = self._uppers[change.layer]
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        source = open_beneath(upper, change.path, READ_FILE)
        with (
            os.fdopen(source, "rb", buffering=0) as reader,
            os.fdopen(os.open(name, flags, 0o600, dir_fd=above), "wb", buffering=0) as writer,
        ):
            # Its extended attributes, of which nobody was shown any, are left out.
            copy_bytes(reader, writer, change.after.size if change.after else 0)
            os.fchmod(writer.fileno(), stat.S_IMODE(change.mode))
            status = os.fstat(source)
            os.utime(writer.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _has_content(folder: int, name: str, sha256: str | None) -> bool:
    try:
        handle = os.open(name, READ_FILE, dir_fd=folder)
    except OSError:
        return False
    return take_content(PurePosixPath(name), handle).sha256 == sha256


def _keep_nothing(change: Change, above: int, name: str) -> None:
    """What cannot be taken back keeps nothing."""


MAX_KEPT = 64 * 1024 * 1024
"""Bytes of earlier contents that are kept of one commit."""


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
        return os.open(UNDO, READ_FOLDER, dir_fd=self.upper)

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
            source = os.open(name, READ_FILE, dir_fd=above)
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
    above = open_beneath(layers[change.layer].handle, change.path.parent, READ_FOLDER)
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
        above = open_beneath(layers[change.layer].handle, change.path.parent, READ_FOLDER)
        inode = os.fstat(above).st_ino
        os.close(above)
    return Change(
        layer=change.layer, path=change.path, kind="made", mode=change.was[1],
        target=change.link_before or "", after=change.before, above=inode,
    )  # fmt: skip
