"""A console as far as a launcher needs one, in the tests' own process: it opens a session and asks its tools."""

import contextlib
import itertools
import json
import queue
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aileron_core.home.layout import Home, HomeLock
from tests.support.http_service import HttpRequest, http_server, reply
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
        self.connected: set[HttpRequest] = set()
        """One for each connection."""
        self._calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._number = 0

    def send(self, worker: str, frame: dict[str, Any]) -> None:
        self._calls.put(f"data: {json.dumps({'worker': worker, 'frame': frame})}\n\n".encode())

    def ask(self, worker: str, op: str, **args: Any) -> dict[str, Any]:
        self._number += 1
        self.send(worker, {"id": self._number, "op": op, "args": args})
        by, frame = self.results.get(timeout=SECONDS)
        assert (by, frame.get("id")) == (worker, self._number), frame
        return frame

    def break_stream(self) -> None:
        self.attached.clear()
        self._calls.put(None)

    def answer(self, asked: HttpRequest, body: bytes) -> None:
        self.connected.add(asked)
        given = json.loads(body or b"null")
        path, status = asked.path, 200
        said: dict[str, Any] = {}
        if path == f"{BASE}/tool-results":
            self.results.put((given["worker"], given["frame"]))
        if self.gone:
            failure: dict[str, Any] = {"class": "not_found", "message": "Gone.", "retriable": False}
            status = 404
            said["error"] = failure | {"boundary": "gate", "audit_id": None, "details": {}}
        elif path == f"{BASE}/tools":
            self.features = given
        elif path == f"{BASE}/tool-calls":
            self.attached.set()
            self._stream(asked, iter(self._calls.get, None))
            return
        elif path == f"{BASE}/hold":
            self._stream(asked, ())
            asked.rfile.read()
            return
        elif path == "/v1/sessions":
            self.opened = given
            own = self.home / "run" / SESSION / "s.sock"
            said = {"session_id": SESSION, "token": "t", "gateway_token": "g"}
            said |= {"url": "http://127.0.0.1:9", "socket": str(own)}
        with contextlib.suppress(OSError):
            reply(asked, status, json.dumps(said).encode(), {"Content-Type": "application/json"})

    def _stream(self, asked: HttpRequest, events: Iterable[bytes]) -> None:
        asked.send_response(200)
        asked.send_header("Transfer-Encoding", "chunked")
        asked.end_headers()
        asked.close_connection = True
        with contextlib.suppress(OSError):
            for data in itertools.chain((b": held\n\n",), events):
                asked.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


@contextlib.contextmanager
def tool_console(home: Path) -> Iterator[ToolConsole]:
    """Serve *home*, which exists, as a console of its owner's."""
    console = ToolConsole(home)
    lock = HomeLock(Home(home))
    lock.acquire()
    with acting_as(home.stat().st_uid):
        (home / "run" / SESSION).mkdir(mode=0o700, parents=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(home / "run" / "console.sock"))
        listener.listen()
    try:
        with http_server(console.answer, listener=listener):
            yield console
    finally:
        lock.release()
