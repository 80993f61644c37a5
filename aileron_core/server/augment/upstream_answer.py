"""Sending requests of ours to the model, on the gateway's own connections and with its keys, and reading its answers.

An answer comes as pieces, to be read at the reader's pace.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field

from aileron_core.errors import ModelFormatError
from aileron_core.server.gateway.augmenting import UNRECORDED, GatewaySide
from aileron_core.server.gateway.client import Framing, UpstreamConnection
from aileron_core.server.gateway.forwarding import request_head
from aileron_core.server.gateway.key_injection import LOCKED, StreamMask, is_encoded
from aileron_core.server.gateway.providers import GatewayError, Header
from aileron_core.sessions.traffic import GatewayRequest, TrafficMeter

_MOST_WAITING = 256 * 1024
"""Bytes that were received and not read yet; above it the upstream waits."""
_AGENTS_ONLY = frozenset(
    (
        b"content-length",
        b"transfer-encoding",
        b"trailer",
        b"expect",
        b"accept-encoding",
        b"range",
        b"if-range",
        b"idempotency-key",
        b"x-idempotency-key",
    )
)
"""Headers that are true of the agent's request, and not of ours."""


class AnswerBroken(Exception):
    """The model's answer broke off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead:
    """Status and headers of an answer."""

    status: int
    reason: bytes
    headers: tuple[Header, ...]

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events."""
        kinds = [value for name, value in self.headers if name.lower() == b"content-type"]
        return any(value.lower().startswith(b"text/event-stream") for value in kinds)


@dataclass(slots=True, kw_only=True, eq=False)
class UpstreamAnswer:
    """Receives the answer of one request, without the key that the request carried."""

    connection: UpstreamConnection
    passing: GatewayRequest
    traffic: TrafficMeter
    mask: StreamMask | None
    """Removes that key; None where it carried none."""
    address: str
    """The upstream's, for a sentence."""
    hold: Callable[[int], None]
    """Counts what is read; raises GatewayError where that is too much."""
    ended: bool = False
    reusable: bool = False
    count: int = 0
    """Bytes of the body that were read."""
    _received: int = 0
    """Bytes that were received, and are not on record yet."""
    _pieces: deque[bytes] = field(default_factory=deque[bytes])
    _size: int = 0
    _head: AnswerHead | None = None
    _fault: GatewayError | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: bool = False

    async def whole_head(self) -> AnswerHead:
        """Return the head once it is there.

        Raises:
            GatewayError: there is no answer, or none that can be read.
        """
        while self._head is None and self._fault is None:
            await self._more()
        if self._fault is not None:
            raise self._fault
        assert self._head is not None
        return self._head

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes.

        Raises:
            AnswerBroken: it broke off.
            GatewayError: the console holds too much already.
        """
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._size -= len(piece)
                self.count += len(piece)
                self.hold(len(piece))
                if self._size <= _MOST_WAITING and not self.ended:
                    self.connection.resume_reading()
                yield piece
            if self._broken:
                raise AnswerBroken
            if self.ended:
                return
            await self._more()

    async def whole(self, most: int) -> bytes:
        """Return the whole body.

        Raises:
            AnswerBroken: it broke off.
            ModelFormatError: it is longer than *most*.
        """
        found = bytearray()
        async for piece in self.pieces():
            found += piece
            if len(found) > most:
                raise ModelFormatError(f"The model's answer is over {most} bytes.")
        return bytes(found)

    async def _more(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # From the connection, whose `ResponseHandler` it is

    def head(self, status: int, reason: bytes, headers: list[Header], framing: Framing) -> None:
        if framing != "none" and is_encoded(headers):
            self._refuse(
                "compressed its answer, although it was asked not to. Such an answer cannot be read, so it "
                "was not passed on."
            )
            return
        if (mask := self.mask) is not None:
            reason = mask.mask(reason)
            headers = [(mask.mask(name), mask.mask(value)) for name, value in headers]
        self._head = AnswerHead(status=status, reason=reason, headers=tuple(headers))
        self.passing.status = status

    def switched(self, reason: bytes, headers: list[Header], rest: bytes) -> None:
        """Refuse a 101, which nobody asked for."""
        del reason, headers, rest
        self._refuse("switched to another protocol, which nobody asked for.")

    def _refuse(self, message: str) -> None:
        self._fault = GatewayError("unreachable", f"{self.address} {message}")
        self.connection.drop()
        self._changed.set()

    def body(self, data: bytes) -> None:
        self._received += len(data)
        self._take(data if self.mask is None else self.mask.feed(data))

    def _take(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self._size += len(data)

    def flush(self) -> None:
        count, self._received = self._received, 0
        if count:
            self.traffic.add_received(self.passing, count)
        self._changed.set()
        if self._size > _MOST_WAITING:
            self.connection.pause_reading()

    def end(self, trailers: list[Header], *, reusable: bool) -> None:
        del trailers  # a body that is put together has none
        if self.mask is not None:
            self._take(self.mask.rest())
        self.ended, self.reusable = True, reusable
        self._changed.set()

    def broken(self, *, began: bool) -> None:
        del began
        if self._head is None:
            self._fault = GatewayError(
                "unreachable", f"{self.address} closed the connection without an answer."
            )
        self._broken = self.ended = True
        self._changed.set()


class Egress:
    """Sends what one request of an agent becomes, each time as a request of its own on record.

    Args:
        hold: see `UpstreamAnswer`.
    """

    def __init__(self, side: GatewaySide, hold: Callable[[int], None]) -> None:
        self._side = side
        self._hold = hold
        self._first: GatewayRequest | None = side.passing

    @contextlib.asynccontextmanager
    async def sent(self, body: bytes) -> AsyncGenerator[UpstreamAnswer, None]:
        """Send *body* with the agent's headers; the answer is read while this is entered.

        Raises:
            GatewayError: it could not be sent.
        """
        side, traffic = self._side, self._side.traffic
        passing, self._first = self._first, None
        is_first = passing is not None
        if passing is None:
            passing = traffic.start_request(
                side.session.session_id, side.provider, "POST", side.path.decode("latin-1")
            )
        try:
            async with self._connected(passing, body) as answer:
                yield answer
        except GatewayError as fault:
            if not is_first:  # of the first one, the gateway says it
                passing.is_own_error, passing.needs_vault = True, fault.kind == "locked"
            raise
        finally:
            if not is_first:
                traffic.end_request(passing)

    @contextlib.asynccontextmanager
    async def _connected(
        self, passing: GatewayRequest, body: bytes
    ) -> AsyncGenerator[UpstreamAnswer, None]:
        side = self._side
        if side.is_locked():
            raise GatewayError("locked", LOCKED)
        if side.traffic.is_full(side.session.session_id):
            raise GatewayError("unavailable", UNRECORDED)
        keyed = side.keyed()
        passing.had_key = keyed is not None
        pool = side.pool if keyed is None else side.keyed_pool
        connection = pool.take_idle(side.upstream) or await pool.open_new(side.upstream)
        answer = UpstreamAnswer(
            connection=connection,
            passing=passing,
            traffic=side.traffic,
            mask=None if keyed is None else StreamMask(keyed.key),
            address=side.upstream.address,
            hold=self._hold,
        )
        try:
            connection.expect_response(answer, bodiless=False)
            headers = _headers(side.client.headers if keyed is None else keyed.headers, body)
            head = request_head(side.client, side.upstream, side.target, headers)
            connection.write(head + body)
            side.traffic.add_sent(passing, len(body))
            await connection.drain()
            yield answer
        finally:
            if answer.ended and answer.reusable:
                pool.give_back(side.upstream, connection)
            else:
                connection.drop()


def _headers(headers: list[Header], body: bytes) -> list[Header]:
    return [
        *(each for each in headers if each[0].lower() not in _AGENTS_ONLY),
        (b"Content-Length", b"%d" % len(body)),
        (b"Accept-Encoding", b"identity"),
    ]
