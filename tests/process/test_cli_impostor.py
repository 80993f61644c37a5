"""The command line against listeners that are not the console: none of them is told anything."""

import contextlib
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_harness import listen_tcp
from tests.support.server_harness import Console, aileron, aileron_json

COMMANDS = [
    ("status",),
    ("action", "run", "get-draft", "--arg", "id=the-secret-argument"),
    ("open", "approval", "act-20260101T000000-0123456789abcdef"),
]


class Listener:
    """Takes every connection and keeps every byte."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.connections = 0
        self.heard = b""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._sock.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    while data := connection.recv(65536):
                        self.heard += data
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def close(self) -> None:
        while self._thread.is_alive() and select.select([self._sock], [], [], 0)[0]:
            time.sleep(0.01)  # who has come is counted
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(60)


@contextlib.contextmanager
def listening(sock: socket.socket) -> Iterator[Listener]:
    sock.listen()
    listener = Listener(sock)
    try:
        yield listener
    finally:
        listener.close()


def unix(path: Path) -> socket.socket:
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    return sock


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another process holds the home's lock."""
    program = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY);"
        "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_socket_of_another_process_than_the_owner_gets_not_one_byte(
    home: Path, command: tuple[str, ...]
) -> None:
    """It is connected to, the kernel says whose it is, and nothing is sent. Exit 69."""
    with locked(home), listening(unix(home / "run" / "console.sock")) as listener:
        done = aileron(*command, home=home, code=69)
    assert listener.connections == 1
    assert listener.heard == b""
    assert "does not own" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_socket_in_a_home_that_nobody_owns_is_not_connected_to(
    home: Path, command: tuple[str, ...]
) -> None:
    """Nor in one whose lock is only shared: anybody who may read can hold that. Exit 69."""
    with listening(unix(home / "run" / "console.sock")) as listener:
        done = aileron(*command, home=home, code=69)
        handle = os.open(home, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_SH)
        aileron(*command, home=home, code=69)
        os.close(handle)
    assert listener.connections == 0
    assert "No console is running on" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_who_listens_on_the_old_port_is_never_asked(
    console: Console, command: tuple[str, ...]
) -> None:
    """The console stopped; its port, its name and its address file are in other hands."""
    port = console.port
    console.end()
    content = {
        "version": 1,
        "url": f"http://127.0.0.1:{port}",
        "socket": str(console.home.parent / "elsewhere.sock"),
        "pid": os.getpid(),
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    (console.home / "daemon.json").write_text(json.dumps(content))
    with (
        listening(listen_tcp(port)) as on_port,
        listening(unix(console.home.parent / "elsewhere.sock")) as on_socket,
    ):
        aileron(*command, home=console.home, code=69)
    assert on_port.connections == on_socket.connections == 0


def test_an_edited_daemon_json_leads_nobody_astray(console: Console) -> None:
    """The running console is found by its lock; what the file says is not asked."""
    with (
        listening(listen_tcp()) as on_port,
        listening(unix(console.home.parent / "elsewhere.sock")) as on_socket,
    ):
        content = json.loads((console.home / "daemon.json").read_text())
        content["url"] = f"http://127.0.0.1:{on_port._sock.getsockname()[1]}"
        content["socket"] = str(console.home.parent / "elsewhere.sock")
        content["pid"] = os.getpid()
        (console.home / "daemon.json").write_text(json.dumps(content))
        assert aileron_json("status", home=console.home)["url"] == console.url
        assert aileron_json("action", "run", "list-drafts", home=console.home)["status"]
        opened = aileron_json(
            "open", "approval", "act-20260101T000000-0123456789abcdef", home=console.home,
            env={"BROWSER": "true", "DISPLAY": ""},
        )  # fmt: skip
    assert opened["url"].startswith(console.url + "/review/")
    assert on_port.connections == on_socket.connections == 0
