"""The two listeners: loopback TCP for agents, a Unix socket for the person's own command line."""

import contextlib
import os
import socket
import struct
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from aileron_core.errors import ServerStartError

_LONGEST = 100
_BACKLOG = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The other end of a Unix socket, from the kernel."""

    pid: int
    uid: int


def bind_tcp(host: str, port: int) -> socket.socket:
    """Return a listening socket on loopback; *port* 0, or one that is taken, gives a free one.

    Raises:
        ServerStartError: nothing can be bound there.
    """
    if host != "127.0.0.1":
        raise ServerStartError(f"[server] listen must be on 127.0.0.1, not {host}.")
    for candidate in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
        except OSError as error:
            listener.close()
            if candidate == 0:
                raise ServerStartError(f"{host} cannot be listened on: {error}") from error
        else:
            listener.listen(_BACKLOG)
            return listener
    raise AssertionError("the second candidate returns or raises")


@contextlib.contextmanager
def _short(path: Path) -> Generator[str, None, None]:
    """Yield a name for *path* that fits into a socket address."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    if sys.platform != "linux":
        raise ServerStartError(
            f"{path} is too long for a socket here. Set AILERON_HOME to a shorter path."
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def bind_unix(path: Path) -> socket.socket:
    """Return a listening socket at *path*, mode 0600; what an earlier owner left there is replaced.

    The caller holds the home's lock, so nobody else listens there.

    Raises:
        ServerStartError: it cannot be bound.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        with _short(path) as name:
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServerStartError(f"{path} cannot be listened on: {error}") from error
    return listener


def peer_of(connection: socket.socket) -> Peer | None:
    """Return who is at the other end of a Unix socket; None for TCP or where the kernel does not say."""
    if connection.family != socket.AF_UNIX:
        return None
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack(
            "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        return Peer(pid=pid, uid=uid)
    local_peerpid, sol_local = 0x002, 0
    with contextlib.suppress(OSError):
        raw = connection.getsockopt(sol_local, local_peerpid, 4)
        # The socket is 0600 in a 0700 folder: whoever connects is this user (macOS has no SO_PEERCRED).
        return Peer(pid=struct.unpack("i", raw)[0], uid=os.getuid())
    return None
