"""Whether a process that connects to a session's socket is contained, another user's or neither, by /proc (Linux)."""

import contextlib
import errno
import os
import select
import socket
import struct
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Literal, TypeAlias

from aileron_core.containment.linux_syscalls import openat2

Containment: TypeAlias = Literal["verified", "other_user", "claimed", "none"]
"""How a session's agent is contained.

`seen`: in other user and process namespaces than ours, where Aileron's home does not exist.
`other_user`: its processes are another user's. `said`: it was said when the session was opened, and
could not be checked, or not yet. `none`: nothing contains it, as was said or was seen.
"""

SEEN_CONTAINED: tuple[Containment, ...] = ("verified", "other_user")
_FROM_BEST: tuple[Containment, ...] = ("verified", "other_user", "claimed", "none")
_SO_PEERPIDFD = 77
"""Linux 6.5; Python has no name for it."""
_RESOLVE = 0x02 | 0x10
"""RESOLVE_NO_MAGICLINKS and RESOLVE_IN_ROOT of linux/openat2.h."""


def weaker_containment(one: Containment, other: Containment) -> Containment:
    return one if _FROM_BEST.index(one) > _FROM_BEST.index(other) else other


def detect_containment(connection: socket.socket, home: Path) -> Containment:
    """Return how the process that opened this connection is contained, as the kernel shows it now.

    This checks what a launcher claims and proves nothing: a program of the same user can put a
    process of its own into a sandbox and have it relay what it receives.

    Args:
        home: Aileron's home, by its real path.
    """
    if sys.platform != "linux":
        return "claimed"
    pid, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    )
    if uid != os.geteuid():
        # Root counts as no other user: its number does not say what it may do here.
        return "other_user" if uid != 0 else "claimed"
    try:
        with _process(connection, pid) as folder:
            return _containment_in(folder, home)
    except OSError:
        return "claimed"  # it has ended, or is not for us to look at


@contextlib.contextmanager
def _process(connection: socket.socket, pid: int) -> Generator[int, None, None]:
    """Yield a descriptor of the peer's folder in /proc; it stays bound to that process, even if the pid is reused.

    Raises:
        ProcessLookupError: the process has ended.
        OSError: the kernel does not say which process it is.
    """
    folder = os.open(f"/proc/{pid}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Its number may be another's by now; but not if it still lives after that was opened.
        _still_lives(connection)
        yield folder
    finally:
        os.close(folder)


def _still_lives(connection: socket.socket) -> None:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4)
    except OSError as error:
        if error.errno == errno.ENOPROTOOPT:
            return  # before Linux 6.5 the number is all that there is
        raise
    (handle,) = struct.unpack("i", raw)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if poll.poll(0):
            raise ProcessLookupError(errno.ESRCH, "the peer has ended")
    finally:
        os.close(handle)


def _containment_in(folder: int, home: Path) -> Containment:
    """Return the containment that namespaces and root of the process *folder* (/proc/<pid>) show.

    Raises:
        OSError: they cannot be read.
    """
    others = [
        os.readlink(f"ns/{kind}", dir_fd=folder) != str(Path(f"/proc/self/ns/{kind}").readlink())
        for kind in ("user", "pid")
    ]
    if not others[1] or exists_in_root(folder, home):
        return "none"
    return "verified" if all(others) else "claimed"


def exists_in_root(folder: int, path: Path) -> bool:
    """Return whether *path* exists for a process, resolved in its own root with its own links.

    Args:
        folder: descriptor of the process's folder in /proc.
        path: absolute.

    Raises:
        OSError: it cannot be determined.
    """
    try:
        identity_in_root(folder, path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def identity_in_root(folder: int, path: Path) -> tuple[int, int]:
    """Return device and inode of what *path* is for a process, as `exists_in_root` takes both.

    Raises:
        OSError: it does not exist there, or cannot be determined.
    """
    root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        handle = openat2(root, os.fsencode(path), os.O_PATH | os.O_CLOEXEC, _RESOLVE)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
    finally:
        os.close(root)
    return status.st_dev, status.st_ino
