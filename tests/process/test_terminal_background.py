"""A console asks its terminal for the ground before it draws, and begins in the look that fits."""

import contextlib
from pathlib import Path

import pytest

from tests.support.server_harness import CLI
from tests.support.terminal import Pty

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
_SLOWLY = """
import sys
from aileron_tui.terminal import background_color
background_color.background_is_light.__defaults__ = (20.0,)
sys.argv[0] = "aileron"
from aileron_tui.cli import main
main()
"""
PATIENT = (*CLI[:2], "-c", _SLOWLY)
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
    command = PATIENT if answer else CLI
    with contextlib.closing(
        Pty([*command, "console", "--home", str(home)], environment={"COLORFGBG": ""})
    ) as pty:
        pty.until(lambda: QUESTION in pty.raw, "the question")
        pty.type(b"5" + answer)
        pty.shows("t accept…")
        other = GROUNDS["dark" if look == "light" else "light"]
        assert GROUNDS[look] in pty.raw
        assert other not in pty.raw
        # What came late is no key either.
        pty.type(b"\x1b]11;rgb:1234/5234/2345\x1b\\\x1b[?1;2c")
        pty.settle(1.0)
        assert "t accept…" in pty.cells.text
