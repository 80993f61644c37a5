"""The project that an agent works in: which ones are refused, and what a session left in it."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from aileron_core.containment.beneath import folder_at, folder_beneath, restore_rights
from aileron_core.containment.spec import PROTECTED
from aileron_core.errors import Forbidden
from aileron_core.launch.move_aside import move_aside
from aileron_core.launch.plan import Agent
from aileron_core.text import escape

_SETTINGS_BYTES = 1024 * 1024
_SHARED = tuple(Path("/", name) for name in ("tmp", "var/tmp", "run", "dev/shm"))
_SYSTEM = tuple(Path("/", name) for name in ("proc", "sys", "run/user"))


def check_project(project: Path, home: Path, aileron_home: Path) -> None:
    """Refuse a folder that would hand the agent more than a project.

    Raises:
        Forbidden: it holds the person's home, what others put into folders that all share, or
            Aileron's own; or it lies where the system keeps sockets and devices.
    """
    if home.resolve().is_relative_to(project):
        raise Forbidden(
            f"{project} holds your home {home}, and an agent there could reach all of it. "
            "Start in a folder of its own."
        )
    for shared in _SHARED:
        if shared.resolve().is_relative_to(project):
            raise Forbidden(
                f"{project} holds {shared}, where other programs keep sockets and files that the "
                "agent could then use. Start in a folder of its own."
            )
    for system in _SYSTEM:
        if project.is_relative_to(system.resolve()):
            raise Forbidden(f"{project} is a folder of the system's. Start in a folder of its own.")
    if aileron_home.resolve().is_relative_to(project):
        raise Forbidden(
            f"{aileron_home} lies inside {project}, so the agent could reach Aileron's own files. "
            "Start in a folder below, or move the home (AILERON_HOME)."
        )
    if project.is_relative_to(aileron_home.resolve()):
        raise Forbidden(f"{project} lies inside Aileron's home. Start in a project of yours.")


def settings_files(project: Path, agent: Agent) -> Mapping[str, str]:
    """Return the project's own settings of *agent* that are there, by relative path.

    Raises:
        Forbidden: one of them cannot be read as a small text file.
    """
    found = {name: small_text(project / name) for name in agent.project_files}
    return {name: text for name, text in found.items() if text is not None}


def small_text(path: Path) -> str | None:
    """Return the text of a settings file, or None where there is none.

    Raises:
        Forbidden: it is there, and cannot be read as a small text file.
    """
    if not os.path.lexists(path):
        return None
    try:
        if not path.is_file() or path.stat().st_size > _SETTINGS_BYTES:
            raise Forbidden(f"{path} is no small file, so nobody can tell what it sets.")
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Forbidden(
            f"{path} cannot be read ({error}), so nobody can tell what it sets."
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedLink:
    """A protected name that was a link."""

    led: str
    """What it said."""
    inside: tuple[int, int] | None
    """Device and number of what it led to in the project; None where that is missing, or elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredPaths:
    """What became of a project's doors."""

    told: tuple[str, ...] = ()
    """A sentence for each that was not as before."""
    left: tuple[str, ...] = ()
    """Names of those that still are not as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedPaths:
    """The protected names of a project that were missing, or links, when the session began.

    A mount over a missing name would leave an empty file there, and none goes over a link, so they
    are compared instead: what is new at the end is moved aside and told.
    """

    project: Path
    missing: tuple[str, ...]
    links: Mapping[str, ProtectedLink] = field(default_factory=dict[str, ProtectedLink])

    @classmethod
    def of(cls, project: Path) -> "ProtectedPaths":
        """Return those of *project* as it is now."""
        missing = tuple(name for name in PROTECTED if not os.path.lexists(project / name))
        links = {name: _link(project, name) for name in PROTECTED if (project / name).is_symlink()}
        return cls(project=project, missing=missing, links=links)

    def close(self, aside: Path) -> RestoredPaths:
        """Move what is new to *aside* and put links back, each name on its own; tell of each."""
        told: list[str] = []
        left: list[str] = []
        if not self.project.is_dir():
            return RestoredPaths()
        with folder_at(self.project) as project:
            if not os.access(self.project, os.R_OK | os.X_OK):  # shut: nothing would be seen
                with contextlib.suppress(OSError):  # another user's: each name says what is wrong
                    restore_rights(project)
            for name in self.missing:
                if not os.path.lexists(self.project / name):
                    continue
                try:
                    target = move_aside(project, name, aside)
                except OSError as error:
                    told.append(_stays(name, "is new", error))
                    left.append(name)
                else:
                    told.append(f"{name} is new and was moved to {_shown(target)}. {_LOOK}")
            for name, link in self.links.items():
                try:
                    told += self._restored(project, name, link, aside)
                except OSError as error:
                    told.append(_stays(name, "was a link and is not what it was", error))
                    left.append(name)
        return RestoredPaths(told=tuple(told), left=tuple(left))

    def _restored(self, project: int, name: str, link: ProtectedLink, aside: Path) -> Iterator[str]:
        path = self.project / name
        if path.is_symlink() and str(path.readlink()) == link.led:
            if _inside(self.project, path) == link.inside:
                return
            target = move_aside(project, name, aside)
            yield f"{name} is a link and leads to something else now: it was moved to {_shown(target)}. {_LOOK}"
            return
        if os.path.lexists(path):
            target = move_aside(project, name, aside)
            yield f"{name} was a link and was replaced: what stood there is in {_shown(target)}. {_LOOK}"
        with folder_beneath(project, PurePosixPath(name).parent, made=[]) as folder:
            os.symlink(link.led, path.name, dir_fd=folder)


_LOOK = "Look at it before you use it."


def _link(project: Path, name: str) -> ProtectedLink:
    path = project / name
    return ProtectedLink(led=str(path.readlink()), inside=_inside(project, path))


def _inside(project: Path, path: Path) -> tuple[int, int] | None:
    """Return device and number of what the link *path* leads to, if that is in *project*."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        return None
    return (status.st_dev, status.st_ino) if real.is_relative_to(project) else None


def _stays(name: str, what: str, error: OSError) -> str:
    return (
        f"{name} {what} and could not be moved away ({error.strerror}). Your own tools would obey it: "
        "look at it and remove it. Until then no agent is launched in this project."
    )


def _shown(path: Path) -> str:
    return escape(str(path))
