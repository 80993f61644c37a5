"""A program in the console's place, whose every answer a test gives."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.mcp_harness import listen_unix, lock_home

Script = Callable[[str, str, dict[str, Any]], bytes]
"""From request line, MCP session and body: the answer, empty for a console that hangs up."""


def http_answer(status: int, body: Any = None, *headers: str) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


@contextlib.contextmanager
def scripted_console(home: Path, script: Script) -> Iterator[None]:
    """Be the console of *home*; each request has a thread of its own."""
    lock = lock_home(home)
    listener = listen_unix(home / "run" / "console.sock")

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            line, session, body = _read_request(connection)
            connection.sendall(script(line, session, json.loads(body) if body else {}))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)
        listener.close()
        os.close(lock)


def _read_request(peer: socket.socket) -> tuple[str, str, bytes]:
    """Return the first line of a request, its MCP session and its body.

    Raises:
        OSError: a relay has hung up before its end.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(peer)
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    named = dict(field.lower().split(": ", 1) for field in fields)
    while len(body) < int(named.get("content-length", 0)):
        body += _more(peer)
    return line, named.get("mcp-session-id", ""), body


def _more(peer: socket.socket) -> bytes:
    if not (data := peer.recv(65536)):
        raise ConnectionAbortedError
    return data
