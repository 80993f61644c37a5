"""Attending one command from its start to its end: output, time, being stopped."""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.first_process import Running
from aileron_core.connectors.builtin.worker.wanted import said

KEPT = 256 * 1024
"""Bytes kept of each stream: its first and its last half."""


class Output:
    """One stream of a command."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = KEPT // 2 - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > KEPT:
            del self._last[: -KEPT // 2]

    def text(self) -> str:
        """Return what was kept, with a line that says how much was not."""
        left_out = self._total - len(self._first) - min(len(self._last), KEPT // 2)
        first = self._first.decode("utf-8", "replace")
        if left_out == 0:
            return (self._first + self._last).decode("utf-8", "replace")
        last = self._last[-KEPT // 2 :].decode("utf-8", "replace")
        return f"{first}\n[{left_out} bytes left out]\n{last}"


_CHUNK = 1 << 16
_MAX_DRAINED = 1 << 20
"""Bytes: as much as a pipe holds, unless an administrator allows more."""
_SWEEP_SECONDS = 5.0
_PR_SET_CHILD_SUBREAPER = 36


class Supervision:
    """One command that was started, and everything that it starts."""

    def __init__(
        self,
        running: Running,
        control: socket.socket,
        *,
        is_plain: bool,
        ends_at_wishes: bool = False,
    ) -> None:
        """Begin with what it has printed.

        Args:
            control: of the worker; what comes from there, and its end, stop the command.
            is_plain: it is in no namespaces, so what it leaves behind has to be found.
            ends_at_wishes: a report of what a rehearsal does not have ends it.
        """
        self._running = running
        self._control = control
        self._is_plain = is_plain
        self._ends_at_wishes = ends_at_wishes
        self._started = time.monotonic()
        self._streams = {running.stdout: Output(), running.stderr: Output()}
        self._reports = bytearray()
        self._is_over = False
        self.stopped = False
        self.timed_out = False

    def attend(self, seconds: float) -> None:
        """Return when nothing of the command runs any more: it ended, was stopped, or *seconds* were over."""
        poll = select.poll()
        for each in (self._running.reports, *self._streams, self._control.fileno()):
            poll.register(each, select.POLLIN)
        until = self._started + seconds
        while not self._is_over:
            left = until - time.monotonic()
            ready = [number for number, _ in poll.poll(max(0, left * 1000))]
            if left <= 0:
                self.timed_out = True
                break
            if self._control.fileno() in ready:
                self.stopped = True
                break
            for number in ready:
                if not self._take(number):
                    poll.unregister(number)
        self._end()

    def _take(self, number: int) -> bool:
        """Take what has come from a pipe; return False at its end."""
        data = os.read(number, _CHUNK)
        if number in self._streams:
            self._streams[number].add(data)
            return bool(data)
        self._reports += data
        self._is_over = not data or (self._ends_at_wishes and said(self.reports()) is not None)
        return bool(data)

    def _end(self) -> None:
        """End what is left, wait until it is gone, and take what it has printed."""
        os.kill(self._running.process, signal.SIGKILL)
        if self._is_plain:
            sweep(next((each["group"] for each in self.reports() if "group" in each), None))
        else:
            os.waitpid(self._running.process, 0)  # the kernel ends the namespace before
        self.seconds = time.monotonic() - self._started
        for number, output in self._streams.items():
            _drain(number, output)

    def reports(self) -> list[dict[str, Any]]:
        """Return what the first process and the command have reported."""
        whole = self._reports[: self._reports.rfind(b"\n") + 1]
        return [json.loads(line) for line in whole.splitlines()]

    def outcome(self) -> dict[str, Any]:
        """Return how it ended, as an answer has it.

        Raises:
            OpFailed: it did not run, or was stopped.
        """
        stdout, stderr = (each.text() for each in self._streams.values())
        result: dict[str, Any] = {
            "stdout": stdout,
            "stderr": stderr,
            "duration_ms": round(self.seconds * 1000),
            "timed_out": self.timed_out,
        }
        status: int | None = None
        for each in self.reports():
            if "failed" in each:
                raise OpFailed("io", each["failed"])
            if "not_found" in each:
                raise OpFailed(
                    "not_found",
                    f"{each['not_found']} is not a program in this session. Check its name and PATH.",
                )
            status = each.get("status", status)
        if self.stopped:
            raise OpFailed("stopped", "The command was stopped before it ended.", **result)
        code = None if status is None else os.waitstatus_to_exitcode(status)
        if code is not None and code >= 0:
            return {"exit_code": code, **result}
        number = signal.SIGKILL if code is None else -code
        with contextlib.suppress(ValueError):
            number = signal.Signals(number).name
        return {"signal": str(number), **result}


def _drain(number: int, output: Output) -> None:
    """Take what is in a pipe now: somebody else may hold its other end, and never close it."""
    os.set_blocking(number, False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(_MAX_DRAINED // _CHUNK):
            output.add(os.read(number, _CHUNK))
    os.close(number)


def adopt_orphans() -> None:
    """Have what descendants of this process leave behind become its children; does nothing except on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def sweep(group: int | None) -> None:
    """Kill the process group *group* and every descendant of this process, as far as they can be found."""
    if group is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    until = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < until:
        for process in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _children() -> list[int]:
    """Return this process's children; without a way to ask, none."""
    with contextlib.suppress(OSError, ValueError):
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        return [int(each) for each in text.split()]
    return []
