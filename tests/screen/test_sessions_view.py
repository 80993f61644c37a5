"""View 5: who is at work; the kernel's facts against the agent's claims; the end of a session."""

from dataclasses import replace

import pytest

from aileron_core.console_port import (
    AllowHost,
    Containment,
    EndSession,
    RefusedHostView,
    SessionsUpdated,
    ToolCallsView,
    TrafficView,
    WentAroundView,
)
from aileron_tui.app import AileronApp
from aileron_tui.draw.context import Section, requester_section
from aileron_tui.draw.text import plain_text
from aileron_tui.draw.times import clock_seconds
from tests.screen.driving import NOW, console, mail, start
from tests.support.screens.home import sessions

CODEX, CLAUDE, RELAY = sessions(NOW)
STATE = start(mail(), sessions=(CODEX, CLAUDE, RELAY))


async def test_each_session_says_whether_it_is_there_and_whether_something_contains_it() -> None:
    """And how many of its calls wait; what nothing contains is amber and named."""
    async with console(STATE) as shown:
        await shown.go("5", "3 sessions open, 2 connected · ▲ 2 not contained")
        row = shown.row
        assert "codex" in row
        assert "● connected" in row
        assert "yes" in row
        assert any("claude" in line and "▲ no" in line for line in shown.lines)
        assert any("┊ WILL HAPPEN" in line and "○" in line for line in shown.lines)


@pytest.mark.parametrize(
    ("containment", "short", "whole", "follows"),
    [
        (
            "claimed",
            "unverified",
            "containment unverified",
            "could not confirm that all its processes",
        ),
        ("other_user", "other user", "runs as another user", "can do whatever that account can"),
    ],
)
async def test_what_is_only_said_or_another_users_is_not_drawn_as_contained(
    containment: Containment, short: str, whole: str, follows: str
) -> None:
    """In the row, in the opened session, and what it means; in the header where nobody saw it."""

    sessions_now = (replace(CODEX, containment=containment), CLAUDE, RELAY)
    async with console(start(mail(), sessions=sessions_now)) as shown:
        count = "1 unverified" if containment == "claimed" else "2 not contained"
        await shown.go("5", count)
        assert short in shown.row
        await shown.go("enter", follows)
        above, below = "\n".join(shown.lines).split("SEEN")
        assert whole in above
        assert short in below


async def test_an_opened_session_shows_the_kernels_facts_and_below_them_claims_behind_their_bar() -> (
    None
):
    """Process, program, folder and parents behind the solid bar; the client's name behind the dotted."""
    async with console(STATE) as shown:
        await shown.go("5", "sessions open")
        await shown.go("enter", "CLAIMED")
        lines = shown.lines
        seen, claimed = (
            next(i for i, x in enumerate(lines) if w in x) for w in ("SEEN", "CLAIMED")
        )
        above, below = "\n".join(lines[seen:claimed]), "\n".join(lines[claimed:])
        for fact in ("48112 codex ← zsh ← tmux", "/usr/bin/codex", "/home/ana/work/q3"):
            assert fact in above
        assert "┊" not in above
        assert any("client" in x and "┊ codex-mcp-client" in x for x in lines[claimed:])
        assert "q3-report" in below


async def test_a_session_that_opened_itself_has_no_facts_but_its_own_words() -> None:
    """Its name is a claim too, and no line of ours repeats it."""
    async with console(STATE) as shown:
        await shown.go("5", "sessions open")
        await shown.go("end", "it connected by itself")
        await shown.go("enter", "the kernel did not report who connected")
        assert any("agent" in x and "┊ WILL HAPPEN" in x for x in shown.lines)
        await shown.go("x", "End the session of the agent?")
        assert "WILL HAPPEN" not in "\n".join(shown.lines[-3:])


async def test_ending_a_session_asks_once_and_obeys_the_arming() -> None:
    """`x` asks, `esc` leaves it; `enter` ends it once it rested; its calls stay waiting."""
    async with console(STATE, answers=True) as shown:
        await shown.go("5", "sessions open")
        await shown.go("x", "End the session of codex?")
        assert "Its 2 calls keep waiting." in shown.text
        await shown.press_alone("enter")
        assert shown.port.intents == [], "the question was not there for 400 ms"
        await shown.go("escape", "Connected agents.")
        assert shown.port.intents == []
        await shown.go("x", "End the session of codex?")
        await shown.rest()
        assert " enter  end the session" in shown.keys
        await shown.press_alone("enter")
        await shown.until(lambda: bool(shown.port.intents))
        assert shown.port.intents == [EndSession(session_id=CODEX.session_id)]
        await shown.shows("✓ Ended the session of codex.")
        assert not any("codex" in line for line in shown.lines[1:-2])
        await shown.go("1", "The agent's session has ended")


async def test_a_busy_agent_cannot_keep_its_session_from_being_ended() -> None:
    """What it asks for meanwhile changes counts, and makes no key rest anew."""
    async with console(STATE) as shown:
        await shown.go("5", "sessions open")
        await shown.go("x", "End the session of codex?")
        await shown.rest()
        for count in range(3, 6):
            busy = replace(CODEX, waiting=count, running=count)
            shown.port.tell(SessionsUpdated(sessions=(busy, CLAUDE, RELAY)))
        await shown.shows("Its 5 calls keep waiting.")
        assert shown.armed
        await shown.press_alone("enter")
        await shown.until(lambda: bool(shown.port.intents))


async def test_a_question_about_a_session_that_has_ended_closes() -> None:
    """The key does not fall upon its neighbour."""
    async with console(STATE) as shown:
        await shown.go("5", "sessions open")
        await shown.go("x", "End the session of codex?")
        await shown.rest()
        shown.port.tell(SessionsUpdated(sessions=(CLAUDE, RELAY)))
        await shown.until(lambda: "End the session" not in shown.text)
        await shown.press_alone("enter")
        await shown.passes(1)
        assert shown.port.intents == []


def _facts(section: Section) -> list[str]:
    return [plain_text(each.label) for each in section.details if not each.claim]


def test_the_name_that_an_agent_gave_its_session_is_no_fact() -> None:
    """It is a claim, which the list of sessions shows as one: the kernel confirms nothing of it."""
    named = {"session_label": "approved by root"}
    launched = requester_section(mail(**named))
    assert "session" in _facts(launched)
    own = requester_section(mail(self_opened=True, **named))
    assert "session" not in _facts(own)


async def test_a_session_whose_model_requests_wait_for_the_vault_says_so() -> None:
    """In the header, its row and the opened session."""
    traffic = TrafficView(
        requests=3, in_flight=0, bytes_up=10, bytes_down=20, last_status=503,
        last_route="POST /v1/responses", gateway_errors=2,
    )  # fmt: skip
    waits = replace(CODEX, traffic=traffic, waits_for_vault=True)
    async with console(start(mail(), sessions=(waits, CLAUDE, RELAY))) as shown:
        await shown.go("5", "▲ 1 waits for the vault")
        await shown.go("enter", "model requests are refused until it is unlocked")
        shown.port.tell(SessionsUpdated(sessions=(replace(waits, waits_for_vault=False), CLAUDE)))
        await shown.until(lambda: "refused until it is unlocked" not in shown.text)


ASKED, NEXT = "evil-registry.example:443", "telemetry.example:443"


async def test_a_refused_host_is_allowed_by_a_key_in_the_opened_session() -> None:
    """The list counts it, its row's detail names it; the key opens the session first, and decides there."""
    asks = replace(CODEX, refused_hosts=(RefusedHostView(ASKED, ""), RefusedHostView(NEXT, "")))
    async with console(start(mail(), sessions=(asks, CLAUDE, RELAY))) as shown:
        await shown.go("5", "▲ 1 asks for a host")
        assert f"▲ asks for {ASKED}" in shown.text
        await shown.rest()
        await shown.press_alone("t")
        await shown.shows("NETWORK")
        assert shown.port.intents == []
        await shown.read_all()
        assert f"t lets this session reach {ASKED} until it ends." in shown.status_line
        await shown.press_alone("t")
        await shown.until(lambda: bool(shown.port.intents))
        assert shown.port.intents == [AllowHost(session_id=CODEX.session_id, host=ASKED)]
        allowed = replace(asks, refused_hosts=(RefusedHostView(NEXT, ""),), allowed_hosts=(ASKED,))
        shown.port.tell(SessionsUpdated(sessions=(allowed, CLAUDE, RELAY)))
        await shown.shows(f"✓ The session can reach {ASKED} until it ends.")
        await shown.press_alone("t")
        await shown.passes(0.1)
        assert len(shown.port.intents) == 1, "the next host was not there for 400 ms"


async def test_another_host_that_comes_to_be_asked_for_rests_anew() -> None:
    """The key does not fall upon a host that the person did not see."""
    asks = replace(CODEX, refused_hosts=(RefusedHostView(ASKED, ""),))
    async with console(start(mail(), sessions=(asks,))) as shown:
        await shown.go("5", ASKED)
        await shown.go("enter", "NETWORK")
        await shown.read_all()
        swapped = replace(CODEX, refused_hosts=(RefusedHostView(NEXT, ""),))
        shown.port.tell(SessionsUpdated(sessions=(swapped,)))
        await shown.shows(NEXT)
        await shown.press_alone("t")
        await shown.passes(0.1)
        assert shown.port.intents == []


async def test_a_host_that_cannot_be_allowed_is_shown_with_the_reason_and_marked() -> None:
    """Its name is whatever the agent asked for; no key is offered for it."""
    hosts = (
        RefusedHostView("a\x1b[31m\u202eb:443", "it is not a host name"),
        RefusedHostView("meta.example:443", "it leads to 169.254.169.254, which is link-local"),
    )
    asks = replace(CODEX, refused_hosts=hosts, allowed_hosts=(ASKED,), further_refusals=1200)
    async with console(start(mail(), sessions=(asks,))) as shown:
        await shown.go("5", "1 session open")
        assert "asks for" not in shown.text
        await shown.go("enter", "which is link-local")
        assert "\x1b" not in shown.text
        assert "\u202e" not in shown.text
        assert "it is not a host name" in shown.text
        assert "by you, until the session ends" in shown.text
        assert "1,200 more attempts" in shown.text
        await shown.rest()
        await shown.press_alone("t")
        await shown.shows("this session asks for no host that could be allowed")
        assert shown.port.intents == []


AROUND = replace(
    CODEX,
    traffic=TrafficView(
        requests=3, in_flight=0, bytes_up=10, bytes_down=20, last_status=200,
        last_route="POST /v1/responses", gateway_errors=0,
    ),
    tool_calls=ToolCallsView(
        by_name=(("exec_command", 2), ("mcp__aileron.Read", 1_200)),
        others=3,
        unread=(("compressed", 2), ("websocket", 1)),
        went_around=(WentAroundView("exec_command", NOW - 61),),
    ),
)  # fmt: skip


async def test_a_session_that_went_around_the_gate_is_marked_with_time_and_tool() -> None:
    """In the list's head, its row and its page: what was seen, and not that it ran."""
    at = clock_seconds(NOW - 61)
    says = f"{at} the model called exec_command, which does not go through the gate"
    async with console(start(mail(), sessions=(AROUND, CLAUDE, RELAY))) as shown:
        await shown.go("5", "▲ 1 went around the gate")
        assert "● ▲ went around" in shown.row
        assert f"▲ {says}" in shown.text
        await shown.go("enter", "AROUND THE GATE")
        assert "the agent may have refused it" in shown.text
        assert f"▲ {says}" in shown.text
        await shown.read_all()
        assert "exec_command 2 · mcp__aileron.Read 1,200 · 3 by other names" in shown.text
        assert "2 answers: compressed" in shown.text
        assert "1 answer: over a WebSocket" in shown.text
        assert "only the names of called tools are read" in shown.text


async def test_a_session_in_augment_mode_says_that_its_model_traffic_is_read() -> None:
    """Every other session's says that it is not."""
    augmented = replace(AROUND, augmented=True, tool_calls=None)
    async with console(start(mail(), sessions=(augmented,))) as shown:
        await shown.go("5", "1 session")
        await shown.go("enter", "requests and answers are read")
        assert "counted" not in shown.text


async def test_going_around_the_gate_rings_once_for_each_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not for those that had before this console, nor for a second tool, nor for a call that is through the gate."""
    rung: list[int] = []
    monkeypatch.setattr(AileronApp, "bell", lambda _: rung.append(1))
    counted = replace(CLAUDE, tool_calls=ToolCallsView(by_name=(("Bash", 1),)))
    marked = replace(CLAUDE, tool_calls=ToolCallsView(went_around=(WentAroundView("Bash", NOW),)))
    more = ToolCallsView(went_around=(WentAroundView("Bash", NOW), WentAroundView("Edit", NOW)))
    async with console(start(mail(), sessions=(AROUND, CLAUDE))) as shown:
        shown.port.tell(SessionsUpdated(sessions=(AROUND, counted)))
        await shown.go("5", "1 went around the gate")
        assert rung == []
        shown.port.tell(SessionsUpdated(sessions=(AROUND, marked)))
        await shown.shows("▲ claude: the model called Bash, which does not go through the gate.")
        await shown.shows("2 went around the gate")
        assert rung == [1]
        shown.port.tell(SessionsUpdated(sessions=(AROUND, replace(CLAUDE, tool_calls=more))))
        await shown.go("j", "the model called Edit")
        assert rung == [1]


async def test_it_is_said_above_every_view_that_model_traffic_is_inspected() -> None:
    async with console(replace(STATE, inspects_models=True)) as shown:
        await shown.shows("Aileron reads in models' answers which tools they call")
        await shown.go("5", "sessions open")
        assert "Aileron reads in models' answers" in shown.text
    async with console(STATE) as shown:
        await shown.go("5", "sessions open")
        assert "reads in models' answers" not in shown.text
