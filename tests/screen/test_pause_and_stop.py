"""The brakes: `P` holds all calls, `ctrl+k` stops everything and asks once."""

from dataclasses import replace

from aileron_core.console_port.events import CoreLost, PauseChanged, SessionsUpdated, StorageHealth
from aileron_core.console_port.intents import SetPause, StopEverything
from tests.screen.driving import NOW, console, mail, resting, short, start
from tests.support.screens.home import sessions

SESSIONS = sessions(NOW)
STATE = start(short(1), short(2), sessions=SESSIONS)


async def test_p_holds_all_calls_at_once_and_both_brakes_are_in_every_view() -> None:
    """It takes nothing but time, so it needs no rest; whoever sees something wrong looks for no view first."""
    async with console(STATE, answers=True) as shown:
        await shown.shows("WILL HAPPEN")
        await shown.press_alone("P")
        await shown.asks(SetPause(paused=True))
        await shown.shows("▲ All calls are on hold (since 14:02). P resumes them.")
        for view in "2345":
            await shown.go(view, "All calls are on hold")
            await shown.go("ctrl+k", "Stop everything?")
            await shown.press_alone("escape")
            await shown.until(lambda: "Stop everything?" not in shown.text)
        await shown.go("1", "WILL HAPPEN")


async def test_going_on_obeys_the_arming() -> None:
    """What was approved starts then: a key on its way from elsewhere must not do that."""
    async with console(replace(STATE, paused_at=NOW), answers=True) as shown:
        await shown.shows("All calls are on hold")
        await shown.press_alone("P")
        await shown.passes(0.1)
        assert shown.port.intents == []
        await shown.rest()
        assert " P  resume" in shown.keys
        assert "P pause" not in shown.keys
        await shown.press("j", "P")
        await shown.asks_nothing()
        await shown.press_rested("P")
        await shown.asks(SetPause(paused=False))
        await shown.until(lambda: "All calls are on hold" not in shown.text)


async def test_nothing_can_be_approved_during_a_pause_and_a_no_can_be_given() -> None:
    """The core takes no yes then, for it would run something later: the key is not offered."""
    async with resting(replace(STATE, paused_at=NOW)) as shown:
        assert shown.status_line.strip().startswith(
            "Nothing can be approved while calls are on hold. P resumes"
        )
        assert "approve" not in shown.keys
        assert "d deny" in shown.keys
        await shown.press_alone("a")
        await shown.asks_nothing()
        shown.port.tell(PauseChanged(paused_at=None))
        await shown.shows("Press a to send a mail draft.")
        await shown.rest()
        assert " a  approve" in shown.keys


async def test_a_pause_takes_back_the_first_of_two_presses_and_makes_every_key_rest_anew() -> None:
    """The screen moved by a row; the status line promises no second press that would do nothing."""
    async with resting(start(mail()), size=(80, 24)) as shown:
        await shown.press_alone("a", "Press a again to send a mail draft anyway.")
        await shown.rest()
        shown.port.tell(PauseChanged(paused_at=NOW))
        await shown.shows("All calls are on hold")
        assert "again" not in shown.status_line
        assert not shown.armed


async def test_stop_everything_asks_once_and_says_what_it_would_stop() -> None:
    """Two calls, three sessions, one run; `esc` leaves it all; the key itself decides nothing."""
    async with resting(STATE, answers=True) as shown:
        question = "Stop everything? This denies 2 calls, ends 3 sessions and stops 1 run."
        await shown.go("ctrl+k", question)
        assert "WILL HAPPEN" in shown.text, "the item stays readable"
        await shown.press_alone("enter")
        assert shown.port.intents == []
        await shown.press_alone("ctrl+k")
        await shown.press_rested("escape")
        await shown.until(lambda: question not in shown.text)
        assert shown.port.intents == []
        await shown.go("ctrl+k", question)
        await shown.rest()
        assert " enter  stop everything" in shown.keys
        await shown.press_alone("enter")
        await shown.asks(StopEverything())
        await shown.shows("✗ Everything stopped: 2 calls denied, 3 sessions ended, 1 run stopped.")


async def test_busy_agents_cannot_keep_a_person_from_stopping_everything() -> None:
    """What they do meanwhile makes no key rest anew."""
    async with console(STATE) as shown:
        await shown.go("2", "Newest first.")
        await shown.go("ctrl+k", "stops 1 run.")
        await shown.rest()
        busy = tuple(replace(each, running=5) for each in SESSIONS)
        shown.port.tell(SessionsUpdated(sessions=busy))
        await shown.shows("stops 15 runs.")
        assert shown.armed
        await shown.press_alone("enter")
        await shown.asks(StopEverything())


async def test_without_a_core_that_can_write_nothing_is_asked_of_it() -> None:
    """The question closes; pause, stop and end are gone from the keys."""
    async with resting(STATE) as shown:
        await shown.go("ctrl+k", "Stop everything?")
        shown.port.tell(StorageHealth(writable=False, message="The disk is full."))
        await shown.until(lambda: "Stop everything?" not in shown.text)
        shown.port.tell(CoreLost(message="It ended."))
        await shown.shows("THE SERVER HAS STOPPED")
        shown.clock.advance(2)
        for key in ("P", "ctrl+k", "enter"):
            await shown.press_alone(key)
        assert shown.port.intents == []
        assert "pause" not in shown.keys
