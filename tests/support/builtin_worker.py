"""A worker of the built-in tools as a real process, asked over its pipes as the launcher asks it.

with Worker("files", project) as worker:
    worker.call("read", file_path="a.py")["text"]
"""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker.frames import BrokenFrame, frame_bytes, read_frame

MODULE = "aileron_core.connectors.builtin.worker"
PATIENCE = 30.0


class WorkerError(Exception):
    """The worker answered with an error."""

    def __init__(self, class_: str, message: str, details: dict[str, Any]) -> None:
        super().__init__(f"{class_}: {message} {details or ''}".rstrip())
        self.class_ = class_
        self.message = message
        self.details = details


class Worker(contextlib.AbstractContextManager["Worker"]):
    """A worker of *kind* (`files` or `commands`) for *project*.

    Args:
        prefix: before the interpreter in its command line: a sandbox, another user.
        env: of the process; this one's by default.
    """

    def __init__(self, kind: str, project: Path, prefix: Sequence[str] = (), **env: Any) -> None:
        words = [*prefix, sys.executable, "-I", "-m", MODULE, kind, str(project)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(words, **pipes, **env)
        self._stdin: Any = self.process.stdin
        self._stdout: Any = self.process.stdout
        self._changed = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._ready: dict[str, Any] | None = None
        self._ended = False
        self._last_id = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def features(self) -> dict[str, Any]:
        """What the worker's first frame says that it can do; waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready is not None or self._ended, PATIENCE)
            assert self._ready is not None, f"no first frame; exit code {self.process.poll()}"
            return self._ready["features"]

    def call(self, op: str, **args: Any) -> dict[str, Any]:
        """Return the result of *op*.

        Raises:
            WorkerError: the worker answered with an error.
        """
        return self.answer(self.send(op, **args))

    def refused(self, op: str, **args: Any) -> WorkerError:
        """Return the error with which the worker answers *op*, which it must."""
        try:
            result = self.call(op, **args)
        except WorkerError as error:
            return error
        raise AssertionError(f"{op} was not refused: {result}")

    def send(self, op: str, **args: Any) -> int:
        """Ask for *op* without waiting, and return the request's id."""
        self._last_id += 1
        self.write({"id": self._last_id, "op": op, "args": args})
        return self._last_id

    def answer(self, request: int, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait for the answer to *request* and return its result; raises as `call` does."""
        with self._changed:
            self._changed.wait_for(lambda: request in self._answers or self._ended, timeout)
            assert request in self._answers, f"no answer; exit code {self.process.poll()}"
            frame = self._answers.pop(request)
        if error := frame.get("error"):
            raise WorkerError(error["class"], error["message"], error.get("details", {}))
        return frame["result"]

    def answered(self, request: int) -> bool:
        """Whether the answer to *request* is there, and was not taken yet."""
        with self._changed:
            return request in self._answers

    def cancel(self, request: int) -> None:
        """End the command of *request*; its answer still comes."""
        self.write({"cancel": request})

    def write(self, frame: dict[str, Any]) -> None:
        self._stdin.write(frame_bytes(frame))
        self._stdin.flush()

    def close(self) -> int:
        """End its standard input and return its exit code."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._reader.join(PATIENCE)
            self._stdout.close()
        return code

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        with contextlib.suppress(BrokenFrame, ValueError):
            while (frame := read_frame(self._stdout)) is not None:
                with self._changed:
                    if frame.get("ready"):
                        self._ready = frame
                    else:
                        self._answers[frame["id"]] = frame
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
