"""View 5: who is at work; the kernel's facts against the agent's claims; the end of a session."""

from dataclasses import replace

import pytest

from aileron_core.console_port.events import SessionsUpdated
from aileron_core.console_port.intents import AllowHost, EndSession
from aileron_core.console_port.view_models import (
    HostsView,
    RefusedHost,
    ToolCallsView,
    WentAroundView,
)
from aileron_tui.app import AileronApp
from tests.screen.driving import console
from tests.support.screens.home import sessions
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, mail, start

CODEX, CLAUDE, RELAY = sessions(NOW)
STATE = start(mail(), sessions=(CODEX, CLAUDE, RELAY))


def test_ending_a_session_asks_once_and_obeys_the_arming() -> None:
    """`x` asks, `esc` leaves it; `enter` ends it once it rested; its calls stay waiting. No question of ours
    repeats the name that a session gave itself.
    """
    play = Play(STATE, answers=True)
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
    assert play.port.intents == []
    play.go("x", "End the session of codex?")
    play.rest()
    assert " enter  end the session" in play.keys
    play.press_alone("enter")
    play.asks(EndSession(session_id=CODEX.session_id))
    play.shows("✓ Ended the session of codex.")
    assert not any("codex" in line for line in play.lines[1:-2])
    play.go("1", "The agent's session has ended")


def test_a_question_about_a_session_that_has_ended_closes() -> None:
    """The key does not fall upon its neighbour."""
    play = Play(STATE)
    play.go("5", "sessions open")
    play.go("x", "End the session of codex?")
    play.rest()
    play.port.tell(SessionsUpdated(sessions=(CLAUDE, RELAY)))
    play.settled()
    assert "End the session" not in play.text
    play.press_alone("enter")
    play.asks_nothing()


ASKED, NEXT = "evil-registry.example:443", "telemetry.example:443"


def test_a_refused_host_is_allowed_by_a_key_in_the_opened_session() -> None:
    """The list counts it, its row's detail names it; the key opens the session first, and decides there."""
    asks = replace(CODEX, hosts=HostsView(refused=(RefusedHost(ASKED, ""), RefusedHost(NEXT, ""))))
    play = Play(start(mail(), sessions=(asks, CLAUDE, RELAY)))
    play.go("5", "▲ 1 asks for a host", f"▲ asks for {ASKED}")
    play.press_rested("t", "NETWORK")
    assert play.port.intents == []
    play.read_all()
    assert f"t lets this session reach {ASKED} until it ends." in play.status_line
    play.press_alone("t")
    play.asks(AllowHost(session_id=CODEX.session_id, host=ASKED))
    allowed = replace(asks, hosts=HostsView(refused=(RefusedHost(NEXT, ""),), allowed=(ASKED,)))
    play.port.tell(SessionsUpdated(sessions=(allowed, CLAUDE, RELAY)))
    play.shows(f"✓ The session can reach {ASKED} until it ends.")
    play.press_alone("t")
    play.passes(0.1)
    assert len(play.port.intents) == 1, "the next host was not there for 400 ms"


def around(*tools: str) -> ToolCallsView:
    return ToolCallsView(went_around=tuple(WentAroundView(each, NOW) for each in tools))


AROUND = replace(CODEX, tool_calls=around("exec_command"))


async def test_going_around_the_gate_rings_once_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for those that had before this console, nor for a second tool, nor for a call that is through the gate."""
    rung: list[int] = []
    monkeypatch.setattr(AileronApp, "bell", lambda _: rung.append(1))
    counted = replace(CLAUDE, tool_calls=ToolCallsView(by_name=(("Bash", 1),)))
    marked = replace(CLAUDE, tool_calls=around("Bash"))
    async with console(start(mail(), sessions=(AROUND, CLAUDE))) as shown:
        shown.port.tell(SessionsUpdated(sessions=(AROUND, counted)))
        await shown.go("5", "1 went around the gate")
        assert rung == []
        shown.port.tell(SessionsUpdated(sessions=(AROUND, marked)))
        await shown.shows("▲ claude: the model called Bash, which does not go through the gate.")
        await shown.shows("2 went around the gate")
        assert rung == [1]
        more = replace(CLAUDE, tool_calls=around("Bash", "Edit"))
        shown.port.tell(SessionsUpdated(sessions=(AROUND, more)))
        await shown.go("j", "the model called Edit")
        assert rung == [1]
