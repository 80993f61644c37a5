"""A terminal after an agent that left everything set, in a real tmux: as it was before."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell
from tests.support.making import program
from tests.support.server_harness import ROOT

LAUNCH = """
import sys
sys.path.insert(0, sys.argv[1])
from aileron_core.launch.foreground import run_foreground
env = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}
sys.exit(run_foreground(sys.argv[2:], env=env, cwd="/"))
"""
LEAVES = (
    r"\033[?1049h",
    r"\033[?1000h\033[?1003h\033[?1006h\033[?1004h\033[?2004h",  # mouse, focus, paste
    r"\033[?25l\033[?1h\033=\033[4h\033[?7l",  # cursor, keys, insertion, no wrapping
    r"\033[5;9r\033[?6h",  # scrolling region, and the cursor kept in it
    r"\033)0\016\033[31;7m",  # line drawing, red on its head
    r"\033[6n\033[c\033]11;?\033\\",  # questions
    r"\033]2;a title that is never",  # a string without an end
)
FLAGS = {
    "alternate_on": "0", "mouse_any_flag": "0", "mouse_all_flag": "0", "mouse_sgr_flag": "0",
    "cursor_flag": "1", "keypad_flag": "0", "keypad_cursor_flag": "0", "insert_flag": "0",
    "wrap_flag": "1", "origin_flag": "0", "scroll_region_upper": "0", "scroll_region_lower": "47",
}  # fmt: skip


@pytest.mark.parametrize("alternate", [True, False], ids=["alternate", "main"])
def test_everything_is_put_right(folder: Path, alternate: bool) -> None:
    """Modes, screen, characters; no answer is left to be read; what stood there before still does."""
    leaves = "".join(LEAVES[0 if alternate else 1 :])
    agent = program(folder / "agent", f"#!/bin/sh\nprintf '{leaves}'\nkill -9 $$\n")
    launch = shell(sys.executable, "-I", "-c", LAUNCH, str(ROOT), str(agent))
    command = f"echo before; {launch}; echo; echo lqk after; cat -v"
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with contextlib.closing(Tmux(folder / "t", command, environment, folder)) as tmux:
        screen = tmux.until("after")
        assert [line for line in screen.splitlines() if line][:2] == ["before", "lqk after"]
        assert tmux.flags(*FLAGS) == FLAGS
        tmux.press("x", "Enter")
        assert "lqk after\nx\nx\n" in tmux.until("x\nx\n")
