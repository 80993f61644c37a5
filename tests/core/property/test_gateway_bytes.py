"""Any bytes through gateway, client and relay: bounded, as they are, each request answered once, the next one fine."""

import asyncio
import contextlib
import gzip
import json
import os
import re
import select
import socket
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from tests.fast.property.mcp_messages import FRAMES, deep
from tests.support.impostors import http_answer, scripted_console
from tests.support.making import cut
from tests.support.mcp_harness import NEW, TOKEN, RawRelay, ThreadConsole

TCHAR = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
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


NAMES = _bytes_of(TCHAR, min_size=1, max_size=20).filter(lambda name: name.lower() not in OURS)
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

    gateway: Gateway
    answer = b""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner

    async def answering(self, _: Seen, __: StreamReader, writer: StreamWriter) -> None:
        writer.write(self.answer)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        made, stack = Running(runner), AsyncExitStack()
        made.gateway = runner.run(stack.enter_async_context(passing(made.answering)))
        yield made
        runner.run(stack.aclose())


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
    """A service that answers every connection with the pieces it is told, and then hangs up; and its client.

    With a pause it sends one piece after the other that far apart, for as long as anybody listens.
    """

    client: OutgoingClient

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
    route = Route(host="api.example:443", address="127.0.0.1", port=service.port)
    with pytest.MonkeyPatch.context() as patch:
        # Longer than this machine may stand still between two requests.
        patch.setattr(http_client, "_KEEPALIVE_SECONDS", 60.0)
        service.client = OutgoingClient(routes=[route])
    yield service
    service.client.close()
    service.close()


def send_once(to: Babbler, seconds: float = 20.0, method: str = "GET") -> OutgoingResponse | str:
    """Return the answer, or the words of the failure, which quote nothing of the request."""
    clock = SystemClock()
    exchange = OutgoingCall(clock, clock.monotonic() + seconds, lambda _method, _place: None)
    request = OutgoingRequest(method=method, url="https://api.example/s3cret")
    try:
        answer = to.client.send(request, exchange, allowed=["api.example:443"], max_body=MAX_BODY)
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
def test_no_answer_is_a_fault(babbler: Babbler, head: bytes, tail: bytes, sizes: list[int]) -> None:
    babbler.pause = 0.0
    babbler.says = [*filter(None, cut(head + tail, sizes))]
    event("failed" if isinstance(send_once(babbler), str) else "answered")
    babbler.says = [GOOD]
    assert body_of(send_once(babbler)) == b"good"


@given(st.binary(max_size=MAX_BODY) | st.just(BOMB), st.sampled_from([b"gzip", b"deflate", b"br"]))
def test_what_was_packed_comes_back_packed(babbler: Babbler, body: bytes, coding: bytes) -> None:
    """Nothing unfolds behind the count: the body is the bytes that came."""
    babbler.pause = 0.0
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    babbler.says = [head % (coding, len(body)) + body]
    assert body_of(send_once(babbler)) == body


@given(HEADS, TAILS)
@settings(max_examples=max(5, settings.default.max_examples // 20))  # each takes its limit
@example(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", b"x" * 200)
def test_an_answer_that_trickles_ends_in_time(babbler: Babbler, head: bytes, tail: bytes) -> None:
    babbler.says = [bytes([byte]) for byte in head + tail]
    babbler.pause = 0.01
    begun = time.monotonic()
    send_once(babbler, seconds=0.1)
    assert time.monotonic() - begun < 15  # the limit, and a busy machine


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("HEAD", True), ("POST", False)])
def test_what_only_reads_is_asked_again(babbler: Babbler, method: str, again: bool) -> None:
    """It is asked again on a new connection; what may change something is not."""
    babbler.pause = 0.0
    babbler.says = [b"HTTP/1.1 204 No Content\r\n\r\n"]
    send_once(babbler)  # served after everybody who gave up before, so that the next one is kept
    babbler.keeps = True
    assert isinstance(send_once(babbler), OutgoingResponse)
    assert isinstance(send_once(babbler, method=method), OutgoingResponse) is again


SECONDS = 60.0


class Line:
    """The relay's pipes, with a bound on every wait."""

    def __init__(self, home: Path, *hello: bytes) -> None:
        self._home = home
        self._hello = hello
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self.relay = RawRelay(self._home, AILERON_TOKEN=TOKEN)
        self._rest = b""
        for line in self._hello:
            self.write(line + b"\n")
            if b'"id"' in line:
                self.read()

    def write(self, data: bytes) -> None:
        self.relay.process.stdin.write(data)
        self.relay.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Return the next message, which has to be JSON-RPC."""
        deadline = time.monotonic() + SECONDS
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.relay.process.stdout], [], [], max(0.0, left))
            assert ready, f"no answer within {SECONDS} s"
            data = os.read(self.relay.process.stdout.fileno(), 1 << 16)
            if not data:
                outcome = self.relay.outcome()
                self._begin()  # for the next example
                raise AssertionError(f"the relay ended: {outcome}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message = json.loads(line, parse_constant=_no_json)
        assert message["jsonrpc"] == "2.0", line
        if "method" in message:
            assert isinstance(message["method"], str), line
        else:
            assert ("result" in message) != ("error" in message), line
            if "error" in message:
                assert isinstance(message["error"]["code"], int), line
                assert isinstance(message["error"]["message"], str), line
        return message

    def served(self) -> tuple[Counter[str], Any]:
        """Have one good request served; return the ids answered before, and its result."""
        self._number += 1
        id_ = f"\U0001f6a9 {self._number}"
        self.write(rpc_request("tools/list", id_, _meta=NEW) + b"\n")
        answered: Counter[str] = Counter()
        while (message := self.read()).get("id") != id_ or "method" in message:
            if "method" not in message:
                answered[json.dumps(message["id"])] += 1
        return answered, message["result"]

    def close(self) -> None:
        assert self.relay.end() == (0, "")


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def rpc_request(method: str, id_: Any, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    return json.dumps(message).encode()


@pytest.fixture(scope="module")
def mcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadConsole]:
    running = ThreadConsole(tmp_path_factory.mktemp("fuzz") / "home", hold_seconds=0.0)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(mcp_server: ThreadConsole) -> Iterator[Line]:
    line = Line(mcp_server.home)
    yield line
    line.close()


def owed_by(frame: bytes) -> Counter[str]:
    """Return the ids that a frame names where an answer or an error is owed, one for each."""
    try:
        value = json.loads(frame.decode(), parse_constant=_no_json)
    except (ValueError, RecursionError):
        return Counter()
    found: Counter[str] = Counter()
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict) or "id" not in part:
            continue
        id_ = part["id"]
        asks = isinstance(part.get("method"), str) or not {"result", "error"} & set(part)
        if asks and isinstance(id_, int | str) and not isinstance(id_, bool):
            found[json.dumps(id_)] += 1
    return found


@given(st.lists(FRAMES, min_size=1, max_size=4), st.lists(st.integers(0, 80), max_size=3))
@example([deep(levels) for levels in range(960, 1000)], [])
@example([b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}'], [])
@example([b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1e999}}'], [])
@example([rpc_request("tools/call", 1, name="read_inbox", arguments={"text": "x" * 1_200_000})], [])
@example([b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}'] * 2, [])
def test_each_request_is_answered_once(client: Line, frames: list[bytes], sizes: list[int]) -> None:
    data = b"".join(frame.replace(b"\n", b" ") + b"\n" for frame in frames)
    for size in sizes:  # half frames: the rest comes with another write
        client.write(data[:size])
        data = data[size:]
    client.write(data)
    owed: Counter[str] = Counter()
    for frame in frames:
        owed += owed_by(frame)
    answered, tools = client.served()
    assert tools["tools"]
    # Of these a request may stand, be cancelled, or be too deep to be read.
    standing = (b"subscriptions", b"cancelled", b"[" * 500)
    if any(each in frame for frame in frames for each in standing):
        for id_ in owed:
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            params = {"requestId": json.loads(id_)}
            client.write(json.dumps({**cancel, "params": params}).encode() + b"\n")
        more, _ = client.served()
        assert all(answered[id_] + more[id_] <= owed[id_] for id_ in owed)
        return
    deadline = time.monotonic() + SECONDS
    while any(answered[id_] < owed[id_] for id_ in owed):
        assert time.monotonic() < deadline, (owed, answered)
        more, _ = client.served()
        answered += more
    assert all(answered[id_] == owed[id_] for id_ in owed)


class HostileConsole:
    """Answers each tool call with the bytes it is told; all else properly."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.says = b""
        self.stream = b""
        self.streams = threading.Semaphore(0)

    def answer(self, line: str, _session: str, asked: dict[str, Any]) -> bytes:
        if line.startswith("GET"):
            self.streams.release()
            return self.stream
        if asked.get("method") == "tools/call":
            return self.says
        if "id" not in asked:
            return http_answer(202)
        result = {"tools": [1], "protocolVersion": "2025-11-25", "capabilities": {}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        return http_answer(200, answer, "Mcp-Session-Id: s")


@pytest.fixture(scope="module")
def hostile_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileConsole]:
    console = HostileConsole(tmp_path_factory.mktemp("hostile") / "home")
    with scripted_console(console.home, console.answer):
        yield console


@pytest.fixture(scope="module")
def agent(hostile_console: HostileConsole) -> Iterator[Line]:
    hello = rpc_request("initialize", 0, protocolVersion="2025-11-25")
    begun = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    line = Line(hostile_console.home, hello, begun)
    yield line
    line.close()


SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
FORGED = b'{"jsonrpc":"2.0","id":6,"result":{}}'
REPLIES = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9\r\n\r\n",
    "a status without end": b"HTTP/1.1 " + b"9" * 5000 + b"\r\n\r\n",
    "a status that is none": b"HTTP/1.1 x\r\n\r\n",
    "a length without end": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "a length below nothing": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nx\r\n",
    "a session that is no text": b"HTTP/1.1 200 OK\r\nMcp-Session-Id: \xff\xfe\r\n\r\n{}",
    "no session": b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
    "a fault": b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops",
    "neither result nor error": http_answer(200, {"jsonrpc": "2.0"}),
    "an error that is none": http_answer(200, {"jsonrpc": "2.0", "id": 7, "error": 5}),
    "another's answer": http_answer(200, json.loads(FORGED)),
    "two answers": SSE + b"data: " + FORGED + b"\n\ndata: " + FORGED.replace(b"6", b"7") + b"\n\n",
    "a number that is none": SSE + b'data: {"jsonrpc":"2.0","result":1e999}\n\n',
    "a method that is none": SSE
    + b'data: {"method":5}\n\ndata: {"jsonrpc":"2.0","method":NaN}\n\n',
    "too deep": SSE + b'data: {"jsonrpc":"2.0","result":' + b"[" * 985 + b"]" * 985 + b"}\n\n",
    "half an event": SSE + b'data: \xff\n\ndata: {"a":',
}
"""Of each kind one; tests/fast/mcp has any bytes read by the relay's parsers."""


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_whatever_the_console_answers_the_call_ends_and_the_next_is_served(
    hostile_console: HostileConsole, agent: Line, reply: bytes, stateless: bool
) -> None:
    """A result, an error, or that the outcome is not known: never two, never none."""
    hostile_console.says = reply
    params: dict[str, Any] = {"name": "x", "arguments": {}}
    if stateless:
        params["_meta"] = NEW
    agent.write(rpc_request("tools/call", 7, **params) + b"\n")
    while (message := agent.read()).get("id") != 7 or "method" in message:
        assert "method" in message, message
    answered, tools = agent.served()
    assert (dict(answered), tools["tools"]) == ({}, [1])


@pytest.mark.parametrize("reply", ["nothing", "a number that is none", "half an event", "too deep"])
def test_any_stream_is_survived(hostile_console: HostileConsole, agent: Line, reply: str) -> None:
    """The stream is opened again, and nothing of it reaches the client but JSON-RPC."""
    hostile_console.stream = REPLIES[reply]
    while hostile_console.streams.acquire(blocking=False):
        pass
    for _ in range(2):  # once the second one is asked for, the first one was read
        assert hostile_console.streams.acquire(timeout=SECONDS)
    _, tools = agent.served()
    assert tools["tools"] == [1]
