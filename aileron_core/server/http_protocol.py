"""HTTP on one connection: the process at its other end, how large and how slow a request may be, how many are open."""

import asyncio
import os
import resource
import socket
from functools import partial
from typing import Any, Protocol, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aileron_core.home.owner import Peer, peer_of
from aileron_core.server.auth import ASSIGN_CONNECTION, DROP_CONNECTION, SESSION_SOCKET
from aileron_core.server.gateway.client_request import (
    CLIENT_REQUEST,
    PREFIX,
    ClientListener,
    ClientRequest,
)
from aileron_core.server.sockets import ConnectionMade

ANONYMOUS = "anonymous"
"""Holder of the connections over TCP without a valid token."""
PERSON = "person"
"""Holder of the connections over the home's own socket without a session's token."""
_MAX_ANONYMOUS = 512
"""Twice what one turn of the loop accepts, so that a burst is read before it is cut."""
_MAX_PERSON = 256
_MAX_SESSION = 416
"""The requests that a session may have open (128, and 256 through the gateway), and some to spare."""


class ClientConnection(Protocol):
    """One client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered on it."""
        ...

    def drop(self) -> None: ...


class ConnectionLimits:
    """The open connections, by holder: `ANONYMOUS`, `PERSON`, or a session's id.

    Any program that reaches the port may open connections. Those without a token have a limit of their
    own, so that they use up neither the process's file descriptors nor the places of others.
    """

    def __init__(self) -> None:
        self._by_holder: dict[str, dict[ClientConnection, None]] = {}

    def add(self, connection: ClientConnection, holder: str) -> None:
        """Count *connection* for *holder*; at the limit another connection is closed, or this one."""
        self._by_holder.setdefault(holder, {})[connection] = None
        if len(self._by_holder[holder]) > _most_of(holder):
            self._end_one(holder)
        elif holder not in (ANONYMOUS, PERSON):
            sessions = [each for each in self._by_holder if each not in (ANONYMOUS, PERSON)]
            if sum(len(self._by_holder[each]) for each in sessions) > _share(3):
                self._end_one(max(sessions, key=lambda each: len(self._by_holder[each])))

    def remove(self, connection: ClientConnection, holder: str) -> None:
        """Count *connection* no longer, if it was counted."""
        connections = self._by_holder.get(holder, {})
        connections.pop(connection, None)
        if not connections:
            self._by_holder.pop(holder, None)

    def _end_one(self, holder: str) -> None:
        """Close the oldest anonymous connection; of another holder its first idle one, else its newest."""
        connections = self._by_holder[holder]
        if holder == ANONYMOUS:
            closing = next(iter(connections))
        else:
            newest = next(reversed(connections))
            closing = next((each for each in connections if each.is_idle), newest)
        self.remove(closing, holder)
        closing.drop()


def _most_of(holder: str) -> int:
    if holder == ANONYMOUS:
        return min(_MAX_ANONYMOUS, _share(8))
    return _MAX_PERSON if holder == PERSON else _MAX_SESSION


def _share(part: int) -> int:
    """Return one *part*th of the files that the process may open: a connection is one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft if soft > 0 else 2**31) // part


_MAX_HEAD = 64 * 1024
"""Bytes of request line and headers, counted in whole reads: the parser itself has no bound."""
_HEAD_SECONDS = 10.0
"""From the first byte that may begin a head (or the connection itself) to the head's end."""
_BODY_SECONDS = 10.0
"""From the head's end to the body's, of a request without a token that opens something."""
_SESSION_BODY_SECONDS = 60.0
"""The same of a session's request, at most 1 MiB; what the gateway passes may take any time."""
PROGRESS_SECONDS = 10.0
"""Between two pieces of a body that is kept in memory until it is whole. What the gateway passes on at
once is not: of such a request nothing is held but its connections, which have limits of their own."""
_LINGER_SECONDS = 10.0
"""For the client to read an answer that came before the request was whole. A connection that is
closed with bytes unread is reset, and a reset may take the answer away."""


class _GatewayHttp(HttpToolsProtocol):
    """HTTP that gives the gateway's requests what ASGI has no room for (`gateway.client_request`)."""

    listener: ClientListener | None = None
    early: bytearray | None = None
    _upgrades = False
    _in_head = True
    _fields: list[tuple[bytes, bytes]]

    @property
    def client_transport(self) -> asyncio.Transport:
        return self.transport

    @property
    def client_is_full(self) -> bool:
        return self.flow.write_paused

    @property
    def client_request_complete(self) -> bool:
        return self._in_head

    def on_message_begin(self) -> None:
        self._fields = []
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the header with its name as it was sent, too."""
        self._fields.append((name, value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Add the request as it was sent to the scope, where the gateway finds it."""
        if not self.url.startswith(PREFIX):
            super().on_headers_complete()
            return
        parser = self.parser
        assert parser is not None
        upgrade = parser.should_upgrade()
        client = ClientRequest(
            self,
            method=parser.get_method(),
            target=self.url,
            version=parser.get_http_version(),
            headers=self._fields.copy(),
            upgrade=upgrade,
        )
        scope: dict[str, Any] = cast("dict[str, Any]", self.scope)
        scope["extensions"] = {**scope.get("extensions", {}), CLIENT_REQUEST: client}
        super().on_headers_complete()
        client.cycle = self.cycle
        if upgrade:
            # The parser stops behind it: whatever is answered, no other request can follow.
            client.close_after()
            self._upgrades = True

    def on_message_complete(self) -> None:
        """Read no further behind an Upgrade."""
        super().on_message_complete()
        if self._upgrades:
            self.early = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes after an Upgrade until it is known who reads them."""
        if self.early is None:
            super().data_received(data)
        elif len(self.early) > HIGH_WATER_LIMIT:
            self.transport.abort()
        else:
            self.early += data

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the gateway passes an Upgrade on, and the rest answers as if there were none."""

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.listener is not None:
            self.listener.client_full()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.listener is not None:
            self.listener.client_ready()

    def eof_received(self) -> None:
        """Treat a client that sends no more as one that hung up."""
        self._gone()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the listener that the client is gone."""
        self._gone()
        super().connection_lost(exc)

    def _gone(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.client_gone()


class ServedConnection(_GatewayHttp):
    """HTTP that knows which process is at the other end of a Unix socket, and limits connections.

    Anyone who reaches the port may open connections and send little or nothing. They must not use up
    the files that the rest of the process needs, nor keep others from being served.

    Args:
        places: the limits; a connection takes one place of them.
        own_session: the session whose own socket it came over, if it did.
    """

    def __init__(
        self,
        *,
        places: ConnectionLimits,
        own_session: str | None = None,
        on_connection: ConnectionMade | None = None,
        **server: Any,
    ) -> None:
        super().__init__(**server)
        self._on_connection = on_connection
        self.peer: Peer | None = None
        self._places = places
        self._own_session = own_session
        self._holder = own_session or ANONYMOUS
        self._holder_without_token = self._holder
        """The holder of its place while no request on it has a valid token."""
        self._authenticated = False
        """Whether the request that is being answered has a valid token."""
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._body_end = 0.0
        """Of the loop's time: when the body of a session's request has to be complete."""
        self._last_piece = 0.0
        self._lingers = False

    @property
    def is_idle(self) -> bool:
        answered = not self.cycle or self.cycle.response_complete
        return self._lingers or (self._in_head and answered)

    def drop(self) -> None:
        # Not `close`, which would wait for what the other end does not read.
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        """Refuse another user's process at once, and take a place."""
        super().connection_made(transport)
        self._expect_within(_HEAD_SECONDS)
        raw: socket.socket | None = transport.get_extra_info("socket")
        if raw is not None and raw.family == socket.AF_UNIX:
            # uvloop hands out a stand-in; the descriptor is the socket's own.
            with socket.socket(fileno=os.dup(raw.fileno())) as own:
                self.peer = peer_of(own)
                if self._on_connection is not None:
                    self._on_connection(own)
            # A session's own socket may be another user's to reach: by the modes of its folder.
            foreign = self.peer is None or self.peer.uid != os.getuid()
            if foreign and self._own_session is None:
                transport.abort()
            if self._own_session is None:
                self._holder = self._holder_without_token = PERSON
        self._places.add(self, self._holder)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the place and of the deadline too."""
        self._expect_nothing()
        self._places.remove(self, self._holder)
        if self.scope:  # it would keep this object until the next walk for garbage
            for each in (ASSIGN_CONNECTION, DROP_CONNECTION):
                cast("dict[str, Any]", self.scope)["extensions"].pop(each, None)
        super().connection_lost(exc)

    # Reading

    def data_received(self, data: bytes) -> None:
        """Drop a connection whose request's head does not end."""
        if self._lingers:
            return
        if self._in_head and self._deadline is None:
            self._expect_within(_HEAD_SECONDS)
        if not self._in_head:
            self._last_piece = self.loop.time()
        self._head_bytes = self._head_bytes + len(data) if self._in_head else 0
        if self._head_bytes - len(data) > _MAX_HEAD:
            self.send_400_response("The request's headers are too long.")
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Add to the scope the peer, and the function by which the guard assigns the connection."""
        super().on_message_begin()
        scope: dict[str, Any] = cast("dict[str, Any]", self.scope)
        extensions: dict[str, Any] = {
            ASSIGN_CONNECTION: partial(self._admit, scope),
            DROP_CONNECTION: self.drop,
        }
        if self._own_session is not None:
            extensions[SESSION_SOCKET] = self._own_session
        elif self.peer is not None:
            extensions["aileron.peer"] = self.peer
        scope["extensions"] = extensions

    def on_headers_complete(self) -> None:
        """Stop counting: what follows is the body, which the guard bounds."""
        self._in_head, self._head_bytes = False, 0
        self._body_end = 0.0
        self._expect_within(_BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count again: what follows is the next request's head."""
        self._in_head = True
        self._expect_nothing()
        super().on_message_complete()

    def _expect_within(self, seconds: float) -> None:
        self._expect_nothing()
        self._deadline = self.loop.call_later(seconds, self._late, seconds)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self, seconds: float) -> None:
        is_pipelined = self._in_head and not self.is_idle
        if is_pipelined or self.flow.read_paused:  # not the client's fault: it is not being read
            self._last_piece = self.loop.time()
            self._expect_within(seconds)
            return
        left = min(self._body_end, self._last_piece + PROGRESS_SECONDS) - self.loop.time()
        if left > 0 and not self._in_head and not self._lingers:
            self._expect_nothing()
            self._deadline = self.loop.call_later(left, self._late, seconds)
        else:
            self.drop()

    # Holder

    def _admit(self, scope: object, session_id: str, *, streams: bool = False) -> None:
        """Count the connection for the session whose valid token the request of *scope* has.

        Args:
            streams: the request's body may take any time.
        """
        self._authenticated = True
        if not self._in_head and scope is self.scope:
            if streams:
                self._expect_nothing()
            else:
                self._last_piece = self.loop.time()
                self._body_end = self._last_piece + _SESSION_BODY_SECONDS
                self._expect_within(min(PROGRESS_SECONDS, _SESSION_BODY_SECONDS))
        self._hold_for(session_id)

    def _hold_for(self, holder: str) -> None:
        if holder != self._holder and not self.transport.is_closing():
            self._places.remove(self, self._holder)
            self._holder = holder
            self._places.add(self, holder)

    # Answering

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Mark an answer that precedes the end of its request as the last one of the connection."""
        if CLIENT_REQUEST in cycle.scope["extensions"]:  # the gateway writes its own
            super()._start_asgi_task(cycle, app)
            return

        async def answering(scope: Any, receive: Any, send: Any) -> None:
            async def send_last(message: Any) -> None:
                is_read = self._in_head or scope is not self.scope
                if message["type"] != "http.response.start" or is_read:
                    await send(message)
                    return
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                await send({**message, "headers": headers})
                # Else uvicorn closes at once; here it is `on_response_complete` that does.
                cycle.keep_alive = True

            await app(scope, receive, send_last)

        super()._start_asgi_task(cycle, answering)

    def on_response_complete(self) -> None:
        """End the connection if the request was incomplete: its rest could keep it open for ever."""
        is_incomplete = not self._in_head and self.cycle.response_complete
        if not self._authenticated:
            self._hold_for(self._holder_without_token)
        self._authenticated = False
        super().on_response_complete()
        if is_incomplete and not self.transport.is_closing():
            self._linger()

    def _linger(self) -> None:
        """Send no more, and forget what comes until the client has closed, for a while."""
        self._lingers = True
        self._unset_keepalive_if_required()
        self._expect_within(_LINGER_SECONDS)
        self.transport.write_eof()
