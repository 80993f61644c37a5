"""Where a browser brings a provider's answer: 127.0.0.1, a port of its own, one request with the right state."""

import asyncio
import contextlib
import errno
import hmac
import socket
from collections.abc import Mapping
from typing import Self
from urllib.parse import parse_qsl

from aileron_core.errors import Unavailable
from aileron_core.tasks import spawn
from aileron_core.vault.secret import Secret

PATH = "/callback"
_MAX_HEAD = 16 * 1024
_HEAD_SECONDS = 10.0
_MAX_CONNECTIONS = 16
_PORTS_TRIED = 20
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>Aileron</title>"
    b"<p>Aileron has received the answer. Close this page and continue in the terminal."
)
_HEADERS = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'\r\n"
    b"Referrer-Policy: no-referrer\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"Cache-Control: no-store\r\n"
    b"Connection: close\r\n"
)


class RedirectListener:
    """Receives one GET of the exact path with *state*, and is gone then; anything else is answered with 404.

    Whoever does not know the state (another program, a page in the browser) cannot end the login.
    It accepts connections itself: one that an `asyncio.Server` accepts as it closes is never answered.
    """

    def __init__(self, state: Secret, sock: socket.socket, beside: socket.socket | None) -> None:
        self._state = state
        self._socket = sock
        self._beside = beside
        """Holds `[::1]` at the same port, so that nobody else can answer there."""
        self._place = f"127.0.0.1:{sock.getsockname()[1]}"
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._serving: dict[asyncio.Task[None], None] = {}
        self._accepting = spawn(self._accept(), name="redirect listener")
        # Not before its end: until then the loop watches the socket.
        self._accepting.add_done_callback(lambda _: sock.close())

    @classmethod
    def open(cls, state: Secret) -> Self:
        """Listen at a free port for the answer with *state*.

        Raises:
            Unavailable: there is none.
        """
        return cls(state, *_two_sockets())

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends the browser."""
        return f"http://{self._place}{PATH}"

    async def receive(self) -> Mapping[str, str]:
        """Return the parameters of the one request."""
        return await asyncio.shield(self._answer)

    def close(self) -> None:
        """Give the port back. A second time nothing happens."""
        self._stop_listening()
        self._answer.cancel()
        for each in self._serving:
            each.cancel()

    def _stop_listening(self) -> None:
        self._accepting.cancel()
        if self._beside is not None:
            self._beside.close()

    async def _accept(self) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(self._socket)
            if len(self._serving) >= _MAX_CONNECTIONS:
                # The oldest: else whoever opens these and says nothing keeps the browser out.
                oldest = next(iter(self._serving))
                del self._serving[oldest]
                oldest.cancel()
            task = spawn(self._serve(connection), name="redirect")
            self._serving[task] = None
            task.add_done_callback(lambda each: self._serving.pop(each, None))

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD)
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._respond(writer, self._parameters(head))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # what sent no request gets no answer
        finally:
            writer.close()

    async def _respond(self, writer: asyncio.StreamWriter, found: Mapping[str, str] | None) -> None:
        if found is None or self._answer.done():
            head, page = b"HTTP/1.1 404 Not Found\r\n", b""
        else:
            self._answer.set_result(found)
            self._stop_listening()  # the next one is not even connected
            head, page = b"HTTP/1.1 200 OK\r\n", _PAGE
        writer.write(head + _HEADERS + b"Content-Length: %d\r\n\r\n" % len(page) + page)
        with contextlib.suppress(OSError):
            await writer.drain()

    def _parameters(self, head: bytes) -> Mapping[str, str] | None:
        """Return the query of a request that is meant for this, None for any other."""
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        headers = [line.partition(":") for line in lines[1:] if line]
        hosts = [value.strip() for name, _, value in headers if name.lower() == "host"]
        if len(words) != 3 or words[0] != "GET" or hosts != [self._place]:
            return None
        path, _, query = words[1].partition("?")
        if path != PATH:
            return None
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=50)
        except ValueError:
            return None
        found = dict(pairs)
        if len(found) != len(pairs):  # two readers of one address could see two answers
            return None
        is_right = hmac.compare_digest(found.get("state", "").encode(), self._state.reveal())
        return found if is_right else None


def _two_sockets() -> tuple[socket.socket, socket.socket | None]:
    """Return a socket at a free port of 127.0.0.1, and one that holds the same port of `::1`."""
    for _ in range(_PORTS_TRIED):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind(("127.0.0.1", 0))
            sock.listen(_MAX_CONNECTIONS)
            sock.setblocking(False)
            return sock, _hold_ipv6(int(sock.getsockname()[1]))
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise Unavailable(f"No port of 127.0.0.1 is free: {error.strerror}.") from error
    raise Unavailable("No port is free on both 127.0.0.1 and [::1]. Try again.")


def _hold_ipv6(port: int) -> socket.socket | None:
    """Return a socket at *port* of `::1` that is bound and refuses connections; None without IPv6.

    Raises:
        OSError: somebody else has the port.
    """
    try:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        sock.bind(("::1", port))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None
    return sock
