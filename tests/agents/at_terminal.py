"""A person's terminal with `aileron launch codex` in its foreground, where `codex` is a script of the test."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from tests.agents.agents_bench import CLI, Bench
from tests.support.forked import forked, take_terminal


class Terminal:
    """A person's terminal, with `aileron launch` in its foreground."""

    def __init__(self, bench: Bench, program: str, *options: str) -> None:
        self._command = [*CLI, "launch", "codex", "--home", str(bench.console.home), *options]
        self._project = bench.project
        self._env = bench.environment(bench.stand_in(program))
        self.start()

    def start(self) -> None:
        self.master, slave = pty.openpty()
        self.resize(24, 80)
        self.process = forked(
            self._command,
            cwd=self._project,
            env=self._env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        self.slave = slave
        self.text = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, pattern: str, seconds: float = 60) -> str:
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            left = deadline - time.monotonic()
            assert left > 0, self.text
            self._read(left)
        return found[0]

    def end(self) -> int:
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.2)
        while self._read(0.05):  # its last words, which came before its end was seen
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.text += os.read(self.master, 65536).decode("utf-8", "replace")
        return True

    def is_raw(self) -> bool:
        """Whether the launcher has the terminal; giving it back throws away what nobody has read."""
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def unread(self) -> bytes:
        settings = termios.tcgetattr(self.slave)
        settings[3] &= ~termios.ICANON
        settings[6][termios.VMIN] = settings[6][termios.VTIME] = 0
        termios.tcsetattr(self.slave, termios.TCSANOW, settings)
        return os.read(self.slave, 4096) if select.select([self.slave], [], [], 0.5)[0] else b""

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        os.close(self.master)
        os.close(self.slave)
