"""The ground of a real pseudo-terminal, asked and answered byte by byte."""

import os
import termios
import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from aileron_tui.styles.choosing import choose_theme
from aileron_tui.styles.tokens import DARK, LIGHT
from aileron_tui.terminal.background_color import LATE_REPLY, background_is_light

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
LAST = b"\x1b[?62;4c"
BRIGHT = (b"rgb:ffff/ffff/ffff\x1b\\", b"rgb:f/f/e\x07", b"rgba:fdfd/f6f6/e3e3/ffff\x07")
DIM = (b"rgb:0000/2b2b/3636\x1b\\", b"rgb:0000/0000/ffff\x07")
COLOURS = dict.fromkeys(BRIGHT, True) | dict.fromkeys(DIM, False) | {b"rgb:zz/zz/zz\x07": None}
ANSWERS = [(b"\x1b]11;" + colour + LAST, light) for colour, light in COLOURS.items()]


class Terminal:
    """Both ends of a pseudo-terminal; *answers* are written once the whole question came."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.asked = b""

    def answer(self, answers: bytes) -> threading.Thread:
        def work() -> None:
            while not self.asked.endswith(QUESTION):
                self.asked += os.read(self.master, 100)
            os.write(self.master, answers)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def tty() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    os.close(opened.slave)
    os.close(opened.master)


@pytest.mark.parametrize(("answers", "light"), [*ANSWERS, (LAST, None), (b"\xff\x00" * 3000, None)])
def test_the_terminals_answer_says_whether_its_ground_is_light(
    tty: Terminal, answers: bytes, light: bool | None
) -> None:
    before = termios.tcgetattr(tty.slave)
    answering = tty.answer(answers)
    began = monotonic()
    assert background_is_light(tty.slave, tty.slave, 20.0) is light
    assert monotonic() - began < 15
    answering.join(20)
    assert termios.tcgetattr(tty.slave) == before


def test_a_terminal_that_answers_nothing_is_not_waited_for(tty: Terminal) -> None:
    assert background_is_light(tty.slave, tty.slave, 0.05) is None
    source, target = os.pipe()
    try:
        assert background_is_light(source, target) is None
    finally:
        os.close(source)
        os.close(target)


def test_a_late_answer_is_no_key() -> None:
    assert LATE_REPLY.sub("", "a\x1b]11;rgb:ffff/ffff/ffff\x1b\\b\x1b[?62;4cc") == "abc"
    assert LATE_REPLY.sub("", "\x1b[A\x1b[<35;1;1M\x1b[1;3R") == "\x1b[A\x1b[<35;1;1M\x1b[1;3R"


@pytest.mark.parametrize(
    ("environment", "light", "expected"),
    [({}, True, LIGHT), ({}, False, DARK), ({}, None, DARK), ({"COLORFGBG": "15;0"}, True, DARK)],
)
def test_the_terminal_is_asked_where_nothing_else_says(
    environment: dict[str, str], light: bool | None, expected: str
) -> None:
    assert choose_theme("auto", environment, lambda: light) == expected
    assert choose_theme("dark", environment, lambda: True) == DARK
