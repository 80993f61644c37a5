"""Disabling, by renaming, what a session left in the project that git would take for a repository.

Nothing is lost: renamed back, it works again.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Generator, Mapping
from pathlib import Path, PurePosixPath

from aileron_core.containment.git.repository import is_repository_shaped, scan_project
from aileron_core.containment.safe_paths import restore_owner_rights
from aileron_core.text import escape

_SUFFIX = "disarmed"


def file_identity(path: Path) -> list[int]:
    """Return device and inode, which tell a file from another that took its name."""
    status = path.lstat()
    return [status.st_dev, status.st_ino]


def disable_new_repositories(
    project: Path, entries: Mapping[str, list[int]], shapes: Collection[str]
) -> tuple[str, ...]:
    """Rename what is new and would be taken for a repository; return a sentence for each.

    Args:
        project: where the agent worked; it has ended.
        entries: everything called `.git` that was there before, with its identity.
        shapes: folders that had the shape of a repository before.
    """
    notices: list[str] = []
    done: set[str] = set()
    while True:  # what is renamed may hold more, and so may a folder that the agent closed
        scan = scan_project(project)
        entries_left = [
            name
            for name in scan.git_entries
            if name not in done and not _is_the_same(project, name, entries.get(name))
        ]
        shapes_left = [
            name for name in scan.repository_shaped if name not in done and name not in shapes
        ]
        closed = [name for name in scan.unreadable if name not in done]
        if not (entries_left or shapes_left or closed):
            break
        for disable, names in ((_disable_entry, entries_left), (_disable_shape, shapes_left)):
            for name in names:
                try:
                    notices += disable(project, name)
                except OSError as error:
                    notices.append(_failed(name, error))
        for name in closed:
            with contextlib.suppress(OSError), _open_folder(project, name) as handle:
                _grant_owner(handle)
        done.update(entries_left, shapes_left, closed)
    notices += [
        f"{escape(name)} cannot be looked through: do not run git there."
        for name in scan.unreadable
        if _is_owned(project / name)
    ]
    return tuple(notices)


def _is_the_same(project: Path, name: str, before: list[int] | None) -> bool:
    path = PurePosixPath(name)
    try:
        with _open_folder(project, str(path.parent)) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:  # the person removed it meanwhile
        return True
    except OSError:
        return False
    return [status.st_dev, status.st_ino] == before


def _is_owned(path: Path) -> bool:
    """Return whether the folder is this user's: a folder of another user's was never writable for the agent."""
    try:
        return path.lstat().st_uid == os.getuid()
    except FileNotFoundError:
        return False
    except OSError:  # deeper than a path may be long
        return True


def _disable_entry(project: Path, name: str) -> list[str]:
    path = PurePosixPath(name)
    with _open_folder(project, str(path.parent)) as folder:
        how = f"rename it to {path.name}"
        with contextlib.suppress(NotADirectoryError), _open_folder(project, name) as inside:
            _grant_owner(inside)
            if is_repository_shaped(_names(inside)):
                head = _rename_disabled(inside, "HEAD")
                how = f"rename {head} in it to HEAD, and the folder to {path.name}"
        target = _rename_disabled(folder, path.name)
    return [
        (
            f"{escape(name)} is a new repository. It is {escape(str(path.with_name(target)))} now, so that "
            f"git obeys nothing in it. To use it: look at its config, hooks and objects/info/alternates, then {how}."
        )
    ]


def _disable_shape(project: Path, name: str) -> list[str]:
    with _open_folder(project, name) as folder:
        if not _exists(folder, "HEAD"):  # `head`, where that is another name
            return []
        target = _rename_disabled(folder, "HEAD")
    return [
        (
            f"{escape(name)} is new and git would take it for a repository. Its HEAD is {target} "
            "now, so that git obeys nothing in it; look at its config, hooks and objects/info/alternates before you rename it."
        )
    ]


def _failed(name: str, error: OSError) -> str:
    return (
        f"{escape(name)} is new, git would take it for a repository, and it could not be renamed "
        f"({error.strerror}). Do not run git there before you removed it."
    )


def _rename_disabled(folder: int, name: str) -> str:
    """Rename *name* in *folder* to a name that git does not look for."""
    target, number = f"{name}.{_SUFFIX}", 1
    while _exists(folder, target):
        number += 1
        target = f"{name}.{_SUFFIX}-{number}"
    mode = _grant_owner(folder)
    try:
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.chmod(f"/proc/self/fd/{folder}", mode)  # noqa: PTH101 - of the folder that is held
    return target


@contextlib.contextmanager
def _open_folder(project: Path, name: str) -> Generator[int, None, None]:
    """Open the folder *name* of *project* without following links: another session may be at work there.

    Folders on the way that the agent made impassable are made passable again.

    Raises:
        NotADirectoryError: it, or a folder above it, is a link or no folder.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(project, flags & ~os.O_NOFOLLOW)
    try:
        _make_passable(handle)
        for part in PurePosixPath(name).parts:
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
            _make_passable(handle)
        yield handle
    finally:
        os.close(handle)


def _make_passable(folder: int) -> None:
    if not os.fstat(folder).st_mode & stat.S_IXUSR:
        with contextlib.suppress(PermissionError):  # another user's: what is tried in it says so
            _grant_owner(folder)


def _grant_owner(folder: int) -> int:
    """Make *folder* readable and writable for its owner; return its previous mode."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    restore_owner_rights(folder)
    return mode


def _names(folder: int) -> set[str]:
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return set(os.listdir(handle))  # noqa: PTH208 - of the folder that is held
    finally:
        os.close(handle)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
