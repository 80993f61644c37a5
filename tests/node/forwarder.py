"""A loopback port in front of a console's that adds a session's token: for clients that send no headers.

It carries bytes: of a request it reads the head, to put the bearer in and to turn its own address
into the console's; everything else, both ways, passes as it comes, and when one side hangs up so
does the other.
"""

import contextlib
import re
import selectors
import socket
import threading
from collections.abc import Callable

_HEAD_LIMIT = 64 * 1024


class Forwarder:
    """Serves on 127.0.0.1 while its `with` block runs, one request per connection.

    Args:
        port: the console's port.
        token: the session's token.
        on_request: gets each request's head, in lower case, before it is passed on.
    """

    def __init__(self, port: int, token: str, on_request: Callable[[bytes], None]) -> None:
        self._console = port
        self._bearer = b"Authorization: Bearer " + token.encode() + b"\r\n"
        self._on_request = on_request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> "Forwarder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._listener.close()
        with self._lock:
            for peer in self._open:
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            head, rest = self._head(peer)
            if head:
                self._on_request(head.lower())
                with socket.create_connection(("127.0.0.1", self._console)) as console:
                    console.sendall(self._rewritten(head) + rest)
                    _carry(peer, console)
        with self._lock:
            self._open.discard(peer)

    @staticmethod
    def _head(peer: socket.socket) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data and len(data) < _HEAD_LIMIT:
            more = peer.recv(65536)
            if not more:
                return b"", b""
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        return head + b"\r\n", rest

    def _rewritten(self, head: bytes) -> bytes:
        """Return the head for the console; a Host or Origin that is not ours stays what it was."""
        head = re.sub(rb"(?im)^connection:.*\r\n", b"", head)
        ours, theirs = (b"127.0.0.1:%d" % port for port in (self.port, self._console))
        return head.replace(ours, theirs) + b"Connection: close\r\n" + self._bearer + b"\r\n"


def _carry(peer: socket.socket, console: socket.socket) -> None:
    """Pass bytes both ways until one side ends."""
    with selectors.DefaultSelector() as ready:
        ready.register(peer, selectors.EVENT_READ, console)
        ready.register(console, selectors.EVENT_READ, peer)
        while True:
            for key, _ in ready.select():
                source, sink = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                data = source.recv(65536)
                if not data:
                    return
                sink.sendall(data)
