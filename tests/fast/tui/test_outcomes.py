"""How a call ended, in words that cannot be taken for another; what is left to do where nobody knows; what was read back."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port import field_views
from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import FieldView, LookView, PreviewView, ReadBack
from aileron_core.console_port.view_models import ApprovalView, CallView
from aileron_tui.draw.call_page import outcome_blocks
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.read_back import DEFAULT_KEYS
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.command import availability
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from tests.support.screens import states
from tests.support.screens.calls import drifted, vanished
from tests.support.screens.drawn import Drawn
from tests.support.screens.states import AS_APPROVED, NOW, differing, mail, short, snapshot_of

NOTHING_RAN = "Nothing ran: the action file Changed after you looked."
LOST = (
    "The step send failed after it had sent a request (the time limit of 60 s was over). Whether the "
    "request took effect is unknown. It is not repeated; check the service before you try again."
)
NOT_FOUND = "mail.example.com answered 404 (Not Found)"
GONE = PreviewView(status="unavailable", reason=NOT_FOUND, updated_at=NOW + 30, not_found=True)
UNASKED = {"approval_id": "", "decided_at": None, "digest": "", "words": None}
LAYOUTS = pytest.mark.parametrize("compact", [False, True])
ODD = differing("eve@evil.example")


def lost_view(number: int = 3, **changes: object) -> ApprovalView:
    known: dict[str, object] = {"state": "unknown", "outcome": LOST, "decided_at": NOW - 40}
    known |= {"ended_at": NOW - 10, "can_fetch_again": True, "awaits_acknowledgement": True}
    known["hosts_asked"] = ("mail.example.com:443",)
    before = replace(mail(number).preview, updated_at=NOW - 50)
    return replace(mail(number), **{**known, "preview": before, **changes})


def looked_at(**look: object) -> ApprovalUpdated:
    """Tell of such a call at which a person has looked again; what was read is the same, or *look* says."""
    read = LookView(preview=replace(mail(3).preview, updated_at=NOW + 30))
    known = replace(lost_view(), look=replace(read, **look))
    return ApprovalUpdated(view=replace(known, version=9 + len(look)))


def compared(*differing: str) -> ReadBack:
    fields = tuple(
        field_views.ReadBackDifference(
            approved=FieldView(label=label, value="ana@example.com"),
            found=FieldView(label=label, value="eve@evil.example"),
            from_agent=True,
        )
        for label in differing
    )
    status = "differs" if differing else "held"
    return ReadBack(status=status, at=NOW + 30, compared=2, differing=fields, labels=differing)


def settled(**changes: object) -> ApprovalView:
    view = looked_at(comparison=compared()).view
    over = replace(view, awaits_acknowledgement=False, can_fetch_again=False, version=12)
    return replace(over, **changes)


def page_of(view: ApprovalView, *events: str) -> Drawn:
    drawn = Drawn(snapshot_of(view, records=()))
    known: dict[str, Any] = {"run_id": view.run_id, "session_id": view.session_id}
    for seq, event in enumerate(("run.requested", *events), start=4000):
        drawn.tell(states.recorded_event(seq, event, **known))
    return drawn.go("activity", opened=True)


@pytest.mark.parametrize(("state", "said"), [("checking", ""), ("executing", "✓ Approved: ")])
def test_a_call_that_fails_after_the_yes_is_said_to_have_failed(state: str, said: str) -> None:
    drawn = Drawn(snapshot_of(short(1), short(2)))
    drawn.model.queue.mark_decided_here(short(1).approval_id)
    began = short(1, state=state, decided_at=NOW, decided_by="person")
    assert said in drawn.tell(ApprovalUpdated(view=began)).status
    failed = replace(began, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
    drawn.tell(ApprovalUpdated(view=failed))
    assert drawn.status.startswith(f"✗ Failed: Send a mail draft. {NOTHING_RAN}")
    assert "Approved" not in drawn.status
    drawn.model.decided.enter()
    assert "failed" in drawn.rows[0]


def test_a_failure_under_the_cursor_stands_in_head_and_status_line() -> None:
    failed = short(1, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
    drawn = Drawn(snapshot_of(short(1))).tell(ApprovalUpdated(view=failed))
    assert f"▲ {NOTHING_RAN}" in drawn.head
    drawn.model.tick(100.0)
    assert f"✗ Failed: Send a mail draft. {NOTHING_RAN}" in drawn.status
    assert "approve" not in drawn.keys
    assert NOTHING_RAN in Drawn(snapshot_of(failed)).calm


def test_the_first_section_of_a_failed_call_is_its_outcome() -> None:
    view = mail(1, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
    first, second, *rest = approval_blocks(view, NOW)
    assert plain_text(first.label) == "OUTCOME"
    assert plain_text(first.pieces) == "failed"
    assert plain_text(second.pieces) == NOTHING_RAN
    headings = [plain_text(each.label) for each in rest if each.kind == "heading"]
    assert headings == ["WHAT WAS SHOWN", "CODEX SENT", "RECORD"]


@pytest.mark.parametrize("state", ["completed", "denied", "expired", "withdrawn"])
def test_a_call_that_is_over_does_not_say_that_something_will_happen(state: str) -> None:
    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)
    for changes in ({}, {"drift": drifted(NOW)}, {"preview": gone}, {"drift": vanished(NOW)}):
        blocks = approval_blocks(mail(1, state=state, ended_at=NOW, **changes), NOW)
        headings = [plain_text(each.label) for each in blocks if each.kind == "heading"]
        assert headings[0] == "WHAT WAS SHOWN"
        assert not {"WILL HAPPEN", "CHANGED"} & {*headings}
        drawn = " ".join(plain_text(each.pieces) for each in blocks)
        assert "as fetched at " in drawn
        assert "tries again" not in drawn


@LAYOUTS
def test_it_stands_first_and_its_answer_is_in_view(compact: bool) -> None:
    drawn = Drawn(snapshot_of(short(1), short(2), lost_view()), compact=compact)
    queue = drawn.model.queue
    keys = [each.call_id for each in (lost_view(), short(1), short(2))]
    assert [item.key for item in queue.items] == keys
    assert queue.selected == keys[0]
    assert " 3 " in drawn.top_bar
    assert "? 1 unknown" in drawn.top_bar
    for text in ("OUTCOME unknown", "after it had sent a request", "Contacted", "Check"):
        assert text in drawn.words
    assert drawn.words.count("after it had sent a request") == 1
    assert "l looks again, m acknowledges." in drawn.status
    assert "l look again" in drawn.keys
    assert "m  acknowledge" in drawn.keys
    drawn.tell(looked_at())
    told = "Aileron cannot tell from the answer below whether it ran; m acknowledges."
    assert told in drawn.status
    assert told in drawn.words
    assert "HOW IT IS NOW" in drawn.words
    assert "l fetches the current state" not in drawn.words


def test_a_call_that_ends_so_goes_to_the_top_and_takes_no_cursor() -> None:
    drawn = Drawn(snapshot_of(short(1), short(2), short(3)))
    queue = drawn.model.queue
    running = short(3, state="executing", decided_at=NOW, decided_by="person")
    drawn.tell(ApprovalUpdated(view=running), ApprovalUpdated(view=replace(lost_view(), version=9)))
    assert "? 1 unknown" in drawn.top_bar
    assert queue.selected == short(1).approval_id
    keys = [short(number).approval_id for number in (1, 2, 3)]
    assert [item.key for item in queue.items] == keys
    queue.change_order(NOW)
    assert queue.items[0].key == keys[2]
    queue.sweep(NOW + 600)
    assert queue.items[0].key == keys[2]
    queue.select(0)
    assert "approve" not in drawn.keys
    assert "deny" not in drawn.keys


def test_a_call_that_asked_nobody_waits_in_the_same_way() -> None:
    alone = lost_view(**UNASKED)
    drawn = Drawn(snapshot_of(short(1), alone))
    assert [item.key for item in drawn.model.queue.items] == [alone.run_id, short(1).approval_id]
    assert drawn.model.queue.selected == alone.run_id
    assert "? 1 unknown" in drawn.top_bar
    assert "without asking you" in drawn.words
    for absent in ("approve", "deny"):
        assert not availability(DEFAULT_REGISTRY.command(absent), drawn.situation).shown
    drawn.tell(ApprovalUpdated(view=replace(alone, awaits_acknowledgement=False, version=9)))
    assert "✓ Acknowledged: Send a mail draft." in drawn.status
    assert drawn.model.queue.selected == short(1).approval_id
    assert drawn.model.queue.decided == ()


def test_without_a_preview_op_the_check_names_what_is_left_to_do() -> None:
    drawn = Drawn(snapshot_of(lost_view(can_fetch_again=False)))
    assert "Check the service yourself" in drawn.words
    assert "Check the service itself, m acknowledges." in drawn.status
    assert "look again" not in drawn.keys
    known = lost_view(can_fetch_again=False, awaits_acknowledgement=False)
    drawn = Drawn(snapshot_of(short(3))).tell(ApprovalUpdated(view=known))
    drawn.model.tick(100.0)
    assert "Check the service itself; it is not repeated." in drawn.status


def test_it_is_not_counted_as_something_that_can_be_denied_or_expires() -> None:
    queue = Drawn(snapshot_of(short(1), lost_view())).model.queue
    assert (queue.waiting, queue.undecided) == (2, 1)


def test_its_page_in_the_activity_says_what_to_check_and_shows_what_was_read_last() -> None:
    drawn = page_of(lost_view(), "run.unknown")
    for text in ("OUTCOME", "Contacted", "mail.example.com:443", "l fetches the current state"):
        assert text in drawn.words, text
    assert drawn.words.count("The step send failed") == 1
    assert "HOW IT IS NOW" not in drawn.words
    drawn.tell(looked_at())
    assert "HOW IT IS NOW" in drawn.words
    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW + 60)
    drawn.tell(looked_at(preview=gone))
    assert "It could not be read: timed out" in drawn.words
    drawn.tell(ApprovalUpdated(view=lost_view(awaits_acknowledgement=False, version=99)))
    drawn.tell(
        states.recorded_event(4009, "run.acknowledged", run_id=lost_view().run_id, actor="person")
    )
    assert "l fetches the current state" not in drawn.words


@LAYOUTS
def test_what_is_gone_keeps_its_row_and_what_was_shown(compact: bool) -> None:
    drawn = Drawn(snapshot_of(lost_view()), compact=compact)
    gist = lost_view().preview.gist[:20]
    assert gist in drawn.rows[0]
    drawn.tell(looked_at(preview=GONE))
    found = "No longer found: mail.example.com answered 404 (Not Found)"
    assert found in drawn.status
    assert found in drawn.words
    assert gist in drawn.rows[0]
    for absent in ("No preview", "l fetches the current state"):
        assert absent not in drawn.words
    assert drawn.words.index("HOW IT IS NOW") < drawn.words.index("WHAT WAS SHOWN")


@LAYOUTS
def test_what_was_settled_waits_no_more_and_says_so_first(compact: bool) -> None:
    drawn = Drawn(snapshot_of(short(1), lost_view()), compact=compact)
    drawn.tell(ApprovalUpdated(view=settled()))
    assert "✓ Settled: the service holds what was approved." in drawn.status
    assert "unknown" not in drawn.top_bar
    queue = drawn.model.queue
    assert queue.selected == lost_view().approval_id
    held = "✓ The service now holds what was approved (2 fields"
    said = ("OUTCOME settled by looking again", "Settled by looking again at", "answer never")
    for text in (held, *said):
        assert text in drawn.words
    assert "look again" not in drawn.keys
    assert "acknowledge" not in drawn.keys
    queue.move(1)
    assert queue.sweep(NOW + 600)
    assert [item.key for item in queue.items] == [short(1).approval_id]
    assert queue.decided[0].is_settled
    assert queue.unacknowledged == 0


def test_what_differs_is_said_field_by_field_and_keeps_waiting() -> None:
    drawn = Drawn(snapshot_of(short(1), lost_view()))
    drawn.tell(looked_at(comparison=compared("To", "Cc"), is_unchanged=True))
    assert "It still differs in To and Cc." in drawn.status
    differs = "▲ The service does not hold what was approved: 2 of 2"
    same = "Nothing has changed there so far."
    for text in (differs, same, "eve@evil.example", "m acknowledge"):
        assert text in drawn.words
    assert "? 1 unknown" in drawn.top_bar
    second = replace(mail(3).preview, updated_at=NOW + 60)
    again = looked_at(comparison=compared("Cc"), preview=second).view
    drawn.tell(ApprovalUpdated(view=replace(again, version=20)))
    assert "It still differs in Cc." in drawn.status
    assert same not in drawn.words


def test_what_was_settled_before_a_restart_says_so_on_its_page() -> None:
    kept = LookView(preview=PreviewView(status="none", updated_at=NOW), comparison=compared())
    view = settled(look=kept, preview=PreviewView(status="none"))
    drawn = page_of(view, "run.unknown", "outcome.settled")
    assert "unknown" not in drawn.top_bar
    held = "✓ The service now holds what was approved (2 fields compared)."
    for text in (held, "Settled by looking again at", "Only the changed fields were compared"):
        assert text in drawn.words
    assert "HOW IT IS NOW" not in drawn.words
    assert "look again" not in drawn.keys


def test_what_asked_nobody_is_settled_by_what_the_agent_asked_for() -> None:
    """No person approved it, so no sentence says that one did."""
    drawn = Drawn(snapshot_of(short(1), lost_view(**UNASKED)))
    drawn.tell(ApprovalUpdated(view=settled(**UNASKED)))
    assert "✓ Settled: the service holds what the agent asked for." in drawn.status
    assert "what was approved" not in drawn.words


def done(number: int, read_back: ReadBack | None, **changes: object) -> ApprovalView:
    """Return a states.change that ran, the higher its *number* the later."""
    view, ended = states.change(states.TO), NOW - 60 + number
    view = replace(view, approval_id=short(number).approval_id, run_id=short(number).run_id)
    view = replace(view, state="completed", decided_at=ended - 1, decided_by="person")
    return replace(view, **{"ended_at": ended, "read_back": read_back, **changes})


def test_a_difference_is_first_in_the_list_of_decisions_until_it_was_seen() -> None:
    views = [done(number, AS_APPROVED) for number in range(2, 9)]
    drawn = Drawn(snapshot_of(done(1, ODD), *views, short(20)))
    drawn.model.decided.enter()
    first, second, *_ = drawn.rows
    assert "▲" in first
    assert "1 field differs" in first
    assert "as approved" in second
    drawn.tell(ApprovalUpdated(view=done(1, replace(ODD, seen=True), version=10)))
    assert "as approved" in drawn.rows[0]


def test_more_decisions_than_are_kept_push_out_none_that_was_not_seen() -> None:
    odd = done(1, ODD)
    queue = Drawn(snapshot_of(odd, *(done(number, None) for number in range(2, 250)))).model.queue
    assert queue.decided[0] == odd
    assert len(queue.decided) == 201


@pytest.mark.parametrize(("read_back", "said"), [(AS_APPROVED, "now holds"), (ODD, "not hold")])
def test_where_none_waits_the_last_call_says_what_is_held(read_back: ReadBack, said: str) -> None:
    calm = Drawn(snapshot_of(done(1, read_back))).calm
    assert "Last:" in calm
    assert f"{said} what was approved" in calm


def test_a_row_stays_until_its_reading_was_shown() -> None:
    """Its end may come a second before, and would else take it away just then."""
    drawn = Drawn(snapshot_of(done(1, None, state="executing", ended_at=None)))
    drawn.tell(ApprovalUpdated(view=done(1, replace(AS_APPROVED, status="reading"), version=9)))
    before = drawn.model.queue.items[0].remove_at
    drawn.now += 1.9
    drawn.tell(ApprovalUpdated(view=done(1, AS_APPROVED, version=10)))
    after = drawn.model.queue.items[0].remove_at
    assert before is not None
    assert after is not None
    assert after > before


def test_what_the_service_holds_comes_before_a_result_of_any_length() -> None:
    for read_back in (AS_APPROVED, ODD):
        call = CallView(approval=done(1, read_back), gated=True, records=())
        made = outcome_blocks(call, NOW, keys=DEFAULT_KEYS, unfold=False)
        headings = [plain_text(each.label) for each in made if each.kind == "heading"]
        assert headings == ["AFTER THE RUN", "OUTCOME"]
