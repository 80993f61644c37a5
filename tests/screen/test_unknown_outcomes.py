"""A call whose outcome nobody knows: the keys that look again and acknowledge (its words: tests/fast/tui/test_outcomes.py)."""

from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import LookView
from aileron_core.console_port.intents import Acknowledge, RefetchPreview
from aileron_core.console_port.view_models import ApprovalView
from tests.screen.driving import NOW, console, mail, resting, short, start
from tests.support.screens.states import record


def lost(**changes: object) -> ApprovalView:
    known = {"state": "unknown", "outcome": "No answer came.", "decided_at": NOW - 40}
    known |= {"ended_at": NOW - 10, "can_fetch_again": True, "awaits_acknowledgement": True}
    return mail(3, **{**known, **changes})


LOOKED_AT = lost(look=LookView(preview=replace(mail(3).preview, updated_at=NOW + 30)), version=9)
ALONE = lost(approval_id="", decided_at=None, digest="", words=None)


@pytest.mark.parametrize("view", [lost(), ALONE], ids=["approved", "asked nobody"])
async def test_one_key_looks_again_and_another_acknowledges_what_stands_there(
    view: ApprovalView,
) -> None:
    """Then the next call is selected; the report says that it stays on record."""
    async with console(start(short(1), view), answers=True) as shown:
        await shown.press_rested("l")
        await shown.asks(RefetchPreview(call_id=view.call_id))
        await shown.shows("HOW IT IS NOW")
        await shown.press_rested("m")
        await shown.until(lambda: isinstance(shown.port.intents[-1], Acknowledge))
        await shown.shows("✓ Acknowledged: Send a mail draft.")
        assert shown.selected == short(1).approval_id
        assert "unknown" not in shown.lines[0]
        await shown.passes(3)
        assert view.call_id in shown.waiting
        await shown.press_alone("1")
        await shown.until(lambda: shown.waiting == [short(1).approval_id])


async def test_what_was_read_meanwhile_is_seen_before_it_is_acknowledged() -> None:
    """A press under a look that comes back is not taken for what it shows."""
    async with resting(start(lost())) as shown:
        await shown.press("m")
        shown.port.tell(ApprovalUpdated(view=LOOKED_AT))
        await shown.shows("HOW IT IS NOW")
        shown.clock.advance(0.03)
        await shown.settled()
        assert not shown.port.intents
        await shown.press_rested("m")
        await shown.asks(Acknowledge(call_id=lost().call_id, looked_at=NOW + 30))


async def test_one_looks_again_from_the_list_of_what_agents_did() -> None:
    """Where there is nothing to look through, the key asks for nothing."""
    view = lost()
    asked = record(1, "run.unknown", run_id=view.run_id, session_id=view.session_id)
    async with console(start(view, records=(asked,))) as shown:
        await shown.go("2", "this is record 1")
        await shown.go("enter", "OUTCOME  unknown")
        await shown.press_alone("l")
        await shown.asks(RefetchPreview(call_id=view.call_id))
        shown.port.tell(ApprovalUpdated(view=replace(view, can_fetch_again=False, version=9)))
        await shown.until(lambda: "look again" not in shown.keys)
        await shown.press_alone("l")
        assert len(shown.port.intents) == 1
