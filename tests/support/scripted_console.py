"""A program in the console's place, whose every answer a test gives."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.http_service import HttpRequest, http_server
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

    def answer(asked: HttpRequest, body: bytes) -> None:
        session = asked.headers.get("Mcp-Session-Id", "")
        asked.close_connection = True
        with contextlib.suppress(OSError):
            said = script(asked.requestline, session, json.loads(body) if body else {})
            asked.wfile.write(said)

    lock = lock_home(home)
    try:
        with http_server(answer, listener=listen_unix(home / "run" / "console.sock")):
            yield
    finally:
        os.close(lock)
