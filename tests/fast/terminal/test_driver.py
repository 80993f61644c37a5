"""What one read from the terminal gives: one key or more; columns stay where they are, however wide it sees glyphs."""

import os
import threading
import unicodedata
from collections.abc import Callable, Set
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size, set_cell_size
from textual.message import Message

from aileron_core.text import inline
from aileron_tui import key_timing
from aileron_tui.key_timing import KeyTiming
from aileron_tui.terminal.driver import (
    ConsoleDriver,
    InputKind,
    InputReceived,
    TerminalGone,
    _Parser,
    input_kind,
    pin_glyphs,
    split_replies,
)
from tests.support.attacks import ATTACKS
from tests.support.terminal import Cells, joins_nothing

LEFT, WIDTH = 40, 100
ODD = st.sampled_from("👍🏽❤\ufe0f🇩🇪\u0903\u1161\u0301aж漢")
FAILS = ["\x1b[99999999999u", "\x1b[97:65;2u", "\x1b[1114112u", "\x1b[0;0;1114112u"]


@pytest.mark.parametrize(
    "text",
    ["a", "\r", "\t", " ", "é", "漢", "\x03", "\x7f", "\x1b[A", "\x1bOP", "\x1b[97u", "\x1b[97;1u",
     "\x1b[97;;97u", "\x1b[13u", "\x1b[3~", "\x1b[I", "\x1b[O", "\x1b"],
)  # fmt: skip
def test_one_key_is_one_key(text: str) -> None:
    assert input_kind(text) == "key"


@pytest.mark.parametrize(
    "text",
    ["aa", "ja", "a\x1b", "\x1b[", "a\x1b[", "\x1ba", "\x1b\r", "a\x1b[200~", "\x1b[200~",
     "\x1b[201~", "\x1b[200~a\x1b[201~", "a\x1b[<35;10;10M", "\x1b[<0;1;1Ma", "\x1b[97u\x1b[97u",
     "\x1b[A\x1b[A", "\x1b]2;x\x07", "\x1bP1$r\x1b\\", "a\x00"],
)  # fmt: skip
def test_anything_that_came_with_a_key_makes_a_burst(text: str) -> None:
    """Half a sequence, the mouse, the start of a paste: a person's press comes alone."""
    assert input_kind(text) == "burst"


def kind_beside(text: str, asked: Set[int]) -> InputKind:
    answers, typed = split_replies(text, asked)
    return input_kind(typed, answers=bool(answers))


def test_the_mouse_and_the_terminals_answers_are_no_keys_and_half_a_character_is_a_burst() -> None:
    assert input_kind("\x1b[<35;10;10M") == "mouse"
    assert input_kind("\x1b[<0;1;1M\x1b[<0;1;1m") == "mouse"
    asked = {7, 8}
    assert kind_beside("\x1b[1;7R", asked) == "reply"
    assert kind_beside("\x1b[1;7R\x1b[1;8R", asked) == "reply"
    assert kind_beside("a\x1b[1;7R", asked) == "key"
    assert kind_beside("\x1b[1;7Ra\x1b[1;8R", asked) == "key"
    assert kind_beside("aa\x1b[1;7R", asked) == "burst"
    assert split_replies("\x1b[1;8Rwo\x1b[1;7Rrds\x1b[1;9R", {7, 8}) == ([8, 7], "words\x1b[1;9R")
    assert input_kind("a", whole=False) == "burst"
    assert input_kind("", whole=False) == "burst"


def test_an_answer_that_nobody_asked_for_was_typed() -> None:
    """A burst cannot pass for one key by ending like an answer."""
    for text in ("a\x1b[1;9R", "a\x1b[2;7R", "a\x1b[?2026;2$y", "a\x1b[?62c"):
        assert kind_beside(text, {7}) == "burst"
    assert kind_beside("a\x1b[1;7R", set()) == "burst"


@given(st.text(alphabet="ad\r\x1b[]?;<>0123456789:~uMmRIO \x00\u0301é", max_size=40))
def test_no_text_of_two_letters_is_taken_for_one_key(text: str) -> None:
    letters = sum(char in "ad\r" for char in text)
    if letters >= 2 or (letters and text.endswith("\x1b")):
        assert input_kind(text) != "key"


@pytest.mark.parametrize("bad", FAILS)
def test_a_sequence_that_the_parser_fails_on_is_dropped_and_the_next_key_comes(bad: str) -> None:
    """It ended the console before: Textual's reader panics."""
    parser = _Parser(debug=False)
    assert parser.take(bad, 0.0) == []
    (event,) = parser.take("j", 1.0)
    assert event.key == "j"


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_paste_without_an_end_does_not_swallow_the_keyboard(cut: int) -> None:
    """After two silent seconds keys are keys again, however the marker was cut into reads."""
    parser = _Parser(debug=False)
    start = "\x1b[200~"
    parser.take(start[:cut], 0.0)
    parser.take(start[cut:] + "words", 0.0)
    parser.take("more", 1.5)
    parser.tick(3.0)
    assert parser.take("q", 3.2) == []
    parser.tick(5.3)
    (event,) = parser.take("j", 5.4)
    assert event.key == "j"


def test_a_paste_with_an_end_is_one_paste() -> None:
    parser = _Parser(debug=False)
    (paste,) = parser.take("\x1b[200~a\nd\x1b[201~", 0.0)
    assert paste.text == "a\nd"
    parser.tick(9.0)
    (event,) = parser.take("j", 9.1)
    assert event.key == "j"


@given(st.lists(st.text(max_size=12), max_size=12))
def test_no_text_ends_the_reader(reads: list[str]) -> None:
    parser = _Parser(debug=False)
    at = 0.0
    for text in reads:
        parser.take(text, at) if text else None
        at += 0.3
        parser.tick(at)
    parser.tick(at + 5)
    parser.tick(at + 9)
    events = parser.take("\x1b[A", at + 10)
    assert getattr(events[-1], "key", None) == "up"


class Reader(ConsoleDriver):
    """The reader of a file whose machine stands still for a second whenever the time is asked."""

    def __init__(self, fileno: int) -> None:
        self.fileno, self.exit_event, self._debug = fileno, threading.Event(), False
        self._arrivals, self._open = 0, frozenset()
        self.sent: list[Message] = []

    def send_message(self, message: Message) -> None:
        self.sent.append(message)

    process_message = send_message


def test_a_read_and_its_keys_have_one_time_however_long_the_reader_stood_still_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or a key that was read late would look like one pressed after a rest."""
    ours, theirs = os.pipe()
    os.write(theirs, b"a")
    os.close(theirs)
    seconds = iter(range(1000))
    for module in ("aileron_tui.terminal.driver", "textual._time"):
        monkeypatch.setattr(f"{module}.get_time", lambda: float(next(seconds)))
    reader = Reader(ours)
    reader.run_input_thread()
    os.close(ours)
    received, key, gone = reader.sent
    assert isinstance(received, InputReceived)
    assert received.kind == "late"
    assert isinstance(gone, TerminalGone)
    assert key.time == received.time


@pytest.mark.parametrize("text", ["\x1b", "a\x1b"])
def test_an_escape_key_has_the_time_it_came_at(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: with a key in one read, it ended the sentence that nothing was decided, unread.

    The parser waits 0.1 s for what may follow an escape, on a busy machine seconds.
    """
    times = iter([0.0, 5.0])
    monkeypatch.setattr("textual._parser.get_time", lambda: next(times, 9.0))
    parser = _Parser(debug=False)
    parser.take(text, 3.0)
    (event,) = parser.tick(9.0)
    assert (event.key, event.time) == ("escape", 3.0)


def test_a_burst_never_seems_to_come_earlier_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the process stands still while the two clocks are read: its key has to fall into it."""
    now, bursts = [100.0], list[float]()
    clock = SimpleNamespace(monotonic=lambda: now[0])
    model = SimpleNamespace(on_burst=bursts.append)
    timing = KeyTiming(cast("Any", None), cast("Any", clock), lock_seconds=0)
    timing._app = cast("Any", type("App", (), {"screen": None}))  # pyright: ignore[reportPrivateUsage]
    late = InputReceived("late")

    def stalled(_event: object) -> float:
        now[0] += 0.5  # the process stands still, and the event is older by as much
        return 0.5

    monkeypatch.setattr(key_timing, "_age", stalled)
    timing.on_input(late, cast("Any", model))
    assert bursts == [100.0]
    assert timing.pressed_at(late) == 100.0


def narrow_width(char: str) -> int:
    """A terminal that knows no emoji: each has one cell."""
    size = get_character_cell_size(char)
    return min(size, 1) if ord(char) >= 0x1F000 or unicodedata.category(char) == "So" else size


def drawn_row(gist: str, width_of: Callable[[str], int]) -> list[str]:
    """Return the cells of a row as Textual writes it whole: a list, then an item beside it."""
    left = set_cell_size(gist, LEFT - 4)
    frame = f"\x1b[1;1H\x1b[1m▌● {left} \x1b[0mLABEL ┃ value\x1b[2;1Hnext"
    cells = Cells(WIDTH, 2, width_of=width_of)
    cells.feed("\x1b[1;1H" + "¤" * WIDTH + pin_glyphs(frame))
    assert cells.strangers == []
    return cells.row(0)


@pytest.mark.parametrize("width_of", [joins_nothing, narrow_width, get_character_cell_size])
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_what_is_beside_a_text_stays_there(attack: object, width_of: Callable[[str], int]) -> None:
    row = drawn_row(inline(attack.text).text, width_of)
    assert "".join(row[LEFT : LEFT + 13]) == "LABEL ┃ value"
    assert "¤" not in "".join(row[: LEFT + 13])


@given(st.text(alphabet=st.characters() | ODD))
def test_it_holds_for_any_text(text: str) -> None:
    row = drawn_row(inline(text).text, joins_nothing)
    assert "".join(row[LEFT : LEFT + 13]) == "LABEL ┃ value"


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=("Cc", "Cs"))))
def test_nothing_is_added_but_blanks_and_places(text: str) -> None:
    frame = f"\x1b[1;1H\x1b[38;2;1;2;3m{text}\x1b[0m"
    held = pin_glyphs(frame)
    cells = Cells(max(cell_len(text), 1) + 4, 1)
    cells.feed(held)
    plain = Cells(max(cell_len(text), 1) + 4, 1)
    plain.feed(frame)
    assert cells.strangers == []
    assert cells.text.replace(" ", "") == plain.text.replace(" ", "")
    if text.isascii():
        assert held == frame


def test_text_before_the_first_place_is_left_alone() -> None:
    assert pin_glyphs("\x1b]2;(3) aileron\x07👍🏽") == "\x1b]2;(3) aileron\x07👍🏽"
