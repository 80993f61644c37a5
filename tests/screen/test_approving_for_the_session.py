"""`A` approves a call of a built-in tool for the rest of its session, as strictly as `a` approves it once."""

from dataclasses import replace

from aileron_core.console_port.intents import Approve
from tests.screen.driving import mail, short, start
from tests.support.screens.play import Play, rested


def test_it_is_a_yes_that_covers_identical_calls() -> None:
    view = short(can_be_remembered=True)
    play = rested(start(view))
    assert "A  approve for the session" in play.keys
    play.press_alone("A")
    play.asks()
    expected = Approve(approval_id=view.approval_id, digest=view.digest, remember=True)
    assert play.port.intents == [expected]


def test_another_call_does_not_offer_it() -> None:
    """And it opens nothing: a key that decides somewhere does nothing else elsewhere."""
    play = rested(start(short()))
    assert "for the session" not in play.keys
    play.press_alone("A")
    assert "only a call of a built-in tool can be approved for the session" in play.status_line
    assert play.port.intents == []


def test_unread_lines_want_the_same_key_twice() -> None:
    """A first `a` and then `A` is no second press; the sentence says what it covers."""
    view = replace(mail(), can_be_remembered=True)
    play = Play(start(view), size=(80, 24))
    play.press_rested("a", "Press a again")
    play.press_rested("A", "Press A again")
    assert play.port.intents == []
    play.press_rested("A")
    intent = play.asks_for(Approve)
    assert intent.remember
    assert intent.unseen_lines > 0
