"""Looking again at the service, where nobody knows how a run ended."""

from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port import ApprovalView, RefetchPreview, WithdrawAcceptance
from aileron_core.errors import Conflict, NotFound
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    install_examples,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock

GET = f"GET {DRAFT}"


def short_of_time(home: Path) -> None:
    install_examples(home)
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace(
        "[approval]\n", "[limits]\nwall_seconds = 1\n\n[approval]\n"
    )
    path.write_text(text, encoding="utf-8")


async def lost(core: Core, mailbox: Mailbox, clock: FrozenClock) -> ApprovalView:
    """Return a call that was sent, and whose answer never came."""
    view = await core.ask()
    mailbox.control(hang="send")
    # The run's time is up once its request is out, however long that took.
    run_on_request(mailbox, "POST send", lambda: clock.advance(2))
    await core.approve(view)
    end = await core.ended(view)
    assert end.state == "unknown"
    return end


async def test_one_look_shows_how_it_is_now_and_changes_nothing(home: Path) -> None:
    """What is read is on record as a person's look; the run stays unknown and is not repeated."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            first_answer = await core.app.approvals.wait_for_result(
                core.session.session_id, end.approval_id, 0
            )
            mailbox.control(change={"id": DRAFT, "subject": "as it is by now"})
            clock.advance(1)
            await core.app.console.carry_out(RefetchPreview(approval_id=end.approval_id))
            seen = core.views(end.approval_id)[-1]
            assert (seen.state, seen.digest, seen.drift) == ("unknown", end.digest, None)
            assert seen.ended_at is not None
            assert seen.preview.updated_at > seen.ended_at
            assert "as it is by now" in {field.value for field in seen.preview.fields}
            (record,) = await core.records("outcome.looked_at")
            assert (record["actor"], record["preview"], record["state"]) == (
                "person",
                "ready",
                "unknown",
            )
            assert (await core.app.audit.verify()).problems == ()
            again = await core.app.approvals.wait_for_result(
                core.session.session_id, end.approval_id, 0
            )
            assert replace(again, last_record=0) == replace(first_answer, last_record=0), (
                "told no agent"
            )
        assert writes(mailbox) == [GET, GET, "POST send", GET]


async def test_one_can_look_again_after_a_crash_too(home: Path) -> None:
    """The console that asked is gone: what it had shown is lost, and how it is now can be read."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            assert end.can_fetch_again
        async with Core.open(home, mailbox, clock=clock) as core:
            recovered = (await core.app.console.snapshot()).approvals
            (view,) = [each for each in recovered if each.approval_id == end.approval_id]
            assert (view.state, view.preview.status, view.can_fetch_again) == (
                "unknown",
                "none",
                True,
            )
            await core.app.approvals.refetch_preview(view.approval_id)
            seen = core.views(view.approval_id)[-1]
            assert (seen.state, seen.preview.status) == ("unknown", "ready")


async def test_a_service_that_does_not_answer_is_said_to_be_so(home: Path) -> None:
    """The reason stands where the reading would."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            mailbox.control(fail={"op": "get", "status": 503, "times": 1})
            await core.app.approvals.refetch_preview(end.approval_id)
            seen = core.views(end.approval_id)[-1]
            assert (seen.state, seen.preview.status) == ("unknown", "unavailable")
            assert "503" in seen.preview.reason


async def test_nothing_is_asked_where_the_end_is_known_or_the_action_counts_no_more(
    home: Path,
) -> None:
    """A look is only for what is an open question, and through what still counts."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            with pytest.raises(NotFound):
                await core.app.approvals.refetch_preview("act-20260101T000000-0123456789abcdef")
            view = await core.ask()
            with pytest.raises(Conflict, match="no open question"):
                await core.app.approvals.refetch_preview(view.approval_id)
            end = await lost(core, mailbox, clock)
            library = (await core.app.console.snapshot()).library
            send = next(each for each in library if each.name == "send-draft")
            await core.app.console.carry_out(
                WithdrawAcceptance(kind="action", name="send-draft", digest=send.digest)
            )
            asked = len(writes(mailbox))
            with pytest.raises(Conflict, match="Look at the service itself"):
                await core.app.approvals.refetch_preview(end.approval_id)
            assert len(writes(mailbox)) == asked
            assert await core.records("outcome.looked_at") == []
