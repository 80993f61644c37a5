"""What a person sees of a start before the first frame, in which look it begins, and what it does not wait for."""

import contextlib
import os
from pathlib import Path

import pytest

from aileron_core.home.layout import Home
from tests.process.tmux import Tmux, shell
from tests.support.server_harness import CLI, aileron, aileron_json
from tests.support.terminal import Pty

SCREEN = b"\x1b[?1049h"
"""Textual's alternate screen begins."""


def opened(home: Path, *options: str) -> Pty:
    return Pty([*CLI[:2], *options, *CLI[2:], "console", "--home", str(home)])


def test_a_line_comes_before_anything_heavy_is_imported(home: Path) -> None:
    """-X importtime prints a line for each import, on the same terminal and in order."""
    with contextlib.closing(opened(home, "-X", "importtime")) as pty:
        pty.until(lambda: SCREEN in pty.raw, "the screen")
        before, _, after = pty.raw.partition(f"aileron: opening {home} ...".encode())
        for heavy in (b" textual.app\r", b" aileron_core.app\r"):
            assert heavy not in before
            assert heavy in after


def test_the_line_is_gone_before_the_screen_and_after_a_refusal(home: Path) -> None:
    """It says nothing once something else does.

    Port and socket are taken before the screen is drawn: a request may wait, it is not refused.
    """
    with contextlib.closing(opened(home)) as first:
        first.shows("not accepted")
        assert Home(home).socket.exists()
        assert aileron_json("status", home=home)["running"] is True
        text = f"aileron: opening {home} ..."
        assert f"{text}\r{' ' * len(text)}\r".encode() in first.raw.partition(SCREEN)[0]
        second = opened(home)
        said = second.text_at_end(1)
        assert b"opening" in second.raw
        assert "opening" not in said
        assert "A console is already running" in said


def test_neither_a_reader_of_lines_nor_a_file_gets_the_line(home: Path) -> None:
    with contextlib.closing(Pty([*CLI, "console", "--plain", "--home", str(home)])) as pty:
        pty.shows("Keys: ")
        assert b"opening" not in pty.raw
    done = aileron("console", home=home, code=None)
    assert "needs a terminal" in done.stderr
    assert "opening" not in done.stdout + done.stderr


def test_a_console_whose_standard_error_is_a_file_draws_on_the_terminal(folder: Path) -> None:
    """It drew into the file: blind, with keys that counted."""
    errors = folder / "errors"
    command = f"{shell(*CLI, 'console', '--home', str(folder / 'home'))} 2> {errors}"
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with contextlib.closing(Tmux(folder / "tmux", command, environment, folder)) as tmux:
        tmux.until("Nothing is waiting.")
        # A key that comes in one breath with the terminal's first answers does nothing.
        tmux.until(lambda shown: "Nothing is waiting." not in shown or tmux.press("2") is True)
        tmux.press("q")
        tmux.until("ended with 0")
        assert errors.read_text() == ""


_SLOWLY = """
import sys
from aileron_tui.terminal import background_color
background_color.background_is_light.__defaults__ = (20.0,)
sys.argv[0] = "aileron"
from aileron_tui.cli import main
main()
"""
"""The console, with more than its quarter of a second for an answer that a test gives."""
GROUNDS = {"light": b"48;2;251;251;249", "dark": b"48;2;14;18;22"}


@pytest.mark.parametrize(
    ("answer", "look"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c", "light"),
        (b"\x1b]11;rgb:1010/1010/1010\x07\x1b[?62c", "dark"),
        (b"", "dark"),
    ],
)
def test_a_console_begins_in_the_look_of_its_terminal(home: Path, answer: bytes, look: str) -> None:
    """Also where nobody answers; what was typed before it drew moves nothing."""
    command = [*((*CLI[:2], "-c", _SLOWLY) if answer else CLI), "console", "--home", str(home)]
    with contextlib.closing(Pty(command, environment={"COLORFGBG": ""})) as pty:
        pty.until(lambda: b"\x1b]11;?\x1b\\\x1b[c" in pty.raw, "the question")
        pty.type(b"5" + answer)
        pty.shows("t accept…")
        assert [each for each, ground in GROUNDS.items() if ground in pty.raw] == [look]
        # What came late is no key either.
        pty.type(b"\x1b]11;rgb:1234/5234/2345\x1b\\\x1b[?1;2c")
        pty.settle(1.0)
        assert "t accept…" in pty.cells.text
