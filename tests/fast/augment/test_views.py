"""What an agent sees of an answer that ends early, and how long its request is kept."""

import asyncio
from typing import Any, cast

from starlette.types import Message

from aileron_core.models import CHAT_COMPLETIONS
from aileron_core.server.augment.catalogue import Offer
from aileron_core.server.augment.exchange import RequestBody
from aileron_core.server.augment.views import StreamView, WholeView
from aileron_core.server.shares import Shares


class _Begun:
    """An answer whose head and part of whose body were written."""

    begun = True
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_no_second_head_is_written_into_an_answer() -> None:
    """The agent would read it as the answer to its next request; anything but `abort` fails here."""
    client = _Begun()
    view = WholeView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    view.fail("It took too long.", 400, b"Bad Request", "invalid_request_error")
    assert client.aborted


class _Full:
    """An agent that has not read what was written so far, and then has."""

    begun = True
    has_room = False

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.wrote = asyncio.Event()

    def write_now(self, data: bytes) -> None:
        self.written.append(data)
        self.wrote.set()


async def test_signs_of_life_do_not_pile_up_before_an_agent_that_does_not_read() -> None:
    """A call may be held for minutes, and its stream for an hour."""
    client = _Full()
    view = StreamView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    async with view.kept_alive(0):
        for _ in range(100):
            await asyncio.sleep(0)
        assert client.written == []
        client.has_room = True
        await client.wrote.wait()
    assert client.written[0] == b": keep-alive\n\n"


async def test_a_body_that_was_passed_on_is_kept_no_longer() -> None:
    """The answer to it may go on for an hour, and its bytes are not counted any more."""
    pieces = [b"ab", b"c"]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    with RequestBody(Shares(20), "a", receive, 10) as body:
        assert await body.read()
    assert await body.replay() == {"type": "http.request", "body": b"abc", "more_body": False}
    assert body.data == b""
