"""Merges an old-era session's notifications of a changed list into one, and ends open streams."""

import asyncio

from mcp.server.session import ServerSession
from starlette.types import Message, Receive

from aileron_core.tasks import spawn


class Subscriber:
    """One old-era session; at most one list change is on its way, later ones are folded into one."""

    __slots__ = ("_again", "_busy", "_session")

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._busy = False
        self._again = False

    def notify(self) -> None:
        """Announce that the tool list changed; returns at once."""
        self._again = True
        if not self._busy:
            self._busy = True
            spawn(self._send(), name="mcp list_changed")

    async def _send(self) -> None:
        # A client that does not read its stream blocks this task and nothing else.
        try:
            while self._again:
                self._again = False
                await self._session.send_tool_list_changed()
        finally:
            self._busy = False


def disconnect_when(receive: Receive, closing: asyncio.Event) -> Receive:
    """Wrap *receive* of an open stream: once *closing* is set, it reports a disconnected client."""

    async def inbound() -> Message:
        message = spawn(_message(receive), name="mcp receive")
        stop = spawn(closing.wait(), name="mcp closing")
        try:
            await asyncio.wait([message, stop], return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else {"type": "http.disconnect"}
        finally:
            message.cancel()
            stop.cancel()

    return inbound


async def receive_empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def discard(_message: Message) -> None:
    """Send nothing."""


async def _message(receive: Receive) -> Message:
    return await receive()
