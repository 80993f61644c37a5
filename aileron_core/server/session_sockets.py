"""The sockets of contained sessions: each opens what its session's token opens, and nothing else.

Such a socket is bound into the session's sandbox. Its folder is what is mounted
there, so that a console that starts again makes a new socket where the agent finds it.
"""

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from pathlib import Path

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.console_port import CoreEvent, SessionsUpdated
from aileron_core.containment.peer import containment_of
from aileron_core.server.sockets import bind_unix

ConnectionMade = Callable[[socket.socket], None]
"""Told of each connection, before anything of it is answered."""
Serve = Callable[[socket.socket, str, ConnectionMade], Awaitable[asyncio.AbstractServer]]
"""Answers on a listening socket in the name of one session."""

_NAME = "s.sock"
_PREFIX = "ses-"


class SessionSockets:
    """One listening socket for each open contained session.

    Args:
        app: whose sessions.
        serve: starts answering on one.
    """

    def __init__(self, app: App, serve: Serve) -> None:
        self._app = app
        self._serve = serve
        self._open: dict[str, asyncio.AbstractServer] = {}

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        """Listen for the sessions of an earlier process that are still open, and for those that come."""
        living = {each.session_id for each in self._app.sessions.all() if each.claims_contained}
        _clear(self._app.home.sockets, living)
        forget = self._app.events.subscribe(self._hear)
        try:
            for session_id in living:
                await self.open(session_id)
            yield
        finally:
            forget()
            for server in self._open.values():
                # The folders stay: in sandboxes that live on they are where the next socket is found.
                server.close()

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
                listener, session_id, self._meets(session_id)
            )
            link = self._app.home.sockets / f"{session_id}.sock"
            with contextlib.suppress(FileExistsError):
                link.symlink_to(Path(session_id) / _NAME)
        return path

    def _meets(self, session_id: str) -> ConnectionMade:
        """Look at each process that connects: what a launcher says of its sandbox is no more than that."""
        home = self._app.home.path.resolve()

        def met(connection: socket.socket) -> None:
            found = containment_of(connection, home)
            noting = self._app.session_service.observe_containment(session_id, found)
            tasks.spawn(noting, name="met a session")

        return met

    def _hear(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            living = {session.session_id for session in event.sessions}
            for session_id in [each for each in self._open if each not in living]:
                self._open.pop(session_id).close()
                _remove(self._app.home.sockets, session_id)


def _remove(run: Path, session_id: str) -> None:
    (run / f"{session_id}.sock").unlink(missing_ok=True)
    shutil.rmtree(run / session_id, ignore_errors=True)


def _clear(run: Path, living: Collection[str]) -> None:
    """Remove the sockets of sessions that have ended meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        for entry in list(os.scandir(run)):
            name = entry.name.removesuffix(".sock")
            if name.startswith(_PREFIX) and name not in living:
                _remove(run, name)
