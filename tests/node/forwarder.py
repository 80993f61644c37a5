"""A loopback port in front of a console's that adds a session's token: for clients that send no headers.

It carries bytes: of a request it reads the head, to put the bearer in and to turn its own address
into the console's; everything else, both ways, passes as it comes, and when one side hangs up so
does the other.
"""

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Callable


class Forwarder(socketserver.ThreadingTCPServer):
    """Serves on 127.0.0.1 while its `with` block runs, one request per connection.

    *on_request* gets each request's head, in lower case, before it is passed on.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, token: str, on_request: Callable[[bytes], None]) -> None:
        super().__init__(("127.0.0.1", 0), _Carrying)
        self.console = port
        self.bearer = b"Authorization: Bearer " + token.encode() + b"\r\n"
        self.on_request = on_request
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Carrying(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Forwarder)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (line := self.rfile.readline(65536)):
                return
            head += line
        self.server.on_request(head.lower())
        # A Host or Origin that is not ours stays what it was.
        ports = (self.server.server_address[1], self.server.console)
        ours, theirs = (b"127.0.0.1:%d" % port for port in ports)
        head = re.sub(rb"(?im)^connection:.*\r\n", b"", head[:-2]).replace(ours, theirs)
        with socket.create_connection(("127.0.0.1", self.server.console)) as console:
            console.sendall(head + b"Connection: close\r\n" + self.server.bearer + b"\r\n")
            threading.Thread(target=self._carry_up, args=(console,), daemon=True).start()
            with contextlib.suppress(OSError):
                while data := console.recv(65536):
                    self.request.sendall(data)
                self.request.shutdown(socket.SHUT_RDWR)

    def _carry_up(self, console: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):  # the other side has ended
            while data := self.rfile.read1(65536):
                console.sendall(data)
            console.shutdown(socket.SHUT_RDWR)
