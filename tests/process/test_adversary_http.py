"""A hostile client at the port: silence, half a request, odd requests."""

import resource
import socket

from examples.mailbox.server import Mailbox
from tests.support.server_harness import Console, Serve

_FILES = 256
"""Files that the console may open in these tests; macOS gives a program as few."""


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))


def _silent(console: Console, count: int) -> list[socket.socket]:
    connections: list[socket.socket] = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", console.port), timeout=30)
        connection.sendall(b"GET /v1/hea")
        connections.append(connection)
    return connections


def test_silent_connections_keep_nobody_from_being_heard(serve: Serve, mailbox: Mailbox) -> None:
    """Whoever reaches the port without a token can neither lock agents nor person out."""
    console = serve(mailbox, preexec_fn=_few_files)
    token = console.session()["token"]
    connections = _silent(console, 2 * _FILES)
    try:
        assert console.get("/v1/health").status == 200
        assert console.run("list-drafts", {}, token).status == 200
        assert console.session()["token"]
    finally:
        for connection in connections:
            connection.close()
    assert "a tick failed" not in (console.home / "log" / "aileron.log").read_text()


def test_the_open_streams_of_one_session_lock_no_other_out(serve: Serve, mailbox: Mailbox) -> None:
    """Beyond 128 requests at once a session is told to wait, and others are served."""
    console = serve(mailbox)
    greedy, other = console.session(), console.session()
    path = f"/v1/sessions/{greedy['session_id']}/hold"
    head = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n"
        f"Authorization: Bearer {greedy['token']}\r\n\r\n"
    )
    connections: list[socket.socket] = []
    statuses: list[bytes] = []
    try:
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", console.port), timeout=30)
            connection.sendall(head.encode())
            statuses.append(connection.recv(12))
            connections.append(connection)
        assert statuses == [b"HTTP/1.1 200"] * 128 + [b"HTTP/1.1 429"] * 72
        assert console.run("list-drafts", {}, other["token"]).status == 200
    finally:
        for connection in connections:
            connection.close()
