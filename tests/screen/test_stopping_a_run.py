"""A call that runs: for how long, for how long it may, and the key that stops it after a question."""

from dataclasses import replace

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.events import ApprovalUpdated, Recorded
from aileron_core.console_port.intents import StopRun
from tests.screen.driving import NOW, short, start
from tests.support.screens.calls import snapshot
from tests.support.screens.drawn import Drawn
from tests.support.screens.play import Play, rested

RUNS = replace(
    short(2), state="executing", decided_at=NOW - 43, started_at=NOW - 42, seconds_allowed=180.0
)


def long_started(number: int = 4000):
    """Return the start of a call that asks nobody, 42 seconds ago."""
    last = snapshot(NOW).records[-1]
    return replace(
        last,
        seq=number,
        at=NOW - 42,
        run_id="run_long",
        action="run-query",
        event=AuditEvent.RUN_STARTED,
        summary="Started run-query",
        seconds_allowed=180.0,
    )


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
    play.until(lambda: 'Stop "' not in play.text)
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
    play.until(lambda: 'Stop "' not in play.text)
    play.press_rested("enter")
    assert not play.asked(StopRun)


def test_a_call_that_asks_nobody_is_stopped_from_the_list_of_activity() -> None:
    """It has a row there and nowhere else; the key does nothing on a row that does not run."""
    play = Play(start(short()), answers=True)
    play.shows("WILL HAPPEN")
    play.port.tell(Recorded(record=long_started(), head_words=("olive", "pixel")))
    play.go("2", "▶ running 0:42 of 3:00")
    play.rest()
    assert "X stop the run…" in play.keys
    play.go("j", "")
    play.until(lambda: "X stop" not in play.keys)
    play.go("k", "X stop the run…")
    play.go("X", 'Stop "run-query"? It has been running for 0:4')
    other = replace(long_started(4001), run_id="run_other", action="other-work")
    play.port.tell(Recorded(record=other, head_words=("olive", "pixel")))
    play.shows("other-work")
    assert 'Stop "run-query"?' in play.text, "a newer call takes neither cursor nor question"
    play.press_rested("enter")
    play.asks(StopRun(run_id="run_long"))
