"""The body of an agent's request: read whole to be looked at, and received once more where it only passes."""

import contextlib
from collections.abc import Generator

from starlette.types import Message, Receive

from aileron_core.server.gateway.providers import GatewayError


class BufferedBodies:
    """The requests that are being answered, with the model's answers to them: at most *most* bytes in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    @contextlib.contextmanager
    def body(self, receive: Receive, most: int) -> Generator["RequestBody"]:
        """Hold one body, of at most *most* bytes, while entered."""
        held = RequestBody(self, receive, most)
        try:
            yield held
        finally:
            self._bytes -= held.size

    def add(self, size: int) -> None:
        """Count *size* more bytes.

        Raises:
            GatewayError: they are too many.
        """
        if self._bytes + size > self._most:
            raise GatewayError(
                "too_many",
                "The console holds too many large requests and answers. Try again later.",
            )
        self._bytes += size


class RequestBody:
    """Reads one body."""

    def __init__(self, bodies: BufferedBodies, receive: Receive, most: int) -> None:
        self._bodies = bodies
        self._receive = receive
        self._most = most
        self._replayed = False
        self._more = True
        self.data = bytearray()
        self.size = 0
        """Bytes that are held for it."""
        self.is_gone = False
        """The agent hung up before it had sent all of it."""

    async def read(self) -> bool:
        """Return whether all of it was read: it was sent, and is not too long.

        Raises:
            GatewayError: the console holds too much already.
        """
        while self._more and len(self.data) <= self._most:
            message = await self._receive()
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
            GatewayError: the console holds too much already.
        """
        self._bodies.add(size)
        self.size += size

    async def replay(self) -> Message:
        """Receive the request from its beginning; what was read is kept no longer."""
        if self._replayed:
            return await self._receive()
        self._replayed = True
        data, self.data = bytes(self.data), bytearray()
        return {"type": "http.request", "body": data, "more_body": self._more}
