"""Looking again at the service, where nobody knows how a run ended."""

from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.field_views import LookView
from aileron_core.console_port.intents import Acknowledge, Deny, RefetchPreview, WithdrawAcceptance
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, NotFound, RateLimited, StorageUnavailable
from tests.support.core_harness import (
    DRAFT,
    SHORT_OF_TIME,
    Core,
    Mailbox,
    Start,
    install_examples,
    readdress,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock

GET, PUT = f"GET {DRAFT}", f"PUT {DRAFT}"
NEW = "ana@example.com"


def changing(changes: str = 'changes = { To = "${args.to}" }\n', effect: str = "change") -> str:
    return readdress(changes, effect).replace("idempotent = true\n", "")


def unasked(text: str, name: str) -> str:
    return text.replace(name, f"{name}-now").replace("required = true\neffect", "effect")


@pytest.fixture
def library(home: Path) -> None:
    install_examples(
        home, send_draft=SHORT_OF_TIME, send_draft_now=unasked(SHORT_OF_TIME, "send-draft"),
        readdress=changing(), readdress_now=unasked(changing(), "readdress"),
    )  # fmt: skip


async def lost_unasked(core: Core, mailbox: Mailbox, clock: FrozenClock) -> ApprovalView:
    mailbox.control(hang="send")
    run_on_request(mailbox, "POST send", lambda: clock.advance(2))
    answer = await core.call("send-draft-now")
    assert (answer.row.gated, answer.row.failure.class_) == (False, "outcome_unknown")
    return await core.until(
        lambda: next((v for v in reversed(core.views("")) if v.run_id == answer.row.run_id), None)
    )


async def lost_call(core: Core, mailbox: Mailbox, clock: FrozenClock) -> ApprovalView:
    view = await core.ask()
    mailbox.control(hang="send")
    # The run's time is up once its request is out, however long that took.
    run_on_request(mailbox, "POST send", lambda: clock.advance(2))
    end = await core.run(view)
    assert end.state == "unknown"
    return end


async def test_one_look_changes_nothing(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    """What is read is on record as a person's look; the run stays unknown and is not repeated."""
    end = await lost_call(core, mailbox, clock)
    first_answer = await core.result(end.approval_id)
    failure = first_answer.failure
    assert (failure.class_, failure.retriable) == ("outcome_unknown", False)
    mailbox.control(change={"id": DRAFT, "subject": "as it is by now"})
    clock.advance(1)
    await core.do(RefetchPreview(call_id=end.call_id))
    seen = core.views(end.approval_id)[-1]
    assert (seen.state, seen.digest, seen.drift) == ("unknown", end.digest, None)
    assert look_of(seen).at > seen.ended_at
    assert "as it is by now" in {field.value for field in look_of(seen).preview.fields}
    assert (seen.preview, look_of(seen).comparison) == (end.preview, None)
    (record,) = await core.records("outcome.looked_at")
    assert (record["actor"], record["preview"], record["state"]) == ("person", "ready", "unknown")
    assert (await core.app.audit.verify()).problems == ()
    again = await core.result(end.approval_id)
    assert replace(again, last_record=0) == replace(first_answer, last_record=0), "told no agent"
    assert writes(mailbox) == [GET, GET, "POST send", GET]
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    read = look_of(await look_again(core, end)).preview
    assert (read.status, read.not_found, "503" in read.reason) == ("unavailable", False, True)
    seen = core.views(end.approval_id)[-1]
    assert (seen.state, seen.preview.status) == ("unknown", "ready")


async def test_only_an_open_end_is_asked(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    """A look is only for what is an open question, and through what still counts; so is an acknowledgement."""
    service, unknown = core.app.outcomes, "act-20260101T000000-0123456789abcdef"
    for said in (service.look_again(unknown), service.acknowledge(unknown, 0.0)):
        with pytest.raises(NotFound):
            await said
    view = await core.ask()
    with pytest.raises(Conflict, match="already known"):
        await service.look_again(view.approval_id)
    with pytest.raises(Conflict, match="does not need to be acknowledged"):
        await core.do(acknowledgement(view))
    end = await lost_call(core, mailbox, clock)
    library = (await core.app.console.snapshot()).library
    send = next(each for each in library if each.name == "send-draft")
    await core.do(WithdrawAcceptance(kind="action", name="send-draft", digest=send.digest))
    asked = len(writes(mailbox))
    with pytest.raises(Conflict, match="Check the service itself"):
        await service.look_again(end.approval_id)
    assert len(writes(mailbox)) == asked
    assert await core.records("outcome.looked_at") == []


async def test_unrecorded_it_stays_open(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    """Neither a look nor a person's word counts that no record has."""
    end = await lost_call(core, mailbox, clock)
    run, service = core.live(end), core.app.outcomes
    core.app.database._connection.execute("PRAGMA query_only=ON")
    for said in (service.look_again(end.call_id), service.acknowledge(end.call_id, None)):
        with pytest.raises(StorageUnavailable):
            await said
        assert (run.look, run.awaits_acknowledgement) == (None, True)
    core.app.database._connection.execute("PRAGMA query_only=OFF")


def acknowledgement(view: ApprovalView) -> Acknowledge:
    looked_at = view.look.at if view.look is not None else None
    return Acknowledge(call_id=view.call_id, looked_at=looked_at)


def look_of(view: ApprovalView) -> LookView:
    assert view.look is not None
    return view.look


async def deny_others(core: Core, clock: FrozenClock) -> None:
    """Have four calls end after those before, which a console then is given in their place."""
    for number in range(4):
        other = await core.ask(f"r-{number}")
        await core.do(Deny(approval_id=other.approval_id, reason=""))
        await core.app.approvals.mark_delivered(other.approval_id)
        clock.advance(3)


async def unknown_calls(core: Core) -> list[tuple[str, bool]]:
    found = [each for each in await core.approvals() if each.state == "unknown"]
    return [(each.approval_id, each.awaits_acknowledgement) for each in found]


async def test_it_waits_over_restarts(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    async with start() as core:
        end = await lost_call(core, mailbox, clock)
        assert end.awaits_acknowledgement
        await core.app.approvals.mark_delivered(end.approval_id)
    for _ in range(2):
        async with start() as core:
            assert await unknown_calls(core) == [(end.approval_id, True)]
    async with start() as core:
        (view,) = await core.approvals()
        assert "is unknown" in view.outcome
        await core.do(acknowledgement(view))
        seen = core.views(end.approval_id)[-1]
        assert (seen.state, seen.awaits_acknowledgement) == ("unknown", False)
        (record,) = await core.records("run.acknowledged")
        expected = ("person", end.run_id, "not looked at")
        assert (record["actor"], record["run"], record["preview"]) == expected
        with pytest.raises(Conflict, match="does not need to be acknowledged"):
            await core.do(acknowledgement(seen))
    async with start() as core:
        assert await unknown_calls(core) == [(end.approval_id, False)]
        assert (await core.app.audit.verify()).problems == ()
    assert writes(mailbox).count("POST send") == 1


@pytest.mark.usefixtures("three_are_recent")
async def test_later_ends_hide_it_not(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    async with start() as core:
        end = await lost_call(core, mailbox, clock)
        await core.app.approvals.mark_delivered(end.approval_id)
        await deny_others(core, clock)
        clock.advance(40 * 86400)
    async with start() as core:
        assert (end.approval_id, True) in await unknown_calls(core)


async def test_only_what_was_seen_counts(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    end = await lost_call(core, mailbox, clock)
    clock.advance(1)
    await core.do(RefetchPreview(call_id=end.call_id))
    with pytest.raises(Conflict, match="fetched again"):
        await core.do(acknowledgement(end))
    assert await core.records("run.acknowledged") == []
    seen = core.views(end.approval_id)[-1]
    await core.do(acknowledgement(seen))
    (record,) = await core.records("run.acknowledged")
    assert record["preview"] == "ready"


async def test_an_unasked_run_waits_too(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    """By its run's id, over restarts; it is looked at and acknowledged, on record, and never repeated."""
    async with start() as core:
        end = await lost_unasked(core, mailbox, clock)
        assert (end.state, end.approval_id, end.call_id) == ("unknown", "", end.run_id)
        assert (end.awaits_acknowledgement, end.can_fetch_again) == (True, True)
        assert end.hosts_asked == ("gmail.googleapis.com:443",)
    async with start() as core:
        (view,) = await core.approvals()
        assert (view.call_id, view.awaits_acknowledgement) == (end.run_id, True)
        assert "is unknown" in view.outcome
        clock.advance(1)
        await core.do(RefetchPreview(call_id=view.call_id))
        seen = core.views("")[-1]
        assert look_of(seen).preview.status == "ready"
        with pytest.raises(Conflict, match="fetched again"):
            await core.do(acknowledgement(view))
        await core.do(acknowledgement(seen))
        over = core.views("")[-1]
        assert (over.awaits_acknowledgement, over.can_fetch_again) == (False, False)
        (record,) = await core.records("run.acknowledged")
        expected = ("person", end.run_id, "ready")
        assert (record["actor"], record["run"], record["preview"]) == expected
        assert await core.approvals() == ()
        with pytest.raises(NotFound):
            await core.do(acknowledgement(seen))
    async with start() as core:
        assert (await core.approvals(), (await core.app.audit.verify()).problems) == ((), ())
    assert writes(mailbox) == ["POST send", GET]


async def test_no_session_fills_the_list(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    """They stand before all that waits for an answer: beyond a limit its calls are refused, on record."""
    limit = core.app.approvals.settings.pending_per_session
    ends = [await lost_unasked(core, mailbox, clock) for _ in range(limit)]
    with pytest.raises(RateLimited, match="acknowledge"):
        await core.call("send-draft-now")
    (refused,) = await core.records("call.refused")
    assert refused["class"] == "rate_limited"
    assert writes(mailbox).count("POST send") == limit
    other = await core.another_session()
    await core.call("list-drafts", {}, session=other)
    await core.do(acknowledgement(ends[0]))
    await core.call("list-drafts", {})


async def lost_change(core: Core, mailbox: Mailbox, *, took_effect: bool) -> ApprovalView:
    """Return a change whose answer never came, and that the service carried out or did not."""
    mailbox.control(lose_answer="update")
    view = await core.ask_for("readdress", {"id": DRAFT, "to": NEW})
    if not took_effect:
        before = next(field.value for field in view.preview.fields if field.label == "To")
        undo = {"change": {"id": DRAFT, "to": before}}
        run_on_request(
            mailbox, PUT, lambda: run_on_request(mailbox, GET, lambda: mailbox._state.apply(undo))
        )
    end = await core.run(view)
    assert (end.state, end.awaits_acknowledgement) == ("unknown", True)
    return end


async def look_again(core: Core, view: ApprovalView) -> ApprovalView:
    await core.do(RefetchPreview(call_id=view.call_id))
    return core.views(view.approval_id)[-1]


async def test_what_is_there_settles_it(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    """It waits no more, here and after a restart; on record as a person's, and the agent hears nothing."""
    async with start() as core:
        end = await lost_change(core, mailbox, took_effect=True)
        answer = await core.result(end.approval_id)
        clock.advance(5)
        seen = await look_again(core, end)
        assert (seen.state, seen.is_settled) == ("unknown", True)
        assert (seen.awaits_acknowledgement, seen.can_fetch_again) == (False, False)
        read = look_of(seen).comparison
        assert (read.status, read.compared, read.at) == ("held", 2, clock.now())
        assert seen.preview == end.preview
        (record,) = await core.records("outcome.settled")
        expected = ("person", end.run_id, "unknown")
        assert (record["actor"], record["run"], record["state"]) == expected
        assert (record["compared"], record["hosts_asked"]) == (2, ["gmail.googleapis.com:443"])
        assert NEW not in str(record)
        assert await core.records("outcome.looked_at") == []
        again = await core.result(end.approval_id)
        assert replace(again, last_record=0) == replace(answer, last_record=0)
        with pytest.raises(Conflict, match="settled"):
            await look_again(core, seen)
        with pytest.raises(Conflict, match="need to be acknowledged"):
            await core.do(acknowledgement(seen))
    async with start() as core:
        assert await unknown_calls(core) == [(end.approval_id, False)]
        (view,) = await core.approvals()
        assert (view.is_settled, view.can_fetch_again) == (True, False)
        assert look_of(view).at == pytest.approx(clock.now(), abs=0.001)
        assert look_of(view).preview.status == "none"
        opened = await core.opened(end.run_id)
        assert opened.approval.is_settled
        clock.advance(40 * 86400)
        await core.app.contents.forget_due()
        old = (await core.opened(end.run_id)).approval
        assert (old.forgotten, old.is_settled) == (True, True)
        assert (await core.app.audit.verify()).problems == ()
    assert writes(mailbox).count(PUT) == 1


async def test_what_differs_keeps_waiting_and_says_where(core: Core, mailbox: Mailbox) -> None:
    """A second look replaces the first; the field that was to stay is compared too."""
    end = await lost_change(core, mailbox, took_effect=False)
    seen = await look_again(core, end)
    read = look_of(seen).comparison
    assert (seen.is_settled, seen.awaits_acknowledgement) == (False, True)
    assert seen.can_fetch_again
    assert (read.status, read.labels, read.compared) == ("differs", ("To",), 2)
    assert look_of(seen).is_unchanged
    (record,) = await core.records("outcome.looked_at")
    assert (record["fields"], record["compared"]) == (["To"], 2)
    mailbox.control(change={"id": DRAFT, "to": NEW, "subject": "other"})
    second = await look_again(core, end)
    read = look_of(second).comparison
    assert (read.labels, look_of(second).is_unchanged) == (("Subject",), False)
    assert second.awaits_acknowledgement
    await core.do(acknowledgement(second))
    assert await core.records("outcome.settled") == []
    assert writes(mailbox).count(PUT) == 1


async def test_after_a_restart_the_changed_fields_settle_it(start: Start, mailbox: Mailbox) -> None:
    """What was shown is lost, so that fields which were to stay are not compared."""
    async with start() as core:
        end = await lost_change(core, mailbox, took_effect=True)
    async with start() as core:
        seen = await look_again(core, end)
        read = look_of(seen).comparison
        assert (seen.is_settled, read.compared) == (True, 1)


@pytest.mark.parametrize("why", ["change", "send", "it was there", "a step never ran"])
async def test_what_cannot_be_compared_is_settled_by_no_look(
    start: Start, home: Path, mailbox: Mailbox, why: str
) -> None:
    """The action file does not say what should be there, or the service would hold the same in any case.

    Where the answer of the first of two steps was lost, what the second should have done is not in the fields.
    """
    if why == "it was there":
        mailbox.control(change={"id": DRAFT, "to": NEW})
    elif why == "a step never ran":
        text = changing()
        second = text[text.index('[[execute]]\nid = "update"\n') : text.index("[approval]")]
        second = second.replace('"update"', '"again"', 1)
        install_examples(home, readdress=text.replace("[approval]", f"{second}\n[approval]", 1))
    else:
        install_examples(home, readdress=changing("", why))
    async with start() as core:
        seen = await look_again(core, await lost_change(core, mailbox, took_effect=True))
        assert (look_of(seen).preview.status, look_of(seen).comparison) == ("ready", None)
        assert (seen.is_settled, seen.awaits_acknowledgement) == (False, True)


async def test_what_is_gone_is_said_and_what_was_shown_stays(core: Core, mailbox: Mailbox) -> None:
    """A draft that was sent answers 404: its gist and fields stay those of before."""
    view = await core.ask()
    mailbox.control(lose_answer="send")
    end = await core.run(view)
    assert end.state == "unknown"
    seen = await look_again(core, end)
    assert (seen.preview, bool(seen.preview.gist)) == (end.preview, True)
    assert (look_of(seen).preview.status, look_of(seen).preview.not_found) == ("unavailable", True)
    assert "404" in look_of(seen).preview.reason
    assert seen.awaits_acknowledgement


async def test_what_asked_nobody_is_settled_too(start: Start, mailbox: Mailbox) -> None:
    """Those that were settled leave room for further ungated calls of the session."""
    async with start() as core:
        mailbox.control(lose_answer="update")
        answer = await core.call("readdress-now", {"id": DRAFT, "to": NEW})
        assert answer.row.failure.class_ == "outcome_unknown"
        counted = core.app.approvals.registry.count_unacknowledged
        assert counted(core.session.session_id) == 1
        await core.do(RefetchPreview(call_id=answer.row.run_id))
        seen = core.views("")[-1]
        assert (seen.is_settled, seen.awaits_acknowledgement) == (True, False)
        assert (counted(core.session.session_id), await core.approvals()) == (0, ())
    async with start() as core:
        assert await core.approvals() == ()
        opened = (await core.opened(answer.row.run_id)).approval
        assert (opened.is_settled, opened.can_fetch_again) == (True, False)
