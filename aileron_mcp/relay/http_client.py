"""HTTP/1.1 over a socket: `http.client` alone costs more to import than the whole relay."""

import re
import socket
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress

ANSWER_LIMIT = 128 * 1024 * 1024  # bytes of one message from the console; its guests print 8 MiB
_HEAD_LIMIT = 64 * 1024  # bytes of one HTTP line from the console
_FIELD_LIMIT = 256  # HTTP fields of one answer
# int() alone would take signs, underscores, other scripts' digits, and fail on thousands of them.
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LENGTH = re.compile(r"[0-9]{1,15}")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: .*)?")


class ConnectionDropped(Exception):
    """The connection ended early. `sent`: the whole request had gone out, so it may have run."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("sent" if sent else "not sent")
        self.sent = sent


class HttpConnection:
    """One connection to a verified console."""

    def __init__(self, sock: socket.socket, host: str) -> None:
        self._socket = sock
        self._host = host
        self._buffer = bytearray()
        self.status = 0
        self.headers: dict[str, str] = {}

    def __enter__(self) -> "HttpConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def set_timeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def abort(self) -> None:
        """End the connection from another thread; its reader sees it dropped."""
        with suppress(OSError):  # it may have ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> int:
        """Send a request and read the answer's head; return its status.

        Raises:
            ConnectionDropped: the connection ended first.
        """
        fields = {"Host": self._host, "Connection": "close", **headers}
        if method == "POST":
            fields["Content-Length"] = str(len(body))
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items())]
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        except OSError as error:
            # The kernel did not take all of it, so the console cannot have read a whole request.
            raise ConnectionDropped(sent=False) from error
        self._read_head()
        return self.status

    def _read_head(self) -> None:
        status = _STATUS_LINE.fullmatch(self._line())
        if status is None:
            raise ConnectionDropped(sent=True)
        self.status = int(status[1])
        self.headers = {}
        while line := self._line():
            if len(self.headers) >= _FIELD_LIMIT:
                raise ConnectionDropped(sent=True)
            name, _, value = line.partition(b":")
            self.headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")

    def read_chunks(self) -> Generator[bytes]:
        """Yield the answer's body as it comes."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._chunk_size():
                yield from self._exactly(size)
                self._line()
            while self._line():
                pass
        elif (length := self.headers.get("content-length")) is not None:
            if _LENGTH.fullmatch(length) is None:
                raise ConnectionDropped(sent=True)
            yield from self._exactly(int(length))
        elif self.status not in (202, 204, 304):
            while self._buffer or self._fill(at_end=False):
                data = bytes(self._buffer)
                self._buffer.clear()
                yield data

    def read_body(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in self.read_chunks():
            parts.append(part)
            size += len(part)
            if size > ANSWER_LIMIT:
                raise ConnectionDropped(sent=True)
        return b"".join(parts)

    def _chunk_size(self) -> int:
        size = self._line().partition(b";")[0].strip()
        if _CHUNK_SIZE.fullmatch(size) is None:
            raise ConnectionDropped(sent=True)
        return int(size, 16)

    def _exactly(self, size: int) -> Generator[bytes]:
        while size:
            if not self._buffer:
                self._fill()
            data = bytes(self._buffer[:size])
            del self._buffer[: len(data)]
            size -= len(data)
            yield data

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise ConnectionDropped(sent=True)
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _fill(self, *, at_end: bool = True) -> bool:
        """Read more; at the connection's end raise, or return False where the end is in order."""
        try:
            data = self._socket.recv(65536)
        except OSError as error:
            raise ConnectionDropped(sent=True) from error
        if not data and at_end:
            raise ConnectionDropped(sent=True)
        self._buffer += data
        return bool(data)


def read_events(chunks: Iterable[bytes]) -> Generator[bytes]:
    """Yield the data of each server-sent event as soon as it is complete.

    Raises:
        ConnectionDropped: an event does not end within the limit.
    """
    rest: list[bytes] = []  # of a line that has not ended; joined once, however many pieces
    data: list[bytes] = []
    size = 0
    for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
        for line in (line.removesuffix(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
        if last:
            rest.append(last)
        size = size + len(chunk) if data or rest else 0
        if size > ANSWER_LIMIT:
            raise ConnectionDropped(sent=True)
