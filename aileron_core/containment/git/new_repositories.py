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

SUFFIX = "disarmed"


def file_identity(path: Path) -> list[int]:
    """Return device and inode, which tell a file from another that took its name."""
    status = path.lstat()
    return [status.st_dev, status.st_ino]


def disable_new_repositories(
    project: Path,
    entries: Mapping[str, list[int]],
    shapes: Collection[str],
    heads: Collection[str] | None,
    stand_ins: Collection[list[int]] = (),
) -> tuple[str, ...]:
    """Rename what is new and would be taken for a repository; return a sentence for each.

    Args:
        project: where the agent worked; it has ended.
        entries: everything called `.git` that was there before, with its identity.
        shapes: folders that had the shape of a repository before.
        heads: other folders that had a HEAD before; None if that is not known.
        stand_ins: identities of what other sessions put in the place of repositories that they hide.
    """
    notices: list[str] = []
    done: set[str] = set()
    while True:  # what is renamed may hold more, and so may a folder that the agent closed
        scan = scan_project(project)
        entries_left = [
            name
            for name in scan.git_entries
            if name not in done and not is_known(project, name, (entries.get(name), *stand_ins))
        ]
        shapes_left = [
            name for name in scan.repository_shaped if name not in done and name not in shapes
        ]
        if heads is not None:  # what it lacks of a repository may come with a commit
            before = {*heads, *shapes, *done}
            shapes_left += [name for name in scan.lone_heads if name not in before]
        closed = [name for name in scan.unreadable if name not in done]
        if not (entries_left or shapes_left or closed):
            break
        for disable, names in ((disable_entry, entries_left), (disable_shape, shapes_left)):
            for name in names:
                try:
                    notices += disable(project, name)
                except OSError as error:
                    notices.append(failure_notice(name, error))
        for name in closed:
            with contextlib.suppress(OSError), open_project_folder(project, name) as handle:
                grant_owner(handle)
        done.update(entries_left, shapes_left, closed)
    notices += [
        f"{escape(name)} cannot be searched for new repositories. Do not run git there."
        for name in scan.unreadable
        if _is_owned(project / name)
    ]
    return tuple(notices)


def is_known(project: Path, name: str, identities: Collection[list[int] | None]) -> bool:
    """Return whether *name* in *project* is one of *identities*, or gone: the person removed it meanwhile."""
    try:
        return entry_identity(project, name) in identities
    except FileNotFoundError:
        return True
    except OSError:
        return False


def entry_identity(project: Path, name: str) -> list[int]:
    """Return device and inode of *name* in *project*, without following links.

    Raises:
        OSError: it cannot be reached.
    """
    path = PurePosixPath(name)
    with open_project_folder(project, str(path.parent)) as folder:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    return [status.st_dev, status.st_ino]


def _is_owned(path: Path) -> bool:
    """Return whether the folder is this user's: a folder of another user's was never writable for the agent."""
    try:
        return path.lstat().st_uid == os.getuid()
    except FileNotFoundError:
        return False
    except OSError:  # deeper than a path may be long
        return True


def disable_entry(project: Path, name: str) -> list[str]:
    """Rename a `.git`, and HEAD in it; return a sentence for the person.

    Raises:
        OSError: it cannot be renamed.
    """
    path = PurePosixPath(name)
    with open_project_folder(project, str(path.parent)) as folder:
        head = None
        with contextlib.suppress(NotADirectoryError), open_project_folder(project, name) as inside:
            head = disable_head(inside)
        target = _rename_disabled(folder, path.name)
    return [entry_notice(path, target, head)]


def disable_head(repository: int) -> str | None:
    """Rename HEAD in an open git folder, if it has that shape; return the new name."""
    grant_owner(repository)
    shaped = is_repository_shaped(entry_names(repository))
    return _rename_disabled(repository, "HEAD") if shaped else None


def entry_notice(path: PurePosixPath, target: str, head: str | None) -> str:
    """Return the sentence about a `.git` that was at *path* and has the name *target* now."""
    how = f"rename {head} in it to HEAD, and the folder" if head else "rename it"
    return (
        f"{escape(str(path))} is a new repository. It was renamed to "
        f"{escape(str(path.with_name(target)))}, so that git does not follow its settings. To "
        f"use it, review its config, hooks and objects/info/alternates, then {how} to "
        f"{path.name}."
    )


def disable_shape(project: Path, name: str) -> list[str]:
    """Rename HEAD of the folder *name*; return sentences for the person.

    Raises:
        OSError: it cannot be renamed.
    """
    with open_project_folder(project, name) as folder:
        if not _exists(folder, "HEAD"):  # `head`, where that is another name
            return []
        target = _rename_disabled(folder, "HEAD")
    return [
        (
            f"{escape(name)} is new, and git would treat it as a repository, or could after a "
            f"checkout. Its HEAD was renamed to {target}, so that git does not follow its settings. "
            "Review its config, hooks and objects/info/alternates before you rename it back."
        )
    ]


def failure_notice(name: str, error: OSError) -> str:
    """Return the sentence about what could not be disabled."""
    return (
        f"{escape(name)} is new, git would treat it as a repository, and it could not be "
        f"renamed ({error.strerror}). Remove it before you run git there."
    )


def _rename_disabled(folder: int, name: str) -> str:
    """Rename *name* in *folder* to a name that git does not look for."""
    target = free_name(folder, f"{name}.{SUFFIX}")
    with writable(folder):
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=folder)
    return target


def free_name(folder: int, name: str) -> str:
    """Return *name*, with a number behind it where *folder* has that already."""
    target, number = name, 1
    while _exists(folder, target):
        number += 1
        target = f"{name}-{number}"
    return target


@contextlib.contextmanager
def writable(folder: int) -> Generator[None, None, None]:
    """Give the owner of an open folder its rights for a while."""
    mode = grant_owner(folder)
    try:
        yield
    finally:
        os.chmod(f"/proc/self/fd/{folder}", mode)  # noqa: PTH101 - of the folder that is held


@contextlib.contextmanager
def open_project_folder(project: Path, name: str) -> Generator[int, None, None]:
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
            grant_owner(folder)


def grant_owner(folder: int) -> int:
    """Make *folder* readable and writable for its owner; return its previous mode."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    restore_owner_rights(folder)
    return mode


def entry_names(folder: int) -> set[str]:
    """Return the names in an open folder."""
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
