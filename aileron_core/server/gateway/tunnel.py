"""Relaying bytes in both directions after a 101 (a WebSocket)."""

import asyncio
from collections.abc import Callable

from aileron_core.server.gateway.client_request import ClientProtocol


class _TunnelEnd(asyncio.Protocol):
    """One end; what it receives goes to the other one.

    Args:
        count: called with the number of bytes that came.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        count: Callable[[int], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        self.transport = transport
        self.other: _TunnelEnd = self
        self.lost = False
        self.paused = False
        self._count = count
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._count(len(data))
        if not self.other.transport.is_closing():
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        self.paused = True
        if not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.paused = False
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        # What came before a clean end is still written; a break is passed on as one.
        if not self.other.lost:
            if exc is None:
                self.other.transport.close()
            else:
                self.other.transport.abort()
        self._ended(exc)


class Tunnel:
    """A client's and an upstream's connection, joined.

    Args:
        side: the client's, where a 101 was just written.
        upstream: the connection that sent it; it is not read yet.
        sent, came: called with the number of bytes that went up, and came down.
    """

    def __init__(
        self,
        side: ClientProtocol,
        upstream: asyncio.Transport,
        *,
        sent: Callable[[int], None],
        came: Callable[[int], None],
    ) -> None:
        self._side = side
        self.ended = asyncio.Event()
        """Set once both connections are gone, with all that was still to be written."""
        self._left = 2
        self._client = _TunnelEnd(side.client_transport, sent, self._client_lost)
        self._upstream = _TunnelEnd(upstream, came, lambda _: self._lost())
        self._client.other, self._upstream.other = self._upstream, self._client

    def begin(self, rest: bytes) -> None:
        """Let bytes pass, beginning with what each side has sent already."""
        early = bytes(self._side.early or b"")
        self._side.early = None
        for end in (self._client, self._upstream):
            end.transport.set_protocol(end)
        if early:
            self._client.data_received(early)
        if rest:
            self._upstream.data_received(rest)
        if not self._client.paused:
            self._upstream.transport.resume_reading()

    def cut(self) -> None:
        """End both sides at once."""
        for end in (self._client, self._upstream):
            if not end.lost:
                end.transport.abort()

    def _client_lost(self, exc: Exception | None) -> None:
        self._side.connection_lost(exc)
        self._lost()

    def _lost(self) -> None:
        self._left -= 1
        if not self._left:
            self.ended.set()
