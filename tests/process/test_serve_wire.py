"""Requests as they come over a socket: what is not of the form is refused, in the one error body; nobody locks others out.

And the way in of a person's own commands: what it takes, and that nothing decides there.
"""

import contextlib
import json
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aileron_core.canonical import sha256_hex
from aileron_core.console_port.codec import to_frame
from aileron_core.console_port.intents import Intent
from aileron_core.server.intent_routes import PROOFS
from aileron_core.vault.secret import Secret
from aileron_mcp.open_sessions import MAX_SESSIONS_PER_AGENT
from examples.mailbox.server import Mailbox
from tests.support.any_values import values
from tests.support.core_harness import change_rows
from tests.support.server_harness import DRAFT, Console, Serve

MIB = 1024 * 1024
RUN = "/v1/actions/list-drafts/run"
APPROVAL = "act-20260101T000000-0000000000000000"


def exchange(shared: Console, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_health_is_for_everybody(shared: Console) -> None:
    for local in (False, True):
        answer = shared.get("/v1/health", local=local)
        assert (answer.status, answer.json) == (200, {"status": "ok"})
        assert "server" not in answer.headers
    # The Host is not looked at on the socket; no answer is made from it either.
    answer = shared.get("/nowhere", local=True, headers={"Host": "[::1"})
    assert answer.error["class"] == "not_found"
    assert shared.get("/v1/health", local=True, headers={"Host": "a[b"}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "localhost:{port}", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "[::1]:{port}",
        "127.0.0.1:{port}.evil.example", "", "127.1:{port}", "0.0.0.0:{port}",
    ],
)  # fmt: skip
def test_any_other_host_is_refused(shared: Console, token: str, host: str) -> None:
    """A page whose name was rebound to loopback reaches nothing, even with a token."""
    name = host.format(port=shared.port)
    for path in ("/v1/health", "/v1/actions", "/review/x", "/nowhere", "/mcp"):
        answer = shared.get(path, token=token, headers={"Host": name})
        assert (answer.status, answer.error["class"]) == (403, "forbidden")


@pytest.mark.parametrize("origin", ["null", "http://127.0.0.1:{port}", "https://evil.example", ""])
@pytest.mark.parametrize("local", [False, True])
def test_a_web_page_is_refused(shared: Console, token: str, origin: str, local: bool) -> None:
    """Any Origin at all, our own address too; and no CORS header ever."""
    headers = {"Origin": origin.format(port=shared.port)}
    answer = shared.get("/v1/actions", token=token, headers=headers, local=local)
    assert answer.error["class"] == "forbidden"
    asked = {**headers, "Access-Control-Request-Method": "POST"}
    preflight = shared.request("OPTIONS", RUN, headers=asked, local=local)
    assert preflight.status == 403
    assert not [name for name in (*answer.headers, *preflight.headers) if "access-control" in name]


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_only_json_is_read(shared: Console, token: str, media: str) -> None:
    """What a form can send without asking is no request."""
    headers = {"Content-Type": media}
    answer = shared.request("POST", RUN, raw=b'{"args": {}}', token=token, headers=headers)
    assert (answer.status, answer.error["class"]) == (400, "invalid_request")
    assert "application/json" in answer.error["message"]


def test_a_body_over_one_mebibyte_is_refused(shared: Console, token: str) -> None:
    """By its stated length, before it is sent; one of exactly that size is read."""
    fits = b'{"args": {}}'.ljust(MIB)
    assert shared.request("POST", RUN, raw=fits, token=token).status == 200
    answer = shared.request("POST", RUN, raw=fits + b" ", token=token)
    assert (answer.status, answer.error["class"]) == (413, "payload_too_large")
    head = (
        f"POST {RUN} HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2000000000\r\nConnection: close\r\n\r\n"
    )
    assert exchange(shared, head.encode()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("path", [RUN, "/mcp"])
@pytest.mark.parametrize("stated", [True, False])
def test_a_long_body_is_refused_early(shared: Console, token: str, path: str, stated: bool) -> None:
    """Without a stated length it is counted; what is mounted has the same limit, in the one error body."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    connection = shared.connection()
    body = b'{"args": {"query": "' + b"x" * 3 * MIB
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # told before all was sent
        given = body if stated else pieces
        connection.request("POST", path, given, headers, encode_chunked=not stated)
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"]["class"] == "payload_too_large"
    connection.close()


def test_a_head_without_an_end_is_cut_off(shared: Console) -> None:
    """Headers are bounded too, before anybody is known."""
    sent = 0
    with (
        socket.create_connection(("127.0.0.1", shared.port), timeout=10) as connection,
        contextlib.suppress(BrokenPipeError, ConnectionResetError),
    ):
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nX: ")
        while sent < 64 * MIB:
            connection.sendall(b"x" * 65536)
            sent += 65536
    assert sent < 16 * MIB


def test_head_is_get_without_a_body_and_without_an_effect(shared: Console, token: str) -> None:
    """It tells an agent nothing, so it delivers nothing and holds nothing."""
    for path in ("/v1/health", "/v1/actions", "/v1/actions/get-draft", f"/review/{APPROVAL}"):
        answer = shared.request("HEAD", path, token=token)
        assert (answer.status, answer.raw) == (200, b"")
    assert shared.request("HEAD", "/v1/actions").status == 401
    opened = shared.session()
    path = f"/v1/sessions/{opened['session_id']}/hold"
    assert shared.request("HEAD", path, token=opened["token"]).status == 200
    assert shared.get("/v1/actions", token=opened["token"]).status == 200


def test_bytes_that_are_not_http_and_two_hosts_or_none_are_refused(shared: Console) -> None:
    """Whoever reads the first and whoever reads the last must not see two hosts."""
    ours = b"Host: 127.0.0.1:%d\r\n" % shared.port
    for hosts in (b"", ours + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + ours):
        head = b"GET /v1/health HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n"
        assert exchange(shared, head).split(b" ")[1] in (b"400", b"403")
    for data in (b"\x16\x03\x01\x02\x00\x01" * 20, b"GET\r\n\r\n", b"\x00" * 100 + b"\r\n\r\n"):
        assert exchange(shared, data).startswith(b"HTTP/1.1 400 ")
    smuggle = b"POST /v1/health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % shared.port
    smuggle += b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert exchange(shared, smuggle).startswith(b"HTTP/1.1 400 ")
    assert shared.get("/v1/health").status == 200


def test_actions_are_listed_as_agreed(shared: Console, token: str) -> None:
    answer = shared.get("/v1/actions", token=token).json
    assert [item["name"] for item in answer["items"]] == ["get-draft", "list-drafts", "send-draft"]
    assert [item["gated"] for item in answer["items"]] == [False, False, True]
    assert answer["load_errors"] == []
    for item in answer["items"]:
        assert item["input_schema"]["additionalProperties"] is False
        assert shared.get(f"/v1/actions/{item['name']}", token=token).json == item
    assert shared.get("/v1/actions/nope", token=token).error["class"] == "not_found"


def test_a_fault_of_ours_is_500_in_the_one_error_body(serve: Serve) -> None:
    """Without a word on what it was, on the wire or on stderr; the log has its kind."""
    console = serve(accept=False)
    token = console.session()["token"]
    for file in (console.home / "actions").iterdir():
        file.unlink()
    # The console's own tables, taken away under it: what no handler expects.
    change_rows(console.home, "ALTER TABLE runs RENAME TO gone")
    answer = console.get(f"/v1/action-approvals/{APPROVAL}/result", token=token)
    assert (answer.status, answer.error["class"]) == (500, "internal_error")
    assert "runs" not in answer.error["message"]
    assert "OperationalError" in (console.home / "log" / "aileron.log").read_text()


_FROM_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from aileron_core.home.client import HomeConnection
home, session = sys.argv[1:]
for method, name in (("POST", "tools"), ("GET", "tool-calls"), ("POST", "tool-results")):
    connection = HomeConnection(Path(home), timeout=10)
    body = b"{}" if method == "POST" else None
    headers = {"Content-Type": "application/json"}
    connection.request(method, f"/v1/sessions/{session}/{name}", body, headers)
    print(connection.getresponse().status)
"""


def test_only_the_process_that_opened_a_session_carries_its_built_in_tools(shared: Console) -> None:
    """The kernel says which process asks, and a session without these tools has none for anybody."""
    opened = shared.session(launched=True, builtins="beside")["session_id"]
    body = {"files": {}, "commands": {}}
    assert shared.post(f"/v1/sessions/{opened}/tools", body, local=True).status == 204
    command = [sys.executable, "-I", "-c", _FROM_ANOTHER_PROCESS, str(shared.home), opened]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.split() == ["403", "403", "403"]
    without = shared.session(launched=True)["session_id"]
    assert shared.post(f"/v1/sessions/{without}/tools", body, local=True).status == 404


def began(console: Console, stack: contextlib.ExitStack, head: str) -> socket.socket:
    made = stack.enter_context(socket.create_connection(("127.0.0.1", console.port), timeout=30))
    made.sendall(head.encode())
    return made


def test_silent_connections_keep_nobody_from_being_heard(serve: Serve, mailbox: Mailbox) -> None:
    """Whoever reaches the port without a token can neither lock agents nor person out."""
    files = 256  # macOS gives a program as few
    limits = (resource.RLIMIT_NOFILE, (files, files))
    console = serve(mailbox, preexec_fn=lambda: resource.setrlimit(*limits))
    token = console.session()["token"]
    with contextlib.ExitStack() as stack:
        for _ in range(2 * files):
            began(console, stack, "GET /v1/hea")
        assert console.get("/v1/health").status == 200
        assert console.run("list-drafts", {}, token).status == 200
        assert console.session()["token"]
    assert "a tick failed" not in (console.home / "log" / "aileron.log").read_text()


def test_the_open_streams_of_one_session_lock_no_other_out(serve: Serve, mailbox: Mailbox) -> None:
    console = serve(mailbox)
    greedy, other = console.session(), console.session()
    head = (
        f"GET /v1/sessions/{greedy['session_id']}/hold HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{console.port}\r\nAuthorization: Bearer {greedy['token']}\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        statuses = [began(console, stack, head).recv(12) for _ in range(200)]
        assert statuses == [b"HTTP/1.1 200"] * 128 + [b"HTTP/1.1 429"] * 72
        assert console.run("list-drafts", {}, other["token"]).status == 200


def test_one_agent_cannot_use_up_the_mcp_sessions_of_all(shared: Console) -> None:
    """The session of its own that it used longest ago makes way, no other agent's does."""

    def say(token: str, method: str, session: str = "", **params: Any) -> tuple[int, str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream"}
        headers |= {"Mcp-Session-Id": session} if session else {}
        with contextlib.closing(shared.connection()) as connection:
            headers |= {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", "/mcp", json.dumps(message), headers)
            response = connection.getresponse()
            return response.status, response.getheader("mcp-session-id", "")

    def opened(token: str) -> str:
        info = {"name": "x", "version": "1"}
        told: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
        status, session = say(token, "initialize", **told, clientInfo=info)
        assert status == 200
        return session

    greedy, other = shared.session()["token"], shared.session()["token"]
    theirs = opened(other)
    first, second = opened(greedy), opened(greedy)
    for _ in range(MAX_SESSIONS_PER_AGENT - 2):
        opened(greedy)
    assert say(greedy, "ping", first)[0] == 200
    newest = opened(greedy)
    assert any(say(greedy, "ping", second)[0] == 404 for _ in range(100))
    assert say(greedy, "ping", first)[0] == say(greedy, "ping", newest)[0] == 200
    assert say(other, "ping", theirs)[0] == 200


INTENTS: tuple[type, ...] = get_args(Intent)
PHRASE = "a passphrase that is right"
DECIDED = {
    "approval.approved", "approval.denied", "approval.edited", "library.accepted", "library.taken_in", "library.withdrawn",
    "session.ended", "console.paused", "console.everything_stopped", "run.stopped", "run.started",
}  # fmt: skip
_EXAMPLES = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def ended_after(console: Console, body: bytes) -> bytes:
    """Return all that the console says to *body* and a second request behind it, until it ends the connection."""
    head = b"POST /v1/intents HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    with contextlib.closing(console.connection(local=True)) as connection:
        connection.connect()
        sock = connection.sock
        assert sock is not None
        sock.sendall(head + body[:2_000_000] + b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_frame_that_cannot_be_read_ends_the_connection(shared: Console) -> None:
    wrong: list[Any] = [
        {"UnlockVault": {"passphrase": 5}},
        {"UnlockVault": {"passphrase": PHRASE, "more": 1}},
        {"SetKeyring": {"passphrase": PHRASE, "on": "yes"}},
        {"Accept": {"kind": "anything", "name": "x", "digest": "0"}},
        {"NoSuchIntent": {}},
        {"ReadVault": {}, "LockVault": {}},
        [],
    ]
    large = json.dumps({"RevokeAccount": {"name": "x" * 1024 * 1024}}).encode()
    for each in [*(json.dumps(each).encode() for each in wrong), b"{", b"\xff", large]:
        answer = ended_after(shared, each)
        assert answer.startswith(b"HTTP/1.1 413 " if each == large else b"HTTP/1.1 400 "), each
        assert answer.count(b"HTTP/1.1 ") == 1, each


def test_what_takes_a_passphrase_as_a_proof_is_refused_without_one(shared: Console) -> None:
    """The list and the kinds agree: each has the field exactly if it needs the proof."""
    for kind, proof in PROOFS.items():
        has = any(each.name == "passphrase" and each.default is None for each in fields(kind))
        assert has == (proof == "passphrase"), kind
        if has:
            named = get_type_hints(kind)
            text = {name: "x" for name, hint in named.items() if hint in (str, Secret)}
            answer = shared.ask(kind.__name__, **text)
            assert (answer.status, answer.error["message"]) == (400, "'passphrase' is missing.")


@pytest.fixture(params=["a call that waits", "files that nobody accepted"])
def held(
    request: pytest.FixtureRequest, home: Path, serve: Serve, mailbox: Mailbox
) -> Iterator[tuple[Console, list[str]]]:
    waits = request.param == "a call that waits"
    console = serve(mailbox, accept=waits)
    token = console.session()["token"]
    file = home / "actions" / "send-draft.md"
    # Without its own file, or its preview's, a call that waits is refused once the vault is unlocked again.
    other = "list-drafts.md" if waits else file.name
    words = [sha256_hex(file.read_bytes()), "send-draft", other, "", PHRASE]
    asked = console.run("send-draft", {"draft_id": DRAFT}, token)
    assert asked.status == (202 if waits else 409)
    for row in console.rows("approval_id, run_id, session_id, args_sha256"):
        words += row
    before = len(console.records())
    yield console, words
    if waits:
        path = f"/v1/action-approvals/{words[5]}/result"
        assert console.get(path, token=token).json["status"] == "pending_approval"
    after = {each["event"] for each in console.records()[before:]}
    assert not after & DECIDED


def test_no_other_intent_is_taken(held: tuple[Console, list[str]]) -> None:
    """Not one that decides, accepts a file, ends a session, stops or undoes: the list is closed."""
    console, words = held

    @_EXAMPLES
    @given(st.data())
    def tries(data: st.DataObject) -> None:
        for kind in set(INTENTS) - set(PROOFS):
            sent = to_frame(data.draw(values(kind, st.sampled_from(words))))
            assert console.post("/v1/intents", sent, local=True).status == 400, kind

    tries()


def test_no_intent_that_is_taken_decides_or_accepts(held: tuple[Console, list[str]]) -> None:
    console, words = held

    @_EXAMPLES
    @given(st.data())
    def tries(data: st.DataObject) -> None:
        for kind in PROOFS:
            sent = to_frame(data.draw(values(kind, st.sampled_from(words))))
            status = console.post("/v1/intents", sent, local=True).status
            assert status in {200, 204, 400, 403, 404, 409, 412, 429, 503}, kind

    tries()
    console.ask("CreateVault", passphrase=PHRASE)
    tries()
