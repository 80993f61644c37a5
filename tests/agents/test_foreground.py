"""The agent on a pseudo-terminal of its own: bytes, size, signals, end; and yours after it, in a real tmux, as it was before."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench
from tests.agents.at_terminal import Terminal
from tests.process.tmux import Tmux, shell
from tests.support.making import program
from tests.support.processes import alive, eventually, with_descendants
from tests.support.server_harness import ROOT
from tests.support.variants import variants

AGENT = """\
#!/usr/bin/env python3
import fcntl, os, signal, struct, sys, termios, threading
def size():
    rows, columns, _, _ = struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\\0" * 8))
    os.write(1, f"size {rows}x{columns}\\n".encode())
def told():  # by a thread: a handler of Python's waits while its read of the terminal has just begun
    while True:
        size() if signal.sigwait(TOLD) == signal.SIGWINCH else os.write(1, b"interrupted\\n")
TOLD = {signal.SIGWINCH, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
threading.Thread(target=told, daemon=True).start()
print("tty", os.isatty(0), os.isatty(1), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
size()
for line in sys.stdin:
    word = line.strip()
    print("read", word, flush=True)
    if word == "stuff":
        try:
            terminal = os.open("/dev/tty", os.O_RDWR)
            for byte in b"touch escaped\\n":
                fcntl.ioctl(terminal, termios.TIOCSTI, bytes([byte]))
        except OSError as error:
            print("stuff", error, flush=True)
    if word == "ask":
        sys.stdout.write("\\x1b[6n")
        sys.stdout.flush()
        os._exit(3)
    if word == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    if word == "end":
        sys.exit(7)
"""


WAYS = [pytest.param((), id="contained"), pytest.param(("--no-sandbox",), id="uncontained")]
ONE_WAY = pytest.mark.parametrize("foreground", variants(WAYS), indirect=True)
"""For what the launcher does alike in both; `make test-all` takes both."""


@pytest.fixture(params=WAYS)
def foreground(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Terminal]:
    found = Terminal(bench, AGENT, *request.param)
    yield found
    found.close()


def test_it_has_a_terminal_of_its_own_and_cannot_stuff_ours(foreground: Terminal) -> None:
    """Size and its changes, bytes, Ctrl-C to the agent and not to the launcher, its exit code; and TIOCSTI."""
    foreground.until("tty True True True")
    foreground.until("size 24x80")
    foreground.resize(40, 100)
    foreground.process.send_signal(signal.SIGWINCH)
    foreground.until("size 40x100")
    foreground.type("hello\r")
    foreground.until("read hello")
    foreground.type("\x03")
    foreground.until("interrupted")
    foreground.type("stuff\r")
    foreground.until("read touch escaped|stuff .*rror")
    foreground.type("end\r")
    assert foreground.end() == 7
    assert foreground.unread() == b""


@ONE_WAY
def test_an_answer_that_nobody_awaits_any_more_is_thrown_away(foreground: Terminal) -> None:
    """A terminal's answer to a query that the agent left behind is no input of the shell."""
    for _ in range(20):
        foreground.until("size 24x80")
        foreground.type("ask\r")
        foreground.until(re.escape("\x1b[6n"))
        foreground.type("\x1b[24;80R")
        in_time = foreground.is_raw()  # an answer later than that is not awaited by the launcher
        assert foreground.end() == 3
        if in_time:
            break
        foreground.close()
        foreground.start()
    assert in_time
    assert foreground.unread() == b""


@ONE_WAY
def test_an_answer_that_comes_late_does_not_land_in_the_shell(foreground: Terminal) -> None:
    """Over a slow line: the launcher asks something itself, last, and waits for that answer."""
    foreground.until("size 24x80")
    foreground.type("ask\r")
    question = foreground.until(r"\x1b\[\?\d+\$p\x1b\[5n")  # asked once the agent has ended
    number = re.search(r"\d+", question)
    assert number
    foreground.type("\x1b[24;80R")
    foreground.type(f"\x1b[?{number[0]};0$y\x1b[0n")
    assert foreground.end() == 3
    assert foreground.unread() == b""
    foreground.close()
    foreground.start()
    foreground.until("size 24x80")
    foreground.type("term\r")  # an agent that dies of a signal says so
    assert foreground.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", variants([signal.SIGHUP, signal.SIGTERM]))
def test_a_signal_to_the_launcher_ends_agent_and_session(
    bench: Bench, foreground: Terminal, number: signal.Signals
) -> None:
    """It is passed on; the session has ended when the launcher has."""
    foreground.until("size 24x80")
    foreground.process.send_signal(number)
    assert foreground.end() in (128 + number, 143, 129)
    assert bench.events().count("session.ended") == 1


def test_a_killed_launcher_leaves_neither_agent_nor_session(
    bench: Bench, foreground: Terminal
) -> None:
    foreground.until("size 24x80")
    children = with_descendants({foreground.process.pid}) - {foreground.process.pid}
    assert children
    foreground.process.kill()
    foreground.process.wait(60)
    eventually(lambda: bench.events().count("session.ended") == 1)
    eventually(lambda: not children & alive())  # killed, each ends in its own turn


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
