"""Searches in processes of their own, so that one that a pattern makes endless can be ended.

They are forks of the worker: no program is started.
"""

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.containment.linux_syscalls import die_with_parent

SECONDS = 10.0
"""After which a search is ended."""
_AT_ONCE = 4
_CHUNK = 1024 * 1024

Answer = dict[str, Any]
"""The member `result` or `error` of an answer."""


@dataclass(slots=True)
class _Running:
    request: int
    process: int
    until: float
    received: bytearray = field(default_factory=bytearray)


class Searches:
    """The searches that run or wait; the caller waits for `readable` and `timeout`, then calls `finished`."""

    def __init__(self) -> None:
        self._running: dict[int, _Running] = {}
        self._waiting: deque[tuple[int, Callable[[], dict[str, Any]]]] = deque()

    def start(self, request: int, search: Callable[[], dict[str, Any]]) -> list[tuple[int, Answer]]:
        """Run *search* in a fork, when there is room; return answers as `finished` does."""
        self._waiting.append((request, search))
        return self._fill()

    def readable(self) -> list[int]:
        """Return the descriptors that tell when a search is done."""
        return list(self._running)

    def timeout(self) -> float | None:
        """Return the seconds until the next search is ended, None without any."""
        if not self._running:
            return None
        return max(0.0, min(each.until for each in self._running.values()) - time.monotonic())

    def finished(self, ready: list[int]) -> list[tuple[int, Answer]]:
        """Return the answers to searches that are done or were ended, by request.

        Args:
            ready: those of `readable` that can be read.
        """
        answers: list[tuple[int, Answer]] = []
        for descriptor in ready:
            chunk = os.read(descriptor, _CHUNK)
            self._running[descriptor].received += chunk
            if not chunk:
                running = self._end(descriptor)
                answers.append((running.request, _answer(running.received)))
        for descriptor, running in list(self._running.items()):
            if time.monotonic() >= running.until:
                self._end(descriptor)
                answers.append((running.request, {"error": _timed_out().to_json()}))
        return answers + self._fill()

    def end_all(self) -> None:
        """End every search without an answer."""
        self._waiting.clear()
        for descriptor in list(self._running):
            self._end(descriptor)

    def _fill(self) -> list[tuple[int, Answer]]:
        """Start what there is room for; return answers to what cannot be started."""
        failed: list[tuple[int, Answer]] = []
        while self._waiting and len(self._running) < _AT_ONCE:
            request, search = self._waiting.popleft()
            reading, writing = os.pipe()
            parent = os.getpid()
            try:
                process = os.fork()
            except OSError as error:
                os.close(reading)
                os.close(writing)
                message = f"The search could not be started: {error.strerror}. Try again later."
                failed.append((request, {"error": OpFailed("io", message).to_json()}))
                continue
            if process == 0:
                _child(writing, parent, search)
            os.close(writing)
            self._running[reading] = _Running(request, process, time.monotonic() + SECONDS)
        return failed

    def _end(self, descriptor: int) -> _Running:
        running = self._running.pop(descriptor)
        os.close(descriptor)
        os.kill(running.process, signal.SIGKILL)  # not waited for yet, so it is no other
        os.waitpid(running.process, 0)
        return running


def _child(writing: int, parent: int, search: Callable[[], dict[str, Any]]) -> None:
    """Run *search*, write its answer and end this process."""
    try:
        die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            with os.fdopen(writing, "wb") as out:
                try:
                    answer: Answer = {"result": search()}
                except OpFailed as error:
                    answer = {"error": error.to_json()}
                out.write(json.dumps(answer).encode("ascii"))
    except BaseException as error:  # noqa: BLE001 - whatever it is, this fork of the worker ends here
        sys.stderr.write(f"files worker: a search failed: {type(error).__name__}\n")
    finally:
        os._exit(0)


def _answer(received: bytearray) -> Answer:
    try:
        return json.loads(received)
    except ValueError:
        return {
            "error": OpFailed("io", "The search ended early. Search in a smaller folder.").to_json()
        }


def _timed_out() -> OpFailed:
    return OpFailed(
        "timed_out",
        f"The search was ended after {SECONDS:.0f} s. Use a simpler pattern (nested repetitions such as "
        "(a+)+ can take forever), or search in a smaller folder.",
    )
