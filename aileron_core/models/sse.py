"""Server-sent events: bytes in any pieces into events, and events into bytes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aileron_core.errors import ModelFormatError
from aileron_core.models.json_values import JsonDict, dump

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_MOST_LINES = 100_000


@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its bytes up to the end of the empty line, its name and its data."""

    raw: bytes
    name: str
    data: str


class EventSplitter:
    """Splits a stream at its empty lines; where the pieces end makes no difference."""

    def __init__(self, event_bytes: int) -> None:
        self._limit = event_bytes
        self._buffer = bytearray()
        self._line = 0  # where the current line begins
        self._seen = 0  # up to where there is no line end
        self._lines: list[bytes] = []
        self._first = True

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the events that *data* completes.

        Raises:
            ModelFormatError: an event is over the limit or not UTF-8.
        """
        self._buffer += data
        yield from self._split(last=False)

    def finish(self) -> Iterator[Frame]:
        """Yield what the stream ended with, even without an empty line.

        Raises:
            ModelFormatError: as `feed`.
        """
        yield from self._split(last=True)
        if self._buffer:
            self._lines.append(bytes(self._buffer[self._line :]))
            yield self._frame(len(self._buffer))

    def _split(self, *, last: bool) -> Iterator[Frame]:
        while found := _LINE_END.search(self._buffer, self._seen):
            start, end = found.span()
            found = None  # a match holds the buffer, which could then not be shortened
            if end == len(self._buffer) and self._buffer[start] == 0x0D and not last:
                self._seen = start  # the other half of a CR LF may come
                break
            line = bytes(self._buffer[self._line : start])
            self._line = self._seen = end
            if line:
                self._lines.append(line)
                if len(self._lines) > _MOST_LINES:
                    raise ModelFormatError(
                        f"An event of the model's stream has over {_MOST_LINES} lines."
                    )
            else:
                yield self._frame(end)
        else:
            self._seen = len(self._buffer)
        if len(self._buffer) > self._limit:
            self._too_long()

    def _frame(self, end: int) -> Frame:
        if end > self._limit:
            self._too_long()
        raw, lines = bytes(self._buffer[:end]), self._lines
        del self._buffer[:end]
        self._line = self._seen = 0
        self._lines = []
        if self._first and lines:
            lines[0] = lines[0].removeprefix(_BOM)
        self._first = False
        name, data = "", list[str]()
        for line in lines:
            try:
                key, _, value = line.decode().partition(":")
            except UnicodeDecodeError:
                raise ModelFormatError(
                    "Cannot read an event of the model's stream: it is not UTF-8."
                ) from None
            if key == "data":
                data.append(value.removeprefix(" "))
            elif key == "event":
                name = value.removeprefix(" ")
        return Frame(raw, name, "\n".join(data))

    def _too_long(self) -> None:
        raise ModelFormatError(f"An event of the model's stream is over {self._limit} bytes.")


def encode_event(data: JsonDict, name: str = "") -> bytes:
    """Return an event with *data* as JSON; without a name, it has no `event` line."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + dump(data) + b"\n\n"
