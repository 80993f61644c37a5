"""Any request at a real console is answered, without a fault of ours, a line in the log or an endless wait."""

import contextlib
import http.client
import io
import json
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from examples.mailbox.server import Mailbox
from tests.fast.property.mcp_messages import FRAMES, JSON, NEW, REQUESTS, TEXT, deep
from tests.support.server_harness import ROOT, Console, aileron

Fields: TypeAlias = list[tuple[bytes, bytes]]
SECONDS = 60.0
FEWER = settings(max_examples=max(10, settings.default.max_examples * 2 // 5))
"""Each example is four requests at least."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}  # fmt: skip
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ROUTE = "/v1/actions/get-draft/run"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back: its head, and its body as far as it was waited for."""

    status: int
    media: str
    session: str | None
    body: bytes


class HttpAgent:
    """A session at the console, and an MCP session of the old era in it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._log = console.home / "log" / "aileron.log"
        self._seen = 0
        self.token = console.session()["token"].encode()
        self.other = console.session()["token"].encode()
        self.session = self.foreign = b""
        self.renew()

    def renew(self) -> None:
        """Have an MCP session, and another session's one, also where an example ended them."""
        self.session = self._greet(self.token)
        self.foreign = self._greet(self.other)

    def _greet(self, token: bytes) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        reply = self.post(body.encode(), [*header_fields(token)])
        assert reply.session is not None, reply
        return reply.session.encode()

    def post(self, body: bytes, headers: Fields) -> HttpReply:
        head = [*headers, (b"Content-Length", b"%d" % len(body))]
        reply = self.exchange(http_request(b"POST", b"/mcp", self.host(), head) + body, whole=True)
        assert reply is not None
        return reply

    def host(self) -> bytes:
        return b"127.0.0.1:%d" % self.console.port

    def exchange(self, data: bytes, *, whole: bool, ended: bool = False) -> HttpReply | None:
        """Send *data*; return the first answer, *whole* to a stream's end, or None where the console hung up without one.

        If *ended*, hang up on the sending side, as a client whose body is cut off does.
        """
        with socket.create_connection(("127.0.0.1", self.console.port), SECONDS) as peer:
            with contextlib.suppress(OSError):  # refused before all of it was sent
                peer.sendall(data)
                if ended:
                    peer.shutdown(socket.SHUT_WR)
            method = data.partition(b" ")[0].decode("latin-1")
            response = http.client.HTTPResponse(peer, method=method)
            try:
                response.begin()
            except (http.client.RemoteDisconnected, ConnectionResetError):
                return None
            media = response.headers.get("content-type", "")
            session = response.headers.get("mcp-session-id")
            with response:
                body = response.read() if whole or "event-stream" not in media else b""
                return HttpReply(response.status, media, session, body)

    def well(self) -> None:
        """Fail unless both eras are served and nothing was said that a person would have to read."""
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": NEW}}
        new = [(b"MCP-Protocol-Version", b"2026-07-28"), (b"Mcp-Method", b"tools/list")]
        reply = self.post(json.dumps(listing).encode(), [*header_fields(self.token), *new])
        assert (reply.status, b"list_drafts" in reply.body) == (200, True), reply
        for token, session in ((self.token, self.session), (self.other, self.foreign)):
            reply = self.post(PING, [*header_fields(token), (b"Mcp-Session-Id", session)])
            if reply.status == 404:  # the example ended it, as it may: it had the token too
                self.renew()
            else:
                assert reply.status == 200, reply
        assert self.console.stderr.read_text() == ""
        if self._log.exists() and self._log.stat().st_size > self._seen:
            with self._log.open() as log:
                log.seek(self._seen)
                said = log.read()
            self._seen = self._log.stat().st_size
            assert "Traceback" not in said, said
            assert "ERROR" not in said, said


def header_fields(token: bytes) -> Fields:
    return [
        (b"Authorization", b"Bearer " + token),
        (b"Accept", b"application/json, text/event-stream"),
        (b"Content-Type", b"application/json"),
    ]


def http_request(method: bytes, path: bytes, host: bytes, headers: Fields) -> bytes:
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: " + host]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", b""])


@pytest.fixture(scope="module")
def http_agent() -> Iterator[HttpAgent]:
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, Mailbox() as mailbox:
        home = Path(folder) / "home"
        examples = ROOT / "examples"
        aileron("action", "add", str(examples / "actions"), home=home)
        aileron("connector", "install", str(examples / "connectors" / "mail-drafts"), home=home)
        (home / "config.toml").write_text("[mcp]\nhold_seconds = 0\n")
        console = Console(home, mailbox)
        yield HttpAgent(console)
        console.close()


BYTES = st.binary(max_size=20).map(lambda data: data.translate(None, b"\r\n\x00"))
MARKS = st.sampled_from([b"@session", b"@foreign", b"@token", b"@other"])
"""Stand for what the fixture knows."""
VALUES = st.one_of(
    BYTES,
    MARKS,
    MARKS,
    st.sampled_from([b"", b" ", b"\t2026-07-28 ", b"=?base64?!!?=", b"\xff\xfe", b"x" * 3000, b"null", b"2025-11-25", b"2026-07-28", b"Bearer", b"Bearer @other", b"Bearer \xff", b"*/*", b"text/event-stream", b"application/json", b"application/json; charset=utf-16", b"gzip", b"tools/list", b"tools/call"]),
)  # fmt: skip
NAMES = st.sampled_from([b"Mcp-Session-Id", b"MCP-Protocol-Version", b"Mcp-Method", b"Mcp-Name", b"Mcp-Param-X", b"Last-Event-ID", b"Accept", b"Content-Type", b"Content-Encoding", b"Authorization", b"Expect", b"Upgrade", b"Origin", b"X"])  # fmt: skip
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
FRAMINGS = st.sampled_from(["length"] * 6 + ["chunked", "bad chunks", "too short", "too long", "none", "both", "not a number"])  # fmt: skip


def framed(body: bytes, framing: str) -> tuple[Fields, bytes, bool]:
    """Return the header fields and bytes of *body*, and whether they are a whole request."""
    length, chunked = b"Content-Length", (b"Transfer-Encoding", b"chunked")
    half, whole = len(body) // 2, (length, b"%d" % len(body))
    chunks = b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in (body[:half], body[half:]) if p)
    ways: dict[str, tuple[Fields, bytes]] = {
        "chunked": ([chunked], chunks + b"0\r\nTrailer: x\r\n\r\n"),
        "bad chunks": ([chunked], b"-5\r\n" + body + b"\r\nzz\r\n"),
        "too short": ([(length, b"%d" % half)], body),
        "too long": ([(length, b"%d" % (len(body) + 5))], body),
        "none": ([], body),
        "both": ([whole, chunked], chunks + b"0\r\n\r\n"),
        "not a number": ([(length, b"0x10")], body),
    }
    return *ways.get(framing, ([whole], body)), framing != "too long"


def judge(reply: HttpReply | None, method: bytes) -> None:
    assert reply is not None, "the console hung up on a whole request without an answer"
    event(f"HTTP {reply.status}")
    assert reply.status < 500 or reply.media == "application/json", reply
    if method == b"HEAD" or reply.status in (202, 204):
        return
    if reply.status >= 400 and reply.media.startswith("text/plain"):
        assert reply.body, reply  # of the HTTP parser itself
    elif reply.status >= 400:
        error = json.loads(reply.body)["error"]
        assert isinstance(error["message"], str), reply
        assert error["message"], reply
        assert "class" in error or isinstance(error["code"], int), reply
        # A run may fail, and then says so with 5xx; a fault of ours is none of its ends.
        assert error.get("class", "") not in ("internal_error", "unavailable"), reply
        assert error.get("code") != -32603, reply


def messages_of(reply: HttpReply) -> Iterator[Any]:
    if reply.media.startswith("text/event-stream"):
        for line in io.BytesIO(reply.body):
            if line.startswith(b"data:") and line[5:].strip():
                yield json.loads(line[5:])
    elif reply.media.startswith("application/json") and reply.body:
        yield json.loads(reply.body)


@FEWER
@given(
    st.sampled_from([b"POST"] * 12 + [b"GET", b"DELETE", b"PUT", b"HEAD", b"get", b"X" * 40]),
    st.sampled_from([b"/mcp", b"/mcp", b"/mcp", b"/mcp/", b"/mcp?x=%ff", b"/mcp/x", b"//mcp"]),
    st.sampled_from(["old", "new", "none"]),
    HEADERS,
    FRAMES | REQUESTS.map(lambda value: json.dumps(value).encode()),
    FRAMINGS,
)
@example(b"POST", b"/mcp", "new", [], b'{"a": ' * 100_000, "chunked")
@example(b"POST", b"/mcp", "old", [], b"[" * 1_000_000, "length")
@example(b"POST", b"/mcp", "old", [], b"[" * 1_100_000, "chunked")
@example(b"POST", b"/mcp", "new", [(b"Mcp-Name", b"\xff")], deep(900), "length")
@example(b"POST", b"/mcp", "old", [(b"Mcp-Session-Id", b"@foreign")], PING, "length")
def test_whatever_comes_to_the_mcp_mount_is_answered(
    http_agent: HttpAgent, method: bytes, path: bytes, era: str, headers: Fields, body: bytes, framing: str
) -> None:  # fmt: skip
    own: dict[bytes, bytes] = dict(header_fields(http_agent.token))
    if era == "old":
        own[b"Mcp-Session-Id"] = http_agent.session
    elif era == "new":
        own[b"MCP-Protocol-Version"] = b"2026-07-28"
        with contextlib.suppress(ValueError, RecursionError, AttributeError):
            own[b"Mcp-Method"] = str(json.loads(body).get("method")).encode("ascii", "replace")
            own[b"Mcp-Method"] = own[b"Mcp-Method"].translate(None, b"\r\n")
    marks = {b"@session": http_agent.session, b"@foreign": http_agent.foreign, b"@token": http_agent.token, b"@other": http_agent.other}  # fmt: skip
    for name, value in headers:
        for mark, known in marks.items():
            value = value.replace(mark, known)
        own[name] = value
    length, data, complete = framed(body, framing)
    # These stand for as long as the client wants: their head has to come, not their end.
    standing = method == b"GET" or b"subscriptions" in body
    reply = http_agent.exchange(
        http_request(method, path, http_agent.host(), [*own.items(), *length]) + data,
        whole=not standing, ended=not complete,
    )  # fmt: skip
    if complete:
        judge(reply, method)
    if reply is not None and reply.status == 200 and path.startswith(b"/mcp"):
        for message in messages_of(reply):
            assert message["jsonrpc"] == "2.0"
            if "error" in message:
                event(f"JSON-RPC {message['error']['code']}")
                # -32603 is what the package says where a handler of ours breaks.
                assert message["error"]["code"] != -32603, message
    http_agent.well()


APPROVAL = "act-20260101T000000-0123456789abcdef"
SEGMENTS = st.sampled_from(["get-draft", "send-draft", APPROVAL, "..", "%2e%2e", "%00", "%ff", "a" * 3000]) | TEXT.map(lambda text: "".join(f"%{b:02x}" for b in text.encode()))  # fmt: skip
PATHS = st.one_of(
    st.sampled_from(["/v1/actions", "/v1/sessions", "/v1/health", "/v1/openapi.json", "/v1/audit", "/", "*", "//", "/v1", "http://x/v1/actions"]),
    SEGMENTS.map("/v1/actions/{}".format),
    SEGMENTS.map("/v1/actions/{}/run".format),
    SEGMENTS.map("/v1/sessions/{}/end".format),
    SEGMENTS.map("/v1/action-approvals/{}/withdraw".format),
    SEGMENTS.map("/v1/action-approvals/{}/decide".format),
    SEGMENTS.map("/review/{}".format),
    st.tuples(SEGMENTS, SEGMENTS).map(lambda p: f"/v1/action-approvals/{p[0]}/result?wait=0&x={p[1]}"),
)  # fmt: skip
_KEYS = dict.fromkeys(("idempotency_key", "reason", "agent", "cwd", "approved"), JSON)
_ARGS = st.fixed_dictionaries({}, optional={"id": JSON, "query": JSON})
BODIES = st.one_of(
    FRAMES,
    st.fixed_dictionaries({}, optional={**_KEYS, "args": JSON | _ARGS}).map(
        lambda value: json.dumps(value).encode()
    ),
)


@FEWER
@given(st.sampled_from([b"GET", b"POST", b"POST", b"POST", b"HEAD", b"DELETE", b"OPTIONS"]), PATHS, HEADERS, BODIES, FRAMINGS)  # fmt: skip
@example(b"POST", ROUTE, [(b"Content-Encoding", b"gzip")], b"\x1f\x8b\x08" + b"\0" * 50, "length")
@example(b"POST", ROUTE, [], b'{"args": {"id": "\\ud800"}}', "length")
@example(b"POST", ROUTE, [], b'{"args": {"id": "' + b"a" * 1_048_000 + b'"}}', "chunked")
def test_whatever_comes_to_a_route_is_answered(
    http_agent: HttpAgent, method: bytes, path: str, headers: Fields, body: bytes, framing: str
) -> None:
    own = {**dict(header_fields(http_agent.token)), **dict(headers)}
    length, data, complete = framed(body, framing)
    head = http_request(method, path.encode(), http_agent.host(), [*own.items(), *length])
    reply = http_agent.exchange(head + data, whole=not path.endswith("/hold"), ended=not complete)
    if complete:
        judge(reply, method)
    http_agent.well()


@FEWER
@given(st.binary(max_size=400) | st.lists(BYTES, max_size=8).map(b"\r\n".join))
@example(b"GET / HTTP/1.1\r\n" + b"A: " + b"a" * 200_000)
@example(b"POST /mcp HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n")
@example(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
def test_any_bytes_end_in_an_answer_or_a_closed_one(http_agent: HttpAgent, data: bytes) -> None:
    """Half a head that goes on is somebody's right for ten seconds; then the connection ends."""
    with socket.create_connection(("127.0.0.1", http_agent.console.port), SECONDS) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while peer.recv(65536):
                pass
    http_agent.well()
