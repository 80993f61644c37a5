"""`aileron launch --console` in a real tmux: a console beside the agent, or a sentence how."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell
from tests.support.making import program
from tests.support.server_harness import CLI, Console, aileron

AGENT = '#!/bin/sh\necho "the agent is up"\nread line\necho "read $line"\nexit 5\n'


@pytest.fixture
def folder(folder: Path) -> Path:
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
    command = shell(*CLI, *launch)
    return Tmux(folder / "tmux", command, pane_environment(folder), folder / "project")


def test_a_console_opens_in_a_pane_of_its_own_and_shows_the_session(folder: Path) -> None:
    """None runs, so one opens; the agent keeps the keyboard; the console stays afterwards."""
    with contextlib.closing(in_tmux(folder)) as tmux:
        tmux.until(lambda _: tmux.panes() == 2)
        tmux.until("the agent is up", pane=1)
        tmux.until("codex", pane=0)
        tmux.press("y", "Enter", pane=1)
        tmux.until("ended with 5", pane=1)
        assert tmux.panes() == 2


def test_a_console_that_runs_is_used(folder: Path) -> None:
    console = Console(folder / "home")
    tmux = in_tmux(folder)
    try:
        tmux.until("the agent is up")
        assert tmux.panes() == 1
    finally:
        tmux.close()
        console.end()


def test_a_console_that_cannot_start_is_reported(folder: Path) -> None:
    (folder / "home" / "of-another-program").write_text("")
    with contextlib.closing(in_tmux(folder)) as tmux:
        tmux.until("Run `aileron console` to see why")
        tmux.until("ended with 69")


def test_without_tmux_there_is_a_sentence_how(folder: Path) -> None:
    (folder / "home").rmdir()
    env = {**pane_environment(folder), "TMUX": ""}
    done = aileron("launch", "codex", "--console", home=folder / "home", code=69, env=env)
    assert "Start `aileron console` in another window" in done.stderr
    assert not (folder / "home").exists()
