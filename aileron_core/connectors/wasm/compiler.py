"""Compiling a module in a separate low-priority process with limits.

A compiler's time and memory are not bounded by the size of its input: 250 kB of loops over 50,000
locals take minutes and gigabytes. A module of 7 MB keeps every core busy for seconds, in which the
console has to draw and answer. So a child compiles it, at a lower priority, and returns the machine
code over a socket. It is our own program on our own input, and the code is never in a file.

Not over a pipe: any program of this user can open a pipe of the child's under `/proc` and write machine code
into it. A socket cannot be opened there, and the child closes its memory to others first of all.
"""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from aileron_core.connectors.protocol import MIB
from aileron_core.errors import ConnectorRuntimeError, Unavailable

EXIT_REFUSED: Final = 3
"""The child's exit code where it has said what is wrong."""
EXIT_OUT_OF_MEMORY: Final = 4
"""The child's exit code where Python could get no more memory."""
CLOSING_MESSAGE: Final = "the connector host is closing; try again later"
_SECONDS: Final = 120
_MEMORY_MIB: Final = 3072
_THREADS: Final = 2
_WALL_FACTOR: Final = 10
"""How many times as long a child may take on a machine that has better things to do."""
_CHILD: Final = "aileron_core.connectors.wasm.compiler_process"
_SPLIT: Final = "to compile; split its largest functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCheck:
    """Whether a module can run on this host."""

    problems: tuple[str, ...] = ()
    imports: tuple[str, ...] | None = None
    """The functions of `aileron_host` that it imports, sorted; None if it does not compile."""


class Compiler:
    """Compiles modules in child processes with limits on time and memory.

    Args:
        seconds: the limit for one module on two otherwise idle cores; a busy machine gets longer.
        memory_mib: the limit for the whole compiler process, in MiB; enforced on Linux only.
    """

    def __init__(self, *, seconds: float = _SECONDS, memory_mib: int = _MEMORY_MIB) -> None:
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def compile(self, module: bytes, *, niceness: int = 0) -> bytes:
        """Return the machine code of *module*; blocks.

        Raises:
            ConnectorRuntimeError: it cannot be compiled for this host; the message says why.
            Unavailable: the compiler is closed.
        """
        return self._answer(module, niceness, "compile")

    def check(self, module: bytes) -> ModuleCheck:
        """Return whether *module* can run on this host, and what it imports; blocks.

        It is compiled without optimization, which takes most of the time for large functions and
        makes no difference to whether a module compiles.
        """
        try:
            found = json.loads(self._answer(module, 0, "check"))
        except ConnectorRuntimeError as error:
            return ModuleCheck(problems=(error.message.removeprefix("the connector "),))
        return ModuleCheck(problems=tuple(found["problems"]), imports=tuple(found["imports"]))

    def _answer(self, module: bytes, niceness: int, task: str) -> bytes:
        child, ours = self._start(niceness, task)
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(self._seconds * _WALL_FACTOR, stop)
        timer.daemon = True
        timer.start()
        try:
            answer = _communicate(child, ours, module)
        finally:
            timer.cancel()
            child.kill()
            child.wait()
            with self._lock:
                self._children.discard(child)
        return self._result(child.returncode, answer, late=late.is_set())

    def close(self) -> None:
        """Kill every child; callers that wait for one get an error."""
        with self._lock:
            self._closed = True
            children = tuple(self._children)
        for child in children:
            child.kill()

    def _start(self, niceness: int, task: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
        processor_seconds = math.ceil(self._seconds * _THREADS)
        settings = [task, *map(str, (self._memory_mib, processor_seconds, niceness))]
        with self._lock:
            if self._closed:
                raise Unavailable(CLOSING_MESSAGE)
            try:
                ours, theirs = socket.socketpair()
                with theirs:
                    child = subprocess.Popen(
                        [sys.executable, "-I", "-m", _CHILD, *settings],
                        stdin=theirs.fileno(),
                        stdout=theirs.fileno(),
                        stderr=subprocess.DEVNULL,
                        env={**os.environ, "RAYON_NUM_THREADS": str(_THREADS)},
                    )
            except OSError as error:
                raise ConnectorRuntimeError(
                    f"the connector's compiler could not be started: {error.strerror}"
                ) from error
            self._children.add(child)
        return child, ours

    def _result(self, status: int, answer: bytes, *, late: bool) -> bytes:
        if status == 0:
            return answer
        if status == EXIT_REFUSED:
            raise ConnectorRuntimeError(answer.decode("utf-8", "replace"))
        if late or status == -signal.SIGXCPU:
            raise ConnectorRuntimeError(
                f"the connector takes longer than {self._seconds:g} s {_SPLIT}"
            )
        if self._closed:
            raise Unavailable(CLOSING_MESSAGE)
        # Rust aborts where an allocation fails, and Python raises MemoryError.
        if status in (-signal.SIGABRT, EXIT_OUT_OF_MEMORY):
            raise ConnectorRuntimeError(
                f"the connector needs more than {self._memory_mib} MiB of memory {_SPLIT}"
            )
        how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        raise ConnectorRuntimeError(
            f"the connector could not be compiled: its compiler stopped early ({how})"
        )


def _communicate(child: subprocess.Popen[bytes], ours: socket.socket, module: bytes) -> bytes:
    """Send *child* the module and return its output; it reads all input before it writes."""
    output = BytesIO()  # grows in place: joined, 30 MB would be one long step of the interpreter
    with (
        ours,
        suppress(BrokenPipeError, ConnectionResetError),
    ):  # it ended early; its status says how
        ours.sendall(module)
        ours.shutdown(socket.SHUT_WR)
        while part := ours.recv(MIB):
            output.write(part)
    child.wait()
    return output.getvalue()
