"""The relay between the console and a session's workers: calls go one way, answers the other.

The workers trust the console, and it trusts the relay; the relay trusts no worker. It gives each
call a number of its own, and passes on what answers a call that was made, once.
"""

import contextlib
import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker.frames import MAX_FRAME, BrokenFrame
from aileron_core.connectors.builtin.worker_process import START_SECONDS, ToolWorker, WorkerKind
from aileron_core.errors import AileronError, ConsoleErrorResponse, ConsoleUnavailable, Failure
from aileron_core.home.client import HomeConnection
from aileron_core.launch.agent_job import is_stopped
from aileron_core.text import escape

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


_SECONDS = 2.0
_PAUSE = 0.01


@contextlib.contextmanager
def frozen(pids: Iterable[int]) -> Generator[None, None, None]:
    """Keep what descends from the processes *pids* stopped until this is left.

    What is in the kernel without end is stopped when it comes out of that.
    """
    pids = [*pids]
    stopped: set[int] = set()
    deadline = time.monotonic() + _SECONDS
    # Twice without one that ran: what was looked at may have been continued by one that was not yet.
    for _ in range(2):
        while running := [each for each in _descendants(pids) if not is_stopped(each)]:
            stopped |= {each for each in running if _signal(each, signal.SIGSTOP)}
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
    try:
        yield
    finally:
        for pid in stopped & {*_descendants(pids)}:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, number)
        return True
    return False


def _descendants(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        for task in _names(Path(f"/proc/{pid}/task")):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text("ascii")
                children = [int(each) for each in text.split()]
                yield from children
                yield from _descendants(children)


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - names alone
    return []


_AGAIN_SECONDS = 0.25
_JOIN_SECONDS = 2.0
_TRY_AGAIN = frozenset(("unavailable", "rate_limited", "internal_error"))
"""Classes of errors by which a console does not say that the session is gone."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One that the console made."""

    link: ConsoleLink
    worker: WorkerKind
    number: object
    """The console's."""


class ToolRelay:
    """The workers of one session, from their start to their end."""

    def __init__(
        self, home: Path, session_id: str, workers: Sequence[ToolWorker], *, contained: bool
    ) -> None:
        self._home, self._session_id, self._contained = home, session_id, contained
        self._workers: dict[WorkerKind, ToolWorker] = {each.kind: each for each in workers}
        self._link: ConsoleLink | None = None
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        """Guards what follows."""
        self._made = 0
        self._asked: dict[int, _Call] = {}
        """What is not answered yet, by our number."""
        self._ended: dict[WorkerKind, str] = {}
        """Workers that have ended, and the sentence that says so."""

    @property
    def sandboxes(self) -> tuple[int, ...]:
        """The processes that made the sandboxes in which commands run."""
        return (self._workers["commands"].pid,) if self._contained else ()

    @property
    def why_not_rehearsed(self) -> str:
        """Why no command of this session can be rehearsed; empty if commands can."""
        return escape(str(self._workers["commands"].features.get("why_not") or ""))

    def open(self) -> None:
        """Wait for the workers, then attach them to the console. Starts no thread.

        Raises:
            Unavailable: a worker did not start, or the console does not answer.
            ConsoleErrorResponse: the console refuses them.
        """
        deadline = time.monotonic() + START_SECONDS
        for worker in self._workers.values():
            worker.wait_until_ready(deadline)
        self._link = self._opened()

    def _opened(self) -> ConsoleLink:
        link = ConsoleLink(self._home, self._session_id)
        try:
            link.open({kind: worker.features for kind, worker in self._workers.items()})
        except AileronError:
            link.close()
            raise
        return link

    def start(self) -> None:
        """Begin to pass frames on."""
        for worker in self._workers.values():
            worker.start_writing()
            self._start_thread(worker.kind, lambda reads=worker: self._pass_answers(reads))
        self._start_thread("calls", self._run)

    def _start_thread(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"tools-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End the workers and all that they run; return when that is done."""
        self._end()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _end(self) -> None:
        self._stopped.set()
        if self._link is not None:
            self._link.close()
        for worker in self._workers.values():
            worker.close_input()
        for worker in self._workers.values():
            worker.wait()

    @contextlib.contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Let nothing run in the sandboxes until this is left."""
        pids = [each.pid for each in self._workers.values()] if self._contained else []
        with frozen(pids):
            yield

    def _run(self) -> None:
        """Pass calls on, and attach again when the stream breaks, until the session is gone."""
        while (link := self._link) is not None and not self._stopped.is_set():
            for kind, frame in link.calls():
                self._pass_call(link, kind, frame)
            link.close()
            self._cancel(lambda call, gone=link: call.link is gone)
            self._link = self._attached_again()
        self._end()

    def _attached_again(self) -> ConsoleLink | None:
        """Return a new link once there is a console again; None if the session is gone."""
        while not self._stopped.wait(_AGAIN_SECONDS):
            try:
                link = self._opened()
            except ConsoleErrorResponse as error:
                if error.failure.class_ not in _TRY_AGAIN:
                    return None
            except AileronError:
                pass
            else:
                for kind, sentence in [*self._ended.items()]:
                    link.answer(kind, {"ended": sentence})
                return link
        return None

    def _pass_call(self, link: ConsoleLink, kind: WorkerKind, frame: dict[str, Any]) -> None:
        call = _Call(link, kind, frame.get("cancel", frame.get("id")))
        if "cancel" in frame:
            self._cancel(lambda each: each == call)
            return
        with self._lock:
            ended = self._ended.get(kind)
            self._made += 1
            number = self._made
            if ended is None:
                self._asked[number] = call
        if ended is not None:
            _refuse(call, "io", ended)
            return
        try:
            self._workers[kind].send({**frame, "id": number})
        except BrokenFrame as error:
            with self._lock:
                self._asked.pop(number, None)
            _refuse(call, "too_large", f"The call is too large: {error}. Ask for less at once.")

    def _cancel(self, wanted: Callable[[_Call], bool]) -> None:
        """End what is asked for in the calls that are *wanted*; their answers still come."""
        with self._lock:
            found = [(number, call) for number, call in self._asked.items() if wanted(call)]
        for number, call in found:
            self._workers[call.worker].send({"cancel": number})

    def _pass_answers(self, worker: ToolWorker) -> None:
        for frame in worker.frames():
            number: object = frame.get("id")
            with self._lock:
                call = self._asked.get(number) if isinstance(number, int) else None
                if call is None or call.worker != worker.kind:
                    continue
                self._asked = {n: each for n, each in self._asked.items() if each is not call}
            answer = {key: frame[key] for key in ("result", "error") if key in frame}
            call.link.answer(call.worker, {**answer, "id": call.number})
        if not self._stopped.is_set():
            self._report_end(worker)

    def _report_end(self, worker: ToolWorker) -> None:
        worker.close_input()
        worker.wait()
        sentence = (
            f"The worker of the built-in tools for {worker.kind} has ended. Launch the agent again to have "
            "them back."
        )
        with self._lock:
            self._ended[worker.kind] = sentence
            self._asked = {n: each for n, each in self._asked.items() if each.worker != worker.kind}
        if (link := self._link) is not None:
            link.answer(worker.kind, {"ended": sentence})


def _refuse(call: _Call, class_: str, message: str) -> None:
    error = {"class": class_, "message": message}
    call.link.answer(call.worker, {"id": call.number, "error": error})
