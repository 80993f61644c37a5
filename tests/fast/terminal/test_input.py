"""What one read from the terminal gives: one key, or more than a person presses at once."""

import os
import threading
from collections.abc import Set
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.message import Message

from aileron_tui import key_timing
from aileron_tui.key_timing import KeyTiming
from aileron_tui.terminal.driver import (
    ConsoleDriver,
    InputKind,
    InputReceived,
    TerminalGone,
    _Parser,
    input_kind,
    split_replies,
)


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


def test_a_read_that_ends_within_a_character_is_a_burst() -> None:
    assert input_kind("a", whole=False) == "burst"
    assert input_kind("", whole=False) == "burst"


def kind_beside(text: str, asked: Set[int]) -> InputKind:
    answers, typed = split_replies(text, asked)
    return input_kind(typed, answers=bool(answers))


def test_the_mouse_and_the_terminals_own_answers_are_no_keys_and_taken_out() -> None:
    assert input_kind("\x1b[<35;10;10M") == "mouse"
    assert input_kind("\x1b[<0;1;1M\x1b[<0;1;1m") == "mouse"
    asked = {7, 8}
    assert kind_beside("\x1b[1;7R", asked) == "reply"
    assert kind_beside("\x1b[1;7R\x1b[1;8R", asked) == "reply"
    assert kind_beside("a\x1b[1;7R", asked) == "key"
    assert kind_beside("\x1b[1;7Ra\x1b[1;8R", asked) == "key"
    assert kind_beside("aa\x1b[1;7R", asked) == "burst"
    assert split_replies("\x1b[1;8Rwo\x1b[1;7Rrds\x1b[1;9R", {7, 8}) == ([8, 7], "words\x1b[1;9R")


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


FAILS = ["\x1b[99999999999u", "\x1b[97:65;2u", "\x1b[1114112u", "\x1b[0;0;1114112u"]


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
