"""uvicorn inside our own process: no signal handlers, no exit, no output, sockets bound before.

STYLE 4 and its appendix B tell what was tried.
"""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Callable, Generator
from typing import Any, Self, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aileron_core import tasks
from aileron_core.errors import ServerStartError
from aileron_core.server.asgi import Front
from aileron_core.server.auth import OWN_SOCKET, Peer
from aileron_core.server.gateway.wire import PREFIX, WIRE, Listener, Wire
from aileron_core.server.listen import peer_of
from aileron_core.server.own_sockets import Met

__all__ = ["EmbeddedServer"]

_DRAIN_SECONDS = 2
_MAX_HEAD = 64 * 1024
"""Bytes of request line and headers, counted in whole reads: the parser itself has no bound."""
_HEAD_SECONDS = 10.0
"""From the first byte that may begin a head (or the connection itself) to the head's end."""
_MOST_CONNECTIONS = 1024
"""Over TCP. Where the process may open fewer than twice as many files, half of those."""
_MOST_OWN = 416
"""Over a contained session's own socket: what it may ask and pass at once, and some to spare."""
_FILES = 10_240
"""Files that the process would like to be able to open; macOS allows no more."""


def _raise_file_limit() -> None:
    """Ask for room for connections, where the system starts programs with little of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard < 0 else min(_FILES, hard)
    if 0 <= soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if soft < 0 else min(_MOST_CONNECTIONS, soft // 2)


class _Wired(HttpToolsProtocol):
    """HTTP that gives the gateway's requests what ASGI has no room for (`gateway.wire`)."""

    listener: Listener | None = None
    early: bytearray | None = None
    _upgrades = False
    _fields: list[tuple[bytes, bytes]]

    @property
    def client_transport(self) -> asyncio.Transport:
        """The connection's transport."""
        return self.transport

    @property
    def client_is_full(self) -> bool:
        """Whether the client takes no more for now."""
        return self.flow.write_paused

    def on_message_begin(self) -> None:
        """Begin with no header."""
        self._fields = []
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the name as it was sent too."""
        self._fields.append((name, value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Put the request as it came where the gateway finds it."""
        if not self.url.startswith(PREFIX):
            super().on_headers_complete()
            return
        parser = self.parser
        assert parser is not None
        upgrade = parser.should_upgrade()
        wire = Wire(
            self,
            method=parser.get_method(),
            target=self.url,
            version=parser.get_http_version(),
            headers=self._fields.copy(),
            upgrade=upgrade,
        )
        scope: dict[str, Any] = cast("dict[str, Any]", self.scope)
        scope["extensions"] = {**scope.get("extensions", {}), WIRE: wire}
        super().on_headers_complete()
        wire.cycle = self.cycle
        if upgrade:
            # The parser stops behind it: whatever is answered, no other request can follow.
            wire.close_after()
            self._upgrades = True

    def on_message_complete(self) -> None:
        """Read no further behind an Upgrade."""
        super().on_message_complete()
        if self._upgrades:
            self.early = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep what follows an Upgrade until it is known who speaks."""
        if self.early is None:
            super().data_received(data)
        elif len(self.early) > HIGH_WATER_LIMIT:
            self.transport.abort()
        else:
            self.early += data

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the gateway passes an Upgrade on, and the rest answers as if there were none."""

    def pause_writing(self) -> None:
        """Have whoever writes wait."""
        super().pause_writing()
        if self.listener is not None:
            self.listener.client_full()

    def resume_writing(self) -> None:
        """Have it go on."""
        super().resume_writing()
        if self.listener is not None:
            self.listener.client_ready()

    def eof_received(self) -> None:
        """Take a client that sends no more for one that hung up."""
        self._gone()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever answers."""
        self._gone()
        super().connection_lost(exc)

    def _gone(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.client_gone()


class _Protocol(_Wired):
    """HTTP with the kernel's word on who is at the other end of a Unix socket, and bounded heads.

    Whoever reaches the port may open connections and say nothing: they may not use up the files
    that the rest of the process needs, nor keep others from being heard.
    """

    _in_head = True
    _head_bytes = 0
    began = 0.0
    _deadline: asyncio.TimerHandle | None = None
    peer: Peer | None = None
    own_session: str | None = None
    """Set where this came over a contained session's own socket."""
    met: Met | None = None

    def data_received(self, data: bytes) -> None:
        """Drop a connection whose request's head does not end."""
        if self._in_head and self._deadline is None:
            self._expect_head()
        self._head_bytes = self._head_bytes + len(data) if self._in_head else 0
        if self._head_bytes - len(data) > _MAX_HEAD:
            self.send_400_response("The request's head is too long.")
            return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Stop counting: what follows is the body, which the guard bounds."""
        self._in_head, self._head_bytes = False, 0
        self._heard()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count again: what follows is the next request's head."""
        self._in_head = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the deadline too."""
        self._heard()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self.began = self.loop.time()
        self._deadline = self.loop.call_later(_HEAD_SECONDS, self._late)

    def _heard(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self.silent:
            self.drop()
        else:  # the head of a request that waits behind another
            self._expect_head()

    def drop(self) -> None:
        """End the connection at once."""
        # Not `close`, which would wait for what the other end does not read.
        self.transport.abort()

    @property
    def silent(self) -> bool:
        """Whether no request of it is being heard or answered."""
        return self._in_head and (not self.cycle or self.cycle.response_complete)

    def _make_room(self, most: int) -> None:
        """Over the limit the connection goes that has been silent longest, or else the new one."""
        connections = cast("set[object]", self.connections)
        others = [
            each
            for each in connections
            if isinstance(each, _Protocol)
            and each.stranger
            and each.own_session == self.own_session
        ]
        if len(others) > most:
            silent = [each for each in others if each.silent]
            min(silent, key=lambda each: each.began, default=self).drop()

    @property
    def stranger(self) -> bool:
        """Whether it came another way than over the person's own socket."""
        return self.peer is None or self.own_session is not None

    def connection_made(self, transport: Any) -> None:
        """Refuse another user's process at once, and more connections than can be served."""
        super().connection_made(transport)
        self._expect_head()
        raw: socket.socket | None = transport.get_extra_info("socket")
        self.peer = None
        if raw is not None and raw.family == socket.AF_UNIX:
            # uvloop hands out a stand-in; the descriptor is the socket's own.
            with socket.socket(fileno=os.dup(raw.fileno())) as own:
                self.peer = peer_of(own)
                if self.met is not None:
                    self.met(own)
            # A session's own socket may be another user's to reach: by the modes of its folder.
            foreign = self.peer is None or self.peer.uid != os.getuid()
            if foreign and self.own_session is None:
                transport.abort()
        if raw is None or raw.family != socket.AF_UNIX:
            self._make_room(_most_connections())
        elif self.own_session is not None:
            self._make_room(_MOST_OWN)

    def on_message_begin(self) -> None:
        """Put the peer where the guard finds it."""
        super().on_message_begin()
        scope: dict[str, Any] = cast("dict[str, Any]", self.scope)
        if self.own_session is not None:
            scope["extensions"] = {OWN_SOCKET: self.own_session}
        elif self.peer is not None:
            scope["extensions"] = {"aileron.peer": self.peer}


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
            Front(app),
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
        _raise_file_limit()
        self._task = tasks.spawn(self._server.serve(sockets=self._listeners), name="http")
        while not self._server.started:
            if self._task.done():
                await self._task
                raise ServerStartError("The server stopped before it had started.")
            await asyncio.sleep(0.005)
        return self

    async def serve_session(
        self, listener: socket.socket, session_id: str, met: Met
    ) -> asyncio.AbstractServer:
        """Answer on *listener* too, in the name of one session, and tell *met* of each connection."""

        def protocol() -> _Protocol:
            made = _Protocol(
                config=self._server.config,
                server_state=self._server.server_state,
                app_state=self._server.lifespan.state,
            )
            made.own_session, made.met = session_id, met
            return made

        loop = asyncio.get_running_loop()
        return await loop.create_unix_server(protocol, sock=listener)

    async def __aexit__(self, *exc_info: object) -> None:
        """Let held streams end with a last event, then stop. Never cancelled: uvicorn would skip its end."""
        self._draining.set()
        if self._before_drain is not None:
            self._before_drain()
        self._server.should_exit = True
        await self._task
