"""The body of an agent's request: read whole to be looked at, and received once more where it only passes."""

import asyncio
from dataclasses import dataclass, field

from starlette.types import Message, Receive

from aileron_core.server.gateway.providers import GatewayError
from aileron_core.server.http_protocol import PROGRESS_SECONDS
from aileron_core.server.shares import Shares


@dataclass(slots=True, eq=False)
class RequestBody:
    """Reads one body of a session, of at most *most* bytes, and holds it while it is entered."""

    _shares: Shares
    """Of the bytes of all requests that are being answered, with the model's answers to them."""
    _session_id: str
    _receive: Receive
    _most: int
    _replayed: bool = False
    _more: bool = True
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    """Bytes that are held for it."""
    is_gone: bool = False
    """The agent hung up before it had sent all of it."""

    def __enter__(self) -> "RequestBody":
        return self

    def __exit__(self, *_: object) -> None:
        if self.size:
            self._shares.give_back(self._session_id, self.size)

    async def read(self) -> bool:
        """Return whether all of it was read: it was sent, and is not too long.

        Raises:
            GatewayError: its session holds too much already, or nothing came for a while.
        """
        while self._more and len(self.data) <= self._most:
            try:
                async with asyncio.timeout(PROGRESS_SECONDS):
                    message = await self._receive()
            except TimeoutError:
                raise GatewayError(
                    "timeout",
                    f"Nothing more of the request arrived for {PROGRESS_SECONDS:g} seconds.",
                ) from None
            if message["type"] != "http.request":
                self.is_gone = True
                return False
            piece: bytes = message.get("body", b"")
            self.hold(len(piece))
            self.data += piece
            self._more = message.get("more_body", False)
        return not self._more and len(self.data) <= self._most

    def hold(self, size: int) -> None:
        """Count *size* more bytes that are kept until it is answered.

        Raises:
            GatewayError: its session holds too much already.
        """
        if not self._shares.fits(self._session_id, size):
            raise GatewayError(
                "too_many",
                "This session has too many large requests and answers under way. Try again when one "
                "has ended.",
            )
        self._shares.add(self._session_id, size)
        self.size += size

    async def replay(self) -> Message:
        """Receive the request from its beginning; what was read is kept no longer."""
        if self._replayed:
            return await self._receive()
        self._replayed = True
        data, self.data = bytes(self.data), bytearray()
        return {"type": "http.request", "body": data, "more_body": self._more}
