"""One answer of a model, as pieces to be read at the reader's pace."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from aileron_core.errors import ModelFormatError
from aileron_core.server.gateway.client import Framing, UpstreamConnection
from aileron_core.server.gateway.key_injection import StreamMask, is_encoded
from aileron_core.server.gateway.providers import GatewayError, Header
from aileron_core.sessions.traffic import GatewayRequest, TrafficMeter

_MOST_WAITING = 256 * 1024
"""Bytes that were received and not read yet; above it the upstream waits."""


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


class UpstreamAnswer:
    """Receives the answer of one request, without the key that the request carried.

    Args:
        mask: removes that key; None where it carried none.
        address: the upstream's, for a sentence.
        hold: counts what is read; raises GatewayError where that is too much.
    """

    def __init__(
        self,
        connection: UpstreamConnection,
        passing: GatewayRequest,
        traffic: TrafficMeter,
        mask: StreamMask | None,
        address: str,
        hold: Callable[[int], None],
    ) -> None:
        self._connection = connection
        self._passing = passing
        self._traffic = traffic
        self._mask = mask
        self._address = address
        self._hold = hold
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._head: AnswerHead | None = None
        self._fault: GatewayError | None = None
        self._changed = asyncio.Event()
        self.ended = False
        self._broken = False
        self.reusable = False
        self.count = 0
        """Bytes of the body that were read."""

    async def head(self) -> AnswerHead:
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
                self._hold(len(piece))
                if self._size <= _MOST_WAITING and not self.ended:
                    self._connection.resume_reading()
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

    # From the connection

    def head_received(self, head: AnswerHead) -> None:
        self._head = head
        self._passing.status = head.status

    def head_refused(self, message: str) -> None:
        self._fault = GatewayError("unreachable", f"{self._address} {message}")
        self._connection.drop()
        self._changed.set()

    def take(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self._size += len(data)

    def received(self, count: int) -> None:
        self._traffic.add_received(self._passing, count)

    def wake(self) -> None:
        self._changed.set()
        if self._size > _MOST_WAITING:
            self._connection.pause_reading()

    def end(self, *, reusable: bool) -> None:
        self.ended, self.reusable = True, reusable
        self._changed.set()

    def break_off(self) -> None:
        if self._head is None:
            self._fault = GatewayError(
                "unreachable", f"{self._address} closed the connection without an answer."
            )
        self._broken = self.ended = True
        self._changed.set()

    @property
    def mask(self) -> StreamMask | None:
        return self._mask


class AnswerReceiver:
    """Hands what a connection receives to an `UpstreamAnswer`: the connection's `ResponseHandler`."""

    def __init__(self, answer: UpstreamAnswer) -> None:
        self._answer = answer
        self._mask = answer.mask
        self._count = 0

    def head(self, status: int, reason: bytes, headers: list[Header], framing: Framing) -> None:
        if framing != "none" and is_encoded(headers):
            self._answer.head_refused(
                "compressed its answer, although it was asked not to. Such an answer cannot be read, so it "
                "was not passed on."
            )
            return
        mask = self._mask
        if mask is not None:
            reason = mask.mask(reason)
            headers = [(mask.mask(name), mask.mask(value)) for name, value in headers]
        self._answer.head_received(AnswerHead(status=status, reason=reason, headers=tuple(headers)))

    def switched(self, reason: bytes, headers: list[Header], rest: bytes) -> None:
        """Refuse a 101, which nobody asked for."""
        del reason, headers, rest
        self._answer.head_refused("switched to another protocol, which nobody asked for.")

    def body(self, data: bytes) -> None:
        self._count += len(data)
        self._answer.take(data if self._mask is None else self._mask.feed(data))

    def flush(self) -> None:
        count, self._count = self._count, 0
        if count:
            self._answer.received(count)
        self._answer.wake()

    def end(self, trailers: list[Header], *, reusable: bool) -> None:
        del trailers  # a body that is put together has none
        if self._mask is not None:
            self._answer.take(self._mask.rest())
        self._answer.end(reusable=reusable)

    def broken(self, *, began: bool) -> None:
        del began
        self._answer.break_off()
