"""uvicorn inside our own process: no signal handlers, no exit, no output, sockets bound before.

STYLE 4 and its appendix B tell what was tried.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Generator
from typing import Any, Self, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aileron_core import tasks
from aileron_core.errors import ServerStartError
from aileron_core.server.listen import peer_of

__all__ = ["EmbeddedServer"]

_DRAIN_SECONDS = 2
_MAX_HEAD = 64 * 1024
"""Bytes of request line and headers, counted in whole reads: the parser itself has no bound."""


class _Protocol(HttpToolsProtocol):
    """HTTP with the kernel's word on who is at the other end of a Unix socket, and a bounded head."""

    _in_head = True
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Drop a connection whose request's head does not end."""
        self._head_bytes = self._head_bytes + len(data) if self._in_head else 0
        if self._head_bytes - len(data) > _MAX_HEAD:
            self.send_400_response("The request's head is too long.")
            return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Stop counting: what follows is the body, which the guard bounds."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count again: what follows is the next request's head."""
        self._in_head = True
        super().on_message_complete()

    def connection_made(self, transport: Any) -> None:
        """Refuse another user's process at once."""
        super().connection_made(transport)
        raw: socket.socket | None = transport.get_extra_info("socket")
        self._aileron_peer = None
        if raw is not None and raw.family == socket.AF_UNIX:
            # uvloop hands out a stand-in; the descriptor is the socket's own.
            with socket.socket(fileno=os.dup(raw.fileno())) as own:
                self._aileron_peer = peer_of(own)
            if self._aileron_peer is None or self._aileron_peer.uid != os.getuid():
                transport.abort()

    def on_message_begin(self) -> None:
        """Put the peer where the guard finds it."""
        super().on_message_begin()
        if self._aileron_peer is not None:
            scope: dict[str, Any] = cast("dict[str, Any]", self.scope)
            scope["extensions"] = {"aileron.peer": self._aileron_peer}


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # signals belong to the root, on the main thread

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as exit_:  # uvicorn leaves the process; there is a terminal to restore
            raise ServerStartError(f"The server did not start ({exit_.code}).") from exit_


class EmbeddedServer:
    """Serve *app* on sockets that are bound already, for as long as the context is open."""

    def __init__(
        self,
        app: Starlette,
        listeners: list[socket.socket],
        *,
        before_drain: Callable[[], None] | None = None,
    ) -> None:
        self._listeners = listeners
        self._draining: asyncio.Event = app.state.draining
        self._before_drain = before_drain
        config = uvicorn.Config(
            app,
            http=_Protocol,
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
        self._server = _Server(config)

    async def __aenter__(self) -> Self:
        """Start, and return once requests are answered.

        Raises:
            ServerStartError: it did not start.
        """
        self._task = tasks.spawn(self._server.serve(sockets=self._listeners), name="http")
        while not self._server.started:
            if self._task.done():
                await self._task
                raise ServerStartError("The server stopped before it had started.")
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Let held streams end with a last event, then stop. Never cancelled: uvicorn would skip its end."""
        self._draining.set()
        if self._before_drain is not None:
            self._before_drain()
        self._server.should_exit = True
        await self._task
