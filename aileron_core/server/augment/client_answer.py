"""The one answer that an agent gets, written to its connection."""

import asyncio
from collections.abc import Callable

from aileron_core.server.augment.upstream_answer import AnswerHead
from aileron_core.server.gateway.client_request import ClientRequest
from aileron_core.server.gateway.forwarding import passed_headers

_OF_THE_BODY = frozenset((b"content-length", b"transfer-encoding", b"trailer"))


class ClientAnswer:
    """Writes one answer, and knows whether the agent is still there: the connection's listener."""

    def __init__(self, client: ClientRequest) -> None:
        self._client = client
        self._room = asyncio.Event()
        self._room.set()
        self._chunked = False
        self.on_gone: Callable[[], None] | None = None
        """Called at once where the agent hangs up."""
        self.begun = False
        self.finished = False
        self.gone = asyncio.Event()
        """Set once the agent has hung up, or was cut off."""

    def begin(self, head: AnswerHead, length: int | None = None) -> None:
        """Write *head*; a body of *length* bytes follows, or one of any length."""
        client = self._client
        has_any_length = length is None and head.status not in (204, 304)
        self._chunked = has_any_length and client.version != "1.0"
        if has_any_length and not self._chunked:
            client.close_after()
        lines = [b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in passed_headers(list(head.headers))
            if name.lower() not in _OF_THE_BODY
        ]
        if length is not None:
            lines.append(b"Content-Length: %d\r\n" % length)
        elif self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if not client.is_complete:
            client.close_after()
        if not client.keeps_alive:
            lines.append(b"Connection: close\r\n")
        client.start()
        client.write([*lines, b"\r\n"])
        self.begun = True

    async def write(self, data: bytes) -> None:
        """Write a piece of the body, and wait until there is room for more."""
        if data and not self.gone.is_set():
            self.write_now(data)
            await self._room.wait()

    def write_now(self, data: bytes) -> None:
        if self.gone.is_set() or self.finished:
            return
        self._client.write([b"%x\r\n" % len(data), data, b"\r\n"] if self._chunked else [data])

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def finish(self) -> None:
        """End the answer as whole."""
        if self.gone.is_set() or self.finished:
            return
        self.finished = True
        if self._chunked:
            self._client.write([b"0\r\n\r\n"])
        self._client.finish()

    def abort(self) -> None:
        """End it so that its reader knows that it is not whole."""
        if not self.gone.is_set() and not self.finished:
            self._leave()
            self._client.abort_response(at_once=True)

    # From the connection

    def client_full(self) -> None:
        self._room.clear()

    def client_ready(self) -> None:
        self._room.set()

    def client_gone(self) -> None:
        self._client.mark_disconnected()
        self._leave()

    def _leave(self) -> None:
        if not self.gone.is_set() and self.on_gone is not None:
            self.on_gone()
        self.gone.set()
        self._room.set()
