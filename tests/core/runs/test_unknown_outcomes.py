"""Looking again at the service, where nobody knows how a run ended."""

from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port import (
    Acknowledge,
    ApprovalView,
    Deny,
    RefetchPreview,
    WithdrawAcceptance,
)
from aileron_core.errors import Conflict, NotFound, RateLimited
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


def ungated(home: Path) -> None:
    """Add `send-now`: the same op without a person's yes."""
    short_of_time(home)
    text = (home / "actions" / "send-draft.md").read_text(encoding="utf-8")
    text = text.replace("send-draft", "send-now").replace("required = true\neffect", "effect")
    (home / "actions" / "send-now.md").write_text(text, encoding="utf-8")


async def lost_unasked(core: Core, mailbox: Mailbox, clock: FrozenClock) -> ApprovalView:
    """Return a call that ran without a person's yes, and whose answer never came."""
    mailbox.control(hang="send")
    run_on_request(mailbox, "POST send", lambda: clock.advance(2))
    answer = await core.call("send-now")
    assert answer.row.failure is not None
    assert (answer.row.gated, answer.row.failure.class_) == (False, "outcome_unknown")
    return await core.until(
        lambda: next((v for v in reversed(core.views("")) if v.run_id == answer.row.run_id), None)
    )


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
            first_answer = await core.result(end.approval_id)
            mailbox.control(change={"id": DRAFT, "subject": "as it is by now"})
            clock.advance(1)
            await core.app.console.carry_out(RefetchPreview(call_id=end.call_id))
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
            again = await core.result(end.approval_id)
            assert replace(again, last_record=0) == replace(first_answer, last_record=0), (
                "told no agent"
            )
        assert writes(mailbox) == [GET, GET, "POST send", GET]


async def test_one_can_look_again_after_a_crash_too(home: Path, mailbox: Mailbox) -> None:
    """The console that asked is gone: what it had shown is lost, and how it is now can be read."""
    short_of_time(home)
    clock = FrozenClock()

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
    home: Path, mailbox: Mailbox
) -> None:
    """A look is only for what is an open question, and through what still counts."""
    short_of_time(home)
    clock = FrozenClock()

    async with Core.open(home, mailbox, clock=clock) as core:
        with pytest.raises(NotFound):
            await core.app.approvals.refetch_preview("act-20260101T000000-0123456789abcdef")
        view = await core.ask()
        with pytest.raises(Conflict, match="already known"):
            await core.app.approvals.refetch_preview(view.approval_id)
        end = await lost(core, mailbox, clock)
        library = (await core.app.console.snapshot()).library
        send = next(each for each in library if each.name == "send-draft")
        await core.app.console.carry_out(
            WithdrawAcceptance(kind="action", name="send-draft", digest=send.digest)
        )
        asked = len(writes(mailbox))
        with pytest.raises(Conflict, match="Check the service itself"):
            await core.app.approvals.refetch_preview(end.approval_id)
        assert len(writes(mailbox)) == asked
        assert await core.records("outcome.looked_at") == []


def acknowledgement(view: ApprovalView) -> Acknowledge:
    return Acknowledge(call_id=view.call_id, preview_at=view.preview.updated_at)


async def unknown_calls(core: Core) -> list[tuple[str, bool]]:
    """The calls of unknown outcome that a console that starts now would be given."""
    approvals = (await core.app.console.snapshot()).approvals
    return [
        (each.approval_id, each.awaits_acknowledgement)
        for each in approvals
        if each.state == "unknown"
    ]


async def test_it_waits_for_a_person_over_restarts_until_they_acknowledge_it(home: Path) -> None:
    """Delivered to the agent or not; the acknowledgement is a record of a person's, and verifies."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            assert end.awaits_acknowledgement
            await core.app.approvals.mark_delivered(end.approval_id)
        for _ in range(2):
            async with Core.open(home, mailbox, clock=clock) as core:
                assert await unknown_calls(core) == [(end.approval_id, True)]
        async with Core.open(home, mailbox, clock=clock) as core:
            (view,) = (await core.app.console.snapshot()).approvals
            assert "is unknown" in view.outcome
            await core.app.console.carry_out(acknowledgement(view))
            seen = core.views(end.approval_id)[-1]
            assert (seen.state, seen.awaits_acknowledgement) == ("unknown", False)
            (record,) = await core.records("run.acknowledged")
            assert (record["actor"], record["run"], record["preview"]) == (
                "person",
                end.run_id,
                "not looked at",
            )
            with pytest.raises(Conflict, match="does not need to be acknowledged"):
                await core.app.console.carry_out(acknowledgement(seen))
        async with Core.open(home, mailbox, clock=clock) as core:
            assert await unknown_calls(core) == [(end.approval_id, False)]
            verified = await core.app.audit.verify()
            assert verified.problems == ()
        assert writes(mailbox).count("POST send") == 1


async def test_it_waits_however_many_calls_ended_after_it(home: Path) -> None:
    """And however long ago."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            await core.app.approvals.mark_delivered(end.approval_id)
            for number in range(60):
                other = await core.ask(f"r-{number}")
                await core.app.console.carry_out(Deny(approval_id=other.approval_id, reason=""))
                await core.app.approvals.mark_delivered(other.approval_id)
            clock.advance(40 * 86400)
        async with Core.open(home, mailbox, clock=clock) as core:
            assert (end.approval_id, True) in await unknown_calls(core)


async def test_what_is_acknowledged_is_what_the_person_saw(home: Path) -> None:
    """A look that came back meanwhile is seen first; what was read is on record."""
    short_of_time(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost(core, mailbox, clock)
            clock.advance(1)
            await core.app.console.carry_out(RefetchPreview(call_id=end.call_id))
            with pytest.raises(Conflict, match="fetched again"):
                await core.app.console.carry_out(acknowledgement(end))
            assert await core.records("run.acknowledged") == []
            seen = core.views(end.approval_id)[-1]
            await core.app.console.carry_out(acknowledgement(seen))
            (record,) = await core.records("run.acknowledged")
            assert record["preview"] == "ready"


async def test_only_an_unknown_outcome_is_acknowledged(home: Path) -> None:
    """A call that waits for an answer does not leave this way."""
    install_examples(home)

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            with pytest.raises(Conflict, match="does not need to be acknowledged"):
                await core.app.console.carry_out(acknowledgement(view))
            with pytest.raises(NotFound):
                await core.app.approvals.acknowledge("act-20260101T000000-0123456789abcdef", 0.0)


async def test_a_run_that_asked_nobody_waits_in_the_same_way(home: Path) -> None:
    """By its run's id, over restarts; it is looked at and acknowledged, on record, and never repeated."""
    ungated(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            end = await lost_unasked(core, mailbox, clock)
            assert (end.state, end.approval_id, end.call_id) == ("unknown", "", end.run_id)
            assert (end.awaits_acknowledgement, end.can_fetch_again) == (True, True)
            assert end.hosts_asked == ("gmail.googleapis.com:443",)
        async with Core.open(home, mailbox, clock=clock) as core:
            (view,) = (await core.app.console.snapshot()).approvals
            assert (view.call_id, view.awaits_acknowledgement) == (end.run_id, True)
            assert "is unknown" in view.outcome
            clock.advance(1)
            await core.app.console.carry_out(RefetchPreview(call_id=view.call_id))
            seen = core.views("")[-1]
            assert (seen.was_looked_at_again, seen.preview.status) == (True, "ready")
            with pytest.raises(Conflict, match="fetched again"):
                await core.app.console.carry_out(acknowledgement(view))
            await core.app.console.carry_out(acknowledgement(seen))
            assert not core.views("")[-1].awaits_acknowledgement
            (record,) = await core.records("run.acknowledged")
            assert (record["actor"], record["run"], record["preview"]) == (
                "person",
                end.run_id,
                "ready",
            )
            assert (await core.app.console.snapshot()).approvals == ()
            with pytest.raises(NotFound):
                await core.app.console.carry_out(acknowledgement(seen))
        async with Core.open(home, mailbox, clock=clock) as core:
            assert (await core.app.console.snapshot()).approvals == ()
            assert (await core.app.audit.verify()).problems == ()
        assert writes(mailbox) == ["POST send", GET]


async def test_no_session_fills_the_list_with_outcomes_that_nobody_knows(home: Path) -> None:
    """They stand before all that waits for an answer: beyond a limit its calls are refused, on record."""
    ungated(home)
    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            limit = core.app.approvals.settings.pending_per_session
            ends = [await lost_unasked(core, mailbox, clock) for _ in range(limit)]
            with pytest.raises(RateLimited, match="acknowledge"):
                await core.call("send-now")
            (refused,) = await core.records("call.refused")
            assert refused["class"] == "rate_limited"
            assert writes(mailbox).count("POST send") == limit
            other = await core.another_session()
            await core.call("list-drafts", {}, session=other)
            await core.app.console.carry_out(acknowledgement(ends[0]))
            await core.call("list-drafts", {})
