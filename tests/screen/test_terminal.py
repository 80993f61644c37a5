"""The console in a real pseudo-terminal: real keys, real time, a real signal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

FILLED = re.compile(rb"48;2;95;201;184[0-9;]*m a ")
"""The approve key in ink on teal: the very next press decides."""
SGR = re.compile(rb"\x1b\[[0-9;:?]*[a-zA-Z]")
ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class Terminal:
    """The fixture screen on a pseudo-terminal of 200 by 60 cells."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        # Test runners pin a size of their own here.
        foreign = ("COLUMNS", "LINES", "NO_COLOR")
        environment = {k: v for k, v in os.environ.items() if k not in foreign}
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.screens", "waiting"],
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
        )
        self.raw = b""

    def until(self, holds: Callable[[], bool], *, since: int = 0) -> None:
        """Read until it *holds*."""
        deadline = monotonic() + PATIENCE
        while not holds():
            assert monotonic() < deadline, SGR.sub(b"", self.raw[since:])[-2000:]
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                self.raw += os.read(self.master, 65536)

    def draws(self, drawn: re.Pattern[bytes], *, since: int = 0) -> int:
        """Wait for *drawn* behind *since*; return where it ends: more may have come with it."""
        self.until(lambda: drawn.search(self.raw, since) is not None, since=since)
        found = drawn.search(self.raw, since)
        assert found is not None
        return found.end()

    def shows(self, text: str, *, since: int = 0) -> int:
        """Wait until *text* was drawn, in whatever colours."""
        letters = (re.escape(letter.encode()) for letter in text)
        between = rb"(?:%s)*" % SGR.pattern
        return self.draws(re.compile(between.join(letters)), since=since)

    def is_filled(self, *, since: int = 0) -> int:
        """Wait until the approve key was drawn filled."""
        return self.draws(FILLED, since=since)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def rest(self, seconds: float = 0.3) -> None:
        """Let a hand rest: a key that comes with the one before it counts for nothing."""
        end = monotonic() + seconds
        self.until(lambda: monotonic() > end)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    shown = Terminal()
    yield shown
    if shown.process.poll() is None:
        shown.process.kill()
    shown.process.wait()
    os.close(shown.master)
    os.close(shown.slave)


def test_a_paste_decides_nothing_and_a_single_key_after_a_rest_decides(terminal: Terminal) -> None:
    """Bytes that come at once are dropped and counted; one key at rest approves one item."""
    drawn = terminal.is_filled()
    terminal.type(b"approve all of them\n")
    drawn = terminal.shows("keys arrived at once. Nothing was decided.", since=drawn)
    assert b"Approved" not in terminal.raw
    drawn = terminal.is_filled(since=drawn)
    terminal.type(b"a")
    terminal.shows("✓ Approved: Send a mail draft", since=drawn)


def test_sigterm_restores_the_terminal(terminal: Terminal) -> None:
    """The alternate screen is left, the line discipline is back, the exit code says why."""
    terminal.shows("WILL HAPPEN")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.until(lambda: b"\x1b[?1049l" in terminal.raw)
    assert terminal.process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert termios.tcgetattr(terminal.slave)[3] == terminal.before[3]


def test_a_page_that_one_comes_back_to_is_drawn_again(terminal: Terminal) -> None:
    """Going to and fro leaves no page that stands still; Pilot draws by itself, a terminal does not."""
    drawn = terminal.is_filled()
    for _ in range(2):
        terminal.rest()
        terminal.type(b"2")
        drawn = terminal.shows("Newest first.", since=drawn)
        terminal.rest()
        terminal.type(b"1")
        drawn = terminal.shows("WILL HAPPEN", since=drawn)


def test_a_terminal_that_hangs_up_ends_the_console(terminal: Terminal) -> None:
    """Nothing waits for ever to be written to a terminal that is gone; the home is free again."""
    terminal.shows("WILL HAPPEN")
    os.close(terminal.slave)
    os.close(terminal.master)
    terminal.master, terminal.slave = os.open(os.devnull, os.O_RDWR), os.open(os.devnull, os.O_RDWR)
    assert terminal.process.wait(PATIENCE) == 128 + signal.SIGHUP
