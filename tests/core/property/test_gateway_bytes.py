"""Any request and any answer that HTTP allows go through the gateway as they are."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import uvloop
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.core.server.gateway.harness import Gateway, Seen, passing, read_chunks, read_head

TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
OURS = {
    b"host", b"origin", b"connection", b"content-length", b"transfer-encoding", b"expect",
    b"upgrade", b"te", b"keep-alive", b"proxy-connection", b"proxy-authorization",
    b"proxy-authenticate", b"trailer",
}  # fmt: skip
"""Names with a meaning for one hop or for the message's end: each has a test of its own."""
VALUE = bytes([9, *range(32, 127), *range(128, 256)])

METHODS = st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"PROPFIND"])
PATHS = st.binary(max_size=60).map(
    lambda raw: b"/" + bytes(33 + byte % 94 for byte in raw).replace(b"#", b"%23")
)


def _bytes_of(alphabet: bytes, **size: int) -> st.SearchStrategy[bytes]:
    return st.binary(**size).map(lambda raw: bytes(alphabet[each % len(alphabet)] for each in raw))


NAMES = _bytes_of(TOKEN, min_size=1, max_size=20).filter(lambda name: name.lower() not in OURS)
VALUES = _bytes_of(VALUE, min_size=1, max_size=60).map(lambda v: v.strip(b" \t")).filter(bool)
LINES = st.lists(st.tuples(NAMES, VALUES).map(lambda each: each[0] + b": " + each[1]), max_size=8)
PIECES = st.lists(st.binary(min_size=1, max_size=2000), max_size=6)


@dataclass(frozen=True, kw_only=True)
class Message:
    """Header lines, the body in pieces, and how its end is told."""

    lines: list[bytes]
    pieces: list[bytes]
    chunked: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def framing(self) -> bytes:
        if self.chunked:
            return b"tRansfer-Encoding: chunked"
        return b"content-LENGTH: %d" % len(self.body)

    def wire(self, first: bytes) -> bytes:
        head = b"\r\n".join([first, *self.lines, self.framing]) + b"\r\n\r\n"
        if not self.chunked:
            return head + self.body
        chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in self.pieces]
        return head + b"".join(chunks) + b"0\r\n\r\n"


MESSAGES = st.builds(Message, lines=LINES, pieces=PIECES, chunked=st.booleans())
STATUSES = st.integers(200, 599).filter(lambda status: status not in (204, 304))
REASONS = _bytes_of(VALUE.replace(b"\t", b""), max_size=20).map(bytes.strip)


class Running:
    """One gateway for all examples; what the upstream answers next is set before each."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.answer = b""
        self.stack = AsyncExitStack()

    async def begin(self) -> None:
        self.gateway: Gateway = await self.stack.enter_async_context(passing(self._answering))

    async def _answering(
        self, _seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(self.answer)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        made = Running(runner)
        runner.run(made.begin())
        try:
            yield made
        finally:
            runner.run(made.stack.aclose())


@example(
    method=b"POST",
    target=b'/v1/%00"<>\\^`{|}~?a=%2F..&&x',
    asked=Message(
        lines=[b"X: \xff\t\x80", b"X-API-Key: y", b"x-api-key: z", b"aCCept: */*", b"Cookie: c"],
        pieces=[b"\0\r\n\r\n"],
        chunked=True,
    ),
    status=599,
    reason=b"\xff",
    answered=Message(
        lines=[b"Set-Cookie: a", b"set-cookie: b", b"Content-Encoding: gzip", b"Date: yesterday"],
        pieces=[b"0\r\n\r\n", b"HTTP/1.1 200"],
        chunked=True,
    ),
)
@given(
    method=METHODS, target=PATHS, asked=MESSAGES, status=STATUSES, reason=REASONS, answered=MESSAGES
)
def test_what_goes_in_comes_out(
    running: Running,
    method: bytes,
    target: bytes,
    asked: Message,
    status: int,
    reason: bytes,
    answered: Message,
) -> None:
    """Each byte of method, target, header lines in order, body, status, reason, chunks."""

    async def one() -> None:
        gateway = running.gateway
        running.answer = answered.wire(b"HTTP/1.1 %d %b" % (status, reason))
        before = len(gateway.upstream.raw)
        client = await gateway.client()
        first = b"%b /gw/%b%b HTTP/1.1\r\nHost: %b" % (method, client.token, target, client.host)
        client.writer.write(asked.wire(first))
        async with asyncio.timeout(10):
            head = await read_head(client.reader)
            if answered.chunked:
                assert await read_chunks(client.reader) == answered.pieces
            else:
                assert await client.reader.readexactly(len(answered.body)) == answered.body
        lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        assert lines == [b"HTTP/1.1 %d %b" % (status, reason), *answered.lines, answered.framing]
        seen = gateway.upstream.seen[-1]
        assert seen.line == b"%b %b HTTP/1.1" % (method, target)
        assert seen.lines[1:] == [*asked.lines, asked.framing]
        assert seen.body == asked.body
        assert re.fullmatch(rb"Host: 127\.0\.0\.1:\d+", seen.lines[0])
        sent = bytes(gateway.upstream.raw[before:])
        assert client.token not in sent
        client.hang_up()
        event(f"{'chunks' if asked.chunked else 'length'} up, {len(answered.pieces)} pieces down")

    running.runner.run(one())
