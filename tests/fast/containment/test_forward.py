"""The way to the gateway out of a sandbox without network: bytes, back-pressure, ends and breaks."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.containment import sandbox_init

SCRIPT = f"""
import runpy, socket, sys
forward = runpy.run_path({sandbox_init.__file__!r})["forward"]
forward(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
"""
SECONDS = 60
MANY = 20 * 1024 * 1024


class Way:
    """A forwarder in a process of its own, and the console's end of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.sock"
        self.listener = socket.create_server(("127.0.0.1", 0))
        handle = self.listener.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", SCRIPT, str(handle), str(self.path)], pass_fds=(handle,)
        )
        self.listen()

    def listen(self) -> None:
        """Have the console listen (again)."""
        self.path.unlink(missing_ok=True)
        self.console = socket.socket(socket.AF_UNIX)
        self.console.bind(str(self.path))
        self.console.listen()
        self.console.settimeout(SECONDS)

    def client(self) -> socket.socket:
        """Return a new connection of the agent's."""
        return socket.create_connection(self.listener.getsockname(), timeout=SECONDS)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of one connection: the agent's and the console's."""
        client = self.client()
        console, _ = self.console.accept()
        console.settimeout(SECONDS)
        return client, console

    def close(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        self.listener.close()
        self.console.close()


@pytest.fixture
def way(tmp_path: Path) -> Iterator[Way]:
    with contextlib.closing(Way(tmp_path)) as found:
        yield found


def read_bytes(end: socket.socket, size: int = 1 << 40) -> bytes:
    """Read *size* bytes, or to the end."""
    parts: list[bytes] = []
    while size > 0 and (part := end.recv(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def fill_pipe(end: socket.socket) -> int:
    """Write until nobody takes more; return how much was taken."""
    end.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < MANY:
            sent += end.send(bytes(65536))
    end.settimeout(SECONDS)
    return sent


def test_bytes_pass_unchanged_in_both_directions(way: Way) -> None:
    """Through the sandbox: nothing is added, and a piece passes before the next is there."""
    client, console = way.pair()
    with client, console:
        for source, target in ((client, console), (console, client)):
            for piece in (b"POST /gw/tok/v1/messages HTTP/1.1\r\n", b"\x00\xff" * 5, b"\n\n"):
                source.sendall(piece)
                assert read_bytes(target, len(piece)) == piece


@pytest.mark.parametrize("up", [True, False])
def test_whoever_does_not_read_is_waited_for_and_loses_nothing(way: Way, up: bool) -> None:
    """Back-pressure: what is under way is bounded, and all of it comes."""
    client, console = way.pair()
    with client, console:
        source, target = (client, console) if up else (console, client)
        sent = fill_pipe(source)
        assert 0 < sent < MANY
        assert len(read_bytes(target, sent)) == sent


def test_a_client_that_hangs_up_is_heard_by_the_console(way: Way) -> None:
    """The console cancels upstream; it has to see the end for that."""
    client, console = way.pair()
    with console:
        client.close()
        assert read_bytes(console) == b""


@pytest.mark.parametrize("ended", [True, False])
def test_an_answer_is_heard_whether_the_request_has_ended_or_not(way: Way, ended: bool) -> None:
    """A console that refuses a large body closes while it is still being sent."""
    client, console = way.pair()
    with client, console:
        client.sendall(b"head")
        if ended:
            client.shutdown(socket.SHUT_WR)
        assert read_bytes(console, 1 << 40 if ended else 4) == b"head"
        console.sendall(b"413")
        console.close()
        assert read_bytes(client, 1 << 40 if ended else 3) == b"413"


def test_while_the_console_is_away_a_connection_breaks_and_later_ones_pass(way: Way) -> None:
    """A restart of the console is no error; its socket comes back in the same place."""
    way.console.close()
    with way.client() as client, pytest.raises(ConnectionResetError):
        client.recv(1)
    way.listen()
    client, console = way.pair()
    with client, console:
        client.sendall(b"again")
        assert read_bytes(console, 5) == b"again"


def test_one_connection_does_not_wait_for_another(way: Way) -> None:
    """A stream that nobody reads holds up nobody else."""
    slow, console = way.pair()
    with slow, console:
        fill_pipe(console)
        client, other = way.pair()
        with client, other:
            client.sendall(b"ping")
            assert read_bytes(other, 4) == b"ping"
            other.sendall(b"pong")
            assert read_bytes(client, 4) == b"pong"
