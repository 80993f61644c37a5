"""The relay as a process between a hostile client and a hostile console: every request is answered once.

Whatever comes from either side, what goes to the client is JSON-RPC, the process lives, says nothing
on stderr, and the next call is served.
"""

import json
import os
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fast.property.mcp_messages import FRAMES, deep
from tests.support.mcp_harness import NEW, TOKEN, RawRelay, ThreadConsole
from tests.support.scripted_console import http_answer, scripted_console

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


# ---------------------------------------------------------------------------------------------- #
# From the client


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


def may_go_unanswered(frame: bytes) -> bool:
    """Say whether a request of this frame may stand, be cancelled, or be too deep to be read."""
    return b"subscriptions" in frame or b"cancelled" in frame or b"[" * 500 in frame


@given(st.lists(FRAMES, min_size=1, max_size=4), st.lists(st.integers(0, 80), max_size=3))
@example([deep(levels) for levels in range(960, 1000)], [])
@example([b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}'], [])
@example([b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1e999}}'], [])
@example([rpc_request("tools/call", 1, name="read_inbox", arguments={"text": "x" * 1_200_000})], [])
@example([b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}'] * 2, [])
def test_each_request_is_answered_once(client: Line, frames: list[bytes], sizes: list[int]) -> None:
    """An answer or an error for each, and the next request is served."""
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
    if any(map(may_go_unanswered, frames)):
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


# ---------------------------------------------------------------------------------------------- #
# From the console


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
