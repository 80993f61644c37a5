"""What a person reads after the key: how the call ended, in words that cannot be taken for another."""

from dataclasses import replace

import pytest

from aileron_core.console_port import (
    ApprovalUpdated,
    ApprovalView,
    DriftView,
    FieldChangeView,
    LookView,
    PreviewView,
    RecordView,
    RefetchPreview,
)
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.screen.driving import NOW, Console, console, mail, short, start
from tests.support.screens.calls import drifted

NOTHING_RAN = "Nothing ran: the action file Changed after you looked."


async def test_a_call_that_fails_after_the_yes_is_never_said_to_be_approved() -> None:
    """Failed while it was looked at once more: the sentence that nothing ran stands in the status line."""
    async with console(start(short(1), short(2))) as shown:
        await shown.rest()
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents))
        checking = replace(short(1), state="checking", decided_at=NOW, decided_by="person")
        failed = replace(checking, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
        shown.port.tell(ApprovalUpdated(view=checking), ApprovalUpdated(view=failed))
        await shown.shows(f"✗ Failed: Send a mail draft. {NOTHING_RAN}")
        assert "✓ Approved" not in shown.text
        decided = next(line for line in shown.lines if " ✗ 14:02" in line)
        assert "failed" in decided


async def test_a_run_that_fails_after_it_began_stands_in_the_status_line() -> None:
    """The yes was reported before; the failure takes its place."""
    async with console(start(short(1), short(2))) as shown:
        await shown.rest()
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents))
        running = replace(short(1), state="executing", decided_at=NOW, decided_by="person")
        failed = replace(running, state="failed", outcome="The host answered 500.", ended_at=NOW)
        shown.port.tell(ApprovalUpdated(view=running))
        await shown.shows("✓ Approved: Send a mail draft")
        shown.port.tell(ApprovalUpdated(view=failed))
        await shown.shows("✗ Failed: Send a mail draft. The host answered 500.")
        assert "✓ Approved" not in shown.text


async def test_a_failure_under_the_cursor_stands_in_head_and_status_line(shown: Console) -> None:
    """Whoever failed it, the item says how, and offers no key that decides."""
    failed = short(1, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
    shown.port.tell(ApprovalUpdated(view=failed))
    await shown.shows(f"▲ {NOTHING_RAN}")
    shown.clock.advance(5)
    await shown.shows(f"✗ Failed: Send a mail draft. {NOTHING_RAN}")
    assert "approve" not in shown.keys


def test_the_first_section_of_a_failed_call_is_its_outcome() -> None:
    """Before anything that was shown for approval."""
    view = mail(1, state="failed", outcome=NOTHING_RAN, ended_at=NOW)
    first, second, *rest = approval_blocks(view, NOW)
    assert plain_text(first.label) == "OUTCOME"
    assert plain_text(first.pieces) == "failed"
    assert plain_text(second.pieces) == NOTHING_RAN
    headings = [plain_text(each.label) for each in rest if each.kind == "heading"]
    assert headings == ["WHAT WAS SHOWN", "CODEX SENT", "RECORD"]


@pytest.mark.parametrize("state", ["completed", "denied", "expired", "withdrawn"])
def test_a_call_that_is_over_does_not_say_that_something_will_happen(state: str) -> None:
    """What stood there was shown, at a time; also where it had changed before, or was not to be had."""
    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)
    for view in (
        mail(1),
        mail(1, drift=drifted(NOW)),
        mail(1, preview=gone),
        mail(1, drift=vanished()),
    ):
        blocks = approval_blocks(replace(view, state=state, ended_at=NOW), NOW)
        headings = [plain_text(each.label) for each in blocks if each.kind == "heading"]
        assert headings[0] == "WHAT WAS SHOWN"
        assert not {"WILL HAPPEN", "CHANGED"} & {*headings}
        drawn = " ".join(plain_text(each.pieces) for each in blocks)
        assert "as fetched at " in drawn
        assert "tries again" not in drawn


def lost_call(**changes: object) -> ApprovalView:
    known = {"state": "unknown", "outcome": "No answer came.", "ended_at": NOW}
    return mail(1, **{**known, "can_fetch_again": True, **changes})


async def test_where_nobody_knows_how_it_ended_one_key_looks_again() -> None:
    """It is asked of the core, and what was read stands under a heading of its own."""
    async with console(start(mail(1))) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=lost_call()))
        await shown.shows("OUTCOME  unknown")
        shown.clock.advance(5)
        await shown.shows("? It may or may not have run. l looks again; it is not repeated.")
        assert "l look again" in shown.keys
        assert "approve" not in shown.keys
        await shown.press_alone("l")
        await shown.until(lambda: bool(shown.port.intents))
        view = lost_call()
        assert shown.port.intents == [RefetchPreview(call_id=view.call_id)]
        read = LookView(preview=replace(view.preview, updated_at=NOW + 30))
        shown.port.tell(ApprovalUpdated(view=replace(view, look=read, version=9)))
        await shown.shows("HOW IT IS NOW  as fetched at ")


async def test_one_looks_again_from_the_list_of_what_agents_did() -> None:
    """The row stays there; opened, it shows what was read last, or why that was not to be had."""
    view = lost_call()
    asked = RecordView(
        seq=1, at=NOW, event="run.unknown", run_id=view.run_id, session_id=view.session_id,
        action=view.action, actor="aileron", agent=view.agent, summary="No answer came.",
    )  # fmt: skip

    async with console(start(view, records=(asked,))) as shown:
        await shown.go("2", "No answer came.")
        await shown.press_alone("enter")
        await shown.shows("OUTCOME  unknown")
        assert "HOW IT IS NOW" not in shown.text
        await shown.press_alone("l")
        await shown.until(lambda: shown.port.intents == [RefetchPreview(call_id=view.call_id)])
        read = LookView(preview=replace(view.preview, updated_at=NOW + 30))
        shown.port.tell(ApprovalUpdated(view=replace(view, look=read, version=9)))
        await shown.shows("HOW IT IS NOW")
        assert "Q3 numbers" in shown.text
        gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW + 60)
        failed = LookView(preview=gone)
        shown.port.tell(ApprovalUpdated(view=replace(view, look=failed, version=10)))
        await shown.shows("It could not be read: timed out")


async def test_where_there_is_nothing_to_look_through_no_key_is_offered() -> None:
    """The sentence says what is left to do."""
    async with console(start(mail(1))) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=lost_call(can_fetch_again=False)))
        await shown.shows("OUTCOME  unknown")
        shown.clock.advance(5)
        await shown.shows("Check the service itself; it is not repeated.")
        assert "look again" not in shown.keys


async def test_a_failed_call_that_came_last_says_why_when_nothing_waits() -> None:
    """The calm screen keeps the sentence after the status line has ended."""
    async with console(start(short(1, state="failed", outcome=NOTHING_RAN, ended_at=NOW))) as shown:
        await shown.shows("Nothing is waiting.")
        await shown.shows(NOTHING_RAN)


async def test_not_contained_is_read_at_110_columns_beside_a_long_folder() -> None:
    """What the launcher knows comes before what the session says of itself."""

    view = short(1, containment="none", session_label="s" * 60, cwd="/" + "deep/" * 40)
    async with console(start(view), size=(110, 30)) as shown:
        await shown.shows("12 s ago · not contained · session")


def vanished() -> DriftView:
    """A reading of three fields that no other took the place of."""
    fields = {"To": "sam@helio.example", "Cc": None, "Body": "Hi Sam,\nthe invoice"}
    return DriftView(
        before_at=NOW - 60,
        after_at=NOW,
        changed=tuple(FieldChangeView(label=k, before=v, after=None) for k, v in fields.items()),
        same_count=0,
        other_paths=(),
        other_count=0,
        words_before=("olive", "ember", "falcon"),
        unavailable="timed out",
    )


async def test_a_preview_that_went_away_shows_what_was_there_and_why_once() -> None:
    """The old fields as removed lines; no second reading is claimed, no field is said to be as before."""

    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)
    async with console(start(short(version=2, preview=gone, drift=vanished()))) as shown:
        await shown.shows("CHANGED  nothing has run; the preview can no longer be fetched")
        for old in ("− sam@helio.example", "− n/a", "− Hi Sam,", "− the invoice"):
            assert old in shown.text
        assert "What you saw, and" not in shown.text
        assert "as before" not in shown.text
        assert "+ " not in shown.text
        assert shown.text.count("timed out") == 1
        await shown.rest()
        assert "○ No preview." in shown.status_line
        await shown.press_alone("a")
        await shown.shows("Press a again to send a mail draft.")
        assert shown.port.intents == []
        await shown.rest()
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents))
