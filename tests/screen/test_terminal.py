"""The console in a real pseudo-terminal: real keys, real time, a real signal."""

import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.terminal import Pty

CHILD = Path(__file__).with_name("fixture_child.py")


@pytest.fixture
def terminal() -> Iterator[Pty]:
    """The fixture screen in 200 by 60 cells."""
    shown = Pty([sys.executable, "-I", str(CHILD), "waiting"], size=(200, 60))
    yield shown
    shown.close()


def test_sigterm_restores_the_terminal(terminal: Pty) -> None:
    """The alternate screen is left, the line discipline is back, and the exit code is that of `q`."""
    terminal.shows("WILL HAPPEN")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ended() == 0
    assert b"\x1b[?1049l" in terminal.raw
    assert termios.tcgetattr(terminal.slave)[3] == terminal.before[3]


def test_a_page_that_one_comes_back_to_is_drawn_again(terminal: Pty) -> None:
    """Going to and fro leaves no page that stands still; Pilot draws by itself, a terminal does not."""
    terminal.shows("WILL HAPPEN")
    for key, activity in 2 * [(b"2", True), (b"1", False)]:
        terminal.press(
            key, lambda a=activity: ("Newest first." in terminal.cells.text) is a, "the other page"
        )
        assert ("WILL HAPPEN" in terminal.cells.text) is not activity
