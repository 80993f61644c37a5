"""What a session, or an MCP server, left under names that the person's own tools obey (listed in `bubblewrap.py`): moved to `aside/`.

While a launcher runs it holds a lock on a small record in Aileron's home that lists which protected
names were missing or links. The record is deleted once all of them are restored. One that nobody
holds is from a launcher that was killed, or lists what could not be moved: the console, and the
next launch, process it before anything in that project is trusted.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.containment.safe_paths import (
    PROTECTED_NAMES,
    open_folder,
    open_folder_beneath,
    restore_owner_rights,
    restore_owner_rights_at,
)
from aileron_core.errors import Forbidden
from aileron_core.text import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedLink:
    """A protected name that was a symbolic link."""

    target: str
    """The link's text."""
    inode: tuple[int, int] | None
    """Device and inode of its target in the project; None if that is missing or elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredPaths:
    """The result of restoring a project's protected paths."""

    notices: tuple[str, ...] = ()
    """A sentence for each path that had changed."""
    remaining: tuple[str, ...] = ()
    """Names that could not be restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedPaths:
    """The protected names of a project that were missing, or links, when the session began.

    A mount over a missing name would leave an empty file behind, and nothing can be mounted over a
    link, so these are compared instead: what is new at the end is moved aside and reported.
    """

    project: Path
    missing: tuple[str, ...]
    links: Mapping[str, ProtectedLink] = field(default_factory=dict[str, ProtectedLink])

    @classmethod
    def capture(cls, project: Path, *, others: Iterable[str] = ()) -> "ProtectedPaths":
        """Return what is there now.

        Args:
            others: names that count as well, while nothing has them.
        """
        names = (*PROTECTED_NAMES, *others)
        missing = tuple(name for name in names if not os.path.lexists(project / name))
        links = {
            name: _capture_link(project, name) for name in names if (project / name).is_symlink()
        }
        return cls(project=project, missing=missing, links=links)

    def restore(self, aside: Path) -> RestoredPaths:
        """Move what is new to *aside* and put links back; a failure for one name does not stop the others."""
        notices: list[str] = []
        remaining: list[str] = []
        if not self.project.is_dir():
            return RestoredPaths()
        with open_folder(self.project) as project:
            if not os.access(self.project, os.R_OK | os.X_OK):  # shut: nothing would be seen
                with contextlib.suppress(OSError):  # another user's: each name says what is wrong
                    restore_owner_rights(project)
            for name in self.missing:
                if not os.path.lexists(self.project / name):
                    continue
                try:
                    target = move_aside(project, name, aside)
                except OSError as error:
                    notices.append(_cannot_move(name, "is new", error))
                    remaining.append(name)
                else:
                    notices.append(f"{name} is new. It was moved to {_escaped(target)}. {_LOOK}")
            for name, link in self.links.items():
                try:
                    notices += self._restore_link(project, name, link, aside)
                except OSError as error:
                    notices.append(_cannot_move(name, "was a link and has been changed", error))
                    remaining.append(name)
        return RestoredPaths(notices=tuple(notices), remaining=tuple(remaining))

    def _restore_link(
        self, project: int, name: str, link: ProtectedLink, aside: Path
    ) -> Iterator[str]:
        path = self.project / name
        if path.is_symlink() and str(path.readlink()) == link.target:
            if _inode_inside(self.project, path) == link.inode:
                return
            target = move_aside(project, name, aside)
            yield (
                f"{name} is a link that now leads somewhere else. It was moved to {_escaped(target)}. "
                f"{_LOOK}"
            )
            return
        if os.path.lexists(path):
            target = move_aside(project, name, aside)
            yield (
                f"{name} was a link and has been replaced. What replaced it was moved to "
                f"{_escaped(target)}. {_LOOK}"
            )
        with open_folder_beneath(project, PurePosixPath(name).parent, created=[]) as folder:
            os.symlink(link.target, path.name, dir_fd=folder)


_LOOK = "Look at it before you use it."


def _capture_link(project: Path, name: str) -> ProtectedLink:
    path = project / name
    return ProtectedLink(target=str(path.readlink()), inode=_inode_inside(project, path))


def _inode_inside(project: Path, path: Path) -> tuple[int, int] | None:
    """Return device and inode of the target of the link *path*, None if that is not in *project*."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        return None
    return (status.st_dev, status.st_ino) if real.is_relative_to(project) else None


def _cannot_move(name: str, what: str, error: OSError) -> str:
    return (
        f"{name} {what} and could not be moved away ({error.strerror}). Your own tools would "
        "follow it, so review and remove it. Until you do, no agent can be launched in this "
        "project."
    )


def _escaped(path: Path) -> str:
    return escape(str(path))


def move_aside(project: int, name: str, aside: Path) -> Path:
    """Move *name* out of a project and return its new path.

    Nothing in it is read or copied, and no link is followed. Folders that the agent made unwritable
    are first made writable for their owner. If it cannot be moved to *aside* (another file system,
    a full disk), it is renamed in place to a name that no tool looks for.

    Args:
        project: descriptor of the project's folder.
        name: relative to it.
        aside: a folder in Aileron's home, made if missing.

    Raises:
        OSError: it can be neither moved nor renamed, or does not exist.
    """
    path = PurePosixPath(name)
    restore_owner_rights(project)
    with open_folder_beneath(project, path.parent) as folder:
        restore_owner_rights(folder)
        restore_owner_rights_at(folder, path.name)
        try:
            for each in (aside.parent, aside):
                each.mkdir(mode=0o700, exist_ok=True)
            target = aside / name.replace("/", "_")
            if os.path.lexists(target):
                target = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
            os.rename(path.name, target, src_dir_fd=folder)
        except OSError:
            other = f"{path.name}.aside-{secrets.token_hex(4)}"
            os.rename(path.name, other, src_dir_fd=folder, dst_dir_fd=folder)
            return Path(path.parent, other)
    return target


_RECORD_BYTES = 1024 * 1024


@dataclass(slots=True)
class UnfinishedSession:
    """The persistent record of a session's protected paths, kept until they are restored."""

    path: Path
    protected: ProtectedPaths
    aside_folder: Path
    _handle: int = -1

    @classmethod
    def begin(
        cls, aileron_home: Path, protected: ProtectedPaths, session_id: str
    ) -> "UnfinishedSession":
        """Write the record of *protected*, and lock it for as long as this process lives."""
        folder = aileron_home / "aside" / "watched"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{secrets.token_hex(8)}.json"
        session = cls(path, protected, aileron_home / "aside" / session_id)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(path.with_suffix(".new"), flags, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        session._handle = handle
        session._write()
        path.with_suffix(".new").rename(path)  # found by others only once it is whole and held
        return session

    def finish(self) -> tuple[str, ...]:
        """Restore the protected paths, keep those that failed in the record, and return notices."""
        restored = self.protected.restore(self.aside_folder)
        self.protected = replace(
            self.protected,
            missing=tuple(name for name in self.protected.missing if name in restored.remaining),
            links={
                name: link
                for name, link in self.protected.links.items()
                if name in restored.remaining
            },
        )
        if restored.remaining:
            self._write()
        else:
            self.path.unlink(missing_ok=True)
        self.release()
        return restored.notices

    def discard(self) -> None:
        """Remove the record: what comes from now on is not the session's."""
        self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Unlock the record, so that others can claim it."""
        os.close(self._handle)

    def _write(self) -> None:
        links = {
            name: {"led": link.target, "inside": link.inode}
            for name, link in self.protected.links.items()
        }
        content = {
            "project": str(self.protected.project),
            "missing": self.protected.missing,
            "links": links,
            "aside": str(self.aside_folder),
        }
        data = json.dumps(content).encode()
        os.pwrite(self._handle, data, 0)
        os.ftruncate(self._handle, len(data))

    @classmethod
    def claim(cls, path: Path) -> "UnfinishedSession | None":
        """Lock the record at *path* and return its session; None if its launcher is alive.

        Raises:
            OSError, ValueError: it cannot be read.
        """
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.stat()  # raises if another process was first: a file at this path is then the person's
            protected, aside = _read(os.pread(handle, _RECORD_BYTES, 0))
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return cls(path, protected, aside, handle)


def _read(data: bytes) -> tuple[ProtectedPaths, Path]:
    try:
        found: dict[str, Any] = json.loads(data)
        links = {
            str(name): ProtectedLink(target=str(each["led"]), inode=_identity(each["inside"]))
            for name, each in found["links"].items()
        }
        missing = tuple(str(name) for name in found["missing"])
        return ProtectedPaths(project=Path(found["project"]), missing=missing, links=links), Path(
            found["aside"]
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(str(error)) from None


def _identity(value: Any) -> tuple[int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]))


def finish_sessions(aileron_home: Path) -> Iterator[str]:
    """Restore the protected paths of sessions whose launcher is gone; yield a sentence for each finding."""
    for path in _records(aileron_home):
        try:
            session = UnfinishedSession.claim(path)
        except FileNotFoundError:  # another launch was first
            continue
        except (OSError, ValueError) as error:
            yield (
                f"{escape(str(path))} cannot be read ({escape(str(error))}). It lists files that an "
                "agent may have left in a project. Check your projects for new files, then remove it."
            )
            continue
        if session is None:
            continue
        project = session.protected.project
        if project.is_dir():
            yield from (f"In {escape(str(project))}: {sentence}" for sentence in session.finish())
        else:
            session.path.unlink(missing_ok=True)
            session.release()


def refuse_unfinished(aileron_home: Path, project: Path) -> None:
    """Refuse *project* while it contains what an earlier session left and nobody could move.

    Raises:
        Forbidden: names what is there.
    """
    for path in _records(aileron_home):
        session = None
        with contextlib.suppress(OSError, ValueError):
            session = UnfinishedSession.claim(path)
        if session is None:
            continue
        session.release()
        names = [*session.protected.missing, *session.protected.links]
        if session.protected.project == project and names:
            raise Forbidden(
                f"An earlier session left {', '.join(names)} in {escape(str(project))}, where your "
                "own tools would follow it, and it could not be moved away. Review and remove it, "
                "then launch again."
            )


def _records(aileron_home: Path) -> list[Path]:
    return sorted((aileron_home / "aside" / "watched").glob("*.json"))
