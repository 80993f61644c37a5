"""The relay between the console and a session's workers: calls go one way, answers the other.

The workers trust the console, and it trusts the relay; the relay trusts no worker. It gives each
call a number of its own, and passes on what answers a call that was made, once.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker.frames import BrokenFrame
from aileron_core.connectors.builtin.worker_process import START_SECONDS, ToolWorker, WorkerKind
from aileron_core.errors import AileronError, ConsoleErrorResponse
from aileron_core.launch.agent_job import is_stopped
from aileron_core.launch.tools.console_link import ConsoleLink
from aileron_core.text import escape

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
