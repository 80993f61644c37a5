"""What can be put in the console's place: a listener, a lock on the home, answers that a test gives."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.http_service import HttpRequest, http_server
from tests.support.mcp_harness import listen_unix, lock_home

_LOCKS = (
    "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY);"
    "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
)


class Listener:
    """Takes every connection, keeps every byte, and answers each read with *answer*."""

    def __init__(self, sock: socket.socket, answer: bytes) -> None:
        self._sock = sock
        self._answer = answer
        self.port = sock.getsockname()[1] if sock.family == socket.AF_INET else 0
        self.heard: list[bytes] = []
        """What came over each connection."""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._sock.accept()
                self.heard.append(b"")
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    while data := connection.recv(65536):
                        self.heard[-1] += data
                        connection.sendall(self._answer)

    def close(self) -> None:
        while self._thread.is_alive() and select.select([self._sock], [], [], 0)[0]:
            time.sleep(0.01)
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(60)


_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.contextmanager
def listening(sock: socket.socket, answer: bytes = _OK) -> Iterator[Listener]:
    """Listen on *sock*; what was heard is complete at the end of the block."""
    with contextlib.closing(Listener(sock, answer)) as listener:
        yield listener


@contextlib.contextmanager
def locked_by_another_process(home: Path) -> Iterator[None]:
    home.mkdir(mode=0o700, exist_ok=True)
    words, pipe = [sys.executable, "-c", _LOCKS, str(home)], subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


Script = Callable[[str, str, dict[str, Any]], bytes]
"""From request line, MCP session and body: the answer, empty for a console that hangs up."""


def http_answer(status: int, body: Any = None, *headers: str) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


@contextlib.contextmanager
def scripted_console(home: Path, script: Script) -> Iterator[None]:
    """Be the console of *home*; each request has a thread of its own."""

    def answer(asked: HttpRequest, body: bytes) -> None:
        session = asked.headers.get("Mcp-Session-Id", "")
        asked.close_connection = True
        with contextlib.suppress(OSError):
            asked.wfile.write(script(asked.requestline, session, json.loads(body) if body else {}))

    lock = lock_home(home)
    try:
        with http_server(answer, listener=listen_unix(home / "run" / "console.sock")):
            yield
    finally:
        os.close(lock)
