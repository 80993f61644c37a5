"""The person's pager in the console's place, in a real terminal: `less`, real keys, real signals."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell
from tests.support.processes import alive
from tests.support.server_harness import ROOT, eventually


@pytest.fixture
def fixture_screen(tmp_path: Path) -> Iterator[Tmux]:
    """The fixture screen in a pane, with `less` as its pager."""
    assert shutil.which("less") is not None, "this test reads in less: install it"
    environment = {**os.environ, "PAGER": "less", "PYTHONPATH": str(ROOT), "LESS": ""}
    command = shell(sys.executable, "-m", "tests.support.screens", "waiting")
    tmux = Tmux(tmp_path / "tmux", command, environment, ROOT)
    yield tmux
    tmux.close()


def children(pid: int) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return [int(word) for word in found.split()]


def console_pid(console: Tmux) -> int:
    (pid,) = children(int(console._tmux("display-message", "-p", "#{pane_pid}")))
    return pid


def open_pager(console: Tmux) -> None:
    console.until("WILL HAPPEN")
    console.until(" y copy")
    console.press("p")
    console.until(lambda shown: "WILL HAPPEN" not in shown and "Hi all," in shown)


def leave(console: Tmux) -> None:
    """Quit `less` with its own key, once it reads keys again, and wait for the console's screen.

    What `less` has read when the signal of Ctrl-C comes is lost with it; once it has answered a later
    key, the signal is behind it.
    """

    def answers(shown: str) -> bool:
        if re.search(r"lines \d+-\d+", shown):
            return True
        console.press("=")  # which lines these are, however often it is asked
        return False

    console.until(answers)
    console.press("q")
    console.until("Body was shown in less, as shown here.")


def test_the_pager_shows_the_field_as_drawn_and_the_console_comes_back_unarmed(
    fixture_screen: Tmux,
) -> None:
    """Its keys are its own: what decides in the console decides nothing here, nor afterwards.

    Shell, pipe and editor of `less` are off: a person may press any key over a hostile text.
    """
    open_pager(fixture_screen)
    for key in ("!", "|", "v"):
        fixture_screen.type(key)
        fixture_screen.until("not available")
        fixture_screen.press("Enter")
        fixture_screen.until(lambda shown: "not available" not in shown)
    fixture_screen.press("a", "d", "t", "C-c")
    leave(fixture_screen)
    shown = fixture_screen.until(lambda shown: "Waiting" in shown and "WILL HAPPEN" in shown)
    assert "Approved" not in shown
    assert "will read it" not in shown


def test_a_console_that_is_ended_ends_its_pager_and_gives_the_terminal_back(
    fixture_screen: Tmux,
) -> None:
    """SIGTERM while the pager holds the terminal: both go, the shell has its line again."""
    open_pager(fixture_screen)
    pid = console_pid(fixture_screen)
    (pager,) = children(pid)
    os.kill(pid, signal.SIGTERM)
    fixture_screen.until("ended with 0")
    eventually(lambda: pager not in alive(), "it has ended")


@pytest.mark.parametrize("paging", [False, True])
def test_a_console_whose_terminal_goes_ends(fixture_screen: Tmux, paging: bool) -> None:
    """Nothing waits for ever for a terminal that takes no more; the home's lock is free again."""
    fixture_screen.until("WILL HAPPEN")
    if paging:
        open_pager(fixture_screen)
    pid = console_pid(fixture_screen)
    fixture_screen.close()
    eventually(lambda: pid not in alive(), "it has ended")
