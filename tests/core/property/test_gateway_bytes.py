"""Whatever a service answers, and whatever goes through the gateway: bounded, as it is, and the next one is fine."""

import asyncio
import contextlib
import gzip
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
import uvloop
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from aileron_core.clock import SystemClock
from aileron_core.connectors.http import client as http_client
from aileron_core.connectors.http.call import OutgoingCall
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest, OutgoingResponse
from aileron_core.connectors.protocol import Route
from aileron_core.errors import CapabilityDenied, NetworkError, ResourceLimitExceeded
from tests.core.server.gateway.harness import Gateway, Seen, passing, read_chunks, read_head
from tests.support.making import cut

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


@dataclass(frozen=True)
class Message:
    """Header lines, the body in pieces, and how its end is told."""

    lines: list[bytes]
    pieces: list[bytes]
    chunked: bool = field(kw_only=True)

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


ODD = [b"X: \xff\t\x80", b"X-API-Key: y", b"x-api-key: z", b"aCCept: */*", b"Cookie: c"]
TWICE = [b"Set-Cookie: a", b"set-cookie: b", b"Content-Encoding: gzip", b"Date: yesterday"]


@example(
    (b"POST", b'/v1/%00"<>\\^`{|}~?a=%2F..&&x', Message(ODD, [b"\0\r\n\r\n"], chunked=True)),
    (599, b"\xff", Message(TWICE, [b"0\r\n\r\n", b"HTTP/1.1 200"], chunked=True)),
)
@given(st.tuples(METHODS, PATHS, MESSAGES), st.tuples(STATUSES, REASONS, MESSAGES))
def test_what_goes_in_comes_out(
    running: Running, request_: tuple[bytes, bytes, Message], response: tuple[int, bytes, Message]
) -> None:
    """Each byte of method, target, header lines in order, body, status, reason, chunks."""
    (method, target, asked), (status, reason, answered) = request_, response

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
        assert (seen.lines[1:], seen.body) == ([*asked.lines, asked.framing], asked.body)
        assert re.fullmatch(rb"Host: 127\.0\.0\.1:\d+", seen.lines[0])
        sent = bytes(gateway.upstream.raw[before:])
        assert client.token not in sent
        client.hang_up()
        event(f"{'chunks' if asked.chunked else 'length'} up, {len(answered.pieces)} pieces down")

    running.runner.run(one())


MAX_BODY = 250
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"


class Babbler:
    """A service that answers every connection with the pieces it is told, and then hangs up.

    With a pause it sends one piece after the other that far apart, for as long as anybody listens.
    """

    def __init__(self) -> None:
        self.says: list[bytes] = []
        self.pause = 0.0
        self.keeps = False
        """Keep a connection after the answer, and hang up once the next request has come."""
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer, contextlib.suppress(ConnectionError):
                asked = peer.recv(65536)
                if self._ended.is_set():
                    return
                if not asked:  # its time was over before it had asked
                    continue
                # Taken now: with the last piece the next example begins, and sets its own.
                says, pause, keeps = self.says, self.pause, self.keeps
                self.keeps = False
                for piece in says:
                    peer.sendall(piece)
                    if pause:
                        self._ended.wait(pause)
                if keeps:
                    peer.recv(65536)

    def close(self) -> None:
        self._ended.set()
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._thread.join()
        self._listener.close()


@pytest.fixture(scope="module")
def babbler() -> Iterator[Babbler]:
    service = Babbler()
    yield service
    service.close()


@pytest.fixture(scope="module")
def outgoing(babbler: Babbler) -> Iterator[OutgoingClient]:
    route = Route(host="api.example:443", address="127.0.0.1", port=babbler.port)
    with pytest.MonkeyPatch.context() as patch:
        # Longer than this machine may stand still between two requests.
        patch.setattr(http_client, "_KEEPALIVE_SECONDS", 60.0)
        client = OutgoingClient(routes=[route])
    yield client
    client.close()


def send_once(
    client: OutgoingClient, seconds: float = 20.0, method: str = "GET"
) -> OutgoingResponse | str:
    """Return the answer, or the words of the failure, which quote nothing of the request."""
    clock = SystemClock()
    exchange = OutgoingCall(clock, clock.monotonic() + seconds, lambda _method, _place: None)
    request = OutgoingRequest(method=method, url="https://api.example/s3cret")
    try:
        answer = client.send(request, exchange, allowed=["api.example:443"], max_body=MAX_BODY)
    except (NetworkError, CapabilityDenied, ResourceLimitExceeded) as error:
        words = error.message
    else:
        assert 200 <= answer.status <= 999
        assert len(answer.body) <= MAX_BODY
        return answer
    assert words
    assert "s3cret" not in words
    return words


def body_of(answer: OutgoingResponse | str) -> bytes:
    assert isinstance(answer, OutgoingResponse), answer
    return answer.body


BOMB = gzip.compress(bytes(1_000_000))[:MAX_BODY]
OK, FOUND = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
CHUNKED, LENGTH = b"Transfer-Encoding: chunked\r\n", b"Content-Length: "
HEADS = st.sampled_from([
    b"", OK, OK + b"Connection: close\r\n\r\n", OK + LENGTH + b"5\r\n\r\n",
    OK + LENGTH + b"5\r\n" + LENGTH + b"6\r\n\r\n", OK + LENGTH + b"-1\r\n\r\n",
    OK + LENGTH + b"9" * 5000 + b"\r\n\r\n", OK + CHUNKED + b"\r\n",
    OK + CHUNKED + LENGTH + b"3\r\n\r\n", OK + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n",
    OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", FOUND, FOUND + b"https://api.example/",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n", b"HTTP/1.1 999 \xff\r\nX: ",
])  # fmt: skip
TAILS = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.integers(0, 400), st.binary(max_size=50)).map(lambda p: b"%x\r\n%s\r\n0\r\n\r\n" % p),
    st.text(max_size=40).map(lambda text: text.encode() + b"\r\n\r\n"),
    st.just(BOMB),
)  # fmt: skip


@given(HEADS, TAILS, st.lists(st.integers(0, 60), max_size=3))
@example(FOUND, b"//[\r\n\r\n", [])
@example(FOUND, b"\xff\r\n\r\n", [])
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"ffffffffffffffff\r\nx", [])
@example(b"HTTP/1.1 200 OK\r\n", b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", [])
@example(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n" * 50_000 + b"\r\n", [])
@example(b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000, b"HTTP/1.1 200 OK\r\n\r\n", [])
def test_any_answer_of_a_service_is_a_response_or_an_error_of_ours(
    babbler: Babbler, outgoing: OutgoingClient, head: bytes, tail: bytes, sizes: list[int]
) -> None:
    """Bounded, with a status, or a failure that names host and kind; and the next answer is whole."""
    babbler.pause = 0.0
    babbler.says = [*filter(None, cut(head + tail, sizes))]
    event("failed" if isinstance(send_once(outgoing), str) else "answered")
    babbler.says = [GOOD]
    assert body_of(send_once(outgoing)) == b"good"


@given(st.binary(max_size=MAX_BODY) | st.just(BOMB), st.sampled_from([b"gzip", b"deflate", b"br"]))
def test_what_was_packed_comes_back_packed(
    babbler: Babbler, outgoing: OutgoingClient, body: bytes, coding: bytes
) -> None:
    """Nothing unfolds behind the count: the body is the bytes that came."""
    babbler.pause = 0.0
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    babbler.says = [head % (coding, len(body)) + body]
    assert body_of(send_once(outgoing)) == body


@given(HEADS, TAILS)
@settings(max_examples=max(5, settings.default.max_examples // 20))  # each takes its limit
@example(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", b"x" * 200)
def test_a_trickle_ends(
    babbler: Babbler, outgoing: OutgoingClient, head: bytes, tail: bytes
) -> None:
    """A byte now and then keeps nobody longer than the limit."""
    babbler.says = [bytes([byte]) for byte in head + tail]
    babbler.pause = 0.01
    begun = time.monotonic()
    send_once(outgoing, seconds=0.1)
    assert time.monotonic() - begun < 15  # the limit, and a busy machine


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("HEAD", True), ("POST", False)])
def test_a_kept_connection_that_the_service_ends_is_no_failure_of_what_only_reads(
    babbler: Babbler, outgoing: OutgoingClient, method: str, again: bool
) -> None:
    """It is asked again on a new connection; what may change something is not."""
    babbler.pause = 0.0
    babbler.says = [b"HTTP/1.1 204 No Content\r\n\r\n"]
    send_once(outgoing)  # served after everybody who gave up before, so that the next one is kept
    babbler.keeps = True
    assert isinstance(send_once(outgoing), OutgoingResponse)
    assert isinstance(send_once(outgoing, method=method), OutgoingResponse) is again
