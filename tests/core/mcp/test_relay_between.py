"""A console that goes away between two steps of the relay, and threads of it that meet."""

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from aileron_mcp.relay import console_finder
from aileron_mcp.relay.aileron_session import AileronSession, RequestDenied
from aileron_mcp.relay.console_finder import ConsoleFinder, ConsoleNotFound, _with_certificate
from aileron_mcp.relay.messages import Call
from aileron_mcp.relay.relay import Relay
from tests.support.mcp_harness import TOKEN, RawRelay
from tests.support.scripted_console import http_answer, scripted_console


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
