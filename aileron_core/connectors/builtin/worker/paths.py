"""Where a path that an agent names leads, and opening it there and nowhere else.

An agent, or a command of its, can exchange a file for a symbolic link between a check and an open. So a path
is first followed to where it really is, and what is opened then is that real path, beneath the project's
handle, where no link is followed any more (`safe_paths.open_beneath`). A link that stands there by then fails
the open. What lies outside the project is opened the same way beneath `/`, and only if that very place was
decided on.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.containment.safe_paths import open_beneath

Kind = Literal["file", "folder", "other"]

_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _PATH | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_LINKS = 40
"""As many as Linux follows."""
_ATTEMPTS = 20
"""For a path that changes while it is followed."""
_PROC = PurePosixPath("/proc")
"""Its links lead where their text does not say; none of them is followed."""
_READ_ONLY = (errno.EROFS, errno.EBUSY)
"""Answers for a read-only mount, and for the rename of a file that is one."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names, as it was when it was looked up."""

    path: PurePosixPath | None
    """Relative to the project and without links; None outside the project."""
    target: PurePosixPath
    """Absolute; without links as far as it can be read."""
    exists: bool
    kind: Kind | None

    @property
    def real(self) -> PurePosixPath:
        """Without links: relative to the project, absolute outside."""
        return self.target if self.path is None else self.path

    def __str__(self) -> str:
        return str(self.real)


class Project:
    """The folder beneath which everything is opened; its handle stays open.

    Raises:
        OSError: the folder cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.real = PurePosixPath(os.path.realpath(folder))
        self._given = PurePosixPath(os.path.abspath(folder))  # noqa: PTH100 - links are kept
        self.handle = os.open(self.real, _FOLDER)
        self._root = os.open("/", _FOLDER)

    def locate(self, given: str) -> Place:
        """Return where *given* leads: absolute, or relative to the project.

        Raises:
            OpFailed: it names nothing that can be looked up, or keeps changing.
        """
        if not given or "\0" in given:
            raise OpFailed("invalid_arguments", "A path may not be empty or contain a null byte.")
        for _ in range(_ATTEMPTS):
            try:
                return self._follow(given)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise failure(error, "look up", given) from None
        raise OpFailed("conflict", f"{given} kept changing while it was looked up. Try again.")

    def settle(self, given: str, expected: str | None = None) -> Place:
        """Return where *given* leads: to a place in the project, or to the one that was decided on.

        Args:
            expected: the real path that was decided on.

        Raises:
            OpFailed: `forbidden`: it leaves the project; `conflict`: it leads elsewhere than *expected*.
        """
        place = self.locate(given)
        if place.path is None and expected is None:
            raise OpFailed(
                "forbidden",
                f"{given} leads out of the project, to {place.target}. "
                f"Use a path inside the project, {self.real}.",
                target=str(place.target),
            )
        if expected is not None and str(place.real) != expected:
            raise OpFailed(
                "conflict", f"{given} now leads to {place.real}, not to {expected}. Try again."
            )
        return place

    @contextlib.contextmanager
    def open_folder(self, path: PurePosixPath) -> Generator[int, None, None]:
        """Open the folder at the real *path* and yield its handle.

        Raises:
            OSError: `ELOOP`: a link is there now; else as `open`.
        """
        top, within = self._beneath(path)
        if not within.parts:
            yield top
            return
        handle = open_beneath(top, within, _FOLDER)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def open_file(
        self, given: str, expected: str | None = None
    ) -> Generator[tuple[Place, int], None, None]:
        """Yield where *given* leads, and a descriptor of the regular file there, for reading.

        Raises:
            OpFailed: there is none, or it cannot be read; see `settle` too.
        """
        place, descriptor = self._open_settled(given, expected)
        try:
            yield place, descriptor
        finally:
            os.close(descriptor)

    def _open_settled(self, given: str, expected: str | None) -> tuple[Place, int]:
        for _ in range(_ATTEMPTS):
            place = self.settle(given, expected)
            if place.kind is not None:
                refuse_other_kinds(place.kind, str(place))
            try:
                with self.open_folder(place.real.parent) as above:
                    return place, open_regular(above, place.real.name, str(place))
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise failure(error, "read", str(place)) from None
        raise OpFailed("conflict", f"{given} kept changing while it was opened. Try again.")

    def open_to_list(self, path: str) -> int:
        """Open the folder at the real *path*, whose entries can be read then, and return its handle.

        Raises:
            OSError: `ELOOP`: a link is there now; else as `open`.
        """
        top, within = self._beneath(PurePosixPath(path))
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if not within.parts:
            return os.open(".", flags, dir_fd=top)
        return open_beneath(top, within, flags)

    def _beneath(self, path: PurePosixPath) -> tuple[int, PurePosixPath]:
        """Return the handle beneath which the real *path* is opened, and what it is from there."""
        if path.is_absolute():
            return self._root, path.relative_to("/")
        return self.handle, path

    def _follow(self, given: str) -> Place:
        here, left = self._start(PurePosixPath(given))
        links = 0
        status: os.stat_result | None = None
        while left:
            part = left.pop(0)
            if part == "..":
                here, status = here.parent, None
                continue
            at = here / part
            status = self._lstat(at)
            if status is None:
                return self._missing(given, at, left)
            if not stat.S_ISLNK(status.st_mode):
                here = at
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OpFailed("forbidden", f"{given} leads through more than {_MAX_LINKS} links.")
            if _PROC in at.parents:
                return self._missing(given, at, left)
            target = PurePosixPath(self._readlink(at))
            here = PurePosixPath("/") if target.is_absolute() else here
            left = [*target.relative_to(target.anchor).parts, *left]
        status = status or self._lstat(here)
        kind = kind_of(status.st_mode) if status else None
        return Place(self._relative(here), here, status is not None, kind)

    def _start(self, given: PurePosixPath) -> tuple[PurePosixPath, list[str]]:
        """Return the absolute folder from which *given* is followed, and the names that are left."""
        if not given.is_absolute():
            return self.real, list(given.parts)
        for top in (self._given, self.real):
            if given.is_relative_to(top):
                return self.real, list(given.relative_to(top).parts)
        return PurePosixPath("/"), list(given.relative_to(given.anchor).parts)

    def _missing(self, given: str, at: PurePosixPath, left: list[str]) -> Place:
        if ".." in left:
            raise OpFailed(
                "not_found",
                f"{self._relative(at) or at} does not exist, and {given} goes on from there with '..'.",
            )
        target = at.joinpath(*left)
        return Place(self._relative(target), target, False, None)

    def _relative(self, at: PurePosixPath) -> PurePosixPath | None:
        return at.relative_to(self.real) if at.is_relative_to(self.real) else None

    def _lstat(self, at: PurePosixPath) -> os.stat_result | None:
        """Return the status of *at*, None if nothing is there; outside also if it cannot be told."""
        path = self._relative(at)
        try:
            if path is None or not path.parts:
                return os.lstat(at)
            with self.open_folder(path.parent) as above:
                return os.stat(path.name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError:
            if path is None:
                return None
            raise

    def _readlink(self, at: PurePosixPath) -> str:
        path = self._relative(at)
        try:
            if path is None:
                return os.readlink(at)  # noqa: PTH115 - as the other
            with self.open_folder(path.parent) as above:
                return os.readlink(path.name, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):  # it was a link a moment ago
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            raise


def kind_of(mode: int) -> Kind:
    """Return what a file of *mode* is."""
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def refuse_other_kinds(kind: Kind, path: str) -> None:
    """Refuse all but a regular file.

    Raises:
        OpFailed: `invalid_arguments`.
    """
    if kind == "folder":
        raise OpFailed("invalid_arguments", f"{path} is a folder. Name a file in it, or use Glob.")
    if kind == "other":
        raise OpFailed(
            "invalid_arguments", f"{path} is a device, a pipe or a socket. Name a regular file."
        )


def open_regular(folder: int, name: str, shown: str) -> int:
    """Open the regular file *name* in *folder* for reading, without waiting for a pipe's other end.

    Raises:
        OSError: `ELOOP`: it is a link; else as `open`.
        OpFailed: it is not a regular file.
    """
    try:
        descriptor = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            refuse_other_kinds("other", shown)
        raise
    try:
        refuse_other_kinds(kind_of(os.fstat(descriptor).st_mode), shown)
    except OpFailed:
        os.close(descriptor)
        raise
    return descriptor


def failure(error: OSError, doing: str, path: str) -> OpFailed:
    """Return how an op that met *error* fails.

    Args:
        doing: a verb: `read`.
    """
    text = os.strerror(error.errno) if error.errno else str(error)
    match error.errno:
        case errno.ENOENT:
            return OpFailed("not_found", f"{path} does not exist.")
        case errno.ENOTDIR:
            return OpFailed(
                "not_found", f"Cannot {doing} {path}: part of its path is not a folder."
            )
        case errno.ELOOP:
            return OpFailed("conflict", f"{path} became a symbolic link meanwhile. Try again.")
        case errno.ENAMETOOLONG:
            return OpFailed("invalid_arguments", f"Cannot {doing} {path}: the name is too long.")
        case errno.EACCES | errno.EPERM:
            return OpFailed("forbidden", f"Cannot {doing} {path}: {text}.")
        case number if number in _READ_ONLY:
            return OpFailed("forbidden", f"Cannot {doing} {path}: it is read-only in this session.")
        case _:
            return OpFailed("io", f"Cannot {doing} {path}: {text}.")
