"""The brakes: `P` holds all calls, `ctrl+k` stops everything, `X` one run; `z` takes back what a call wrote."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.events import (
    ApprovalUpdated,
    CoreLost,
    PauseChanged,
    SessionsUpdated,
    StorageHealth,
)
from aileron_core.console_port.intents import SetPause, StopEverything, StopRun, UndoRun
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import sessions
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, recorded, short, start

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
        assert "Stop everything?" not in play.text
    play.go("1", "WILL HAPPEN")


def test_going_on_obeys_the_arming_and_nothing_can_be_approved_before() -> None:
    """What was approved starts then: a key on its way from elsewhere must not do that. The core takes no yes
    during a pause, for it would run something later: the key is not offered; a no can be given.
    """
    play = Play(replace(STATE, paused_at=NOW), answers=True)
    play.shows("All calls are on hold")
    play.press_alone("P")
    play.passes(0.1)
    assert play.port.intents == []
    play.rest(20)
    said = "Nothing can be approved while calls are on hold. P resumes"
    assert play.status_line.strip().startswith(said)
    assert " P  resume" in play.keys
    assert "P pause" not in play.keys
    assert "approve" not in play.keys
    assert "d deny" in play.keys
    play.press_alone("a")
    play.asks_nothing()
    play.press("j", "P")
    play.asks_nothing()
    play.press_rested("P", "Press a to send a mail draft.")
    play.asks(SetPause(paused=False))
    assert "All calls are on hold" not in play.text
    play.rest()
    assert " a  approve" in play.keys


def test_a_pause_takes_back_the_first_of_two_presses_and_makes_every_key_rest_anew() -> None:
    play = rested(start(mail()), size=(80, 24))
    play.press_alone("a", "Press a again to send a mail draft anyway.")
    play.rest()
    play.port.tell(PauseChanged(paused_at=NOW))
    play.shows("All calls are on hold")
    assert "again" not in play.status_line
    assert not play.armed


def test_stop_everything_asks_once_and_says_what_it_would_stop() -> None:
    """Two calls, three sessions, one run; `esc` leaves it all; the key itself decides nothing. What busy
    agents do meanwhile makes no key rest anew.
    """
    play = rested(STATE, answers=True)
    question = "Stop everything? This denies 2 calls, ends 3 sessions and stops 1 run."
    play.go("ctrl+k", question)
    assert "WILL HAPPEN" in play.text, "the item stays readable"
    play.press_alone("enter")
    assert play.port.intents == []
    play.press_alone("ctrl+k")
    play.press_rested("escape")
    assert question not in play.text
    assert play.port.intents == []
    play.go("ctrl+k", question)
    play.rest()
    assert " enter  stop everything" in play.keys
    busy = tuple(replace(each, running=5) for each in SESSIONS)
    play.port.tell(SessionsUpdated(sessions=busy))
    play.shows("stops 15 runs.")
    assert play.armed
    play.press_alone("enter")
    play.asks(StopEverything())
    play.shows("✗ Everything stopped: 2 calls denied, 3 sessions ended, 1 run stopped.")


def test_without_a_core_that_can_write_nothing_is_asked_of_it() -> None:
    play = rested(STATE)
    play.go("ctrl+k", "Stop everything?")
    play.port.tell(StorageHealth(writable=False, message="The disk is full."))
    play.settled()
    assert "Stop everything?" not in play.text
    play.port.tell(CoreLost(message="It ended."))
    play.shows("THE SERVER HAS STOPPED")
    play.clock.advance(2)
    for key in ("P", "ctrl+k", "enter"):
        play.press_alone(key)
    assert play.port.intents == []
    assert "pause" not in play.keys


RUNS = replace(
    short(2), state="executing", decided_at=NOW - 43, started_at=NOW - 42, seconds_allowed=180.0
)


LONG: dict[str, Any] = {"event": AuditEvent.RUN_STARTED, "at": NOW - 42, "seconds_allowed": 180.0}
"""The start of a call that asks nobody, 42 seconds ago."""


def test_a_running_call_says_how_long_it_may_run_in_its_row_and_on_its_page() -> None:
    drawn = Drawn(start(RUNS))
    for later, said in ((0, "0:42 of 3:00"), (20, "1:02 of 3:00")):
        drawn.now = NOW + later
        assert f"▶ {said}" in "".join(drawn.rows)
        assert f"▶ running {said}" in drawn.words


def test_the_key_asks_and_only_enter_stops_the_call() -> None:
    """Not `esc`, not the key itself once more, and no enter that was on its way before the question."""
    play = rested(start(short(), RUNS), answers=True)
    assert "X stop" not in play.keys, "the selected call waits, and does not run"
    play.go("j", "X stop the run…")
    play.go("X", 'Stop "')
    play.press_alone("enter")
    assert play.port.intents == []
    play.press_rested("escape")
    assert 'Stop "' not in play.text
    assert play.port.intents == []
    play.go("X", 'Stop "')
    play.rest()
    assert " enter  stop the run" in play.keys
    play.press_alone("enter")
    play.asks(StopRun(run_id=RUNS.run_id))
    play.shows("A person stopped this run.")


def test_the_question_goes_away_with_the_call_that_it_is_about() -> None:
    """It ended by itself: an enter that comes now must stop nothing else."""
    play = rested(start(RUNS), answers=True)
    play.go("X", 'Stop "')
    done = replace(RUNS, state="completed", started_at=None, ended_at=NOW, version=100)
    play.port.tell(ApprovalUpdated(view=done))
    play.settled()
    assert 'Stop "' not in play.text
    play.press_rested("enter")
    assert not play.asked(StopRun)


def test_a_call_that_asks_nobody_is_stopped_from_the_list_of_activity() -> None:
    """It has a row there and nowhere else; the key does nothing on a row that does not run."""
    play = Play(start(short()), answers=True)
    play.shows("WILL HAPPEN")
    play.port.tell(recorded(4000, run_id="run_long", action="run-query", **LONG))
    play.go("2", "▶ running 0:42 of 3:00")
    play.rest()
    assert "X stop the run…" in play.keys
    play.go("j", "")
    assert "X stop" not in play.keys
    play.go("k", "X stop the run…")
    play.go("X", 'Stop "run-query"? It has been running for 0:4')
    play.port.tell(recorded(4001, run_id="run_other", action="other-work", **LONG))
    play.shows("other-work")
    assert 'Stop "run-query"?' in play.text, "a newer call takes neither cursor nor question"
    play.press_rested("enter")
    play.asks(StopRun(run_id="run_long"))


WROTE = replace(
    short(2), action="builtin.write", title="Write a file", state="completed", ended_at=NOW - 5
)


@pytest.mark.parametrize("size", [(120, 36), (160, 45)])
def test_it_is_undone_by_one_key_where_it_is_opened(size: tuple[int, int]) -> None:
    """Not where its page only stands beside the list, whose rows may move. Another opened call starts the
    rest anew: a key that was pressed for one must not take back another.
    """
    play = Play(start(short(), WROTE), size=size, answers=True)
    completed: dict[str, Any] = {"at": NOW - 5, "run_id": WROTE.run_id, "action": WROTE.action}
    play.port.tell(recorded(4000, AuditEvent.RUN_COMPLETED, **completed))
    play.go("2", "builtin.write")
    play.press_rested("z", "z did nothing")
    assert "z  undo" not in play.keys
    play.go("enter", "OUTCOME")
    play.press_alone("z")
    play.passes(1)
    assert not play.asked(UndoRun), "no rest before"
    play.rest()
    assert "z  undo" in play.keys
    play.press_alone("z", "✓ Undone: builtin.write.")
    assert UndoRun(run_id=WROTE.run_id) in play.port.intents
    assert "z  undo" not in play.keys
    key, before = play.model.activity.key, play.model.screen_version
    play.press_alone("j")
    assert play.model.activity.key != key
    assert play.model.screen_version != before


def test_what_an_approved_call_wrote_is_undone_in_the_row_that_it_leaves() -> None:
    waits = short(1, action="builtin.write")
    play = Play(start(waits, short(2)), answers=True)
    ended = replace(waits, state="completed", ended_at=NOW, version=waits.version + 1)
    play.port.tell(ApprovalUpdated(view=ended))
    play.rest()
    assert "can undo" not in play.text
    assert "z  undo" not in play.keys
    play.port.tell(ApprovalUpdated(view=replace(ended, can_undo=True, version=ended.version + 1)))
    play.rest()
    assert "✓ done, can undo" in play.text
    assert "z  undo" in play.keys
    play.press_alone("z")
    assert UndoRun(run_id=waits.run_id) in play.port.intents
