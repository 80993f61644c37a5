"""Answers: at most one wins, the next is told which; a deadline and a withdrawal are answers too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from core_harness import (
    DRAFT,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    furnish,
    run,
    standing_still,
    upon,
    writes,
)

from aileron_core.errors import Conflict, NotFound
from aileron_core.settings import Settings
from aileron_core.testing import FrozenClock


def outcome(caught: pytest.ExceptionInfo[Conflict]) -> object:
    return caught.value.details.get("outcome")


def test_the_second_answer_is_refused_and_names_the_first(home: Path) -> None:
    """At most one decision wins; the next gets Conflict and the first one's outcome."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            await core.app.approvals.deny(view.approval_id, "not now")
            denied = await core.ended(view)
            assert (denied.state, denied.reason, denied.decided_by) == (
                "denied",
                "not now",
                "person",
            )
            for again in (core.approve(view), core.app.approvals.deny(view.approval_id, "")):
                with pytest.raises(Conflict) as caught:
                    await again
                assert outcome(caught) == "denied"
            with pytest.raises(Conflict) as caught:
                await core.app.approvals.withdraw(core.session.session_id, view.approval_id, "")
            assert outcome(caught) == "denied"
            assert [r["state"] for r in await core.records("approval.denied")] == ["denied"]

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []


def test_of_many_answers_at_once_exactly_one_wins(home: Path) -> None:
    """Yes, no and withdrawal in the same turn of the loop; one outcome, one effect at most."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            ends = await asyncio.gather(
                *(core.approve(view) for _ in range(5)), return_exceptions=True
            )
            assert sum(end is None for end in ends) == 1
            assert all(end is None or isinstance(end, Conflict) for end in ends)
            assert (await core.ended(view)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert len(mailbox.state()["sent"]) == 1


def test_a_no_while_it_is_checked_wins(home: Path) -> None:
    """During `checking` a deny wins; the recheck that then holds starts nothing."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            with standing_still(mailbox, f"GET {DRAFT}") as reached:
                await core.approve(view)
                assert core.views(view.approval_id)[-1].state == "checking"
                with pytest.raises(Conflict) as caught:
                    await core.approve(view)
                assert outcome(caught) == "checking"
                await reached()
                await core.app.approvals.deny(view.approval_id, "stop")
            # Served only once the carrier has let the connector go.
            await core.call("list-drafts", {})
            assert (await core.ended(view)).state == "denied"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []
        assert writes(mailbox).count(f"GET {DRAFT}") == 2


def test_no_run_of_the_connector_comes_between_recheck_and_effect(home: Path) -> None:
    """An ungated write that arrives during the recheck waits until the effect is over."""
    furnish(home, update_draft=UPDATE_DRAFT)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
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

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert writes(mailbox)[:4] == [f"GET {DRAFT}", f"GET {DRAFT}", "POST send", f"GET {DRAFT}"]
        assert "anna" in mailbox.state()["sent"][0]["to"]


def test_approving_before_the_first_answer_does_nothing(home: Path) -> None:
    """The console is still fetching and nothing is decided; once it has answered, the yes counts."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            with standing_still(mailbox, f"GET {DRAFT}"):
                answer = await core.call()
                approval_id = answer.row.approval_id or ""
                assert answer.row.state == "pending"
                with pytest.raises(Conflict, match="Still looking"):
                    await core.app.approvals.approve(approval_id, "")
            view = await core.looked(approval_id)
            with pytest.raises(Conflict, match="It changed"):
                await core.app.approvals.approve(approval_id, "")
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_only_the_requester_withdraws_and_only_before_it_begins(home: Path) -> None:
    """Withdraw of one's own approval; 409 once it has ended; a foreign one is not found."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            other = await core.another_session()
            for session_id, approval_id in (
                (other.session_id, view.approval_id),
                (core.session.session_id, "act-20260101T000000-0000000000000000"),
            ):
                with pytest.raises(NotFound, match="There is no approval"):
                    await core.app.approvals.withdraw(session_id, approval_id, "")
                with pytest.raises(NotFound, match="There is no approval"):
                    await core.app.approvals.result(session_id, approval_id, 0)
            row = await core.app.approvals.withdraw(
                core.session.session_id, view.approval_id, "a\ud800b"
            )
            assert (row.state, row.reason) == ("withdrawn", "a?b")
            with pytest.raises(Conflict) as caught:
                await core.approve(view)
            assert outcome(caught) == "withdrawn"
            # Its answer told the agent, so an equal call asks anew.
            again = await core.call()
            assert not again.attached
            assert again.row.approval_id != view.approval_id

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []


def test_a_reason_is_cut_at_two_thousand_characters(home: Path) -> None:
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            await core.app.approvals.deny(view.approval_id, "ä" * 3000)
            assert (await core.ended(view)).reason == "ä" * 2000

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_deadline_ends_it_and_a_late_yes_does_nothing(home: Path) -> None:
    """Expiry is a deadline on the row; it ends the run as `expired`."""
    furnish(home)
    clock = FrozenClock()

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(
            home, mailbox, clock=clock, settings=Settings(expires_seconds=60)
        ) as core:
            first, second = await core.ask(), await core.ask("r-8842190312")
            assert first.expires_at == clock.now() + 60
            clock.advance(59.9)
            await core.app.approvals.sweep()
            assert core.views(first.approval_id)[-1].state == "pending"
            clock.advance(0.1)
            with pytest.raises(Conflict) as caught:
                await core.approve(first)
            assert outcome(caught) == "expired"
            await core.app.approvals.sweep()
            for view in (first, second):
                assert (await core.ended(view)).state == "expired"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []


def test_a_deadline_that_passes_during_the_recheck_stops_the_effect(home: Path) -> None:
    """From `checking` to `expired`; the digest covers the deadline."""
    furnish(home)
    clock = FrozenClock()

    def late(step: str) -> None:
        if step == "after approval.approved":
            clock.advance(60)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(
            home, mailbox, clock=clock, settings=Settings(expires_seconds=60), failpoint=late
        ) as core:
            view = await core.ask()
            await core.approve(view)
            assert (await core.ended(view)).state == "expired"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []


def test_without_a_deadline_it_waits_for_ever(home: Path) -> None:
    """0 is never, and the digest says null."""
    furnish(home)
    clock = FrozenClock()

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(
            home, mailbox, clock=clock, settings=Settings(expires_seconds=0)
        ) as core:
            view = await core.ask()
            assert view.expires_at is None
            clock.advance(10 * 365 * 86400)
            await core.app.approvals.sweep()
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_refresh_that_finds_a_difference_needs_a_new_yes(home: Path) -> None:
    """Refresh disarms approve in the same way; without a difference it shows no drift."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            await core.app.approvals.refresh(view.approval_id)
            same = core.views(view.approval_id)[-1]
            assert (same.digest, same.drift) == (view.digest, None)
            mailbox.control(change={"id": DRAFT, "subject": "Q4 numbers"})
            await core.app.approvals.refresh(view.approval_id)
            other = core.views(view.approval_id)[-1]
            assert other.drift is not None
            assert [c.label for c in other.drift.changed] == ["Subject"]
            with pytest.raises(Conflict, match="It changed"):
                await core.approve(view)
            await core.approve(other)
            assert (await core.ended(other)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"][0]["subject"] == "Q4 numbers"


def _yes_without_preview(mailbox: Mailbox, core: Core) -> Any:
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    return core.ask()


def test_an_unavailable_preview_can_still_be_approved_if_it_stays_so(home: Path) -> None:
    """Unavailable and still unavailable is no change."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            mailbox.control(fail={"op": "get", "status": 503, "times": 2})
            view = await core.ask()
            assert view.preview.status == "unavailable"
            assert "503" in view.preview.reason
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_preview_that_has_become_available_is_shown_first(home: Path) -> None:
    """Nothing is sent on a yes that was given blind when it could have been seen."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await _yes_without_preview(mailbox, core)
            await core.approve(view)
            back = await core.back(view)
            assert back.preview.status == "ready"
            assert back.digest != view.digest
            assert mailbox.state()["sent"] == []

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_preview_that_has_gone_counts_as_changed(home: Path) -> None:
    """A preview that was there and is now unavailable: nothing runs, and it says so."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "get", "status": 500, "times": 1})
            await core.approve(view)
            back = await core.back(view)
            assert back.drift is not None
            assert "500" in back.drift.unavailable
            assert mailbox.state()["sent"] == []

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_the_end_of_a_session_leaves_its_approval_and_marks_it(home: Path) -> None:
    """The console says that the requester is gone; a person may still answer."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            assert not view.requester_gone
            await core.app.session_service.end(core.session.session_id, "it was ended")
            gone = core.views(view.approval_id)[-1]
            assert (gone.state, gone.requester_gone) == ("pending", True)
            assert core.app.sessions.authenticate(core.token) is None
            await core.approve(gone)
            assert (await core.ended(gone)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_wall_limit_with_a_request_out_is_unknown_and_never_repeated(home: Path) -> None:
    """`unknown`, said to person and agent."""
    furnish(home)
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace(
        "[approval]\n", "[limits]\nwall_seconds = 1\n\n[approval]\n"
    )
    path.write_text(text, encoding="utf-8")

    clock = FrozenClock()

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox, clock=clock) as core:
            view = await core.ask()
            mailbox.control(hang="send")
            # The run's time is up once its request is out, however long that took.
            upon(mailbox, "POST send", lambda: clock.advance(2))
            await core.approve(view)
            end = await core.ended(view)
            assert end.state == "unknown"
            assert "not known" in end.outcome
            row = await core.app.approvals.result(core.session.session_id, view.approval_id, 0)
            assert row.failure is not None
            assert (row.failure.class_, row.failure.retriable) == ("outcome_unknown", False)

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert writes(mailbox).count("POST send") == 1


def _idempotent(home: Path) -> None:
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace("idempotent = false", "idempotent = true")
    path.write_text(text, encoding="utf-8")


def test_a_repeat_of_an_idempotent_step_is_preceded_by_a_recheck(home: Path) -> None:
    """Before each retry the world is looked at again."""
    furnish(home)
    _idempotent(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        get = f"GET {DRAFT}"
        assert writes(mailbox) == [get, get, "POST send", get, "POST send"]


def test_a_recheck_before_a_retry_that_differs_asks_the_person_again(home: Path) -> None:
    """From `executing` to `pending`; nothing is repeated on other content."""
    furnish(home)
    _idempotent(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
            upon(mailbox, "POST send", lambda: mailbox._state.apply(change))
            await core.approve(view)
            back = await core.view(
                view.approval_id, lambda v: v.state == "pending" and v.drift is not None
            )
            assert back.words != view.words
            assert mailbox.state()["sent"] == []

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_step_that_has_run_is_not_run_again_by_a_second_yes(home: Path) -> None:
    """Regression: asked again after its first step, a run began anew with that step."""
    furnish(home)
    _idempotent(home)
    path = home / "actions" / "send-draft.md"
    first = (
        '[[execute]]\nid = "change"\nconnector = "local://aileron/mail-drafts"\n'
        'op = "update_draft"\nidempotent = false\n'
        'inputs = { id = "${args.draft_id}", bcc = "archive@example.com" }\n\n'
    )
    text = path.read_text(encoding="utf-8")
    text = text.replace('["send_draft"]', '["send_draft", "update_draft"]')
    path.write_text(text.replace("[[execute]]", first + "[[execute]]", 1), encoding="utf-8")

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            again = await core.back(view)
            assert again.drift is not None
            assert (await core.records("recheck.differed"))[-1]["steps"] == ["change"]
            await core.approve(again)
            assert (await core.ended(again)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert sum(each.startswith("PUT") for each in writes(mailbox)) == 1
        assert len(mailbox.state()["sent"]) == 1


def test_a_step_that_is_not_idempotent_is_never_repeated(home: Path) -> None:
    """Only a step declared idempotent is repeated."""
    furnish(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            assert (await core.ended(view)).state == "failed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert writes(mailbox).count("POST send") == 1
