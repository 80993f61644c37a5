"""uvicorn inside this process: no signal handlers, no exit, no output, on sockets that are already bound."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Generator
from functools import partial
from typing import Self, cast

import uvicorn
from starlette.applications import Starlette

from aileron_core import tasks
from aileron_core.errors import ServerStartError
from aileron_core.server.asgi import GatewayDispatch
from aileron_core.server.http_protocol import ConnectionLimits, ServedConnection
from aileron_core.server.sockets import ConnectionMade

_DRAIN_SECONDS = 2
_FILES = 10_240
"""The limit of open files to ask for; macOS allows no more."""


def _raise_file_limit() -> None:
    """Raise the limit of open files where the system starts programs with a low one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard < 0 else min(_FILES, hard)
    if 0 <= soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, draining: asyncio.Event) -> None:
        super().__init__(config)
        self._draining = draining

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._draining.wait()  # uvicorn looks ten times a second whether it has to end

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # signals are handled by `aileron_tui.cli.runtime`, on the main thread

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as exit_:  # uvicorn leaves the process; there is a terminal to restore
            raise ServerStartError(
                f"The server did not start (exit code {exit_.code}). See `aileron logs`."
            ) from exit_


class EmbeddedServer:
    """Serve *app* on sockets that are bound already, for as long as the context is open."""

    def __init__(
        self,
        app: Starlette,
        listeners: list[socket.socket],
    ) -> None:
        self._listeners = listeners
        self._draining: asyncio.Event = app.state.draining
        self._places = ConnectionLimits()
        config = uvicorn.Config(
            GatewayDispatch(app),
            http=cast("type[asyncio.Protocol]", partial(ServedConnection, places=self._places)),
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        self._server = _Server(config, self._draining)

    async def __aenter__(self) -> Self:
        """Start, and return once requests are answered.

        Raises:
            ServerStartError: it did not start.
        """
        _raise_file_limit()
        self._task = tasks.spawn(self._server.serve(sockets=self._listeners), name="http")
        while not self._server.started:
            if self._task.done():
                await self._task
                raise ServerStartError(
                    "The server stopped while it was starting. See `aileron logs`."
                )
            await asyncio.sleep(0.005)
        return self

    async def serve_session(
        self, listener: socket.socket, session_id: str, on_connection: ConnectionMade
    ) -> asyncio.AbstractServer:
        """Serve one session on its own *listener* too; *on_connection* is called with each connection to it."""

        def protocol() -> ServedConnection:
            return ServedConnection(
                places=self._places,
                own_session=session_id,
                on_connection=on_connection,
                config=self._server.config,
                server_state=self._server.server_state,
                app_state=self._server.lifespan.state,
            )

        loop = asyncio.get_running_loop()
        return await loop.create_unix_server(protocol, sock=listener)

    async def __aexit__(self, *exc_info: object) -> None:
        """Let held streams end with a last event, then stop. Never cancelled: uvicorn would skip its end."""
        self._draining.set()
        self._server.should_exit = True
        await self._task
