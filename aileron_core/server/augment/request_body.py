"""The body of an agent's request: read whole to be looked at, and received once more where it only passes."""

from starlette.types import Message, Receive


class RequestBody:
    """Reads a body of at most *most* bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._messages: list[Message] = []
        self.data = b""
        self.is_gone = False
        """The agent hung up before it had sent all of it."""

    async def read(self) -> bool:
        """Return whether all of it was read: it was sent, and is not too long."""
        pieces: list[bytes] = []
        size = 0
        while size <= self._most:
            message = await self._receive()
            self._messages.append(message)
            if message["type"] != "http.request":
                self.is_gone = True
                return False
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if not message.get("more_body", False):
                self.data = b"".join(pieces)
                return True
        return False

    async def replay(self) -> Message:
        """Receive the request from its beginning."""
        return self._messages.pop(0) if self._messages else await self._receive()
