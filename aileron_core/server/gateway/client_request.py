"""A client's request to the gateway as received, and the connection that its response is written to.

ASGI gives header names in lower case and has no place for a reason phrase, and each of its
messages costs a turn of the loop. So the server's protocol hands the gateway this beside them.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from typing import Any, Protocol

from aileron_core.server.gateway.providers import Header

CLIENT_REQUEST = "aileron.client_request"
"""Scope extension: the `ClientRequest` of a request. One that no client's connection brought has none."""
PREFIX = b"/gw/"


class ClientListener(Protocol):
    """Is notified of the state of the client's connection while a response is written to it."""

    def client_full(self) -> None:
        """The client's write buffer is full."""
        ...

    def client_ready(self) -> None:
        """The client's write buffer has room again."""
        ...

    def client_gone(self) -> None: ...


class UvicornCycle(Protocol):
    """What the server keeps of one request and its answer."""

    response_started: bool
    response_complete: bool
    waiting_for_100_continue: bool
    disconnected: bool
    keep_alive: bool
    message_event: asyncio.Event
    on_response: Callable[..., Any]


class ClientProtocol(Protocol):
    """The server's protocol on the client's connection."""

    listener: ClientListener | None
    """Of the answer that goes down it now."""
    early: bytearray | None
    """What came behind the head of an Upgrade; None where there was none."""

    @property
    def client_transport(self) -> asyncio.Transport: ...

    @property
    def client_is_full(self) -> bool: ...

    @property
    def client_request_complete(self) -> bool: ...

    def connection_lost(self, exc: Exception | None) -> None: ...


class ClientRequest:
    """One request of the gateway.

    Args:
        method, target, headers: as sent; the target whole, with our prefix.
        version: `1.1` or `1.0`.
        upgrade: it asks for another protocol, with Connection and Upgrade.
    """

    __slots__ = ("_side", "cycle", "headers", "method", "target", "upgrade", "version")

    def __init__(
        self,
        side: ClientProtocol,
        *,
        method: bytes,
        target: bytes,
        version: str,
        headers: list[Header],
        upgrade: bool,
    ) -> None:
        self._side = side
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.upgrade = upgrade
        self.cycle: UvicornCycle | None = None
        """Set by the server once it has made one, before the application runs."""

    @property
    def keeps_alive(self) -> bool:
        return self._own.keep_alive

    @property
    def is_complete(self) -> bool:
        return self._side.client_request_complete

    @property
    def disconnected(self) -> bool:
        return self._own.disconnected

    @property
    def connection(self) -> ClientProtocol:
        """The connection itself, for another protocol."""
        return self._side

    @property
    def _own(self) -> UvicornCycle:
        assert self.cycle is not None
        return self.cycle

    def listen(self, listener: ClientListener) -> None:
        """Report the connection's events to *listener* from now on."""
        self._side.listener = listener
        if self._side.client_is_full:
            listener.client_full()

    def close_after(self) -> None:
        self._own.keep_alive = False

    def start(self) -> None:
        """Mark the answer as begun; its bytes are written with `write`."""
        cycle = self._own
        cycle.response_started = True
        cycle.waiting_for_100_continue = False

    def wake_reader(self) -> None:
        self._own.message_event.set()

    def write(self, pieces: list[bytes]) -> None:
        """Send *pieces* to the client, framed already."""
        transport = self._side.client_transport
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.write(b"".join(pieces))

    def finish(self) -> None:
        """End the answer; the connection goes on to the next request, or ends."""
        cycle = self._own
        self._side.listener = None
        cycle.response_complete = True
        cycle.message_event.set()
        # Before the request is whole it is the server that ends the connection, behind the answer.
        if not cycle.keep_alive and self.is_complete:
            self._side.client_transport.close()
        cycle.on_response()

    def mark_disconnected(self) -> None:
        """Mark the client as gone, so that nothing more is expected to be written."""
        cycle = self._own
        cycle.disconnected = True
        cycle.message_event.set()

    def abort_response(self, *, at_once: bool = False) -> None:
        """End the connection in the middle of the answer, so that its reader knows it is not whole.

        Args:
            at_once: without what is still to be written, and with a reset.
        """
        self._side.listener = None
        self.mark_disconnected()
        transport = self._side.client_transport
        if at_once:
            _reset_at_close(transport)
            transport.abort()
        else:
            transport.close()


def _reset_at_close(transport: asyncio.Transport) -> None:
    """Have the kernel reset the connection: a plain close would look like a clean end."""
    raw: socket.socket | None = transport.get_extra_info("socket")
    if (
        transport.is_closing()
        or raw is None
        or raw.family not in (socket.AF_INET, socket.AF_INET6)
        or raw.fileno() < 0
    ):
        return
    # uvloop hands out a stand-in; the descriptor is the socket's own.
    with socket.socket(fileno=os.dup(raw.fileno())) as own, contextlib.suppress(OSError):
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
