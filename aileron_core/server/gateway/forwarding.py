"""Forwarding one request, and each part of the response as it arrives; which headers are not passed on.

No task runs between the two connections: a read of the one is a write of the other.
"""

import asyncio
import logging
from typing import Literal, Protocol, TypeAlias

from starlette.types import Receive

from aileron_core.credentials.upstreams import Upstream
from aileron_core.server.gateway.client import Framing, UpstreamConnection
from aileron_core.server.gateway.client_request import ClientRequest
from aileron_core.server.gateway.providers import Header
from aileron_core.sessions.traffic import GatewayRequest, TrafficMeter

_log = logging.getLogger(__name__)


class AnswerCopy(Protocol):
    """Takes a copy of one answer after it was passed on. Nothing that it does comes back to the stream."""

    def begin(self, status: int, headers: list[Header]) -> bool:
        """Take the head; return whether the body is wanted."""
        ...

    def take(self, data: bytes) -> None: ...

    def end(self, outcome: str) -> None:
        """Note how the answer ended; nothing comes after it."""
        ...


class Inspector(Protocol):
    """What `aileron_core.server.inspection` is to the gateway."""

    def copy_of(self, session_id: str, method: bytes, path: bytes) -> AnswerCopy | None:
        """Return the copy of a request's answer; None if such an answer has no tool calls."""
        ...

    def close(self) -> None: ...


class SafeCopy:
    """A copy whose failures, whatever they are, stay its own: it is dropped, and the stream goes on."""

    def __init__(self, copy: AnswerCopy) -> None:
        self._copy: AnswerCopy | None = copy

    def begin(self, status: int, headers: list[Header]) -> bool:
        try:
            return self._copy is not None and self._copy.begin(status, headers)
        except Exception as error:  # noqa: BLE001 - nothing may come back to the stream
            self._drop(error)
            return False

    def take(self, data: bytes) -> None:
        try:
            if self._copy is not None:
                self._copy.take(data)
        except Exception as error:  # noqa: BLE001
            self._drop(error)

    def end(self, outcome: str) -> None:
        try:
            if self._copy is not None:
                self._copy.end(outcome)
        except Exception as error:  # noqa: BLE001
            self._drop(error)

    def _drop(self, error: Exception) -> None:
        self._copy = None
        # Type only: the message may quote what passed.
        _log.warning("inspecting a model's answer failed with %s", type(error).__name__)


def safe_copy(inspector: Inspector, session_id: str, method: bytes, path: bytes) -> SafeCopy | None:
    """Return the copy of a request's answer; None if such an answer has no tool calls."""
    copy = inspector.copy_of(session_id, method, path)
    return SafeCopy(copy) if copy is not None else None


Outcome: TypeAlias = Literal["whole", "stale", "unanswered", "broken", "gone", "switched"]
"""How it ended: the answer is whole; a kept connection had died unnoticed; there was no answer;
it broke off half-way; the client hung up or was cut off; another protocol took over."""

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"upgrade",
    }
)
"""Not passed on (RFC 9110, 7.6.1), besides what Connection names. Transfer-Encoding and Trailer
belong to the body's framing, which stays as it was."""
_END = b"0\r\n"


def request_head(
    client: ClientRequest, upstream: Upstream, target: bytes, headers: list[Header]
) -> bytes:
    """Return the request head for the upstream: unchanged but for Host and headers meant for us.

    Args:
        upstream: whose name stands in Host.
        target: path and query behind our prefix.
        headers: the client's, with the provider's key where it is to carry one.
    """
    ended = _dropped(headers)
    if client.upgrade:
        ended -= {b"connection", b"upgrade"}
    host = upstream.authority.encode("ascii")
    pieces = [client.method, b" ", upstream.base_path, target, b" HTTP/1.1\r\n"]
    if not any(len(name) == 4 and name.lower() == b"host" for name, _ in headers):
        pieces += (b"Host: ", host, b"\r\n")
    for name, value in headers:
        lower = name.lower()
        if lower not in ended:
            pieces += (name, b": ", host if lower == b"host" else value, b"\r\n")
    pieces.append(b"\r\n")
    return b"".join(pieces)


def passed_headers(headers: list[Header]) -> list[Header]:
    """Return those of an answer that are not of the connection alone."""
    ended = _dropped(headers)
    return [each for each in headers if each[0].lower() not in ended]


def _dropped(headers: list[Header]) -> frozenset[bytes]:
    found: set[bytes] = set()
    for name, value in headers:
        if len(name) == 10 and name.lower() == b"connection":
            found.update(token.strip().lower() for token in value.split(b","))
    # `Connection` may not remove these: without them the message has no length, or no host.
    found -= {b"host", b"content-length", b"transfer-encoding"}
    return _HOP_BY_HOP | found if found else _HOP_BY_HOP


class Forwarding:
    """The answer of one request, from an `UpstreamConnection` to a `ClientRequest`."""

    def __init__(
        self, client: ClientRequest, passing: GatewayRequest, traffic: TrafficMeter
    ) -> None:
        self._client = client
        self.request = passing
        self._traffic = traffic
        self._connection: UpstreamConnection | None = None
        self._pieces: list[bytes] = []
        self._bytes_received = 0
        self._chunked = False
        self.head_sent = False
        self._sent_whole = False
        self._reusable = False
        self.rest = b""
        """What came behind the head of a 101."""
        self.copy: SafeCopy | None = None
        """Takes what was passed on, where model traffic is inspected."""
        self._copied: list[bytes] = []
        self.done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def attach(self, connection: UpstreamConnection) -> None:
        """Take the answer of the request that is written to *connection* next."""
        self._connection = connection
        self._sent_whole = False
        connection.expect_response(self, bodiless=self._client.method == b"HEAD")
        if self._client.connection.client_is_full:
            connection.pause_reading()

    def send(self, head: bytes) -> None:
        """Send a request without a body."""
        if self._connection is not None:
            self._connection.write(head)
            self._sent_whole = True

    async def send_with_body(self, head: bytes, receive: Receive, *, chunked: bool) -> None:
        """Send a request whose body is still coming, at the pace that the upstream takes it.

        Args:
            head: goes with the first piece.
        """
        connection = self._connection
        assert connection is not None
        waiting, more = [head], True
        while more and not self.done.done():
            message = await receive()
            if message["type"] != "http.request":
                return  # the client is gone, or the whole answer came before the request was sent
            body: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            if chunked and body:
                waiting += (b"%x\r\n" % len(body), body, b"\r\n")
            else:
                waiting.append(body)
            if chunked and not more:
                waiting.append(b"0\r\n\r\n")
            connection.write(b"".join(waiting))
            self._traffic.add_sent(self.request, len(body))
            waiting.clear()
            await connection.drain()
        self._sent_whole = not more

    @property
    def reusable(self) -> bool:
        """Whether the upstream's connection can carry another request."""
        return self._reusable and self._sent_whole

    @property
    def client_disconnected(self) -> bool:
        return self.done.done() and self.done.result() == "gone"

    def prepare_retry(self) -> None:
        """Start over: a kept-alive connection had closed before the request reached the upstream."""
        self._connection = None
        self.done = asyncio.get_running_loop().create_future()

    def cut(self) -> None:
        """End both sides at once."""
        if self._settle("gone"):
            if self._connection is not None:
                self._connection.drop()
            self._client.abort_response(at_once=True)

    def _settle(self, outcome: Outcome) -> bool:
        if self.done.done():
            return False
        self.done.set_result(outcome)
        if self.copy is not None and outcome != "stale":
            self.copy.end(outcome)
            self.copy = None
        return True

    # The upstream's side

    def head(self, status: int, reason: bytes, headers: list[Header], framing: Framing) -> None:
        client = self._client
        old = client.version == "1.0"
        self._chunked = framing in ("chunked", "close")
        if old and self._chunked:
            self._chunked = False
            client.close_after()
        ended = _dropped(headers)
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, reason)]
        for name, value in headers:
            lower = name.lower()
            if lower in ended or (old and lower == b"transfer-encoding"):
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if framing == "close" and self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if not client.keeps_alive:
            lines.append(b"Connection: close\r\n")
        lines.append(b"\r\n")
        self._pieces += lines
        self.head_sent = True
        self.request.status = status
        client.start()
        if self.copy is not None and not self.copy.begin(status, headers):
            self.copy = None

    def switched(self, reason: bytes, headers: list[Header], rest: bytes) -> None:
        """Pass a 101 on as it is, if that was asked for."""
        if not self._client.upgrade:
            self.broken(began=True)
            if self._connection is not None:
                self._connection.drop()
            return
        lines = [b"HTTP/1.1 101 %b\r\n" % reason]
        lines += [b"%b: %b\r\n" % each for each in headers]
        lines.append(b"\r\n")
        self._client.start()
        self._client.write(lines)
        self.head_sent = True
        self.request.status = 101
        self.rest = rest
        self._settle("switched")

    def body(self, data: bytes) -> None:
        self._bytes_received += len(data)
        if self.copy is not None:
            self._copied.append(data)
        if self._chunked:
            self._pieces += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._pieces.append(data)

    def flush(self) -> None:
        """Pass on what one read brought."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._client.write(pieces)
        if self._bytes_received:
            self._traffic.add_received(self.request, self._bytes_received)
            self._bytes_received = 0
        if self._copied and self.copy is not None:
            copied, self._copied = self._copied, []
            self.copy.take(b"".join(copied))

    def end(self, trailers: list[Header], *, reusable: bool) -> None:
        self._reusable = reusable
        if self._chunked:
            lines = [_END, *(b"%b: %b\r\n" % each for each in trailers), b"\r\n"]
            self._client.write(lines)
        if self._settle("whole"):
            self._client.finish()

    def broken(self, *, began: bool) -> None:
        """Break the answer off too, unless none has begun."""
        connection = self._connection
        if self.head_sent:
            if self._settle("broken"):
                self._client.abort_response(at_once=self._client.version == "1.0")
        elif not began and connection is not None and connection.used:
            self._settle("stale")
        else:
            self._settle("unanswered")
        # The reader of a body that is still being sent would otherwise notice only at the next piece.
        self._client.wake_reader()

    # The client's side

    def client_full(self) -> None:
        """Let the upstream wait too."""
        if self._connection is not None:
            self._connection.pause_reading()

    def client_ready(self) -> None:
        if self._connection is not None:
            self._connection.resume_reading()

    def client_gone(self) -> None:
        """Hang up on the upstream as well."""
        self._client.mark_disconnected()
        if self._settle("gone") and self._connection is not None:
            self._connection.drop()
