"""Opening, creating and removing files below a folder without ever following a symbolic link.

A path that was checked may name something else by the time it is opened. So the folder is opened
once and everything below it is reached from that descriptor with `openat2`, which refuses any link
on the way. On a kernel without that call the path is walked one folder at a time, each opened with
O_NOFOLLOW. It needs the standard library alone, and runs in sandboxes too.
"""

import contextlib
import errno
import functools
import os
import secrets
import stat
import sys
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath

from aileron_core.containment.linux_syscalls import openat2

_RESOLVE = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH of linux/openat2.h."""
_ABSENT = (errno.ENOSYS, errno.EPERM)
"""What a kernel before 5.6 answers, and a filter that does not know the call."""
READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open something in a folder that an agent can write: no link is followed, nothing is waited for."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_MAX_LINKS = 40
"""As many as Linux follows."""


@contextlib.contextmanager
def open_folder(path: Path) -> Generator[int, None, None]:
    """Open the folder *path* and yield its descriptor, from which the functions here open what is below it.

    Raises:
        OSError: it cannot be opened.
    """
    handle = os.open(path, _PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def open_beneath(root: int, path: PurePosixPath | str, flags: int, mode: int = 0) -> int:
    """Open *path* below the folder *root* and return the descriptor.

    Args:
        path: relative, without `..`.
        flags: as for `os.open`; the descriptor is not inherited by programs.

    Raises:
        OSError: `ELOOP` for a link on the way or at the end, `EXDEV` for a path that leads out,
            else as `open`.
    """
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or PurePosixPath(path).is_absolute():
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path))
    flags |= os.O_CLOEXEC
    if _has_openat2():
        return openat2(root, os.fsencode(str(path)), flags, _RESOLVE, mode)
    with contextlib.ExitStack() as stack:
        for part in parts[:-1]:
            root = _step(root, part)
            stack.callback(os.close, root)
        return os.open(parts[-1], flags | os.O_NOFOLLOW, mode, dir_fd=root)


def resolve_trusted_links(path: Path, home: Path) -> Path:
    """Return *path* with those links followed that no agent could have made.

    These are links directly in the person's *home*, which is never a project, and links in folders of
    another user that this user cannot write to.

    Raises:
        OSError: `ELOOP` for another link on the way or at the end, else as `lstat`.
    """
    real_home = home.resolve()
    left, here, links = [*path.parts[1:]], Path("/"), 0
    while left:
        part = left.pop(0)
        at = here.parent if part == ".." else here / part
        if not stat.S_ISLNK(at.lstat().st_mode):
            here = at
            continue
        links += 1
        ours = here.stat().st_uid == os.geteuid() or os.access(here, os.W_OK)
        if links > _MAX_LINKS or (ours and here != real_home):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = at.readlink()
        here = Path("/") if target.is_absolute() else here
        left = [*target.relative_to(target.anchor).parts, *left]
    return here


def read_small_file(descriptor: int, max_bytes: int) -> bytes | None:
    """Return the content of an open regular file; None for anything else or more than *max_bytes* bytes. Closes it.

    Args:
        descriptor: opened with O_NONBLOCK, so that a FIFO cannot block.
    """
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(descriptor)


def _step(root: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=root)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@functools.cache
def _has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    here = os.open(".", _PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(openat2(here, b".", _PATH | os.O_CLOEXEC, _RESOLVE))
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise
    finally:
        os.close(here)
    return True


@contextlib.contextmanager
def open_folder_beneath(
    root: int, path: PurePosixPath, *, created: list[PurePosixPath] | None = None
) -> Generator[int, None, None]:
    """Open the folder *path* below *root* and yield its descriptor; `.` is *root* itself.

    Args:
        path: relative, without `..`.
        created: if given, missing folders are created with mode 0700 and appended to it.

    Raises:
        OSError: see `open_beneath`.
    """
    if created is not None:
        for each in reversed((path, *path.parents[:-1]) if path.parts else ()):
            with (
                open_folder_beneath(root, each.parent) as above,
                contextlib.suppress(FileExistsError),
            ):
                os.mkdir(each.name, 0o700, dir_fd=above)
                created.append(each)
    here = not path.parts
    handle = os.open(".", _FOLDER, dir_fd=root) if here else open_beneath(root, path, _FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


def restore_owner_rights(handle: int) -> None:
    """Give the owner of an open folder read and write permission again: an agent may have removed it.

    Raises:
        OSError: it belongs to another user.
    """
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        # A handle opened by O_PATH takes no fchmod; its name under /proc leads to that very folder.
        where = f"/proc/self/fd/{handle}" if sys.platform == "linux" else handle
        os.chmod(where, mode | stat.S_IRWXU)  # noqa: PTH101 - a number is not a path


def restore_owner_rights_at(folder: int, name: str) -> None:
    """Do what `restore_owner_rights` does for the folder *name* in *folder*; anything but a folder is left alone.

    Raises:
        OSError: it is not there, or belongs to another user.
    """
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        handle = os.open(name, _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            restore_owner_rights(handle)
        finally:
            os.close(handle)


def remove_tree(path: Path) -> bool:
    """Remove the folder *path* with everything in it, whatever its modes and depth; return whether it is gone.

    No link is followed. Nested folders are first moved up, so that no depth exceeds a limit.
    """
    try:
        with open_folder(path.parent) as above:
            restore_owner_rights_at(above, path.name)
            with open_folder_beneath(above, PurePosixPath(path.name)) as root:
                while _flatten(root):
                    pass
            os.rmdir(path.name, dir_fd=above)
    except FileNotFoundError:
        return not os.path.lexists(path)
    except OSError:
        return False
    return True


def _flatten(root: int) -> bool:
    """Delete files and folders in *root*, moving what those folders hold up into it; return whether any was moved."""
    again = False
    for name, is_folder in _entries(root):
        if not is_folder:
            os.unlink(name, dir_fd=root)
            continue
        restore_owner_rights_at(root, name)
        with open_folder_beneath(root, PurePosixPath(name)) as folder:
            for inner, inner_is_folder in _entries(folder):
                if inner_is_folder:
                    restore_owner_rights_at(folder, inner)  # its own `..` changes with the move
                    os.rename(inner, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=root)
                    again = True
                else:
                    os.unlink(inner, dir_fd=folder)
        os.rmdir(name, dir_fd=root)
    return again


def _entries(folder: int) -> Iterator[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    yield from names


PROTECTED_NAMES = (
    "aileron.toml", ".mcp.json", ".claude", ".codex", ".gemini", ".pi",
    "opencode.json", "opencode.jsonc", ".opencode", ".envrc", ".vscode", ".idea",
    # Agents, editors, shells and other version control: what runs when a person opens or enters the
    # folder and is asked nothing, or was asked once for another content.
    ".cursor", ".windsurf", ".kiro", ".continue", ".roo", ".amazonq", ".qwen", ".aider.conf.yml",
    "crush.json", ".crush.json", ".zed", ".fleet", ".helix", ".devcontainer", ".devcontainer.json",
    ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el",
    ".Rprofile", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise",
    ".tool-versions", ".hg", ".jj",
)  # fmt: skip
"""Names in a project through which an agent reaches the person's own tools."""
