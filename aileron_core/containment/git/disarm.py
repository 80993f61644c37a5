"""What a session left in the project that git would take for a repository: renamed, so that it does not.

Nothing is lost: what is renamed works again under its old name.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Generator, Mapping
from pathlib import Path, PurePosixPath

from aileron_core.containment.git.repository import is_repository_shaped, scan
from aileron_core.text import escape

__all__ = ["disarm", "identity"]

_ENDING = "disarmed"


def identity(path: Path) -> list[int]:
    """Return what tells a file from another that took its name: device and inode."""
    status = path.lstat()
    return [status.st_dev, status.st_ino]


def disarm(
    project: Path, entries: Mapping[str, list[int]], shapes: Collection[str]
) -> tuple[str, ...]:
    """Rename what is new and would be taken for a repository; return a sentence for each.

    Args:
        project: where the agent worked; it has ended.
        entries: everything called `.git` that was there before, with its identity.
        shapes: folders of a repository's shape that were there before.
    """
    told: list[str] = []
    done: set[str] = set()
    while True:  # what is renamed may hold more, and so may a folder that the agent closed
        found = scan(project)
        entries_left = [
            name
            for name in found.entries
            if name not in done and not _is_the_same(project / name, entries.get(name))
        ]
        shapes_left = [name for name in found.shapes if name not in done and name not in shapes]
        closed = [name for name in found.unread if name not in done]
        if not (entries_left or shapes_left or closed):
            break
        told += [_entry(project, name) for name in entries_left]
        told += [_shape(project, name) for name in shapes_left]
        for name in closed:
            with contextlib.suppress(OSError):
                _open(project / name)
        done.update(entries_left, shapes_left, closed)
    told += [
        f"{escape(name)} cannot be looked through: do not run git there."
        for name in found.unread
        if _is_ours(project / name)
    ]
    return tuple(told)


def _is_the_same(path: Path, before: list[int] | None) -> bool:
    try:
        return identity(path) == before
    except FileNotFoundError:  # the person removed it meanwhile
        return True


def _is_ours(path: Path) -> bool:
    """Tell whether an agent could have closed a folder; another user's was closed to it too."""
    return os.path.lexists(path) and path.lstat().st_uid == os.getuid()


def _entry(project: Path, name: str) -> str:
    path = project / name
    try:
        if path.is_dir() and not path.is_symlink():
            _open(path)
            if is_repository_shaped(set(os.listdir(path))):  # noqa: PTH208 - names alone
                _renamed(path / "HEAD")
            target = _renamed(path)
            how = f"rename {escape(target.name)}/HEAD.{_ENDING} to HEAD, and the folder to {path.name}"
        else:
            target = _renamed(path)
            how = f"rename it to {path.name}"
    except OSError as error:
        return _failed(name, error)
    shown = escape(str(PurePosixPath(name).with_name(target.name)))
    return (
        f"{escape(name)} is a new repository. It is {shown} now, so that git obeys nothing in it. "
        f"To use it: look at its config and hooks, then {how}."
    )


def _shape(project: Path, name: str) -> str:
    try:
        target = _renamed(project / name / "HEAD")
    except OSError as error:
        return _failed(name, error)
    return (
        f"{escape(name)} is new and git would take it for a repository. Its HEAD is {target.name} "
        "now, so that git obeys nothing in it; look at its config and hooks before you rename it."
    )


def _failed(name: str, error: OSError) -> str:
    return (
        f"{escape(name)} is new, git would take it for a repository, and it could not be renamed "
        f"({error.strerror}). Do not run git there before you removed it."
    )


def _renamed(path: Path) -> Path:
    """Give *path* a name that git does not look for."""
    target = path.with_name(f"{path.name}.{_ENDING}")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}.{_ENDING}-{number}")
    with _writable(path.parent):
        path.rename(target)
    return target


@contextlib.contextmanager
def _writable(folder: Path) -> Generator[None, None, None]:
    """Let a folder be written meanwhile, whatever the agent made of its mode."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & stat.S_IRWXU == stat.S_IRWXU:
        yield
        return
    folder.chmod(mode | stat.S_IRWXU)
    try:
        yield
    finally:
        folder.chmod(mode)


def _open(folder: Path) -> None:
    if not folder.is_symlink():
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)
