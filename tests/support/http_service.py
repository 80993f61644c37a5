"""An HTTP server on the loopback whose every answer a test gives."""

import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

HttpRequest = http.server.BaseHTTPRequestHandler
Answering = Callable[[HttpRequest, bytes], object]
"""Answers a request, whatever its method, whose body was read."""


@contextmanager
def http_server(
    answer: Answering, tls: ssl.SSLContext | None = None, listener: socket.socket | None = None
) -> Iterator[http.server.ThreadingHTTPServer]:
    """Serve on a free port, or on *listener*, until the block ends, each connection on a thread of its own."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body go out apart: 40 ms per answer else.
        disable_nagle_algorithm = listener is None

        def __getattr__(self, name: str) -> Callable[[], None]:
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self._answer

        def _answer(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, listener is None)
    if listener is not None:
        server.socket.close()
        server.socket = listener
    server.block_on_close = False
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(request: HttpRequest, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Answer with all of this, of the body only its length where the method is HEAD."""
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
