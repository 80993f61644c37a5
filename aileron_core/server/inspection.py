"""Reading in models' answers which tools they call, beside the stream and on a thread of its own.

What is read is a copy of what was passed on already. If reading fails, falls behind or meets a limit, the
rest of that answer is not read, which is counted and logged without contents. Only the names of the
tools leave the thread.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias

from aileron_core.console_port.view_models import UnreadReason
from aileron_core.errors import ModelFormatError
from aileron_core.models import BY_PATH, Format, StreamReader
from aileron_core.models.neutral import Answer, CallBegun, Event, Limits, OtherCall
from aileron_core.server.gateway.key_injection import is_encoded
from aileron_core.server.gateway.providers import Header
from aileron_core.server.shares import Shares
from aileron_core.sessions.tool_calls import ToolCallMeter

_log = logging.getLogger(__name__)

_LIMITS: Final = Limits(event_bytes=4 * 1024 * 1024, answer_bytes=16 * 1024 * 1024, calls=128)
"""Of one answer; one that is not streamed may be as large as an event."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Of the answers of all sessions that are being read, or wait for it; of one session half of it at most."""
_WITHOUT_READER: Final = (b":generateContent", b":streamGenerateContent")
"""Ends of Gemini's paths; no reader knows its format."""
_SOCKETS: Final = frozenset((b"/v1/responses", b"/v1/realtime"))
Job: TypeAlias = "tuple[AnswerReading, bytes | None]"


class AnswerInspector:
    """Reads the answers of every session; made on the core's loop, and used there alone."""

    def __init__(self, meter: ToolCallMeter) -> None:
        self._meter = meter
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._shares = Shares(MAX_BYTES)
        self._thread: threading.Thread | None = None

    def copy_of(self, session_id: str, method: bytes, path: bytes) -> "AnswerReading | None":
        """Return the copy of a request's answer; None if such an answer has no tool calls."""
        found = BY_PATH.get(path)
        is_asked = found is not None and method == b"POST"
        if not is_asked and path not in _SOCKETS and not path.endswith(_WITHOUT_READER):
            return None
        return AnswerReading(self, session_id, found if is_asked else None)

    def close(self) -> None:
        """End the thread once it has read what it has."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None

    # On the loop

    def put(self, reading: "AnswerReading", data: bytes | None) -> bool:
        """Have *data*, or the end, read later; return False where there is no room for it."""
        if data:
            if not self._shares.fits(reading.session_id, len(data)):
                return False
            self._shares.add(reading.session_id, len(data))
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, name="inspect", daemon=True)
            self._thread.start()
        self._jobs.put((reading, data))
        return True

    def give_up(self, session_id: str, reason: UnreadReason) -> None:
        """Count an answer that is not read."""
        _log.info("a model's answer was not inspected: %s", reason)
        self._meter.add_unread(session_id, reason)

    def _found(self, session_id: str, names: list[str]) -> None:
        for name in names:
            self._meter.add(session_id, name)

    def _release(self, reading: "AnswerReading", reason: UnreadReason | None) -> None:
        """Free what an answer took; its reader has ended."""
        if reading.taken:
            self._shares.give_back(reading.session_id, reading.taken)
        reading.taken = 0
        if reason is not None and not reading.given_up:
            reading.given_up = True
            self.give_up(reading.session_id, reason)

    # On the thread

    def _read(self) -> None:
        while (job := self._jobs.get()) is not None:
            reading, data = job
            if reading.is_over:
                self._tell(self._release, reading, None)
                continue
            reason: UnreadReason | None = None
            names: list[str] = []
            try:
                for name in reading.names_in(data):
                    names.append(name)  # noqa: PERF402 - those before an error count
            except ModelFormatError:
                reason = "error"
            except Exception as error:  # noqa: BLE001 - a reader may never harm anything else
                _log.warning("inspecting a model's answer failed with %s", type(error).__name__)
                reason = "error"
            if names:
                self._tell(self._found, reading.session_id, names)
            if data is None or reason is not None:
                reading.finish()
                self._tell(self._release, reading, reason)

    def _tell(self, do: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(do, *args)


class AnswerReading:
    """The copy of one answer: `begin`, `take` and `end` on the loop, the rest on the thread."""

    def __init__(self, inspector: AnswerInspector, session_id: str, format_: Format | None) -> None:
        self._inspector = inspector
        self.session_id = session_id
        self._format = format_
        self._reader: StreamReader | bytearray | None = None
        """Bytes: of an answer that is not streamed, until it is complete."""
        self.taken = 0
        """Bytes of `MAX_BYTES` that it takes."""
        self.given_up = False
        self.is_over = False
        """Nothing more is read of it; set on the thread."""
        self._is_cut = False

    # On the loop

    def begin(self, status: int, headers: list[Header]) -> bool:
        """Take the head; return whether the body is wanted."""
        if not 200 <= status < 300:
            return False
        if self._format is None:
            return self._not_read("format")
        if is_encoded(headers):
            return self._not_read("compressed")
        kinds = [value.lower() for name, value in headers if name.lower() == b"content-type"]
        if any(kind.startswith(b"text/event-stream") for kind in kinds):
            self._reader = self._format.reader(_LIMITS)
        elif any(b"json" in kind for kind in kinds):
            self._reader = bytearray()
        else:
            return self._not_read("format")
        return True

    def take(self, data: bytes) -> None:
        if self.given_up:
            return
        if self._inspector.put(self, data):
            self.taken += len(data)
        else:
            self._not_read("busy")

    def end(self, outcome: str) -> None:
        """Read what is left; of an answer that broke off, no piece of an event."""
        self._is_cut = outcome != "whole"
        if outcome == "switched":
            self._not_read("websocket")
        elif self._reader is not None:
            self._inspector.put(self, None)

    def _not_read(self, reason: UnreadReason) -> bool:
        self.given_up = True
        self._inspector.give_up(self.session_id, reason)
        return False

    # On the thread

    def names_in(self, data: bytes | None) -> Iterator[str]:
        """Yield the tools that *data* calls, or (None) the end of the answer.

        Raises:
            ModelFormatError: it is not of the format, or over a limit.
        """
        reader, format_ = self._reader, self._format
        if data is None and self._is_cut:
            return
        if isinstance(reader, bytearray) and format_ is not None:
            if data is not None:
                if len(reader) + len(data) > _LIMITS.event_bytes:
                    raise ModelFormatError("The model's answer is over a limit of its inspection.")
                reader += data
            else:
                yield from _names_of(format_.read_answer(bytes(reader), _LIMITS))
        elif isinstance(reader, StreamReader):
            yield from _names_among(reader.finish() if data is None else reader.feed(data))

    def finish(self) -> None:
        """Forget what was read."""
        self.is_over, self._reader = True, None


def _names_among(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        for part in event.parts:
            if isinstance(part, CallBegun):
                yield part.name
            elif isinstance(part, OtherCall):
                yield part.name or part.kind


def _names_of(answer: Answer) -> Iterator[str]:
    yield from (call.name for call in answer.calls)
    yield from (call.name or call.kind for call in answer.other_calls)
