"""Which server the first message of a TLS client names. Pure: RFC 8446 section 4.1.2, RFC 6066 section 3."""

from dataclasses import dataclass

MAX_HELLO = 64 * 1024
"""Bytes that a client may send until its first message is complete."""
_HANDSHAKE, _MAJOR_VERSION = b"\x16", b"\x03"
_CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 1, 0, 0
_MAX_RECORD = 16384 + 256


class NotTls(ValueError):
    """What a client sent is not the beginning of TLS."""


@dataclass(slots=True)
class _Reader:
    """Takes fields from the front of *data*; one that is cut short is not TLS."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise NotTls
        taken, self.at = self.data[self.at : end], end
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def block(self, count: int) -> "_Reader":
        """Take what a length of *count* bytes stands before."""
        return _Reader(self.take(self.number(count)))

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def server_name(data: bytes) -> str | None:
    """Return the name that the client asks for, as it sent it; empty where it names none.

    Args:
        data: everything that it sent so far.

    Returns:
        None as long as its first message is not complete.

    Raises:
        NotTls: it is something else, or names no host in a form that a server would read.
    """
    message = _first_message(data)
    if message is None:
        return None
    hello = _Reader(message)
    hello.take(2 + 32)  # version, random
    for length in (1, 2, 1):  # session id, cipher suites, compression methods
        hello.block(length)
    if not hello.more:
        return ""
    extensions, found = hello.block(2), ""
    seen: set[int] = set()
    while extensions.more:
        kind, body = extensions.number(2), extensions.block(2)
        if kind in seen:  # a server could read the other one
            raise NotTls
        seen.add(kind)
        if kind == _SERVER_NAME:
            found = _host_name(body)
    return found


def _first_message(data: bytes) -> bytes | None:
    """Return the body of the first handshake message, which may be in several records; None while it is not whole."""
    message = bytearray()
    at = 0
    while True:
        if len(message) >= 4:
            if message[0] != _CLIENT_HELLO:
                raise NotTls
            size = int.from_bytes(message[1:4], "big")
            if size > MAX_HELLO:
                raise NotTls
            if len(message) >= 4 + size:
                return bytes(message[4 : 4 + size])
        head = data[at : at + 5]
        if head[:1] not in (b"", _HANDSHAKE) or head[1:2] not in (b"", _MAJOR_VERSION):
            raise NotTls
        if len(head) < 5:
            return None
        size = int.from_bytes(head[3:5], "big")
        if not 0 < size <= _MAX_RECORD:
            raise NotTls
        message += data[at + 5 : at + 5 + size]
        at += 5 + size


def _host_name(body: _Reader) -> str:
    """Return the one host name in a `server_name` extension."""
    names = body.block(2)
    if names.number(1) != _HOST_NAME:
        raise NotTls
    name = names.block(2).data
    if names.more or body.more or not name:
        raise NotTls
    try:
        return name.decode("ascii")
    except UnicodeDecodeError:
        raise NotTls from None
