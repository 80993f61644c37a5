"""A fault while drawing: the item waits on, nothing decides it, and everything else goes on."""

import logging
from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Accept
from aileron_tui import words
from tests.screen.driving import NOW, short, start
from tests.support.screens.home import not_accepted
from tests.support.screens.play import Play
from tests.support.screens.states import Undrawable

SECRET = "what nobody may log"


def broken(number: int = 1):
    fields = (FieldView(label="Body", value=Undrawable("x"), multiline=True),)
    preview = PreviewView(status="ready", fields=fields, gist="a mail", host="h", updated_at=NOW)
    return short(number, preview=preview)


def test_an_item_that_cannot_be_drawn_waits_and_nothing_decides_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither approve nor deny is offered, the status line and the document say so, the log names the place."""
    with caplog.at_level(logging.ERROR, "aileron_tui"):
        play = Play(start(broken()))
        play.shows(words.status.UNDRAWABLE)
        play.passes(2)
        assert words.status.UNDRAWABLE in play.status_line
        assert "because of a bug" in play.text
        assert "approve" not in play.keys
        assert "deny" not in play.keys
        for key in ("a", "a", "d", "enter", "r", "t"):
            play.clock.advance(1)
            play.press_alone(key)
        assert play.port.intents == []
    (message,) = [r.getMessage() for r in caplog.records if r.name.startswith("aileron_tui")]
    assert message.startswith("an item could not be drawn: RuntimeError at ")
    assert SECRET not in message


def test_other_items_are_drawn_and_decided_beside_one_that_cannot_be() -> None:
    """The row says so; `j` leaves it; the next item is approved as ever."""
    play = Play(start(broken(1), short(2)))
    play.shows(words.status.UNDRAWABLE)
    assert play.row.startswith("▌✗ This cannot be shown")
    play.press("j")
    play.rest()
    assert "✓ All seen." in play.status_line
    play.press_alone("a")
    play.asks()
    assert play.port.intents[0].approval_id == short(2).approval_id
    play.press("k")
    assert words.status.UNDRAWABLE in play.status_line


def test_content_that_comes_anew_can_be_drawn_and_decided_and_a_drift_takes_that_away() -> None:
    """The fault belongs to one content, not to the approval for ever."""
    play = Play(start(broken()))
    play.shows(words.status.UNDRAWABLE)
    play.port.tell(ApprovalUpdated(view=replace(short(), version=2)))
    play.until(lambda: words.status.UNDRAWABLE not in play.text)
    play.rest()
    play.port.tell(ApprovalUpdated(view=replace(broken(), version=3)))
    play.shows(words.status.UNDRAWABLE)
    play.clock.advance(2)
    play.press_alone("a")
    assert play.port.intents == []
    play.port.tell(ApprovalUpdated(view=replace(short(), version=4)))
    play.until(lambda: words.status.UNDRAWABLE not in play.text)
    play.press_rested("a")
    play.asks()


def test_a_file_that_cannot_be_drawn_is_not_accepted() -> None:
    """The same for what lies in the home."""
    held = replace(not_accepted(), file=Undrawable("a.md"), hosts=(Undrawable("h"),))
    play = Play(start(held=(held,)))
    play.shows(words.status.UNDRAWABLE)
    play.clock.advance(2)
    play.press_alone("t")
    assert not play.asked(Accept)
