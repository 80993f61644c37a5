"""Remembering what has to be looked at when a session ends, also where nobody is left to do it.

While a launcher runs it holds a lock on a small file in Aileron's home that tells its project's
missing names and links. It goes when all of them are as they were. One that nobody holds is of a
launcher that was killed, or tells what could not be moved: the console, and the next launch, take it
up before anything in that project is trusted.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aileron_core.errors import Forbidden
from aileron_core.launch.project import ProtectedLink, ProtectedPaths
from aileron_core.text import escape

_BYTES = 1024 * 1024


@dataclass(slots=True)
class UnfinishedSession:
    """The doors of one session, on record from its beginning until they are closed."""

    path: Path
    doors: ProtectedPaths
    aside: Path
    _handle: int = -1

    @classmethod
    def begin(
        cls, aileron_home: Path, doors: ProtectedPaths, session_id: str
    ) -> "UnfinishedSession":
        """Put *doors* on record, and hold that record as long as this process lives."""
        folder = aileron_home / "aside" / "watched"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{secrets.token_hex(8)}.json"
        watch = cls(path, doors, aileron_home / "aside" / session_id)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(path.with_suffix(".new"), flags, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        watch._handle = handle
        watch._write()
        path.with_suffix(".new").rename(path)  # found by others only once it is whole and held
        return watch

    def close(self) -> tuple[str, ...]:
        """Close the doors, forget them or keep on record what is left, and return what to tell."""
        closed = self.doors.close(self.aside)
        self.doors = replace(
            self.doors,
            missing=tuple(name for name in self.doors.missing if name in closed.left),
            links={name: link for name, link in self.doors.links.items() if name in closed.left},
        )
        if closed.left:
            self._write()
        else:
            self.path.unlink(missing_ok=True)
        self.release()
        return closed.told

    def release(self) -> None:
        """Let go of the record."""
        os.close(self._handle)

    def _write(self) -> None:
        content = {
            **asdict(self.doors),
            "project": str(self.doors.project),
            "aside": str(self.aside),
        }
        data = json.dumps(content).encode()
        os.pwrite(self._handle, data, 0)
        os.ftruncate(self._handle, len(data))

    @classmethod
    def taken_up(cls, path: Path) -> "UnfinishedSession | None":
        """Return the watch on record at *path*, now held by us; None where its launcher lives.

        Raises:
            OSError, ValueError: it cannot be read.
        """
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.stat()  # raises where another was first: what lies there by now is the person's
            doors, aside = _read(os.pread(handle, _BYTES, 0))
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return cls(path, doors, aside, handle)


def _read(data: bytes) -> tuple[ProtectedPaths, Path]:
    try:
        found: dict[str, Any] = json.loads(data)
        links = {
            str(name): ProtectedLink(led=str(each["led"]), inside=_identity(each["inside"]))
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
    """Close the doors of every session whose launcher is gone; yield a sentence for each thing found."""
    for path in _records(aileron_home):
        try:
            watch = UnfinishedSession.taken_up(path)
        except FileNotFoundError:  # another launch was first
            continue
        except (OSError, ValueError) as error:
            yield (
                f"{escape(str(path))} cannot be read ({escape(str(error))}). It told what an agent may have left in a project: "
                "look for new files there, then remove it."
            )
            continue
        if watch is None:
            continue
        where = watch.doors.project
        if where.is_dir():
            yield from (f"In {escape(str(where))}: {sentence}" for sentence in watch.close())
        else:
            watch.path.unlink(missing_ok=True)
            watch.release()


def refuse_unfinished(aileron_home: Path, project: Path) -> None:
    """Refuse *project* while something lies there that an earlier session left and nobody could move.

    Raises:
        Forbidden: it names what.
    """
    for path in _records(aileron_home):
        watch = None
        with contextlib.suppress(OSError, ValueError):
            watch = UnfinishedSession.taken_up(path)
        if watch is None:
            continue
        watch.release()
        names = [*watch.doors.missing, *watch.doors.links]
        if watch.doors.project == project and names:
            raise Forbidden(
                f"An earlier session left {', '.join(names)} in {escape(str(project))}, and it could not be moved "
                "away. Look at it and remove it, then launch again."
            )


def _records(aileron_home: Path) -> list[Path]:
    return sorted((aileron_home / "aside" / "watched").glob("*.json"))
