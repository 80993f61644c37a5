"""The two listeners: loopback TCP for agents, a Unix socket for the person's own command line."""

import contextlib
import errno
import socket
from pathlib import Path

from aileron_core.errors import ServerStartError
from aileron_core.home.owner import short_socket_path

_BACKLOG = 256


def bind_tcp(host: str, port: int) -> socket.socket:
    """Return a listening socket on loopback; *port* 0, or one that is taken, gives a free one.

    Raises:
        ServerStartError: nothing can be bound there.
    """
    if host != "127.0.0.1":
        raise ServerStartError(f"[server] listen in config.toml must be on 127.0.0.1, not {host}.")
    for candidate in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
        except OSError as error:
            listener.close()
            if candidate == 0:
                raise ServerStartError(f"Aileron cannot listen on {host}: {error}.") from error
        else:
            listener.listen(_BACKLOG)
            return listener
    raise AssertionError("the second candidate returns or raises")


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
        with short_socket_path(path) as name:
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.ENAMETOOLONG:
            raise ServerStartError(
                f"{path} is too long a path for a socket. Set AILERON_HOME to a shorter one."
            ) from error
        raise ServerStartError(f"Aileron cannot listen on {path}: {error}.") from error
    return listener
