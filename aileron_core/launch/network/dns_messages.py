"""Questions and answers of DNS, as far as a resolver for a list of names needs them. Pure: RFC 1035."""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

IPV4, IPV6 = 1, 28
"""The types of questions for addresses."""
_INTERNET = 1
_HEAD = struct.Struct(">6H")
_MAX_NAME = 253
_TTL_SECONDS = 30
_FAILURE, _NO_SUCH_NAME, _NOT_IMPLEMENTED = 2, 3, 4
_NAME_IN_QUESTION = 0xC00C
"""A pointer to it."""
_RESPONSE, _OPCODE, _AUTHORITATIVE, _DESIRED, _AVAILABLE = 0x8000, 0x7800, 0x0400, 0x0100, 0x0080


class NotAQuery(ValueError):
    """A message that gets no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question."""

    number: int
    flags: int
    name: str
    """Labels joined by dots, in lower case, without a final dot; bytes that are not ASCII as `\\xNN`."""
    kind: int
    """Type of the records that are asked for."""
    question: bytes
    """As it was sent, to be repeated in the answer."""

    @classmethod
    def parse(cls, message: bytes) -> "Query":
        """Read one question.

        Raises:
            NotAQuery: it is an answer, has no or several questions, or is damaged.
        """
        if len(message) < _HEAD.size:
            raise NotAQuery
        number, flags, questions, *_ = _HEAD.unpack_from(message)
        if flags & _RESPONSE or questions != 1:
            raise NotAQuery
        labels, at = _labels(message, _HEAD.size)
        fixed = message[at : at + 4]
        if len(fixed) < 4 or fixed[2:] != _INTERNET.to_bytes(2, "big"):
            raise NotAQuery
        name = ".".join(each.decode("ascii", "backslashreplace") for each in labels).lower()
        if len(name) > _MAX_NAME:
            raise NotAQuery
        return cls(
            number=number,
            flags=flags,
            name=name,
            kind=int.from_bytes(fixed[:2], "big"),
            question=message[_HEAD.size : at + 4],
        )

    def answer(self, addresses: Sequence[str]) -> bytes:
        """Return the answer with these IPv4 addresses; there may be none."""
        record = struct.pack(">HHHIH", _NAME_IN_QUESTION, IPV4, _INTERNET, _TTL_SECONDS, 4)
        return self._response(0, [record + socket.inet_aton(each) for each in addresses])

    def no_such_name(self) -> bytes:
        return self._response(_NO_SUCH_NAME)

    def failure(self) -> bytes:
        """Return the answer that another attempt may succeed."""
        return self._response(_FAILURE)

    def _response(self, code: int, records: Sequence[bytes] = ()) -> bytes:
        if self.flags & _OPCODE:
            code, records = _NOT_IMPLEMENTED, ()
        flags = _RESPONSE | _AUTHORITATIVE | _AVAILABLE | self.flags & (_OPCODE | _DESIRED) | code
        head = _HEAD.pack(self.number, flags, 1, len(records), 0, 0)
        return head + self.question + b"".join(records)


def _labels(message: bytes, at: int) -> tuple[list[bytes], int]:
    """Return the labels of the name at *at*, and where it ends."""
    labels: list[bytes] = []
    while True:
        size = message[at] if at < len(message) else 0xFF
        at += 1
        if size == 0:
            return labels, at
        if size > 63 or at + size > len(
            message
        ):  # a pointer, which no question needs, or cut short
            raise NotAQuery
        labels.append(message[at : at + size])
        at += size
