"""stdout: messages to the client, in whole lines, from any thread."""

import os
import re
import select
import threading
from collections.abc import Callable

from aileron_mcp.relay.messages import (
    INTERNAL_ERROR,
    NOT_JSON,
    Call,
    Message,
    error_response,
    to_json_line,
)

_LINE_BREAK = re.compile(rb"[\r\n]")


class ClientOutput:
    """Writes messages to the client."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed
        self._lock = threading.Lock()

    def write(self, message: Message) -> None:
        self._write_line(to_json_line(message))

    def forward(self, message: Message, raw: bytes) -> None:
        """Write what the console sent unchanged, if it is one line."""
        self._write_line(to_json_line(message) if _LINE_BREAK.search(raw) else raw)

    def respond(self, call: Call, message: Message, raw: bytes) -> None:
        """Write the response to *call*: as *raw* where that is the message on one line.

        An error about a message as a whole comes without its id, so the id is put in.
        """
        id_ = message.get("id")
        if raw and type(id_) is type(call.id) and id_ == call.id and not _LINE_BREAK.search(raw):
            self._write_line(raw)
            return
        line = to_json_line({**message, "id": call.id})
        if line == NOT_JSON:
            problem = "The console's answer contains values that JSON does not allow."
            line = to_json_line(error_response(call.id, INTERNAL_ERROR, problem))
        self._write_line(line)

    def _write_line(self, data: bytes) -> None:
        line = memoryview(data + b"\n")
        with self._lock:
            while line:
                try:
                    line = line[os.write(1, line) :]
                except BlockingIOError:
                    select.select([], [1], [])
                except OSError:
                    self._on_closed()
                    return
