"""That a person saw what a service held after an approved run is said only of what was in front of one."""

from dataclasses import replace

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.intents import MarkReadBackSeen
from tests.screen.driving import NOW, console, start
from tests.support.screens.play import rested
from tests.support.screens.states import AS_APPROVED, TO, change, differing, record

HELD = change(
    TO, state="completed", decided_at=NOW - 60, decided_by="person", ended_at=NOW - 59,
    read_back=AS_APPROVED,
)  # fmt: skip
ODD = replace(HELD, read_back=differing("eve@evil.example"), version=9)
SEEN = MarkReadBackSeen(run_id=ODD.run_id)


def test_a_difference_is_seen_once_its_call_is_opened() -> None:
    """Reported to the core once, whatever is drawn meanwhile; a look at the list is not enough."""
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
    play.until(lambda: "Last: ✓ Readdress a draft" in play.text)


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
