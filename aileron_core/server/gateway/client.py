"""HTTP/1.1 to an upstream, and the pool of idle connections, each kept for 30 seconds.

On asyncio's protocols and httptools' parser: ready-made clients were several times slower, and each
of them changes what it passes on (names of headers, the sizes of chunks).
"""

import asyncio
import logging
import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, cast

import httptools

from aileron_core.credentials.upstreams import Upstream
from aileron_core.server.gateway.connect import Dialer
from aileron_core.server.gateway.providers import Header

Framing: TypeAlias = Literal["none", "length", "chunked", "close"]
"""How the end of an answer is marked: no body, Content-Length, chunks, or the end of the connection."""

_IDLE_SECONDS = 30.0
_MOST_IDLE = 32
"""Kept for one upstream."""
_MAX_HEAD = 256 * 1024
_log = logging.getLogger(__name__)


class ResponseHandler(Protocol):
    """Receives the answer from a connection. Nothing is awaited; `flush` follows the parts of one read."""

    def head(self, status: int, reason: bytes, headers: list[Header], framing: Framing) -> None:
        """Take the head; nothing interim."""
        ...

    def switched(self, reason: bytes, headers: list[Header], rest: bytes) -> None:
        """Take a 101: from here on the connection carries another protocol, beginning with *rest*."""
        ...

    def body(self, data: bytes) -> None:
        """Take a piece of the body as received: a chunk, or part of one."""
        ...

    def flush(self) -> None:
        """Pass on what was received so far."""
        ...

    def end(self, trailers: list[Header], *, reusable: bool) -> None: ...

    def broken(self, *, began: bool) -> None:
        """The connection failed: no response, or no more of it, will come."""
        ...


class UpstreamConnection(asyncio.Protocol):
    """One connection to an upstream; it carries one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._sink: ResponseHandler | None = None
        self._readable = select.poll()
        self._parser = httptools.HttpResponseParser(self)
        self._writable = asyncio.Event()
        self._writable.set()
        self._bodiless = False
        self._clear()
        self.used = False
        """Whether a request went over it before the present one."""
        self.idle_until: asyncio.TimerHandle | None = None
        self.on_idle_end: Callable[[], None] | None = None
        """Called when it ends, or must, while it is kept."""

    def _clear(self) -> None:
        self._status = 0
        self._reason = b""
        self._headers: list[Header] = []
        self._trailers: list[Header] = []
        self._in_body = False
        self._complete = False
        self._began = False
        self._spoilt = False
        self._senseless = False
        self._reusable = False
        self._framing: Framing = "none"
        self._head_bytes = 0

    # One request

    def expect_response(self, sink: ResponseHandler, *, bodiless: bool) -> None:
        """Pass the answer to the request that is written next to *sink*.

        Args:
            sink: receives it until its end, or until `drop`.
            bodiless: the request is a HEAD, so that its answer has no body whatever it says.
        """
        self._clear()
        self._parser = httptools.HttpResponseParser(self)
        self._sink = sink
        self._bodiless = bodiless

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """Return once there is room for more, or the connection has ended."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def drop(self) -> None:
        """End the connection at once; nothing more is reported to the handler."""
        self._sink = None
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        self._sink = None
        if self._transport is not None:
            self._transport.close()

    def detach_transport(self) -> asyncio.Transport | None:
        """Give the transport up to a caller that uses another protocol on it; None if it is closed."""
        self._sink = None
        return self._transport

    @property
    def alive(self) -> bool:
        """Whether a request may be sent: it is open, and the upstream has not just hung up."""
        if self._transport is None or self._transport.is_closing():
            return False
        return not self._readable.poll(0)

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asyncio's own class where the loop is uvloop's.
        self._transport = cast("asyncio.Transport", transport)
        raw: socket.socket = transport.get_extra_info("socket")
        self._readable.register(raw.fileno(), select.POLLIN)

    def pause_writing(self) -> None:
        """Let the request's body wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        sink = self._sink
        if sink is None:
            self._unasked()
            return
        self._began = True
        if not self._in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._status == 101:
                self.pause_reading()  # what follows belongs to the new owner of the connection
                sink.switched(self._reason, self._headers, data[upgrade.args[0] :])
            else:
                self._broken()
            return
        except httptools.HttpParserError as error:
            if isinstance(error, httptools.HttpParserCallbackError):
                _log.error("the gateway failed with %s", type(error.__context__).__name__)
            if not self._complete:
                self._broken()
                return
            self._spoilt = True
        if self._senseless or (not self._in_body and self._head_bytes > _MAX_HEAD):
            self._broken()
            return
        sink.flush()
        if self._complete:
            self._whole()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer too, if the end of the connection marks its end."""
        self._writable.set()
        sink, self._sink = self._sink, None
        if sink is not None:
            if self._framing == "close" and exc is None:
                sink.end(self._trailers, reusable=False)
            else:
                sink.broken(began=self._began)
        elif self.on_idle_end is not None:
            self.on_idle_end()
        self._transport = None

    def _unasked(self) -> None:
        # Nothing may come while nothing is asked: it would be taken for the next answer.
        if self._transport is not None:
            self._transport.abort()

    def _broken(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.flush()
            sink.broken(began=True)
        self._unasked()

    def _whole(self) -> None:
        sink, self._sink = self._sink, None
        self.resume_reading()  # its client may have been slow; the next one is another
        if sink is not None:
            sink.end(self._trailers, reusable=self._reusable and not self._spoilt)

    # From the parser

    def on_message_begin(self) -> None:
        """Detect bytes after an answer that was complete."""
        self._spoilt = self._complete

    def on_status(self, status: bytes) -> None:
        """Take the reason phrase."""
        self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer."""
        if self._complete:
            return  # of an answer that nobody asked for
        (self._trailers if self._in_body else self._headers).append((name, value))

    def on_headers_complete(self) -> None:
        """Tell of the head, unless it is interim."""
        if self._complete or self._sink is None:
            return
        self._status = self._parser.get_status_code()
        if 100 <= self._status < 200:
            # Nobody could tell what follows a switch to a protocol that is not named.
            self._senseless = self._status == 101 and not self._parser.should_upgrade()
            return
        self._in_body = True
        self._framing = self._framed()
        self._sink.head(self._status, self._reason, self._headers, self._framing)
        if self._framing == "none":
            self._complete = True
            self._reusable = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if self._complete:
            self._spoilt = True
        elif self._sink is not None:
            self._sink.body(body)

    def on_message_complete(self) -> None:
        """Complete the answer; after an interim one, wait for the next."""
        if 100 <= self._status < 200:
            if self._status != 101:
                self._status, self._reason, self._headers = 0, b"", []
        elif not self._complete:
            self._complete = True
            self._reusable = self._framing != "close" and self._parser.should_keep_alive()

    def _framed(self) -> Framing:
        if self._bodiless or self._status in (204, 304):
            return "none"
        sized, coding = False, None
        for name, value in self._headers:
            if len(name) == 17 and name.lower() == b"transfer-encoding":
                coding = value.lower()
            elif len(name) == 14 and name.lower() == b"content-length":
                sized = True
        if coding is not None:
            return "chunked" if coding.rpartition(b",")[2].strip() == b"chunked" else "close"
        return "length" if sized else "close"


class ConnectionPool:
    """Connections to upstreams: those that are free, and new ones."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._free: dict[Upstream, deque[UpstreamConnection]] = {}

    def take_idle(self, upstream: Upstream) -> UpstreamConnection | None:
        """Return a free connection, the one used last first; None if there is none."""
        free = self._free.get(upstream)
        while free:
            connection = free.pop()
            _wake(connection)
            if connection.alive:
                return connection
            connection.drop()
        return None

    async def open_new(self, upstream: Upstream) -> UpstreamConnection:
        """Return a new connection.

        Raises:
            GatewayError: there is none to be had.
        """
        return await self._dialer.dial(upstream, UpstreamConnection)

    def give_back(self, upstream: Upstream, connection: UpstreamConnection) -> None:
        """Keep *connection* idle for another request, for a while."""
        free = self._free.setdefault(upstream, deque())
        if len(free) >= _MOST_IDLE:
            connection.drop()
            return
        connection.used = True

        def forget() -> None:
            _wake(connection)
            if connection in free:
                free.remove(connection)
            connection.drop()

        connection.on_idle_end = forget
        loop = asyncio.get_running_loop()
        connection.idle_until = loop.call_later(_IDLE_SECONDS, forget)
        free.append(connection)

    def close(self) -> None:
        for free in self._free.values():
            while free:
                connection = free.pop()
                _wake(connection)
                connection.drop()


def _wake(connection: UpstreamConnection) -> None:
    connection.on_idle_end = None
    if connection.idle_until is not None:
        connection.idle_until.cancel()
        connection.idle_until = None
