"""The brakes: `P` holds all calls, `ctrl+k` stops everything, `X` one run; `z` takes back what a
call wrote. In view 5 `x` ends one session, and `t` lets it reach a host.
"""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port import events, intents, view_models
from aileron_core.console_port.events import SessionsUpdated
from aileron_tui.app import AileronApp
from tests.screen.driving import drive_console
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import sessions
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, recorded_event, short, snapshot_of

SESSIONS = sessions(NOW)
STATE = snapshot_of(short(1), short(2), sessions=SESSIONS)
RUNS = replace(
    short(2), state="executing", decided_at=NOW - 43, started_at=NOW - 42, seconds_allowed=180.0
)
LONG: dict[str, Any] = {"event": AuditEvent.RUN_STARTED, "at": NOW - 42, "seconds_allowed": 180.0}
"""The start of a call that asks nobody, 42 seconds ago."""
WROTE = replace(
    short(2), action="builtin.write", title="Write a file", state="completed", ended_at=NOW - 5
)
CODEX, CLAUDE, RELAY = sessions(NOW)
AT_WORK = snapshot_of(mail(), sessions=(CODEX, CLAUDE, RELAY))
ASKED, NEXT = "evil-registry.example:443", "telemetry.example:443"


def test_p_holds_all_calls_at_once_and_both_brakes_are_in_every_view() -> None:
    """It takes nothing but time, so it needs no rest; whoever sees something wrong looks for no view first."""
    play = Play(STATE, answers=True)
    play.shows("WILL HAPPEN")
    play.press_alone("P")
    play.asks(intents.SetPause(paused=True))
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
    play.asks(intents.SetPause(paused=False))
    assert "All calls are on hold" not in play.text
    play.rest()
    assert " a  approve" in play.keys


def test_a_pause_takes_back_the_first_of_two_presses_and_makes_every_key_rest_anew() -> None:
    play = rested(snapshot_of(mail()), size=(80, 24))
    play.press_alone("a", "Press a again to send a mail draft anyway.")
    play.rest()
    play.port.tell(events.PauseChanged(paused_at=NOW))
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
    play.in_vain("enter")
    play.press_alone("ctrl+k")
    play.press_rested("escape")
    assert question not in play.text
    assert play.port.intents == []
    play.go("ctrl+k", question)
    play.rest()
    assert " enter  stop everything" in play.keys
    busy = tuple(replace(each, running=5) for each in SESSIONS)
    play.port.tell(events.SessionsUpdated(sessions=busy))
    play.shows("stops 15 runs.")
    assert play.armed
    play.press_alone("enter")
    play.asks(intents.StopEverything())
    play.shows("✗ Everything stopped: 2 calls denied, 3 sessions ended, 1 run stopped.")


def test_without_a_core_that_can_write_nothing_is_asked_of_it() -> None:
    play = rested(STATE)
    play.go("ctrl+k", "Stop everything?")
    play.tell(events.StorageHealth(writable=False, message="The disk is full."))
    assert "Stop everything?" not in play.text
    play.port.tell(events.CoreLost(message="It ended."))
    play.shows("THE SERVER HAS STOPPED")
    play.clock.advance(2)
    for key in ("P", "ctrl+k", "enter"):
        play.press_alone(key)
    assert play.port.intents == []
    assert "pause" not in play.keys


def test_a_running_call_says_how_long_it_may_run_in_its_row_and_on_its_page() -> None:
    drawn = Drawn(snapshot_of(RUNS))
    for later, said in ((0, "0:42 of 3:00"), (20, "1:02 of 3:00")):
        drawn.now = NOW + later
        assert f"▶ {said}" in "".join(drawn.rows)
        assert f"▶ running {said}" in drawn.words


def test_the_key_asks_and_only_enter_stops_the_call() -> None:
    play = rested(snapshot_of(short(), RUNS), answers=True)
    assert "X stop" not in play.keys, "the selected call waits, and does not run"
    play.go("j", "X stop the run…")
    play.go("X", 'Stop "')
    play.in_vain("enter")
    play.press_rested("escape")
    assert 'Stop "' not in play.text
    assert play.port.intents == []
    play.go("X", 'Stop "')
    play.rest()
    assert " enter  stop the run" in play.keys
    play.press_alone("enter")
    play.asks(intents.StopRun(run_id=RUNS.run_id))
    play.shows("A person stopped this run.")


def test_the_question_goes_away_with_the_call_that_it_is_about() -> None:
    """It ended by itself: an enter that comes now must stop nothing else."""
    play = rested(snapshot_of(RUNS), answers=True)
    play.go("X", 'Stop "')
    done = replace(RUNS, state="completed", started_at=None, ended_at=NOW, version=100)
    play.tell(events.ApprovalUpdated(view=done))
    assert 'Stop "' not in play.text
    play.press_rested("enter")
    assert not play.asked(intents.StopRun)


def test_a_call_that_asks_nobody_is_stopped_from_the_list_of_activity() -> None:
    play = Play(snapshot_of(short()), answers=True)
    play.shows("WILL HAPPEN")
    play.port.tell(recorded_event(4000, run_id="run_long", action="run-query", **LONG))
    play.go("2", "▶ running 0:42 of 3:00")
    play.rest()
    assert "X stop the run…" in play.keys
    play.go("j", "")
    assert "X stop" not in play.keys
    play.go("k", "X stop the run…")
    play.go("X", 'Stop "run-query"? It has been running for 0:4')
    play.port.tell(recorded_event(4001, run_id="run_other", action="other-work", **LONG))
    play.shows("other-work")
    assert 'Stop "run-query"?' in play.text, "a newer call takes neither cursor nor question"
    play.press_rested("enter")
    play.asks(intents.StopRun(run_id="run_long"))


@pytest.mark.parametrize("size", [(120, 36), (160, 45)])
def test_it_is_undone_by_one_key_where_it_is_opened(size: tuple[int, int]) -> None:
    """Not where its page only stands beside the list, whose rows may move. Another opened call starts the
    rest anew: a key that was pressed for one must not take back another.
    """
    play = Play(snapshot_of(short(), WROTE), size=size, answers=True)
    completed: dict[str, Any] = {"at": NOW - 5, "run_id": WROTE.run_id, "action": WROTE.action}
    play.port.tell(recorded_event(4000, AuditEvent.RUN_COMPLETED, **completed))
    play.go("2", "builtin.write")
    play.press_rested("z", "z did nothing")
    assert "z  undo" not in play.keys
    play.go("enter", "OUTCOME")
    play.press_alone("z")
    play.passes(1)
    assert not play.asked(intents.UndoRun), "no rest before"
    play.rest()
    assert "z  undo" in play.keys
    play.press_alone("z", "✓ Undone: builtin.write.")
    assert intents.UndoRun(run_id=WROTE.run_id) in play.port.intents
    assert "z  undo" not in play.keys
    key, before = play.model.activity.key, play.model.screen_version
    play.press_alone("j")
    assert play.model.activity.key != key
    assert play.model.screen_version != before


def test_what_an_approved_call_wrote_is_undone_in_the_row_that_it_leaves() -> None:
    waits = short(1, action="builtin.write")
    play = Play(snapshot_of(waits, short(2)), answers=True)
    ended = replace(waits, state="completed", ended_at=NOW, version=waits.version + 1)
    play.port.tell(events.ApprovalUpdated(view=ended))
    play.rest()
    assert "can undo" not in play.text
    assert "z  undo" not in play.keys
    play.port.tell(
        events.ApprovalUpdated(view=replace(ended, can_undo=True, version=ended.version + 1))
    )
    play.rest()
    assert "✓ done, can undo" in play.text
    assert "z  undo" in play.keys
    play.press_alone("z")
    assert intents.UndoRun(run_id=waits.run_id) in play.port.intents


def test_ending_a_session_asks_once_and_obeys_the_arming() -> None:
    """`x` asks, `esc` leaves it; `enter` ends it once it rested; its calls stay waiting. No question of ours
    repeats the name that a session gave itself.
    """
    play = Play(AT_WORK, answers=True)
    play.go("5", "sessions open")
    play.go("end", "it connected by itself")
    play.go("x", "End the session of the agent?")
    assert "WILL HAPPEN" not in "\n".join(play.lines[-3:])
    play.go("escape", "Connected agents.")
    play.go("home", "")
    play.go("x", "End the session of codex?", "Its token stops working. Its 2 calls keep waiting.")
    play.press_alone("enter")
    assert play.port.intents == [], "the question was not there for 400 ms"
    play.go("escape", "Connected agents.")
    play.go("x", "End the session of codex?")
    play.rest()
    play.tell(SessionsUpdated(sessions=(CLAUDE, RELAY)))
    assert "End the session" not in play.text, "the key does not fall upon its neighbour"
    play.in_vain("enter")
    play.press_alone("escape")
    play.tell(SessionsUpdated(sessions=(CODEX, CLAUDE, RELAY)))
    play.go("home")
    play.go("x", "End the session of codex?")
    play.rest()
    assert " enter  end the session" in play.keys
    play.press_alone("enter")
    play.asks(intents.EndSession(session_id=CODEX.session_id))
    play.shows("✓ Ended the session of codex.")
    assert not any("codex" in line for line in play.lines[1:-2])
    play.go("1", "The agent's session has ended")


def test_a_refused_host_is_allowed_by_a_key_in_the_opened_session() -> None:
    asks = replace(
        CODEX,
        hosts=view_models.HostsView(
            refused=(view_models.RefusedHost(ASKED, ""), view_models.RefusedHost(NEXT, ""))
        ),
    )
    play = Play(snapshot_of(mail(), sessions=(asks, CLAUDE, RELAY)))
    play.go("5", "▲ 1 asks for a host", f"▲ asks for {ASKED}")
    play.press_rested("t", "NETWORK")
    assert play.port.intents == []
    play.read_all()
    assert f"t lets this session reach {ASKED} until it ends." in play.status_line
    play.press_alone("t")
    play.asks(intents.AllowHost(session_id=CODEX.session_id, host=ASKED))
    allowed = replace(
        asks,
        hosts=view_models.HostsView(refused=(view_models.RefusedHost(NEXT, ""),), allowed=(ASKED,)),
    )
    play.port.tell(SessionsUpdated(sessions=(allowed, CLAUDE, RELAY)))
    play.shows(f"✓ The session can reach {ASKED} until it ends.")
    play.press_alone("t")
    play.passes(0.1)
    assert len(play.port.intents) == 1, "the next host was not there for 400 ms"


def surroundings(*tools: str) -> view_models.ToolCallsView:
    return view_models.ToolCallsView(
        went_around=tuple(view_models.WentAroundView(each, NOW) for each in tools)
    )


AROUND = replace(CODEX, tool_calls=surroundings("exec_command"))


async def test_going_around_the_gate_rings_once_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    monkeypatch.setattr(AileronApp, "bell", lambda _: rung.append(1))
    counted = replace(CLAUDE, tool_calls=view_models.ToolCallsView(by_name=(("Bash", 1),)))
    marked = replace(CLAUDE, tool_calls=surroundings("Bash"))
    async with drive_console(snapshot_of(mail(), sessions=(AROUND, CLAUDE))) as shown:
        shown.port.tell(SessionsUpdated(sessions=(AROUND, counted)))
        await shown.go("5", "1 went around the gate")
        assert rung == []
        shown.port.tell(SessionsUpdated(sessions=(AROUND, marked)))
        await shown.shows("▲ claude: the model called Bash, which does not go through the gate.")
        await shown.shows("2 went around the gate")
        assert rung == [1]
        more = replace(CLAUDE, tool_calls=surroundings("Bash", "Edit"))
        shown.port.tell(SessionsUpdated(sessions=(AROUND, more)))
        await shown.go("j", "the model called Edit")
        assert rung == [1]
