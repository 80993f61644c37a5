"""What another program of the same user can put in the console's place: a listener, a lock on the home."""

import contextlib
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

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


@contextlib.contextmanager
def listening(
    sock: socket.socket, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
) -> Iterator[Listener]:
    """Listen on *sock*; what was heard is complete at the end of the block."""
    listener = Listener(sock, answer)
    try:
        yield listener
    finally:
        listener.close()


@contextlib.contextmanager
def locked_by_another_process(home: Path) -> Iterator[None]:
    home.mkdir(mode=0o700, exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", _LOCKS, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()
