"""The demo's console is killed outright: the demo puts the terminal back in its place."""

import json
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(home: Path) -> Generator[Tmux]:
    environment = {
        "AILERON_DEMO_HOME": str(home),
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "LANG": "C.UTF-8",
    }
    command = shell(sys.executable, "-m", "examples.demo")
    terminal = Tmux(home.parent / "t", command, environment, ROOT)
    yield terminal
    terminal.close()


def test_a_killed_console_leaves_a_terminal_to_type_in(demo: Tmux, home: Path) -> None:
    """SIGKILL leaves the console no time; the alternate screen and raw keys end all the same."""
    demo.until("WILL HAPPEN")
    os.kill(json.loads((home / "daemon.json").read_text())["pid"], signal.SIGKILL)
    ended = demo.until("ended with 137")
    assert "The console was killed by signal 9." in ended
    assert "home          " in ended
    assert "WILL HAPPEN" not in ended
