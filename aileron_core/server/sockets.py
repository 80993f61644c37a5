"""The listeners: loopback TCP for agents, a Unix socket for the person's own command line, one for each contained session.

A session's socket opens what its token opens, and nothing else. It is bound into the sandbox. Its folder is
what is mounted there, so that a console that starts again makes a new socket where the agent finds it.
"""

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from pathlib import Path

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.console_port.events import CoreEvent, SessionsUpdated
from aileron_core.containment.detection import detect_containment
from aileron_core.errors import ServerStartError
from aileron_core.home.owner import short_socket_path

_BACKLOG = 256
ConnectionMade = Callable[[socket.socket], None]
"""Called with each connection before a request on it is answered."""
Serve = Callable[[socket.socket, str, ConnectionMade], Awaitable[asyncio.AbstractServer]]
"""Serves one session on a listening socket."""

_NAME = "s.sock"
_PREFIX = "ses-"
_REOPEN_SECONDS = 1.0
_log = logging.getLogger(__name__)


def bind_tcp(host: str, port: int) -> socket.socket:
    """Return a listening socket on loopback; *port* 0, or one that is taken, gives a free one.

    Raises:
        ServerStartError: nothing can be bound there.
    """
    if host != "127.0.0.1":
        raise ServerStartError(f"[server] listen in config.toml must be on 127.0.0.1, not {host}.")
    for candidate in (port, 0):
        # With its protocol named, asyncio switches off Nagle's delay: 40 ms for each answer of two writes.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


class SessionSockets:
    """One listening socket for each open contained session."""

    def __init__(self, app: App, serve: Serve) -> None:
        self._app = app
        self._serve = serve
        self._open: dict[str, asyncio.AbstractServer] = {}

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        """Serve the sessions of an earlier process that are still open, until the context ends."""
        open_ids = {each.session_id for each in self._app.sessions.all() if each.claims_contained}
        _remove_ended(self._app.home.sockets, open_ids)
        unsubscribe = self._app.events.subscribe(self._on_event)
        later: asyncio.Task[None] | None = None
        try:
            if left := await self._reopened(open_ids):
                later = tasks.spawn(self._reopen_later(left), name="reopen sockets")
            yield
        finally:
            unsubscribe()
            if later is not None:
                later.cancel()
            for server in self._open.values():
                # The folders stay: running sandboxes have them mounted and find the next socket there.
                server.close()

    async def _reopened(self, session_ids: Collection[str]) -> list[str]:
        """Serve these sessions; return those for which a disk that is full had no room."""
        left: list[str] = []
        for session_id in session_ids:
            try:
                await self.open(session_id)
            except (OSError, ServerStartError) as error:
                _log.warning("a session's socket cannot be made: %s", type(error).__name__)
                left.append(session_id)
        return left

    async def _reopen_later(self, left: Collection[str]) -> None:
        while left:
            await asyncio.sleep(_REOPEN_SECONDS)
            known = {session.session_id for session in self._app.sessions.all()}
            left = await self._reopened([each for each in left if each in known])

    async def open(self, session_id: str) -> Path:
        """Listen for this session, unless that is done already; return where.

        Raises:
            ServerStartError: the socket cannot be bound.
        """
        folder = self._app.home.sockets / session_id
        path = folder / _NAME
        if session_id not in self._open:
            folder.mkdir(mode=0o700, exist_ok=True)
            listener = bind_unix(path)
            self._open[session_id] = await self._serve(
                listener, session_id, self._containment_observer(session_id)
            )
            link = self._app.home.sockets / f"{session_id}.sock"
            with contextlib.suppress(FileExistsError):
                link.symlink_to(Path(session_id) / _NAME)
        return path

    def _containment_observer(self, session_id: str) -> ConnectionMade:
        """Return what checks the containment of each process that connects: a launcher only claims it."""
        home = self._app.home.path.resolve()

        def observe(connection: socket.socket) -> None:
            containment = detect_containment(connection, home)
            recording = self._app.session_service.observe_containment(session_id, containment)
            tasks.spawn(recording, name="observe containment")

        return observe

    def _on_event(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            open_ids = {session.session_id for session in event.sessions}
            for session_id in [each for each in self._open if each not in open_ids]:
                self._open.pop(session_id).close()
                _remove(self._app.home.sockets, session_id)


def _remove(sockets: Path, session_id: str) -> None:
    (sockets / f"{session_id}.sock").unlink(missing_ok=True)
    shutil.rmtree(sockets / session_id, ignore_errors=True)


def _remove_ended(sockets: Path, open_ids: Collection[str]) -> None:
    with contextlib.suppress(FileNotFoundError):
        for entry in list(os.scandir(sockets)):
            name = entry.name.removesuffix(".sock")
            if name.startswith(_PREFIX) and name not in open_ids:
                _remove(sockets, name)
