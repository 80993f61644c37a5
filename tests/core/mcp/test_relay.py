"""The relay as a process: its pipes, its own session, and a console that is slow to come or goes away."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_mcp.relay import console_finder
from aileron_mcp.relay.aileron_session import AileronSession, RequestDenied
from aileron_mcp.relay.console_finder import ConsoleFinder, ConsoleNotFound, _with_certificate
from aileron_mcp.relay.messages import Call
from aileron_mcp.relay.relay import Relay
from tests.support.impostors import http_answer, scripted_console
from tests.support.mcp_harness import (
    NEW,
    RELAY,
    ROOT,
    TOKEN,
    RawRelay,
    ThreadConsole,
    eventually,
    listen_unix,
)


@pytest.fixture
def relay(console: ThreadConsole) -> Iterator[RawRelay]:
    """A relay that greeted the console; in the end it ends without a word."""
    running = RawRelay(console.home, AILERON_TOKEN=TOKEN)
    running.handshake()
    yield running
    assert running.end() == (0, "")


def test_bad_lines_and_idle_cancels_do_not_end_the_relay(relay: RawRelay) -> None:
    """Each line gets its own error, and the next good one is served. opencode cancels every finished call."""
    no_json = (b"not json", b"\xff\xfe{}", b"[" * 100_000, b"1" * 5000)
    no_requests = (b'"text"', b"[]", b"{}", b'{"method":"ping","id":null}')
    no_ids = (b'{"method":"ping","id":true}', b'{"method":"ping","id":{}}')
    for line, id_, code in (
        *((each, None, -32700) for each in no_json),
        *((each, None, -32600) for each in (*no_requests, *no_ids)),
        (b'{"id":5}', 5, -32600),
        (b'{"method":7,"id":8}', 8, -32600),
    ):
        relay.send_line(line)
        answer = relay.read()
        assert (answer["id"], answer["error"]["code"]) == (id_, code), line
    relay.send_line(b"   ")
    relay.send("tools/list", 9)
    assert relay.answer(9)["result"]["tools"]
    for id_ in (9, "nobody", None, {}):
        relay.send("notifications/cancelled", requestId=id_)
    relay.send_line(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}')
    relay.send("ping", 10)
    assert relay.answer(10)["result"] == {}


def test_what_is_refused_or_in_a_batch_comes_back_with_the_requests_own_id(
    console: ThreadConsole,
) -> None:
    """The server answers some mistakes without an id; the client still learns which request it was."""
    relay = RawRelay(console.home, AILERON_TOKEN=TOKEN)
    relay.send("tools/list", "too early")
    assert relay.answer("too early")["error"]["message"]
    relay.handshake()
    relay.send("no/such/method", 1)
    assert relay.answer(1)["error"]["code"] == -32601
    relay.send("no/such/method", 2, _meta=NEW)
    assert relay.answer(2)["error"]["code"] == -32601
    relay.send_line(b'{"jsonrpc":"1.0","id":3,"method":"ping"}')
    assert "error" in relay.answer(3)
    relay.send("tools/call", 4, name="read\r\nX-Bad: 1", arguments={}, _meta=NEW)
    assert relay.answer(4)["result"]["isError"]
    assert relay.end() == (0, "")
    relay = RawRelay(console.home, AILERON_TOKEN=TOKEN)
    relay.handshake("2025-03-26")  # the oldest era, whose batch is served one by one
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)]
    relay.send_line(json.dumps([*batch, 3]).encode())
    assert {json.dumps(relay.read()["id"]) for _ in range(3)} == {"1", "2", "null"}
    assert relay.end() == (0, "")


def test_big_messages_pass_whole_up_to_four_mebibytes(relay: RawRelay) -> None:
    """With every kind of character each way; the client of a larger one does not wait for ever."""
    text = "é\u2028\n\x00\U0001f600" * 30_000  # almost the megabyte that the console takes
    relay.send("tools/call", 1, name="read_inbox", arguments={"text": text})
    assert relay.answer(1)["result"]["structuredContent"]["output"]["args"]["text"] == text
    relay.send("tools/call", 5, name="read_inbox", arguments={"text": "a" * (5 * 1024 * 1024)})
    answer = relay.answer(5)
    assert answer["error"]["code"] == -32600
    assert "4194304" in answer["error"]["message"]
    relay.send("ping", 6)
    assert relay.answer(6)["result"] == {}


def test_an_id_in_use_is_refused_and_the_first_one_goes_on(patient: ThreadConsole) -> None:
    """Two answers with one id would be a riddle."""
    relay = RawRelay(patient.home, AILERON_TOKEN=TOKEN)
    relay.handshake()
    relay.send("tools/call", 1, name="send_draft", arguments={})
    eventually(lambda: patient.control.state()["polls"] == 1, "the call is held")
    relay.send("ping", 1)
    assert "already uses this id" in relay.read()["error"]["message"]
    patient.control.approve()
    assert relay.answer(1)["result"]["structuredContent"]["status"] == "completed"
    assert relay.end() == (0, "")


@pytest.mark.parametrize("era", [None, NEW])
@pytest.mark.parametrize("killed", [False, True])
def test_a_relay_that_ends_leaves_what_is_held(
    patient: ThreadConsole, era: dict[str, Any] | None, killed: bool
) -> None:
    """Nothing keeps it: no hold, no stream; where nobody said goodbye, the console sees the connection drop."""
    relay = RawRelay(patient.home, AILERON_TOKEN=TOKEN)
    relay.handshake()
    relay.send("tools/call", 1, name="send_draft", arguments={}, **({"_meta": era} if era else {}))
    eventually(lambda: patient.control.state()["polls"] == 1, "the call is held")
    if killed:
        relay.process.kill()
        assert relay.outcome() == (-signal.SIGKILL, "")
    else:
        assert relay.end() == (0, "")
    eventually(lambda: patient.control.state()["polls"] == 0, "the hold has ended")
    assert patient.control.state()["approvals"][-1]["status"] == "pending_approval"


@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGINT"])
def test_without_a_token_the_relay_opens_and_ends_its_own(console: ThreadConsole, how: str) -> None:
    """It says who it is, keeps the session's stream open while it lives, and ends it when it ends."""
    relay = RawRelay(console.home)
    relay.handshake()
    opened = console.control.state()["opened"][-1]
    said = [opened[name] for name in ("label", "pid", "agent", "cwd")]
    assert said == [Path.cwd().name, os.getpid(), "a-test", str(Path.cwd())]
    session = opened["session_id"]
    eventually(lambda: session in console.control.state()["holding"], "the session is held")
    if how == "eof":
        assert relay.end() == (0, "")
    else:
        relay.process.send_signal(getattr(signal, how))
        assert relay.outcome() == (0 if how == "SIGTERM" else 130, "")
    # The relay waits a second for the answer to its farewell, the console may take longer.
    eventually(lambda: session in console.control.state()["ended"], "it was ended")
    eventually(lambda: session not in console.control.state()["holding"], "its stream is closed")


def test_a_session_that_the_console_forgot_is_opened_anew(console: ThreadConsole) -> None:
    """The agent notices nothing: a 401 means that nothing ran, so the request goes again."""
    relay = RawRelay(console.home, AILERON_AGENT="named")
    relay.handshake()
    console.control.forget()
    try:
        relay.send("tools/call", 1, name="read_inbox", arguments={})
        assert not relay.answer(1)["result"]["isError"]
        assert [s["agent"] for s in console.control.state()["opened"][-2:]] == ["named", "named"]
        assert relay.end() == (0, "")
    finally:
        console.control.know(TOKEN)


def test_a_session_is_named_by_what_its_client_calls_itself(console: ThreadConsole) -> None:
    """Several agents that nobody launched were all the program that runs them, such as python3.11."""
    for name, expected in (("my-agent", "my-agent"), ("x" * 90, "x" * 64)):
        relay = RawRelay(console.home)
        assert "result" in relay.initialize(client=name)
        assert console.control.state()["opened"][-1]["agent"] == expected
        assert relay.end() == (0, "")
    relay = RawRelay(console.home)
    client = {"io.modelcontextprotocol/clientInfo": {"name": "new-agent", "version": "1"}}
    relay.send("tools/list", 1, _meta={**NEW, **client})
    relay.answer(1)
    assert console.control.state()["opened"][-1]["agent"] == "new-agent"
    assert relay.end() == (0, "")


def test_why_no_session_is_there_reaches_the_client(console: ThreadConsole) -> None:
    """A given token that opens nothing is not replaced by a session of the relay's own."""
    before = len(console.control.state()["opened"])
    relay = RawRelay(console.home, AILERON_TOKEN="of-an-ended-session")
    answer = relay.handshake()
    assert "Start the agent again" in answer["error"]["message"]
    assert "of-an-ended-session" not in json.dumps(answer)
    assert relay.end() == (0, "")
    assert len(console.control.state()["opened"]) == before
    relay = RawRelay(console.home, AILERON_AGENT="a" * 65)
    assert "1 to 64 characters" in relay.handshake()["error"]["message"]
    assert relay.end() == (0, "")


def test_a_token_file_is_read_again_once_renewed(console: ThreadConsole, tmp_path: Path) -> None:
    """The launcher may write a new token; a file that is gone is an ended session."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    relay = RawRelay(console.home, AILERON_TOKEN_FILE=str(file))
    assert "result" in relay.handshake()
    file.write_text("renewed\n")  # before the standing stream can be refused and have it read
    console.control.know("renewed")
    console.control.forget(TOKEN)
    try:
        relay.send("ping", 1)
        assert relay.answer(1)["result"] == {}
        assert relay.end() == (0, "")
    finally:
        console.control.know(TOKEN)
    file.unlink()
    relay = RawRelay(console.home, AILERON_TOKEN_FILE=str(file))
    assert "session has ended" in relay.handshake()["error"]["message"]
    assert relay.end() == (0, "")


def test_nobody_reading_its_answers_ends_the_relay(console: ThreadConsole) -> None:
    relay = RawRelay(console.home, AILERON_TOKEN=TOKEN)
    relay.process.stdout.close()
    relay.send("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    assert relay.outcome() == (0, "")


def test_a_contained_sessions_socket_gets_no_token_and_no_check(tmp_path: Path) -> None:
    """The socket is the session: nothing is opened, no bearer is sent, nobody holds a lock."""
    listener = listen_unix(tmp_path / "run" / "s.sock")
    heads: list[bytes] = []

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            heads.append(connection.recv(65536))
            body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )

    thread = threading.Thread(target=answer)
    thread.start()
    path = tmp_path / "run" / "s.sock"
    relay = RawRelay(tmp_path, AILERON_URL=f"unix:{path}", AILERON_TOKEN="not for the socket")
    relay.send("server/discover", 1, _meta=NEW)
    assert relay.answer(1)["result"] == {}
    thread.join(60)
    listener.close()
    assert b"not for the socket" not in heads[0]
    assert b"uthorization" not in heads[0]
    assert b"Mcp-Method: server/discover" in heads[0]
    assert relay.end() == (0, "")


@pytest.mark.parametrize("with_folder", [True, False])
def test_no_console_is_one_sentence_and_exit_69(tmp_path: Path, with_folder: bool) -> None:
    home = tmp_path / "home"
    if with_folder:
        home.mkdir()
    relay = RawRelay(home, AILERON_WAIT_SECONDS="0.3")
    # In one write: the relay has given up and ended soon after the first of them.
    both = ({"method": "initialize", "id": 1}, {"method": "tools/list", "id": "two"})
    relay.send_line(b"\n".join(json.dumps(each).encode() for each in both))
    answers = {json.dumps(a["id"]): a for a in (relay.read(), relay.read())}
    assert answers.keys() == {"1", '"two"'}
    code, said = relay.outcome()
    assert code == 69
    assert said.startswith("aileron-mcp: ")
    assert said.count("\n") == 1
    assert "aileron console" in said
    assert all(a["error"]["message"] in said for a in answers.values())


def test_requests_wait_for_a_console_that_comes_wherever_its_home_is(tmp_path: Path) -> None:
    """An agent may be started before its console. A socket's name has about a hundred bytes; homes have more."""
    home = tmp_path / ("h" * 60) / ("o" * 60)
    home.parent.mkdir()
    relay = RawRelay(home, AILERON_TOKEN=TOKEN)
    relay.send("server/discover", 1, _meta=NEW)
    running = ThreadConsole(home)
    try:
        answer = relay.answer(1)
        assert "result" in answer, answer
        assert answer["result"]["supportedVersions"]
        assert relay.end() == (0, "")
    finally:
        running.stop()


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--nonsense", 2), ("a", 2)])
def test_it_takes_no_arguments_but_help_and_version(argument: str, code: int) -> None:
    done = subprocess.run([*RELAY, argument], cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert (done.returncode, "AILERON_TOKEN_FILE" in done.stdout) == (code, code == 0)
    assert ("Usage:" in done.stderr) == (code == 2)


def test_it_imports_nothing_slow_and_of_aileron_the_check_of_a_homes_owner() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import aileron_mcp.relay.relay"
    command = [sys.executable, "-I", "-c", f"{program}; print(*sys.modules)", str(ROOT)]
    loaded = subprocess.check_output(command, text=True, timeout=20).split()
    slow = {"asyncio", "http.client", "argparse", "ssl", "hashlib", "email", "logging", "pathlib"}
    assert not slow & set(loaded)
    assert not [m for m in loaded if m.split(".")[0] in ("mcp", "typing_extensions")]
    core = {m for m in loaded if m.split(".")[0] == "aileron_core"}
    assert core == {"aileron_core", "aileron_core.home", "aileron_core.home.owner"}


def test_a_console_that_goes_away_or_is_busy_for_a_session_is_asked_again(tmp_path: Path) -> None:
    """A restart just then is no error of the first request; a session that nobody held would end beside its agent."""
    asked, tried, held = list[str](), threading.Semaphore(0), threading.Event()

    def script(line: str, _session: str, said: dict[str, Any]) -> bytes:
        if line.startswith("POST /v1/sessions "):
            asked.append(line)
            opened = {"session_id": "ses-1", "token": "the-token"}
            return b"" if len(asked) == 1 else http_answer(201, opened)
        if line.startswith("GET /v1/sessions/ses-1/hold "):
            if tried.acquire(blocking=False):
                held.set()
                return b""
            tried.release()
            return http_answer(429)
        return http_answer(200, {"jsonrpc": "2.0", "id": said.get("id"), "result": {}})

    with scripted_console(tmp_path / "home", script):
        agent = RawRelay(tmp_path / "home")
        assert agent.initialize()["result"] == {}
        assert held.wait(20)
        assert agent.end() == (0, "")
    assert len(asked) == 2


def test_a_new_console_hears_that_the_client_is_ready_before_anything_else(tmp_path: Path) -> None:
    """Another request finds the restart first: the session it replays is a whole one."""
    sessions = iter(("old", "new"))
    heard: list[tuple[str, str]] = []
    telling, over = threading.Event(), threading.Event()

    def script(line: str, session: str, said: dict[str, Any]) -> bytes:
        method = said.get("method", line)
        heard.append((session, method))
        if method == "initialize":
            result = {"jsonrpc": "2.0", "id": said["id"], "result": {}}
            return http_answer(200, result, f"Mcp-Session-Id: {next(sessions)}")
        if method == "notifications/initialized":
            if session == "old":
                telling.set()
                over.wait(20)
            return http_answer(202)
        if method == "tools/list":
            telling.wait(20)
            if session == "old":
                return http_answer(404)
            return http_answer(200, {"jsonrpc": "2.0", "id": said["id"], "result": {"tools": []}})
        return http_answer(405)

    with scripted_console(tmp_path / "home", script):
        agent = RawRelay(tmp_path / "home", AILERON_TOKEN=TOKEN)
        agent.handshake()
        agent.send("tools/list", 1)
        assert agent.answer(1)["result"] == {"tools": []}
        sequence = heard.copy()
        over.set()
        assert agent.end() == (0, "")
    ready, listing = ("new", "notifications/initialized"), ("new", "tools/list")
    assert sequence.index(ready) < sequence.index(listing)


def test_an_id_used_again_at_once_stays_the_new_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the one that was answered clears up after the next one came."""
    ours = Relay({})
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    first, second = Call(message, b""), Call(message, b"")

    def answered(call: Call) -> bool:
        ours._calls[call.key] = second
        return True

    monkeypatch.setattr(ours, "_try_once", answered)
    ours._calls[first.key] = first
    ours._serve_request(first)
    assert ours._calls == {second.key: second}
    os.close(ours._wake_read)
    os.close(ours._wake_write)


def test_a_token_file_that_is_read_while_it_is_written_is_read_again(tmp_path: Path) -> None:
    """Empty for an instant is no token, and not the last word."""
    file, stop = tmp_path / "token", threading.Event()
    file.write_text("")
    console = ConsoleFinder({"AILERON_HOME": str(tmp_path)}, stop)
    ours = AileronSession({"AILERON_TOKEN_FILE": str(file)}, console, lambda *_: None, stop)
    with pytest.raises(RequestDenied, match="is empty"):
        ours._require_token()
    file.write_text("first\n")
    assert ours._require_token() == "first"
    file.write_text("")
    with pytest.raises(RequestDenied, match="is empty"):
        ours.renew_token("first")
    file.write_text("second\n")
    ours.renew_token("first")
    assert ours._require_token() == "second"


def test_who_never_finishes_the_handshake_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is believed before the certificate was seen, so nobody is waited for either."""
    monkeypatch.setattr(console_finder, "CONNECT_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConsoleNotFound, match="does not support TLS"):
        _with_certificate(ours, "localhost", "1", "0" * 64)
