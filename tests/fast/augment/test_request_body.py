"""The body of a request, while it is read and once it has passed."""

from starlette.types import Message

from aileron_core.server.augment.exchange import RequestBody
from aileron_core.server.shares import Shares


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
