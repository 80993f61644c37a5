"""The filter, the brake, the lock and what is printed on demand, in a console without a screen."""

import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.screen.plain_reading import Reader
from tests.support.variants import variants

ASKS_STOP = "Stop everything? This denies 7 calls, ends 3 sessions and stops 1 run."
REST = 0.4
"""Seconds between what is printed and its question."""
LEFT = "Cancelled. Nothing was stopped or ended."


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    reader.asked()
    yield reader
    reader.close()


def test_a_call_is_approved_for_the_session_where_that_is_offered(tmp_path: Path) -> None:
    person = Reader(tmp_path, "0", "builtin")
    assert "A approve for the session" in person.asked()
    assert "✓ Approved: Send a mail draft" in person.answers("A")
    assert "remember=True" in person.intents
    assert "A does nothing here now." in person.answers("A")
    person.close()


def test_a_filter_leaves_out_what_does_not_match_and_says_what_it_found(person: Reader) -> None:
    """`1` and `n` go among what it lets through; `/` alone shows all again."""
    output = person.answers("/ agent:goose")
    assert "2 of 8 match agent:goose" in output
    assert "goose asks, " in output  # the call that was asked about does not match
    listed = person.answers("1")
    assert [line[3:5] for line in listed.split("\n") if ". SEND, goose" in line] == ["1.", "2."]
    assert "claude" not in listed
    first = person.answers("n")
    assert re.search(r"goose asks, [3-5]\d s", first)  # half a minute, and what the test takes
    assert "goose asks, 1 min" in person.answers("n")  # round again, past five others
    assert "The filter is off; everything is shown." in person.answers("/")
    assert "claude, " in person.answers("1")


def test_a_filter_that_is_not_understood_or_finds_nothing_says_so(person: Reader) -> None:
    """The call that was asked about stays."""
    assert "No item matches agent:nobody. esc shows all 8." in person.answers("/agent:nobody")
    assert "SEND" not in person.answers("1")
    assert "This list has no colour: filter." in person.answers("/ colour:red")
    assert "blue is not a time." in person.answers("/ age:blue")
    assert "The filter is off; everything is shown." in person.answers("esc")
    assert "✓ Approved: Send a mail draft" in person.answers("a")


def test_a_filter_narrows_the_rows_of_another_view(person: Reader) -> None:
    """The list that stands there, in its own fields."""
    person.answers("4")
    output = person.answers("/ state:held")
    assert "1 of 5 match state:held" in output
    assert "post-invoice" in output
    assert "send-draft" not in output
    assert "and 1,117 more" in person.answers("3")
    output = person.answers('/ "Old record 77"')
    assert "11 of 1,137 match" in output
    assert output.count("Old record 77") == 1 + 1 + 11  # as typed, as told, and the rows


@pytest.mark.parametrize("typed", variants(["\x0b", "ctrl+k", "stop"]))
def test_everything_is_stopped_by_the_same_answer_given_twice(person: Reader, typed: str) -> None:
    """The first says what it would stop; the second, behind the rest, does it."""
    output = person.answers(typed)
    assert ASKS_STOP in output
    assert "A stopped run may already have done its work" in output
    assert "StopEverything" not in person.intents
    assert "✗ Everything stopped: 7 calls denied" in person.answers(typed)
    assert "StopEverything" in person.intents


@pytest.mark.parametrize("other", variants(["a", "stop it", "esc", "d no", "1", "y"], 2))
def test_any_other_answer_leaves_everything_as_it_is(person: Reader, other: str) -> None:
    """It does nothing else either, and the next `stop` asks anew."""
    person.answers("stop")
    assert LEFT in person.answers(other)
    assert ASKS_STOP in person.answers("stop")
    assert person.intents == ""


def test_two_answers_at_once_stop_nothing(person: Reader) -> None:
    """A paste is no answer, whether the question stands there or not."""
    person.pty.type(b"stop\nstop\n")
    assert "More than one line arrived at once." in person.asked()
    person.answers("stop")
    person.pty.type(b"stop\nstop\n")
    assert "More than one line arrived at once." in person.asked()
    assert ASKS_STOP in person.answers("stop")
    assert person.intents == ""


def test_what_is_typed_before_the_question_has_rested_stops_nothing(tmp_path: Path) -> None:
    """The same answer, given before it was asked for."""
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        person = Reader(folder)
        try:
            person.asked()
            began = monotonic()
            person.pty.type(b"stop\n")
            person.read_until("Stop everything?")
            person.pty.type(b"stop\n")
            if monotonic() - began > REST:
                continue  # this busy machine typed it when the question stood there
            person.asked()
            assert LEFT in person.answers("esc")  # the question still stands there
            assert person.intents == ""
            return
        finally:
            person.close()
    pytest.fail("this machine is too busy to type before the rest is over")


def test_a_call_that_changes_all_the_time_keeps_nobody_from_the_brake(tmp_path: Path) -> None:
    """An agent that makes rows come and go must not keep a person from stopping it."""
    person = Reader(tmp_path, "0", "restless")
    try:
        # Where a busy machine lets it rest for once there is a question, which it takes away again.
        output = next(
            output for _ in range(8) if "This changes too fast" in (output := person.asked())
        )
        assert "This changes too fast to decide on." in output
        assert "calls in the last hour" in output
        assert "Stop everything?" in person.answers("stop")
        assert "StopEverything" not in person.intents
        assert "✗ Everything stopped: 7 calls denied" in person.answers("stop")
    finally:
        person.close()


def test_a_session_is_ended_by_the_same_answer_given_twice(person: Reader) -> None:
    """Where its facts stand, once it was said what that does."""
    person.answers("5")
    assert "x does nothing here now." in person.answers("x")  # of rows none is meant
    person.answers("5 1")
    assert "End the session of codex?" in person.answers("x")
    assert LEFT in person.answers("n")
    assert "EndSession" not in person.intents
    person.answers("x")
    assert "Ended the session of codex." in person.answers("x")
    assert "EndSession(session_id='ses-00000000000000000000000001')" in person.intents


def test_the_call_is_printed_with_code_points_and_again_without(person: Reader) -> None:
    """As `u` does on the screen; it rests anew and can be decided in that form."""
    assert "u code points" not in person.answers("1")
    person.answers("/ state:pending goose")
    folded = person.answers("n")
    assert "‹ZWSP×3›" in folded
    assert "‹412 blank lines›" in folded
    unfolded = person.answers("u")
    assert "‹U+200B ZWSP›‹U+200B ZWSP›‹U+200B ZWSP›" in unfolded
    assert "‹ZWSP×3›" not in unfolded
    assert "‹ZWSP×3›" in person.answers("u")
    person.answers("u")
    assert "▲ Hidden text in Subject: ZWSP (and 2 more). Press a again" in person.answers("a")
    assert "✓ Approved: Send a mail draft" in person.answers("a")


def test_the_whole_new_preview_of_a_changed_call_is_printed_alone(person: Reader) -> None:
    """`x`, only where something changed."""
    assert "x does nothing here now." in person.answers("x")
    person.answers("/ goose")
    whole = person.answers("x")
    assert "WILL HAPPEN  the whole new preview" in whole
    assert "k.varga@mailbox.example" in whole
    assert "offer-2291.pdf" in whole
    for other in ("CHANGED", "SENT", "RECORD", "118.00"):
        assert other not in whole


def test_the_address_of_a_call_is_shown_where_there_is_no_browser(person: Reader) -> None:
    """Never a browser in this terminal."""
    address = "http://127.0.0.1:8517/review/act-20261008T140152-0000000000000001"
    assert f"{address} (no browser here)" in person.answers("O")


def test_the_page_of_a_call_is_opened_in_the_browser(tmp_path: Path) -> None:
    """Beside the console, by an address that is made here."""
    opener, opened = tmp_path / "xdg-open", tmp_path / "opened"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    opener.chmod(0o755)
    person = Reader(tmp_path, environment={"DISPLAY": ":7", "PATH": f"{tmp_path}:/usr/bin:/bin"})
    try:
        person.asked()
        assert "Opened http://127.0.0.1:8517/review/act-" in person.answers("O")
        assert opened.read_text().endswith("-0000000000000001\n")
    finally:
        person.close()


@pytest.mark.parametrize("typed", variants([b"a\n", b"stop\n", b"a\na\n", b"\n", b"1\n"], 2))
def test_the_line_that_ends_the_lock_does_nothing_else(tmp_path: Path, typed: bytes) -> None:
    """After the idle time a count is all that is told; the call is printed anew and rests anew."""
    person = Reader(tmp_path, "2.5")
    try:
        person.asked()
        output = person.asked()
        assert "Locked. 7 calls are waiting.\n" in output
        assert "Press Enter to show everything again; it does nothing else." in output
        assert "Send" not in output
        person.pty.type(typed)
        output = person.asked()
        assert "WILL HAPPEN  fetched" in output
        assert "does nothing here" not in output
        assert person.intents == ""
        # On a busy machine the idle time may be over again: then that line ends the lock alone.
        output = (person.answers("a") for _ in range(5))
        assert any("✓ Approved: Send a mail draft" in each for each in output)
    finally:
        person.close()
