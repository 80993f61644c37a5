"""The brakes: `P` holds all calls, `ctrl+k` stops everything and asks once."""

from dataclasses import replace

from aileron_core.console_port.events import CoreLost, PauseChanged, SessionsUpdated, StorageHealth
from aileron_core.console_port.intents import SetPause, StopEverything
from tests.screen.driving import NOW, mail, short, start
from tests.support.screens.home import sessions
from tests.support.screens.play import Play, rested

SESSIONS = sessions(NOW)
STATE = start(short(1), short(2), sessions=SESSIONS)


def test_p_holds_all_calls_at_once_and_both_brakes_are_in_every_view() -> None:
    """It takes nothing but time, so it needs no rest; whoever sees something wrong looks for no view first."""
    play = Play(STATE, answers=True)
    play.shows("WILL HAPPEN")
    play.press_alone("P")
    play.asks(SetPause(paused=True))
    play.shows("▲ All calls are on hold (since 14:02). P resumes them.")
    for view in "2345":
        play.go(view, "All calls are on hold")
        play.go("ctrl+k", "Stop everything?")
        play.press_alone("escape")
        play.until(lambda: "Stop everything?" not in play.text)
    play.go("1", "WILL HAPPEN")


def test_going_on_obeys_the_arming() -> None:
    """What was approved starts then: a key on its way from elsewhere must not do that."""
    play = Play(replace(STATE, paused_at=NOW), answers=True)
    play.shows("All calls are on hold")
    play.press_alone("P")
    play.passes(0.1)
    assert play.port.intents == []
    play.rest()
    assert " P  resume" in play.keys
    assert "P pause" not in play.keys
    play.press("j", "P")
    play.asks_nothing()
    play.press_rested("P")
    play.asks(SetPause(paused=False))
    play.until(lambda: "All calls are on hold" not in play.text)


def test_nothing_can_be_approved_during_a_pause_and_a_no_can_be_given() -> None:
    """The core takes no yes then, for it would run something later: the key is not offered."""
    play = rested(replace(STATE, paused_at=NOW))
    assert play.status_line.strip().startswith(
        "Nothing can be approved while calls are on hold. P resumes"
    )
    assert "approve" not in play.keys
    assert "d deny" in play.keys
    play.press_alone("a")
    play.asks_nothing()
    play.port.tell(PauseChanged(paused_at=None))
    play.shows("Press a to send a mail draft.")
    play.rest()
    assert " a  approve" in play.keys


def test_a_pause_takes_back_the_first_of_two_presses_and_makes_every_key_rest_anew() -> None:
    """The screen moved by a row; the status line promises no second press that would do nothing."""
    play = rested(start(mail()), size=(80, 24))
    play.press_alone("a", "Press a again to send a mail draft anyway.")
    play.rest()
    play.port.tell(PauseChanged(paused_at=NOW))
    play.shows("All calls are on hold")
    assert "again" not in play.status_line
    assert not play.armed


def test_stop_everything_asks_once_and_says_what_it_would_stop() -> None:
    """Two calls, three sessions, one run; `esc` leaves it all; the key itself decides nothing."""
    play = rested(STATE, answers=True)
    question = "Stop everything? This denies 2 calls, ends 3 sessions and stops 1 run."
    play.go("ctrl+k", question)
    assert "WILL HAPPEN" in play.text, "the item stays readable"
    play.press_alone("enter")
    assert play.port.intents == []
    play.press_alone("ctrl+k")
    play.press_rested("escape")
    play.until(lambda: question not in play.text)
    assert play.port.intents == []
    play.go("ctrl+k", question)
    play.rest()
    assert " enter  stop everything" in play.keys
    play.press_alone("enter")
    play.asks(StopEverything())
    play.shows("✗ Everything stopped: 2 calls denied, 3 sessions ended, 1 run stopped.")


def test_busy_agents_cannot_keep_a_person_from_stopping_everything() -> None:
    """What they do meanwhile makes no key rest anew."""
    play = Play(STATE)
    play.go("2", "Newest first.")
    play.go("ctrl+k", "stops 1 run.")
    play.rest()
    busy = tuple(replace(each, running=5) for each in SESSIONS)
    play.port.tell(SessionsUpdated(sessions=busy))
    play.shows("stops 15 runs.")
    assert play.armed
    play.press_alone("enter")
    play.asks(StopEverything())


def test_without_a_core_that_can_write_nothing_is_asked_of_it() -> None:
    """The question closes; pause, stop and end are gone from the keys."""
    play = rested(STATE)
    play.go("ctrl+k", "Stop everything?")
    play.port.tell(StorageHealth(writable=False, message="The disk is full."))
    play.until(lambda: "Stop everything?" not in play.text)
    play.port.tell(CoreLost(message="It ended."))
    play.shows("THE SERVER HAS STOPPED")
    play.clock.advance(2)
    for key in ("P", "ctrl+k", "enter"):
        play.press_alone(key)
    assert play.port.intents == []
    assert "pause" not in play.keys
