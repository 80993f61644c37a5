"""The deny panel's other keys: the calls of ended sessions too, and reasons that were given before."""

from collections.abc import Callable

import pytest
from textual import events

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.state.deny_panel import ReasonHistory
from tests.screen.driving import Console, console
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, short, start

OTHER_SESSION = "ses-00000000000000000000000002"


def gone(number: int, **changes: object) -> ApprovalView:
    """A call whose session has ended."""
    return short(number, **{"requester_gone": True, **changes})


def denied_ids(play: Play) -> set[str]:
    return {each.approval_id for each in play.asked(Deny)}


def open_panel(play: Play, text: str = "") -> None:
    play.press_rested("d", "(codex will read it)")
    play.type(text)
    play.rest()


def field(play: Play) -> str:
    return play.lines[-2].strip()


# The calls of ended sessions


def test_the_calls_of_ended_sessions_are_denied_together() -> None:
    views = (
        gone(1),
        gone(2, session_id=OTHER_SESSION, action="drop-draft"),
        short(3),
        gone(4),
        gone(5, state="checking"),
        gone(6, state="awaiting_vault"),
        gone(7, expires_at=NOW + 2),  # a no that would lose the race is not promised
    )
    play = Play(start(*views))
    open_panel(play, "wrong list")
    play.shows("3 other calls of ended sessions wait too.")
    assert " ctrl+s  all of ended sessions" in play.keys
    play.press_alone("ctrl+s")
    play.asks(
        *(
            Deny(approval_id=view.approval_id, reason="wrong list", on_screen=view is views[0])
            for view in (views[0], views[1], views[3], views[5])
        )
    )


def test_the_key_wants_a_rest_as_enter_does_and_is_there_only_with_another_such_call() -> None:
    play = Play(start(gone(1), gone(2)))
    open_panel(play, "no")
    play.shows("1 other call of ended sessions waits too.")
    play.pressed_by_mouse("deny_others")
    play.press("x", "ctrl+s")
    play.clock.advance(0.2)
    play.press_alone("ctrl+s")
    play.asks_nothing()
    play.press_rested("ctrl+s")
    assert len(play.port.intents) == 2
    alone = Play(start(short(1), gone(2)))
    open_panel(alone)
    assert "ended sessions" not in alone.text
    alone.press_alone("ctrl+s")
    alone.asks_nothing()


def test_what_comes_while_the_panel_stands_there_is_not_denied_unread() -> None:
    play = Play(start(gone(1), gone(2), gone(3)))
    open_panel(play)
    play.shows("2 other calls of ended sessions wait too.")
    play.port.tell(
        ApprovalUpdated(view=gone(4)),
        ApprovalUpdated(view=gone(2, state="withdrawn", ended_at=NOW)),
    )
    play.shows("1 other call of ended sessions waits too.")
    play.press_rested("ctrl+s")
    assert denied_ids(play) == {gone(1).approval_id, gone(3).approval_id}


def _burst(shown: Console) -> None:
    shown.paste(events.Key("ctrl+s", None), events.Key("a", "a"))


def _paste(shown: Console) -> None:
    shown.paste(events.Paste("never\x13\r\x1b[A"))


@pytest.mark.parametrize("come", [_burst, _paste])
async def test_a_burst_or_paste_with_the_key_denies_nothing(
    come: Callable[[Console], None],
) -> None:
    """Its first byte came at rest; what came with it shows that no hand pressed it."""
    async with console(start(gone(1), gone(2))) as shown:
        await shown.press_rested("d", "(codex will read it)")
        await shown.rest()
        come(shown)
        await shown.until(lambda: shown.lines[-2].strip() in ("a", "never"), "it is text")
        await shown.passes(0.05)
        await shown.asks_nothing()


def test_a_call_that_was_withdrawn_first_is_not_reported_as_approved() -> None:
    """The agent was faster than the person's no. `enter` denies one call, whatever else waits."""
    play = Play(start(gone(1), short(2), gone(3)))
    open_panel(play)
    play.press_alone("enter")
    assert denied_ids(play) == {gone(1).approval_id}
    play.port.tell(ApprovalUpdated(view=gone(1, state="withdrawn", ended_at=NOW)))
    play.shows("withdrawn, not by you")
    assert "✓ Approved" not in play.text


# Earlier reasons


def test_earlier_reasons_come_back_newest_first_and_each_once() -> None:
    """Up goes back to the first, down comes forward to what the person had written.

    Without one there is nothing to go to, and a no without a reason leaves none behind.
    """
    reasons = ReasonHistory()
    reasons.add("")
    assert not reasons.has_earlier
    for reason in ("wrong list", "too early", "wrong list"):
        reasons.add(reason)
    reasons.reset()
    seen = ["dr"]
    for _ in range(3):
        seen.append(reasons.earlier(seen[-1]))
    assert not reasons.has_earlier
    for _ in range(3):
        seen.append(reasons.later(seen[-1]))
    assert seen[1:] == ["wrong list", "too early", "too early", "wrong list", "dr", "dr"]
    assert not reasons.has_later


def test_a_reason_that_came_back_has_to_rest_before_it_goes_out() -> None:
    """By a key or a click: what stands there now was not read yet. A burst brings none back."""
    play = Play(start(short(1), short(2), short(3)), answers=True)
    open_panel(play, "wrong list")
    assert "↑ earlier" not in play.keys
    play.press_alone("enter")
    assert play.selected == short(2).approval_id
    open_panel(play)
    assert "↑ earlier" in play.keys
    play.press("x", "up")
    assert field(play) == "x"
    play.clock.advance(0.1)
    play.press_alone("up")
    play.press_alone("enter")
    play.passes(1)
    assert field(play) == "wrong list"
    assert len(play.port.intents) == 1
    play.press_alone("down")
    assert field(play) == "x"
    play.rest()
    play.pressed_by_mouse("reason_earlier")
    assert field(play) == "wrong list"
    play.clock.advance(0.1)
    play.press_alone("enter")
    play.rest()
    assert len(play.port.intents) == 1
    play.press_alone("enter")
    assert play.port.intents[1:] == [Deny(approval_id=short(2).approval_id, reason="wrong list")]
