"""A console as far as a launcher needs one, in the tests' own process: it opens a session and asks its tools."""

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aileron_core.home.layout import Home, HomeLock
from tests.support.ordinary import acting_as

SESSION = "ses-0123456789abcdef"
BASE = f"/v1/sessions/{SESSION}"
SECONDS = 30


class ToolConsole:
    """It owns *home*, which a user's program takes for its console."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.features: dict[str, Any] = {}
        self.opened: dict[str, Any] = {}
        """The body that the session was opened with."""
        self.gone = False
        """Whether the session is."""
        self.results: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self.attached = threading.Event()
        self.connections = 0
        self._calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._number = 0

    def send(self, worker: str, frame: dict[str, Any]) -> None:
        text = json.dumps({"worker": worker, "frame": frame})
        self._calls.put(f"data: {text}\n\n".encode())

    def ask(self, worker: str, op: str, **args: Any) -> dict[str, Any]:
        self._number += 1
        self.send(worker, {"id": self._number, "op": op, "args": args})
        by, frame = self.results.get(timeout=SECONDS)
        assert (by, frame.get("id")) == (worker, self._number), frame
        return frame

    def break_stream(self) -> None:
        self.attached.clear()
        self._calls.put(None)

    def answer(self, handler: "_Handler", body: Any) -> None:
        path = handler.path
        if path == f"{BASE}/tool-results":
            self.results.put((body["worker"], body["frame"]))
        if self.gone:
            failure = {
                "class": "not_found",
                "message": "Gone.",
                "retriable": False,
                "boundary": "gate",
            }
            handler.reply(404, {"error": {**failure, "audit_id": None, "details": {}}})
        elif path == f"{BASE}/tools":
            self.features = body
            handler.reply(200, {})
        elif path == f"{BASE}/tool-calls":
            self.attached.set()
            handler.begin_stream()
            while (event := self._calls.get()) is not None:
                handler.chunk(event)
        elif path == f"{BASE}/hold":
            handler.begin_stream()
            handler.rfile.read()
        elif path == "/v1/sessions":
            self.opened = body
            own = self.home / "run" / SESSION
            tokens = {"token": "t", "gateway_token": "g", "url": "http://127.0.0.1:9"}
            handler.reply(200, {"session_id": SESSION, **tokens, "socket": str(own / "s.sock")})
        else:
            handler.reply(200, {})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def setup(self) -> None:
        super().setup()
        self.server.console.connections += 1

    def do_GET(self) -> None:
        self._do()

    def do_POST(self) -> None:
        self._do()

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(length)) if length else None
        with contextlib.suppress(OSError):
            self.server.console.answer(self, body)

    def reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        self.chunk(b": held\n\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


class _Server(ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    daemon_threads = True

    def __init__(self, console: ToolConsole) -> None:
        self.console = console
        super().__init__(str(console.home / "run" / "console.sock"), _Handler)

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)


@contextlib.contextmanager
def tool_console(home: Path) -> Iterator[ToolConsole]:
    """Serve *home*, which exists, as a console of its owner's."""
    console = ToolConsole(home)
    lock = HomeLock(Home(home))
    lock.acquire()
    with acting_as(home.stat().st_uid):
        (home / "run" / SESSION).mkdir(mode=0o700, parents=True)
        server = _Server(console)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield console
    finally:
        server.shutdown()
        server.server_close()
        lock.release()
