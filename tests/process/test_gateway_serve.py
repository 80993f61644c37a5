"""The gateway of a real `aileron serve`: streams, a restart, the end of the process, what is kept."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_harness import Console, Serve

CANARY = "canary-55e1d0"


class _Model(http.server.ThreadingHTTPServer):
    """A model's API: it says each event only when it is told to, and keeps what it heard."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.heard: list[bytes] = []
        self.go = threading.Semaphore(0)
        self.broken = threading.Event()


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Model

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append(bytes(self.headers) + self.requestline.encode() + body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number in range(5):
                self.server.go.acquire()
                event = f"data: {CANARY} {number}\n\n".encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.broken.set()

    def log_message(self, *_ignored: Any) -> None:
        """Say nothing."""


@pytest.fixture
def model() -> Iterator[_Model]:
    with _Model() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def gateway(home: Path, model: _Model, serve: Serve) -> Console:
    """`aileron serve` whose Anthropic is the model."""
    url = f"http://127.0.0.1:{model.server_port}"
    (home / "config.toml").write_text(f'[gateway]\nanthropic = "{url}"\n', encoding="utf-8")
    return serve()


def ask_model(console: Console, token: str) -> Any:
    """Send a request below the token's prefix; return the connection and the answer, begun."""
    connection = console.connection()
    headers = {"x-api-key": CANARY, "Content-Type": "application/json"}
    connection.request("POST", f"/gw/{token}/v1/messages?k={CANARY}", CANARY.encode(), headers)
    return connection, connection.getresponse()


def test_each_event_passes_a_real_console_when_it_was_said(gateway: Console, model: _Model) -> None:
    """The next is said only once the one before was read; nothing of it is kept."""
    opened = gateway.session()
    connection, answer = ask_model(gateway, opened["gateway_token"])
    assert answer.status == 200
    for number in range(5):
        model.go.release()
        assert answer.readline() == f"data: {CANARY} {number}\n".encode()
        assert answer.readline() == b"\n"
    assert answer.read() == b""
    connection.close()
    assert gateway.end() == 0
    heard = b"".join(model.heard)
    assert CANARY.encode() in heard
    for secret in (opened["gateway_token"], opened["token"]):
        assert secret.encode() not in heard
    assert b"aileron" not in heard.lower()
    kept = b"".join(path.read_bytes() for path in gateway.home.rglob("*") if path.is_file())
    assert CANARY.encode() not in kept
    assert opened["gateway_token"].encode() not in kept
    passed = [r for r in gateway.records() if r["event"] == "gateway.passed"]
    assert [r["session"] for r in passed] == [opened["session_id"]]
    assert passed[0]["requests"][0][1:5] == ["anthropic", "POST", "/v1/messages", 200]
    assert CANARY not in json.dumps(passed)


def test_a_gateway_token_lives_through_a_restart_of_the_console(
    gateway: Console, model: _Model
) -> None:
    """The session does, so its agent's base URL goes on."""
    token = gateway.session()["gateway_token"]
    gateway.end()
    gateway.start()
    connection, answer = ask_model(gateway, token)
    for _ in range(5):
        model.go.release()
    assert answer.read().count(CANARY.encode()) == 5
    connection.close()
