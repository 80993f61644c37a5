"""The project that an agent works in: which ones are refused, and what a session left in it."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.spec import PROTECTED
from aileron_core.errors import Forbidden
from aileron_core.launch.plan import Agent
from aileron_core.text import escape

__all__ = ["Doors", "check_project", "settings_files", "small_text"]

_SETTINGS_BYTES = 1024 * 1024


def check_project(project: Path, home: Path, aileron_home: Path) -> None:
    """Refuse a folder that would hand the agent more than a project.

    Raises:
        Forbidden: it is the root, the person's home, or holds Aileron's own (THREATS T2, H4).
    """
    if project == Path("/") or project == home.resolve():
        raise Forbidden(f"{project} is no project: start in a folder of its own.")
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
class Doors:
    """The protected names of a project that were missing, or links, when the session began.

    A mount over a missing name would leave an empty file there, and none goes over a link, so they
    are compared instead (THREATS H4): what is new at the end is moved aside and told.
    """

    project: Path
    missing: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each link led."""

    @classmethod
    def of(cls, project: Path) -> "Doors":
        """Return those of *project* as it is now."""
        missing = tuple(name for name in PROTECTED if not os.path.lexists(project / name))
        links = {
            name: str((project / name).readlink())
            for name in PROTECTED
            if (project / name).is_symlink()
        }
        return cls(project=project, missing=missing, links=links)

    def close(self, aside: Path) -> tuple[str, ...]:
        """Move what is new to *aside*; return a sentence for each."""
        told: list[str] = []
        for name in self.missing:
            path = self.project / name
            if not os.path.lexists(path):
                continue
            target = _moved(path, aside / name.replace("/", "_"))
            told.append(f"{name} is new and was moved to {target}: look at it before you use it.")
        return (*told, *self._restored(aside))

    def _restored(self, aside: Path) -> Iterator[str]:
        for name, led in self.links.items():
            path = self.project / name
            if path.is_symlink() and str(path.readlink()) == led:
                continue
            if os.path.lexists(path):
                target = _moved(path, aside / name.replace("/", "_"))
                yield f"{name} was a link and was replaced: what stood there is in {target}."
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(led)


def _moved(path: Path, target: Path) -> str:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(path, target)
    return escape(str(target))
