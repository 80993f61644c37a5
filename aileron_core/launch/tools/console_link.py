"""One attachment of a session's workers to the console: the stream of calls, and the connections for answers."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker.frames import MAX_FRAME
from aileron_core.connectors.builtin.worker_process import WorkerKind
from aileron_core.errors import AileronError, ConsoleErrorResponse, ConsoleUnavailable, Failure
from aileron_core.home.client import HomeConnection

_STREAM_SECONDS = 60.0
"""Silence on the stream after which it counts as broken; the console sends something sooner."""
_ANSWER_SECONDS = 30.0
_MAX_LINE = MAX_FRAME + 1024
_JSON = {"Content-Type": "application/json"}


class ConsoleLink:
    """Lives as long as its stream: what is asked over one is never answered over another.

    A console that was restarted may give a call the number of another one's.
    """

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._path = f"/v1/sessions/{session_id}"
        self._stream: http.client.HTTPResponse | None = None
        self._closed = threading.Event()
        self._is_read = False
        self._asking: HomeConnection | None = None
        self._answering: dict[WorkerKind, HomeConnection] = {}
        self._locks: Mapping[WorkerKind, threading.Lock] = {
            "files": threading.Lock(),
            "commands": threading.Lock(),
        }

    def open(self, features: Mapping[WorkerKind, Mapping[str, Any]]) -> None:
        """Say what the workers can do, then open the stream; calls may arrive from then on.

        Raises:
            ConsoleErrorResponse: the console answered with an error.
            ConsoleUnavailable: it does not answer.
        """
        connection = self._asking = HomeConnection(self._home, timeout=_STREAM_SECONDS)
        try:
            connection.request("POST", f"{self._path}/tools", json.dumps(features).encode(), _JSON)
            _checked(connection.getresponse()).read()
            connection.request("GET", f"{self._path}/tool-calls")
            self._stream = _checked(connection.getresponse())
            self._stream.peek(1)  # the console has it from its first byte on
        except (OSError, http.client.HTTPException) as error:
            raise ConsoleUnavailable(
                "The console stopped before it took over the built-in tools. Check it with `aileron status`."
            ) from error

    def calls(self) -> Iterator[tuple[WorkerKind, dict[str, Any]]]:
        """Yield the worker and the frame of each event, until the stream breaks."""
        assert self._stream is not None
        assert self._asking is not None
        with (
            contextlib.closing(self._asking),
            contextlib.suppress(OSError, http.client.HTTPException, ValueError),
        ):
            self._is_read = True
            while not self._closed.is_set() and (line := self._stream.readline(_MAX_LINE)):
                if line.startswith(b"data:") and (found := _call(line.removeprefix(b"data:"))):
                    yield found

    def answer(self, worker: WorkerKind, frame: dict[str, Any]) -> None:
        """Send *frame* of *worker*, unless this has been closed."""
        body = json.dumps({"worker": worker, "frame": frame}, separators=(",", ":")).encode()
        with self._locks[worker]:
            self._send(worker, body)

    def _send(self, worker: WorkerKind, body: bytes) -> None:
        for _ in range(2):  # the console closes a connection that was idle
            with contextlib.suppress(AileronError, OSError, http.client.HTTPException):
                connection = self._connected(worker)
                if self._closed.is_set():
                    connection.close()
                    return
                connection.request("POST", f"{self._path}/tool-results", body, _JSON)
                connection.getresponse().read()
                return
            if (broken := self._answering.pop(worker, None)) is not None:
                broken.close()

    def _connected(self, worker: WorkerKind) -> HomeConnection:
        found = self._answering.get(worker)
        if found is None:
            found = HomeConnection(self._home, timeout=_ANSWER_SECONDS)
            found.connect()
            found.auto_open = 0  # it never reaches another console than the one it was made for
            self._answering[worker] = found
        return found

    def close(self) -> None:
        """Break everything off, from any thread."""
        self._closed.set()
        for each in (self._asking, *self._answering.copy().values()):
            if each is not None:
                each.abort()  # whoever waits on it goes on
        if self._asking is not None and not self._is_read:
            self._asking.close()
        for worker, lock in self._locks.items():
            with lock:
                if (connection := self._answering.pop(worker, None)) is not None:
                    connection.close()


def _call(text: bytes) -> tuple[WorkerKind, dict[str, Any]] | None:
    """Return the worker and the frame of an event, None if it is of a newer console."""
    event: Any = json.loads(text)
    match event:
        case {"worker": "files" | "commands" as worker, "frame": {**frame}}:
            return worker, frame
        case _:
            return None


def _checked(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    """Return *response*.

    Raises:
        ConsoleErrorResponse: it is an error.
    """
    if response.status < 400:
        return response
    try:
        raise ConsoleErrorResponse(Failure.from_json(json.loads(response.read())["error"]))
    except (ValueError, LookupError, TypeError):
        raise http.client.HTTPException(f"status {response.status}") from None
