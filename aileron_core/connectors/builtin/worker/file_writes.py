"""Write and Edit: what would change, the change, and taking it back.

A file is replaced by a new one under its name in one step: a reader sees the old content or the new one. Mode
and owner are kept. A hard link to the file keeps the old content, as do access control lists and extended
attributes, which are not copied. Between the last look at the file and its replacement lie microseconds, in
which another program's write is lost.
"""

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.file_content import (
    Snapshot,
    snapshot_at,
    snapshot_of,
    text_of,
)
from aileron_core.connectors.builtin.worker.paths import Project, failure, refuse_other_kinds
from aileron_core.connectors.builtin.worker.text_diff import MAX_DIFFED, unified_diff

_MAX_DIFF_JSON = 3 * 1024 * 1024
"""Bytes of a diff in an answer, whose frame is limited."""
UNDO_BYTES = 64 * 1024 * 1024
"""Of earlier contents that are kept, in all."""

Change = Callable[[Snapshot], bytes]
"""Returns the new content of a file, or raises OpFailed."""


@dataclass(frozen=True, slots=True)
class _Undo:
    path: PurePosixPath
    before: bytes | None
    """None: there was no file."""
    sha256: str
    """Of what was written."""
    folders: tuple[PurePosixPath, ...]
    """That were made for it, outermost first."""


class FileWrites:
    """The writes of one session, with what undoes them, in memory."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._undos: OrderedDict[str, _Undo] = OrderedDict()

    def preview(self, given: str, change: Change, expected: str | None = None) -> dict[str, Any]:
        """Return what a write would change.

        Args:
            expected: where *given* has to lead; None: anywhere in the project.

        Raises:
            OpFailed: the write would fail, as far as that can be told.
        """
        path = self._writable_path(given, expected)
        with _failures("read", path):
            before = self._look(path)
            after = change(before)
            self._refuse_unwritable(path, before)
        return {
            "path": str(path),
            "exists": before.status is not None,
            "base": before.base(),
            **_compared(before, after),
        }

    def write(
        self,
        given: str,
        change: Change,
        expect: Mapping[str, Any] | None = None,
        expected: str | None = None,
    ) -> dict[str, Any]:
        """Write what *change* returns.

        Args:
            expect: the `base` of the preview that was shown; None: whatever is there.
            expected: as for `preview`.

        Raises:
            OpFailed: `conflict` if the file is not as expected; the file is then unchanged.
        """
        path = self._writable_path(given, expected)
        made: list[PurePosixPath] = []
        with _failures("write", path):
            before = self._look(path)
            if expect is not None and before.base() != dict(expect):
                raise OpFailed(
                    "conflict",
                    f"{path} is not as it was when this change was shown. Read it and try again.",
                )
            data = change(before)
            self._refuse_unwritable(path, before)
            try:
                self._make_folders(path.parent, made)
                with self._project.open_folder(path.parent) as above:
                    written = _replace(above, before, data)
            except (OSError, OpFailed):
                self._remove_folders(made)
                raise
        undo = self._keep(_Undo(path, before.data, written, tuple(made)), before)
        created = before.status is None
        return {"path": str(path), "bytes": len(data), "created": created, "undo": undo}

    def undo(self, undo: str) -> dict[str, Any]:
        """Bring back what was there before a write, and return an empty answer.

        Raises:
            OpFailed: `not_found`: it is no longer known; `conflict`: the file has changed since.
        """
        entry = self._undos.get(undo)
        if entry is None:
            raise OpFailed(
                "not_found",
                "What was there before that write is no longer kept, or it was undone already.",
            )
        with _failures("restore", entry.path):
            now = self._look(entry.path)
            if now.sha256 != entry.sha256:
                raise OpFailed(
                    "conflict",
                    f"{entry.path} has changed since that write, so it was left as it is. Compare "
                    "and correct it by hand.",
                )
            with self._project.open_folder(entry.path.parent) as above:
                if entry.before is None:
                    _refuse_changed(above, now)
                    os.unlink(entry.path.name, dir_fd=above)
                else:
                    _replace(above, now, entry.before)
        self._remove_folders(entry.folders)
        del self._undos[undo]
        return {}

    def _writable_path(self, given: str, expected: str | None) -> PurePosixPath:
        place = self._project.settle(given, expected)
        if given.endswith("/") and not place.exists:
            raise OpFailed("invalid_arguments", f"{given} names a folder. Give a file's name.")
        if place.kind is not None:
            refuse_other_kinds(place.kind, str(place))
        return place.real

    def _look(self, path: PurePosixPath) -> Snapshot:
        try:
            with self._project.open_folder(path.parent) as above:
                return snapshot_at(above, path)
        except FileNotFoundError:
            return Snapshot(path)

    def _refuse_unwritable(self, path: PurePosixPath, before: Snapshot) -> None:
        """Fail as the write would, before a person is asked about it."""
        status = before.status
        if status is not None and not status.st_mode & 0o222:
            raise OpFailed(
                "forbidden",
                f"{path} is read-only (mode {stat.S_IMODE(status.st_mode):04o}). Change its mode "
                "first if it is to be written.",
            )
        folder = path.parent
        while True:
            try:
                with self._project.open_folder(folder) as above:
                    file = status is None or _may(path.name, os.W_OK, above)
                    if file and _may(".", os.W_OK | os.X_OK, above):
                        return
                    raise OpFailed(
                        "forbidden",
                        f"{path} cannot be written: its permissions or this session's sandbox make "
                        "it, or its folder, read-only.",
                    )
            except FileNotFoundError:
                folder = folder.parent

    def _make_folders(self, path: PurePosixPath, made: list[PurePosixPath]) -> None:
        for each in reversed((path, *path.parents)):
            if not each.name:
                continue
            with self._project.open_folder(each.parent) as above:
                try:
                    os.mkdir(each.name, dir_fd=above)
                except FileExistsError:
                    continue
            made.append(each)

    def _remove_folders(self, made: tuple[PurePosixPath, ...] | list[PurePosixPath]) -> None:
        """Remove those that are empty."""
        with contextlib.suppress(OSError):
            for each in reversed(made):
                with self._project.open_folder(each.parent) as above:
                    os.rmdir(each.name, dir_fd=above)

    def _keep(self, entry: _Undo, before: Snapshot) -> str | None:
        """Return the id of *entry*, None if the earlier content is too large to keep."""
        if before.status is not None and before.data is None:
            return None
        undo = secrets.token_hex(8)
        self._undos[undo] = entry
        while sum(len(each.before or b"") for each in self._undos.values()) > UNDO_BYTES:
            self._undos.popitem(last=False)
        return undo


@contextlib.contextmanager
def _failures(doing: str, path: PurePosixPath) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise failure(error, doing, str(path)) from None


def _may(name: str, how: int, folder: int) -> bool:
    return os.access(name, how, dir_fd=folder, effective_ids=True)


def _replace(folder: int, before: Snapshot, data: bytes) -> str:
    """Put *data* in the place of the file *before*, and return its SHA-256."""
    status, name = before.status, before.path.name
    temporary = f".aileron-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o666 if status is None else 0o600
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if status is not None:
                _take_over(descriptor, status, before.path)
        _refuse_changed(folder, before)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return hashlib.sha256(data).hexdigest()


def _take_over(descriptor: int, status: os.stat_result, path: PurePosixPath) -> None:
    """Give the new file the owner, group and mode of the old one, but no set-id bits."""
    new = os.fstat(descriptor)
    if new.st_uid != status.st_uid:
        try:
            os.fchown(descriptor, status.st_uid, -1)
        except OSError:
            raise OpFailed(
                "forbidden",
                f"{path} belongs to another user, which a write here would change. Use Bash to write "
                "into it.",
            ) from None
    if new.st_gid != status.st_gid:
        with contextlib.suppress(OSError):
            os.fchown(descriptor, -1, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o1777)


def _refuse_changed(folder: int, before: Snapshot) -> None:
    try:
        now = os.stat(before.path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _identity(now) != _identity(before.status):
        raise OpFailed("conflict", f"{before.path} changed while it was being written. Try again.")


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns


def _compared(before: Snapshot, data: bytes) -> dict[str, Any]:
    after = snapshot_of(before.path, data)
    old, new = text_of(before.data), text_of(data)
    readable = new is not None and (before.status is None or old is not None)
    small = max(len(data), len(before.data or b"")) <= MAX_DIFFED
    if readable and small:
        diff, added, removed = unified_diff(old, new, str(before.path))
        if len(json.dumps(diff)) <= _MAX_DIFF_JSON:
            return {"diff": diff, "added": added, "removed": removed}
    binary = after.summary()
    if before.status is not None:
        binary["before"] = before.summary()
    return {"diff": "", "added": 0, "removed": 0, "binary": binary}
