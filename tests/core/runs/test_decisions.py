"""Answers: at most one wins, the next is told which; a deadline and a withdrawal are answers too."""

import asyncio

import pytest

from aileron_core.errors import Conflict, NotFound
from aileron_core.settings import Settings
from tests.support.core_harness import (
    DRAFT,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    hold_answers,
    writes,
)
from tests.support.frozen_clock import FrozenClock


def told_outcome(caught: pytest.ExceptionInfo[Conflict]) -> object:
    return caught.value.details.get("outcome")


async def test_a_second_answer_is_refused_and_names_the_first(core: Core, mailbox: Mailbox) -> None:
    """At most one decision wins; the next gets Conflict and the first one's outcome."""
    view = await core.ask()
    await core.app.approvals.deny(view.approval_id, "not now")
    denied = await core.ended(view)
    assert (denied.state, denied.reason, denied.decided_by) == ("denied", "not now", "person")
    for again in (core.approve(view), core.app.approvals.deny(view.approval_id, "")):
        with pytest.raises(Conflict) as caught:
            await again
        assert told_outcome(caught) == "denied"
    with pytest.raises(Conflict) as caught:
        await core.app.approvals.withdraw(core.session.session_id, view.approval_id, "")
    assert told_outcome(caught) == "denied"
    assert [r["state"] for r in await core.records("approval.denied")] == ["denied"]
    assert mailbox.state()["sent"] == []


async def test_of_many_answers_at_once_exactly_one_wins(core: Core, mailbox: Mailbox) -> None:
    """Yes, no and withdrawal in the same turn of the loop; one outcome, one effect at most."""
    view = await core.ask()
    ends = await asyncio.gather(*(core.approve(view) for _ in range(5)), return_exceptions=True)
    assert sum(end is None for end in ends) == 1
    assert all(end is None or isinstance(end, Conflict) for end in ends)
    assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_a_no_while_it_is_checked_wins(core: Core, mailbox: Mailbox) -> None:
    """During `checking` a deny wins; the recheck that then holds starts nothing."""
    view = await core.ask()
    with hold_answers(mailbox, f"GET {DRAFT}") as reached:
        await core.approve(view)
        assert core.views(view.approval_id)[-1].state == "checking"
        with pytest.raises(Conflict) as caught:
            await core.approve(view)
        assert told_outcome(caught) == "checking"
        await reached()
        await core.app.approvals.deny(view.approval_id, "stop")
    # Served only once the carrier has let the connector go.
    await core.call("list-drafts", {})
    assert (await core.ended(view)).state == "denied"
    assert mailbox.state()["sent"] == []
    assert writes(mailbox).count(f"GET {DRAFT}") == 2


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_no_run_of_the_connector_comes_between_recheck_and_effect(
    core: Core, mailbox: Mailbox
) -> None:
    """An ungated write that arrives during the recheck waits until the effect is over."""
    other = await core.another_session()
    view = await core.ask()
    mailbox.control(delay_seconds={"get": 0.2, "send": 0.2})
    await core.approve(view)
    update = asyncio.ensure_future(
        core.call("update-draft", {"id": DRAFT, "to": "m@evil.example"}, session=other)
    )
    assert (await core.ended(view)).state == "completed"
    # The draft is gone: the write came after the effect.
    assert (await update).row.state == "failed"
    assert writes(mailbox)[:4] == [f"GET {DRAFT}", f"GET {DRAFT}", "POST send", f"GET {DRAFT}"]
    assert "anna" in mailbox.state()["sent"][0]["to"]


async def test_approving_before_the_first_answer_does_nothing(core: Core, mailbox: Mailbox) -> None:
    """The console is still fetching and nothing is decided; once it has answered, the yes counts."""
    with hold_answers(mailbox, f"GET {DRAFT}"):
        answer = await core.call()
        approval_id = answer.row.approval_id or ""
        assert answer.row.state == "pending"
        with pytest.raises(Conflict, match="still being fetched"):
            await core.app.approvals.approve(approval_id, "")
    view = await core.looked(approval_id)
    with pytest.raises(Conflict, match="The call changed"):
        await core.app.approvals.approve(approval_id, "")
    assert (await core.run(view)).state == "completed"


async def test_only_the_requester_withdraws_and_only_before_it_begins(
    core: Core, mailbox: Mailbox
) -> None:
    """Withdraw of one's own approval; 409 once it has ended; a foreign one is not found."""
    view = await core.ask()
    other = await core.another_session()
    for session_id, approval_id in (
        (other.session_id, view.approval_id),
        (core.session.session_id, "act-20260101T000000-0000000000000000"),
    ):
        with pytest.raises(NotFound, match="This session has no approval"):
            await core.app.approvals.withdraw(session_id, approval_id, "")
        with pytest.raises(NotFound, match="This session has no approval"):
            await core.app.approvals.wait_for_result(session_id, approval_id, 0)
    row = await core.app.approvals.withdraw(core.session.session_id, view.approval_id, "a\ud800b")
    assert (row.state, row.reason) == ("withdrawn", "a?b")
    with pytest.raises(Conflict) as caught:
        await core.approve(view)
    assert told_outcome(caught) == "withdrawn"
    # Its answer told the agent, so an equal call asks anew.
    again = await core.call()
    assert not again.attached
    assert again.row.approval_id != view.approval_id
    assert mailbox.state()["sent"] == []


async def test_a_reason_is_cut_at_two_thousand_characters(core: Core) -> None:
    view = await core.ask()
    await core.app.approvals.deny(view.approval_id, "ä" * 3000)
    assert (await core.ended(view)).reason == "ä" * 2000


@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_deadline_ends_it_and_a_late_yes_does_nothing(
    core: Core, mailbox: Mailbox, clock: FrozenClock
) -> None:
    first, second = await core.ask(), await core.ask("r-8842190312")
    assert first.expires_at == clock.now() + 60
    clock.advance(59.9)
    await core.app.approvals.expire_overdue()
    assert core.views(first.approval_id)[-1].state == "pending"
    clock.advance(0.1)
    with pytest.raises(Conflict) as caught:
        await core.approve(first)
    assert told_outcome(caught) == "expired"
    await core.app.approvals.expire_overdue()
    for view in (first, second):
        assert (await core.ended(view)).state == "expired"
    assert mailbox.state()["sent"] == []


@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_deadline_that_passes_during_the_recheck_stops_the_effect(
    start: Start, mailbox: Mailbox, clock: FrozenClock
) -> None:
    def late(step: str) -> None:
        if step == "after approval.approved":
            clock.advance(60)

    async with start(failpoint=late) as core:
        view = await core.ask()
        assert (await core.run(view)).state == "expired"
    assert mailbox.state()["sent"] == []


@pytest.mark.core(settings=Settings(expires_seconds=0))
async def test_without_a_deadline_it_waits_for_ever(core: Core, clock: FrozenClock) -> None:
    view = await core.ask()
    assert view.expires_at is None
    assert (await core.app.console.snapshot()).settings_accepted
    clock.advance(10 * 365 * 86400)
    await core.app.approvals.expire_overdue()
    assert (await core.run(view)).state == "completed"


async def test_the_end_of_a_session_leaves_its_approval_and_marks_it(core: Core) -> None:
    """The console says that the requester is gone; a person may still answer."""
    view = await core.ask()
    assert not view.requester_gone
    await core.app.session_service.end(core.session.session_id, "it was ended")
    gone = core.views(view.approval_id)[-1]
    assert (gone.state, gone.requester_gone) == ("pending", True)
    assert core.app.sessions.authenticate(core.token) is None
    assert (await core.run(gone)).state == "completed"
