"""One worker of the built-in tools: its process, and the frames on its pipes."""

import contextlib
import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from aileron_core.connectors.builtin.worker.frames import (
    BrokenFrame,
    frame_bytes,
    read_frame,
)
from aileron_core.errors import Unavailable
from aileron_core.text import escape

WorkerKind = Literal["files", "commands"]
START_SECONDS = 20.0
"""How long a worker may take until it is ready."""
_END_SECONDS = 3.0
"""How long it may take to end everything that it runs, before it is killed."""
_SHOWN = 300
"""Characters of the last line that a worker which does not start wrote to standard error."""


class ToolWorker:
    """The process of one worker. It ends with its standard input, and so with this process."""

    def __init__(
        self,
        kind: WorkerKind,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        errors: Path,
        prepare: Callable[[], None] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """Start it, in a session of its own: no key of the terminal reaches it.

        Args:
            errors: a new file for its standard error.
            prepare: called in the child just before exec.
            inherited: descriptors that it has too.

        Raises:
            Unavailable: it cannot be started.
        """
        self.kind: WorkerKind = kind
        self.features: dict[str, Any] = {}
        self._errors = errors
        try:
            with errors.open("xb") as file:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=dict(env),
                    cwd=cwd, start_new_session=True, pass_fds=inherited,
                    preexec_fn=prepare,  # noqa: PLW1509 - no thread has been started
                )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise _not_started(kind, str(error)) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = cast("BinaryIO", self._process.stdin)
        self._stdout = cast("BinaryIO", self._process.stdout)
        self._is_read = False
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name=f"{kind}-writer", daemon=True)

    @property
    def pid(self) -> int:
        """The process that was started: of a contained worker, the one that made its sandbox."""
        return self._process.pid

    def wait_until_ready(self, deadline: float) -> None:
        """Read the frame that says so, and keep its features.

        Args:
            deadline: monotonic seconds.

        Raises:
            Unavailable: it ended, or is not ready by then.
        """
        try:
            frame = read_frame(_Until(deadline, self._stdout.fileno()))
        except TimeoutError:
            raise self._not_started(f"not ready after {START_SECONDS:.0f} seconds") from None
        except BrokenFrame as error:
            raise self._not_started(f"its first words make no sense: {error}") from None
        if frame is None:
            raise self._not_started("it ended")
        match frame:
            case {"ready": True, "features": {**features}}:
                self.features = features
            case _:
                raise self._not_started("its first words make no sense")

    def _not_started(self, why: str) -> Unavailable:
        said = ""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._process.wait(0.5)
            said = self._errors.read_text("utf-8", "replace").strip().rpartition("\n")[2][:_SHOWN]
        return _not_started(self.kind, f"{why} ({said})" if said else why)

    def start_writing(self) -> None:
        """Send what `send` is given, on a thread of its own: a busy worker reads late."""
        self._writer.start()

    def send(self, frame: dict[str, Any]) -> None:
        """Send *frame* once the worker reads; nothing where it has ended.

        Raises:
            BrokenFrame: it is too large.
        """
        self._waiting.put(frame_bytes(frame))

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended
            while (data := self._waiting.get()) is not None:
                self._stdin.write(data)
                self._stdin.flush()
        with contextlib.suppress(OSError):
            self._stdin.close()

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yield what it answers until it has ended, or says what is no frame. Called once."""
        self._is_read = True
        with self._stdout, contextlib.suppress(BrokenFrame, OSError, ValueError):
            while (frame := read_frame(self._stdout)) is not None:
                yield frame

    def close_input(self) -> None:
        """Have it end everything that it runs, and itself."""
        if self._writer.is_alive():
            self._waiting.put(None)
        else:
            with contextlib.suppress(OSError):
                self._stdin.close()

    def wait(self) -> None:
        """Return when it has ended; kill it if that takes too long."""
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not self._is_read:  # else the reader closes it
            self._stdout.close()


class _Until:
    """Reads a descriptor past the buffer of its file, which has to be empty still."""

    def __init__(self, deadline: float, descriptor: int) -> None:
        self._deadline, self._descriptor = deadline, descriptor

    def read(self, size: int, /) -> bytes:
        """Return *size* bytes, or less at the end.

        Raises:
            TimeoutError: they are not there by the deadline.
        """
        found = b""
        while len(found) < size:
            left = max(0.0, self._deadline - time.monotonic())
            if not select.select([self._descriptor], (), (), left)[0]:
                raise TimeoutError
            if not (part := os.read(self._descriptor, size - len(found))):
                break
            found += part
        return found


def _not_started(kind: WorkerKind, why: str) -> Unavailable:
    return Unavailable(
        f"The worker of the built-in tools for {kind} did not start: {escape(why)}. Launch again, or without "
        "the built-in tools."
    )
