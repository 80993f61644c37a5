"""What a person sees of a start before the first frame, and what the start does not wait for."""

import contextlib
from pathlib import Path

from aileron_core.home.layout import Home
from tests.support.server_harness import CLI, aileron, aileron_json
from tests.support.terminal import Pty

SCREEN = b"\x1b[?1049h"
"""Textual's alternate screen begins."""


def test_a_line_comes_before_anything_heavy_is_imported(home: Path) -> None:
    """-X importtime prints a line for each import, on the same terminal and in order."""
    with contextlib.closing(
        Pty([*CLI[:2], "-X", "importtime", *CLI[2:], "console", "--home", str(home)])
    ) as pty:
        pty.until(lambda: SCREEN in pty.raw, "the screen")
        before, _, after = pty.raw.partition(f"aileron: opening {home} ...".encode())
        for heavy in (b" textual.app\r", b" aileron_core.app\r"):
            assert heavy not in before
            assert heavy in after


def test_the_line_is_gone_before_the_screen_and_after_a_refusal(home: Path) -> None:
    """It says nothing once something else does.

    Port and socket are taken before the screen is drawn: a request may wait, it is not refused.
    """
    command = [*CLI, "console", "--home", str(home)]
    with contextlib.closing(Pty(command)) as first:
        first.shows("not accepted")
        assert Home(home).socket.exists()
        assert aileron_json("status", home=home)["running"] is True
        text = f"aileron: opening {home} ..."
        assert f"{text}\r{' ' * len(text)}\r".encode() in first.raw.partition(SCREEN)[0]
        second = Pty(command)
        said = second.text_at_end(1)
        assert b"opening" in second.raw
        assert "opening" not in said
        assert "A console is already running" in said


def test_neither_a_reader_of_lines_nor_a_file_gets_the_line(home: Path) -> None:
    """`--plain` says its own first line; without a terminal there is the error alone."""
    with contextlib.closing(Pty([*CLI, "console", "--plain", "--home", str(home)])) as pty:
        pty.shows("Keys: ")
        assert b"opening" not in pty.raw
    done = aileron("console", home=home, code=None)
    assert "needs a terminal" in done.stderr
    assert "opening" not in done.stdout + done.stderr
