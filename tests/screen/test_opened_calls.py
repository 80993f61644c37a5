"""A decided call is opened with one key from the decisions, the activity and the audit, which shows the screen
as it stood there. What a service held after a run, and outcomes that nobody knows: the keys that look again and
acknowledge (the words: tests/fast/tui/test_outcomes.py).
"""

import re
from dataclasses import replace

import pytest

from aileron_core.console_port import intents
from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import LookView
from aileron_core.console_port.view_models import ApprovalView
from tests.screen.driving import drive_console
from tests.support.screens import states
from tests.support.screens.play import Play, rested

RESULT = '"labelIds": ['
"""Of what the fixtures' service returns for a call that is done."""
TOTAL = 2_000
LONG = states.snapshot_of(
    states.short(), records=tuple(states.record(seq) for seq in range(1, TOTAL + 1))
)
"""What the core has; a console begins with the newest 500 of it."""
HELD = states.change(
    states.TO, state="completed", decided_at=states.NOW - 60, decided_by="person", ended_at=states.NOW - 59,
    read_back=states.AS_APPROVED,
)  # fmt: skip
ODD = replace(HELD, read_back=states.differing("eve@evil.example"), version=9)
SEEN = intents.MarkReadBackSeen(run_id=ODD.run_id)


def decides_nothing(play: Play) -> None:
    """The keys that decide are not there; pressed all the same they ask nothing of the core."""
    asked = list(play.port.intents)
    for key in ("a", "d", "r", "t", "m", "enter"):
        play.go(key)
    assert play.port.intents == asked
    assert " a " not in play.keys


def test_one_key_opens_the_newest_decision_and_another_goes_back() -> None:
    play = Play(states.snapshot_of(states.short(), states.short(2), states.denied(3)), answers=True)
    play.press_rested("a", "✓ Approved")
    play.go("h", RESULT, "OUTCOME  done at 14:02:02", "Decided     │ 14:02:02  you", "CODEX SENT")
    play.shows("▲ as shown at 14:02:02, not live", "priya.nair@northwind.example")
    play.shows("amber · canoe · violet")
    play.clock.advance(1)
    play.go("space", "run.completed · no.")
    decides_nothing(play)
    asked = len(play.port.intents)
    play.go("escape", "a approve")
    assert "not live" not in play.text
    play.press_alone("a")
    assert len(play.port.intents) == asked, "it had not rested"
    play.press_rested("a")
    assert len(play.port.intents) == asked + 1


def test_the_cursor_moves_among_the_decisions_and_a_click_opens_one() -> None:
    views = (states.short(), *(states.denied(number) for number in (2, 3, 4)))
    play = Play(states.snapshot_of(*views))
    play.go("h", "not to the board")
    first = play.row
    assert "┊ draft_id r-8842190447" in first
    play.go("j", "not to the board")
    selected = [line[:45] for line in play.lines].index(first[:45].replace("▌", " "))
    assert play.lines[selected + 1].startswith("▌"), "the cursor is on the next row"
    play.go("escape", "a approve")
    play.click_row(2, "decided")
    play.shows("not to the board")
    assert play.lines[selected + 2].startswith("▌")
    assert not play.port.intents
    play.click_row(0, "queue")
    play.shows("a approve")


def test_the_same_page_opens_from_activity_and_from_a_record() -> None:
    play = Play(states.snapshot_of(states.short(), states.short(2)), answers=True)
    play.press_rested("a", "✓ Approved")
    play.go("2", "calls in the last hour")
    play.go("enter", RESULT, "▲ as shown at 14:02:02, not live")
    to_record(play, "approval.approved")
    play.go("enter", RESULT, "▲ as shown at 14:02:02, not live")
    decides_nothing(play)
    play.go("s", "AS STORED")
    assert RESULT not in play.text
    play.go("s", RESULT)


def test_a_running_call_shows_how_long_and_then_what_it_returned() -> None:
    runs = replace(
        states.short(2), state="executing", decided_at=states.NOW - 5, started_at=states.NOW - 4
    )
    play = Play(states.snapshot_of(states.short(), runs), answers=True)
    play.passes(8)
    assert "▶ running 12 s" in play.text
    play.port.tell(ApprovalUpdated(view=replace(runs, version=99)))
    play.shows("DECIDED  newest first")
    play.go("h", "running for 12 s")
    play.passes(9)
    assert "running for 2" in play.text
    done = replace(runs, state="completed", started_at=None, ended_at=states.NOW + 20, version=100)
    play.port._core._views[done.approval_id] = done
    play.port.tell(ApprovalUpdated(view=done))
    play.port.tell(states.recorded_event(4000, run_id=done.run_id))
    play.shows(RESULT, "OUTCOME  done at 14:02:20")


def test_keys_show_records_as_they_are_stored_verify_all_and_copy_all() -> None:
    """Records that come in do not move the one that is read: the cursor belongs to a number."""
    play = Play(LONG)
    play.go("3", "2,000 records", "not verified since the console started")
    play.go("s", "AS STORED")
    assert play.port.reads == [intents.ReadRecord(seq=TOTAL)]
    play.go("j", "Record 1,999")
    assert play.port.reads[-1] == intents.ReadRecord(seq=TOTAL - 1)
    play.press_alone("escape")
    play.go("V", "✓ 2,000 records, no gaps, chain verified")
    assert intents.VerifyAudit() in play.port.reads
    play.go("x", "2,000 records in /home/ana/.aileron/exports/audit-20261008T120231Z.jsonl")
    assert play.port.intents == []
    assert "export" in play.keys
    play.go("pagedown", "f follow")
    row, place = play.row, play.lines.index(play.row)
    play.port.tell(*(states.recorded_event(TOTAL + number) for number in range(1, 6)))
    play.shows("2,005 records")
    assert play.row == row
    assert play.lines.index(row) == place


def to_record(play: Play, event: str) -> None:
    """Go to view 3 and down to the newest record of *event*."""
    play.clock.advance(60)
    play.go("3", "records")
    play.to_row(event)


def test_what_came_later_does_not_change_it() -> None:
    play = Play(states.snapshot_of(states.short(), states.short(2)), answers=True)
    play.press_rested("a", "✓ Approved")
    first, *others = states.short().preview.fields
    changed = replace(first, value="mallory@evil.example")
    preview = replace(states.short().preview, fields=(changed, *others))
    late = states.short(state="completed", version=10, requester_gone=True, preview=preview)
    play.port.tell(ApprovalUpdated(view=late))
    to_record(play, "run.completed")
    play.go("enter", "not live", "jonas.weber@northwind.example")
    assert "mallory" not in play.text


def test_what_was_not_read_is_reported() -> None:
    play = Play(states.snapshot_of(states.mail(), states.mail(2)), (80, 24), answers=True)
    play.press_rested("a", "Press a again")
    unread = re.search(r"(\d+) of \d+ lines not seen", play.text)
    assert unread is not None
    play.press_rested("a", "✓ Approved")
    to_record(play, "approval.approved")
    play.go("enter", f"not live, {unread[1]} of ")
    play.rest()
    play.go("space", f"not live, {unread[1]} of ")
    play.rest()
    assert "not seen yet" not in play.text, "it was read then, or never"
    assert play.model.reading.unseen == int(unread[1])


def test_a_denied_call_has_its_screen_and_s_again_shows_the_record() -> None:
    play = Play(states.snapshot_of(states.short(), states.short(2)), answers=True)
    play.press_rested("d", "Reason (codex will read it):")
    play.press_rested("enter", "✗ Denied")
    to_record(play, "approval.denied")
    play.go("enter", "not live")
    assert "s the record" in play.keys
    play.go("s", "AS STORED")
    assert "not live" not in play.text
    play.go("s", "not live")
    play.go("escape", "records")
    assert "not live" not in play.text


def lost(**changes: object) -> ApprovalView:
    known = {"state": "unknown", "outcome": "No answer came.", "decided_at": states.NOW - 40}
    known |= {"ended_at": states.NOW - 10, "can_fetch_again": True, "awaits_acknowledgement": True}
    return states.mail(3, **{**known, **changes})


LOOKED_AT = lost(
    look=LookView(preview=replace(states.mail(3).preview, updated_at=states.NOW + 30)), version=9
)
ALONE = lost(approval_id="", decided_at=None, digest="", words=None)


@pytest.mark.parametrize("view", [lost(), ALONE], ids=["approved", "asked nobody"])
def test_one_key_looks_again_and_another_acknowledges_what_stands_there(view: ApprovalView) -> None:
    play = Play(states.snapshot_of(states.short(1), view), answers=True)
    play.press_rested("l")
    play.asks(intents.RefetchPreview(call_id=view.call_id))
    play.shows("HOW IT IS NOW")
    play.press_rested("m")
    assert isinstance(play.port.intents[-1], intents.Acknowledge)
    play.shows("✓ Acknowledged: Send a mail draft.")
    assert play.selected == states.short(1).approval_id
    assert "unknown" not in play.lines[0]
    play.passes(3)
    assert view.call_id in play.waiting
    play.press_alone("1")
    assert play.waiting == [states.short(1).approval_id]


def test_what_was_read_meanwhile_is_seen_before_it_is_acknowledged() -> None:
    """A press under a look that comes back is not taken for what it shows."""
    play = rested(states.snapshot_of(lost()))
    play.press("m")
    play.port.tell(ApprovalUpdated(view=LOOKED_AT))
    play.shows("HOW IT IS NOW")
    play.passes(0.03)
    assert not play.port.intents
    play.press_rested("m")
    play.asks(intents.Acknowledge(call_id=lost().call_id, looked_at=states.NOW + 30))


def test_one_looks_again_from_the_list_of_what_agents_did() -> None:
    view = lost()
    asked = states.record(1, "run.unknown", run_id=view.run_id, session_id=view.session_id)
    play = Play(states.snapshot_of(view, records=(asked,)))
    play.go("2", "this is record 1")
    play.go("enter", "OUTCOME  unknown")
    play.press_alone("l")
    play.asks(intents.RefetchPreview(call_id=view.call_id))
    play.tell(ApprovalUpdated(view=replace(view, can_fetch_again=False, version=9)))
    assert "look again" not in play.keys
    play.press_alone("l")
    assert len(play.port.intents) == 1


def test_a_difference_is_seen_once_its_call_is_opened() -> None:
    asked = states.record(990, "run.requested", run_id=ODD.run_id, session_id=ODD.session_id)
    play = rested(states.snapshot_of(ODD, records=(asked,)), answers=True)
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
    async with drive_console(states.snapshot_of(HELD), answers=True, lock_seconds=60.0) as shown:
        await shown.press("h")
        await shown.rest()
        shown.port.intents.clear()
        shown.clock.advance(70)
        await shown.shows("Locked.")
        shown.port.tell(ApprovalUpdated(view=ODD))
        await shown.passes(1.0)
        assert shown.asked(intents.MarkReadBackSeen) == []
        await shown.pilot.resize_terminal(40, 10)
        await shown.press_alone("space")
        await shown.passes(1.0)
        assert shown.asked(intents.MarkReadBackSeen) == []
        await shown.pilot.resize_terminal(120, 36)
        await shown.until(lambda: bool(shown.asked(intents.MarkReadBackSeen)))
        assert shown.asked(intents.MarkReadBackSeen) == [SEEN]
