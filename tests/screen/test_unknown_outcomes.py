"""What a service held after a run, and outcomes that nobody knows: the keys that look again and acknowledge
(the words: tests/fast/tui/test_outcomes.py).
"""

from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import LookView
from aileron_core.console_port.intents import Acknowledge, MarkReadBackSeen, RefetchPreview
from aileron_core.console_port.view_models import ApprovalView
from tests.screen.driving import console
from tests.support.screens.play import Play, rested
from tests.support.screens.states import (
    AS_APPROVED,
    NOW,
    TO,
    change,
    differing,
    mail,
    record,
    short,
    start,
)


def lost(**changes: object) -> ApprovalView:
    known = {"state": "unknown", "outcome": "No answer came.", "decided_at": NOW - 40}
    known |= {"ended_at": NOW - 10, "can_fetch_again": True, "awaits_acknowledgement": True}
    return mail(3, **{**known, **changes})


LOOKED_AT = lost(look=LookView(preview=replace(mail(3).preview, updated_at=NOW + 30)), version=9)
ALONE = lost(approval_id="", decided_at=None, digest="", words=None)


@pytest.mark.parametrize("view", [lost(), ALONE], ids=["approved", "asked nobody"])
def test_one_key_looks_again_and_another_acknowledges_what_stands_there(view: ApprovalView) -> None:
    play = Play(start(short(1), view), answers=True)
    play.press_rested("l")
    play.asks(RefetchPreview(call_id=view.call_id))
    play.shows("HOW IT IS NOW")
    play.press_rested("m")
    assert isinstance(play.port.intents[-1], Acknowledge)
    play.shows("✓ Acknowledged: Send a mail draft.")
    assert play.selected == short(1).approval_id
    assert "unknown" not in play.lines[0]
    play.passes(3)
    assert view.call_id in play.waiting
    play.press_alone("1")
    assert play.waiting == [short(1).approval_id]


def test_what_was_read_meanwhile_is_seen_before_it_is_acknowledged() -> None:
    """A press under a look that comes back is not taken for what it shows."""
    play = rested(start(lost()))
    play.press("m")
    play.port.tell(ApprovalUpdated(view=LOOKED_AT))
    play.shows("HOW IT IS NOW")
    play.passes(0.03)
    assert not play.port.intents
    play.press_rested("m")
    play.asks(Acknowledge(call_id=lost().call_id, looked_at=NOW + 30))


def test_one_looks_again_from_the_list_of_what_agents_did() -> None:
    """Where there is nothing to look through, the key asks for nothing."""
    view = lost()
    asked = record(1, "run.unknown", run_id=view.run_id, session_id=view.session_id)
    play = Play(start(view, records=(asked,)))
    play.go("2", "this is record 1")
    play.go("enter", "OUTCOME  unknown")
    play.press_alone("l")
    play.asks(RefetchPreview(call_id=view.call_id))
    play.port.tell(ApprovalUpdated(view=replace(view, can_fetch_again=False, version=9)))
    play.settled()
    assert "look again" not in play.keys
    play.press_alone("l")
    assert len(play.port.intents) == 1


HELD = change(
    TO, state="completed", decided_at=NOW - 60, decided_by="person", ended_at=NOW - 59,
    read_back=AS_APPROVED,
)  # fmt: skip
ODD = replace(HELD, read_back=differing("eve@evil.example"), version=9)
SEEN = MarkReadBackSeen(run_id=ODD.run_id)


def test_a_difference_is_seen_once_its_call_is_opened() -> None:
    asked = record(990, "run.requested", run_id=ODD.run_id, session_id=ODD.session_id)
    play = rested(start(ODD, records=(asked,)), answers=True)
    play.press("2")
    play.rest()
    assert play.port.intents == []
    play.press("enter")
    play.shows("AFTER THE RUN")
    play.asks()
    play.passes(3)
    assert play.port.intents == [SEEN]
    assert "eve@evil.example" in play.text
    play.press("1")
    assert "Last: ✓ Readdress a draft" in play.text


async def test_nobody_sees_a_difference_behind_the_lock_or_in_a_small_window() -> None:
    async with console(start(HELD), answers=True, lock_seconds=60.0) as shown:
        await shown.press("h")
        await shown.rest()
        shown.port.intents.clear()
        shown.clock.advance(70)
        await shown.shows("Locked.")
        shown.port.tell(ApprovalUpdated(view=ODD))
        await shown.passes(1.0)
        assert shown.asked(MarkReadBackSeen) == []
        await shown.pilot.resize_terminal(40, 10)
        await shown.press_alone("space")
        await shown.passes(1.0)
        assert shown.asked(MarkReadBackSeen) == []
        await shown.pilot.resize_terminal(120, 36)
        await shown.until(lambda: bool(shown.asked(MarkReadBackSeen)))
        assert shown.asked(MarkReadBackSeen) == [SEEN]
