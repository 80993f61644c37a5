"""A console in a pane of a real tmux: beside the agent of `aileron launch --console`, and with the person's pager in its place."""

import contextlib
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
from tests.support.making import program
from tests.support.processes import alive
from tests.support.server_harness import CLI, ROOT, Console, aileron, eventually

AGENT = '#!/bin/sh\necho "the agent is up"\nread line\necho "read $line"\nexit 5\n'


@pytest.fixture
def launching(folder: Path) -> Path:
    for name in ("project", "person", "home"):
        (folder / name).mkdir(mode=0o700)
    program(folder / "bin" / "codex", AGENT)
    return folder


def pane_environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(folder / "person"), "PATH": path, "LANG": "C.UTF-8", "SHELL": "/bin/sh"}


def in_tmux(folder: Path) -> Tmux:
    # Panes are what is tried here, and root may try it too.
    launch = ("launch", "codex", "--console", "--no-sandbox", "--home", str(folder / "home"))
    environment = pane_environment(folder)
    return Tmux(folder / "tmux", shell(*CLI, *launch), environment, folder / "project")


def test_a_console_opens_in_a_pane_of_its_own_and_shows_the_session(launching: Path) -> None:
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until(lambda _: tmux.panes() == 2)
        tmux.until("the agent is up", pane=1)
        tmux.until("codex", pane=0)
        tmux.press("y", "Enter", pane=1)
        tmux.until("ended with 5", pane=1)
        assert tmux.panes() == 2


def test_a_console_that_runs_is_used_and_one_that_cannot_start_is_reported(launching: Path) -> None:
    console = Console(launching / "home")
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until("the agent is up")
        assert tmux.panes() == 1
    console.end()
    shutil.rmtree(launching / "home")
    (launching / "home").mkdir(mode=0o700)
    (launching / "home" / "of-another-program").write_text("")
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until("Run `aileron console` to see why")
        tmux.until("ended with 69")


def test_without_tmux_there_is_a_sentence_how(launching: Path) -> None:
    (launching / "home").rmdir()
    env = {**pane_environment(launching), "TMUX": ""}
    done = aileron("launch", "codex", "--console", home=launching / "home", code=69, env=env)
    assert "Start `aileron console` in another window" in done.stderr
    assert not (launching / "home").exists()


@pytest.fixture
def fixture_screen(tmp_path: Path) -> Iterator[Tmux]:
    assert shutil.which("less") is not None, "this test reads in less: install it"
    environment = {**os.environ, "PAGER": "less", "PYTHONPATH": str(ROOT), "LESS": ""}
    command = shell(sys.executable, "-m", "tests.support.screens", "waiting")
    with contextlib.closing(Tmux(tmp_path / "tmux", command, environment, ROOT)) as tmux:
        yield tmux


def children(pid: int) -> list[int]:
    command = ["pgrep", "-P", str(pid)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
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


def test_the_pager_shows_a_field_as_drawn_and_the_console_is_unarmed(fixture_screen: Tmux) -> None:
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


def test_an_ended_console_ends_its_pager_and_gives_the_terminal_back(fixture_screen: Tmux) -> None:
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
