"""Whether the process at the other end of a Unix socket is seen to be contained (Linux)."""

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

from aileron_core.containment.linux import openat2

Containment: TypeAlias = Literal["seen", "other_user", "said", "none"]
"""How a session's agent is contained.

`seen`: in other user and process namespaces than ours, where Aileron's home does not exist.
`other_user`: its processes are another user's. `said`: it was said when the session was opened, and
could not be checked, or not yet. `none`: nothing contains it, as was said or was seen.
"""

_FROM_BEST: tuple[Containment, ...] = ("seen", "other_user", "said", "none")
_SO_PEERPIDFD = 77
"""Linux 6.5; Python has no name for it."""
_RESOLVE = 0x02 | 0x10
"""RESOLVE_NO_MAGICLINKS and RESOLVE_IN_ROOT of linux/openat2.h."""


def worse(one: Containment, other: Containment) -> Containment:
    """Return which of both says less."""
    return one if _FROM_BEST.index(one) > _FROM_BEST.index(other) else other


def containment_of(connection: socket.socket, home: Path) -> Containment:
    """Return how the process is contained that opened this connection, as the kernel sees it now.

    A check of what a launcher says, not a proof: a program of this user can put a process of its own
    into a sandbox, and have it pass on what it hears.

    Args:
        connection: an accepted Unix socket.
        home: Aileron's home, by its real path.
    """
    if sys.platform != "linux":
        return "said"
    pid, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    )
    if uid != os.geteuid():
        # Root is no other user: what it may do here, no user's number tells.
        return "other_user" if uid != 0 else "said"
    try:
        with _process(connection, pid) as folder:
            return _seen(folder, home)
    except OSError:
        return "said"  # it has ended, or is not for us to look at


@contextlib.contextmanager
def _process(connection: socket.socket, pid: int) -> Generator[int, None, None]:
    """Yield a descriptor of the peer's folder in /proc, which stays that process's.

    Raises:
        ProcessLookupError: it has ended.
        OSError: the kernel does not tell.
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


def _seen(folder: int, home: Path) -> Containment:
    """Return what namespaces and root of the process at /proc/<pid> tell.

    Raises:
        OSError: it cannot be looked at.
    """
    others = [
        os.readlink(f"ns/{kind}", dir_fd=folder) != str(Path(f"/proc/self/ns/{kind}").readlink())
        for kind in ("user", "pid")
    ]
    if not others[1] or exists_in_root(folder, home):
        return "none"
    return "seen" if all(others) else "said"


def exists_in_root(folder: int, path: Path) -> bool:
    """Tell whether a process finds anything at *path* in its own root, whose links are its own.

    Args:
        folder: a descriptor of the process's folder in /proc.
        path: an absolute one.

    Raises:
        OSError: that cannot be told.
    """
    root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.close(openat2(root, os.fsencode(path), os.O_PATH | os.O_CLOEXEC, _RESOLVE))
    except (FileNotFoundError, NotADirectoryError):
        return False
    finally:
        os.close(root)
    return True
