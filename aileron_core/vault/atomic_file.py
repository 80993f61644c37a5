"""Replacing a file, private (0600) if not said otherwise, in one step: after a crash there is the old one or the new one, whole."""

import os
from pathlib import Path


def unfinished_path(path: Path) -> Path:
    """Return the file that is written before it takes the place of *path*."""
    return path.with_name(f".{path.name}.new")


def replace_file(
    path: Path, data: bytes, *, overwrite_old: bool = False, mode: int = 0o600
) -> None:
    """Replace *path* by *data*, on disk when this returns.

    Args:
        mode: of the new file, less what the umask takes.
        overwrite_old: overwrite the bytes of the file that was there, which a disk keeps otherwise (some
            file systems and disks keep them all the same).

    Raises:
        OSError: it could not be written; *path* is as it was.
    """
    unfinished = unfinished_path(path)
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    old = _open_old(path) if overwrite_old else None
    try:
        unfinished.replace(path)
        sync_folder(path.parent)
        if old is not None:
            os.pwrite(old, bytes(os.fstat(old).st_size), 0)
            os.fsync(old)
    finally:
        if old is not None:
            os.close(old)


def _open_old(path: Path) -> int | None:
    try:
        return os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Put the names in *folder* on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_private_file(path: Path, limit: int) -> bytes | None:
    """Return the bytes of *path*; None where there is no such file.

    Raises:
        OSError: it cannot be read, is a link or no regular file, or is larger than *limit* bytes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path.name} is larger than {limit} bytes")
    return data
