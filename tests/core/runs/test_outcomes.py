"""Looking again at the service: where nobody knows how a run ended, and after one that was to change something."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import JsonObject
from aileron_core.console_port import intents
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, NotFound, RateLimited, StorageUnavailable
from aileron_core.runs.live_run import LiveRun, PreviewResult
from aileron_core.runs.preview.fetcher import Purpose
from tests.core.runs.test_retention import forget_after
from tests.support.core_harness import (
    DRAFT,
    SHORT_OF_TIME,
    UPDATE_DRAFT,
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


CHANGES = 'changes = { To = "${args.to}" }\n'


def changing(changes: str = CHANGES, effect: str = "change") -> str:
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
    """What is read is on record as a person's look; the run stays unknown and is not repeated.

    A person's word counts only for what they saw last.
    """
    end = await lost_call(core, mailbox, clock)
    first_answer = await core.result(end.approval_id)
    failure = first_answer.failure
    assert (failure.class_, failure.retriable) == ("outcome_unknown", False)
    mailbox.control(change={"id": DRAFT, "subject": "as it is by now"})
    clock.advance(1)
    await core.do(intents.RefetchPreview(call_id=end.call_id))
    seen = core.views(end.approval_id)[-1]
    assert (seen.state, seen.digest, seen.drift) == ("unknown", end.digest, None)
    assert seen.look.at > seen.ended_at
    assert "as it is by now" in {field.value for field in seen.look.preview.fields}
    assert (seen.preview, seen.look.comparison) == (end.preview, None)
    (record,) = await core.records("outcome.looked_at")
    assert (record["actor"], record["preview"], record["state"]) == ("person", "ready", "unknown")
    assert (await core.app.audit.verify()).problems == ()
    again = await core.result(end.approval_id)
    assert replace(again, last_record=0) == replace(first_answer, last_record=0), "told no agent"
    assert writes(mailbox) == [GET, GET, "POST send", GET]
    with pytest.raises(Conflict, match="fetched again"):
        await core.do(acknowledgement(end))
    assert await core.records("run.acknowledged") == []
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    read = (await look_again(core, end)).look.preview
    assert (read.status, read.not_found, "503" in read.reason) == ("unavailable", False, True)
    seen = core.views(end.approval_id)[-1]
    assert (seen.state, seen.preview.status) == ("unknown", "ready")
    clock.advance(1)
    await core.do(acknowledgement(await look_again(core, end)))
    (record,) = await core.records("run.acknowledged")
    assert record["preview"] == "ready"


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
    await core.do(intents.WithdrawAcceptance(kind="action", name="send-draft", digest=send.digest))
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


def acknowledgement(view: ApprovalView) -> intents.Acknowledge:
    looked_at = view.look.at if view.look is not None else None
    return intents.Acknowledge(call_id=view.call_id, looked_at=looked_at)


async def deny_others(core: Core, clock: FrozenClock) -> None:
    """Have four calls end after those before, which a console then is given in their place."""
    for number in range(4):
        other = await core.ask(f"r-{number}")
        await core.do(intents.Deny(approval_id=other.approval_id, reason=""))
        await core.app.approvals.mark_delivered(other.approval_id)
        clock.advance(3)


async def unknown_calls(core: Core) -> list[tuple[str, bool]]:
    found = [each for each in await core.approvals() if each.state == "unknown"]
    return [(each.approval_id, each.awaits_acknowledgement) for each in found]


@pytest.mark.usefixtures("three_are_recent")
async def test_it_waits_over_restarts(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    """Nor do later ends hide it."""
    async with start() as core:
        end = await lost_call(core, mailbox, clock)
        assert end.awaits_acknowledgement
        await core.app.approvals.mark_delivered(end.approval_id)
        await deny_others(core, clock)
        clock.advance(40 * 86400)
    for _ in range(2):
        async with start() as core:
            assert await unknown_calls(core) == [(end.approval_id, True)]
    async with start() as core:
        view = next(each for each in await core.approvals() if each.run_id == end.run_id)
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
        opened = (await core.opened(end.run_id)).approval
        assert (opened.state, opened.awaits_acknowledgement) == ("unknown", False)
        assert (await core.app.audit.verify()).problems == ()
    assert writes(mailbox).count("POST send") == 1


async def test_an_unasked_run_waits_too(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
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
        await core.do(intents.RefetchPreview(call_id=view.call_id))
        seen = core.views("")[-1]
        assert seen.look.preview.status == "ready"
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
    assert (refused["class"], writes(mailbox).count("POST send")) == ("rate_limited", limit)
    other = await core.another_session()
    await core.call("list-drafts", {}, session=other)
    await core.do(acknowledgement(ends[0]))
    await core.call("list-drafts", {})


async def lost_change(core: Core, mailbox: Mailbox, *, took_effect: bool) -> ApprovalView:
    """Return a change whose answer never came, and that the service carried out or did not."""
    mailbox.control(lose_answer="update")
    view = await core.ask_for("readdress", ARGUMENTS)
    if not took_effect:
        before = next(field.value for field in view.preview.fields if field.label == "To")
        undo = partial(mailbox._state.apply, {"change": {"id": DRAFT, "to": before}})
        run_on_request(mailbox, PUT, lambda: run_on_request(mailbox, GET, undo))
    end = await core.run(view)
    assert (end.state, end.awaits_acknowledgement) == ("unknown", True)
    return end


async def look_again(core: Core, view: ApprovalView) -> ApprovalView:
    await core.do(intents.RefetchPreview(call_id=view.call_id))
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
        read = seen.look.comparison
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
        assert view.look.at == pytest.approx(clock.now(), abs=0.001)
        assert view.look.preview.status == "none"
        opened = await core.opened(end.run_id)
        assert opened.approval.is_settled
        await forget_after(core, clock, 40 * 86400)
        old = (await core.opened(end.run_id)).approval
        assert (old.forgotten, old.is_settled) == (True, True)
        assert (await core.app.audit.verify()).problems == ()
    assert writes(mailbox).count(PUT) == 1


async def test_what_differs_keeps_waiting_and_says_where(core: Core, mailbox: Mailbox) -> None:
    end = await lost_change(core, mailbox, took_effect=False)
    seen = await look_again(core, end)
    read = seen.look.comparison
    assert (seen.is_settled, seen.awaits_acknowledgement) == (False, True)
    assert seen.can_fetch_again
    assert (read.status, read.labels, read.compared) == ("differs", ("To",), 2)
    assert seen.look.is_unchanged
    (record,) = await core.records("outcome.looked_at")
    assert (record["fields"], record["compared"]) == (["To"], 2)
    mailbox.control(change={"id": DRAFT, "to": NEW, "subject": "other"})
    second = await look_again(core, end)
    read = second.look.comparison
    assert (read.labels, second.look.is_unchanged) == (("Subject",), False)
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
        read = seen.look.comparison
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
        assert (seen.look.preview.status, seen.look.comparison) == ("ready", None)
        assert (seen.is_settled, seen.awaits_acknowledgement) == (False, True)


async def test_what_is_gone_is_said_and_what_was_shown_stays(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    mailbox.control(lose_answer="send")
    end = await core.run(view)
    assert end.state == "unknown"
    seen = await look_again(core, end)
    assert (seen.preview, bool(seen.preview.gist)) == (end.preview, True)
    assert (seen.look.preview.status, seen.look.preview.not_found) == ("unavailable", True)
    assert "404" in seen.look.preview.reason
    assert seen.awaits_acknowledgement


async def test_what_asked_nobody_is_settled_too(start: Start, mailbox: Mailbox) -> None:
    async with start() as core:
        mailbox.control(lose_answer="update")
        answer = await core.call("readdress-now", {"id": DRAFT, "to": NEW})
        assert answer.row.failure.class_ == "outcome_unknown"
        counted = core.app.approvals.registry.count_unacknowledged
        assert counted(core.session.session_id) == 1
        await core.do(intents.RefetchPreview(call_id=answer.row.run_id))
        seen = core.views("")[-1]
        assert (seen.is_settled, seen.awaits_acknowledgement) == (True, False)
        assert (counted(core.session.session_id), await core.approvals()) == (0, ())
    async with start() as core:
        assert await core.approvals() == ()
        opened = (await core.opened(answer.row.run_id)).approval
        assert (opened.is_settled, opened.can_fetch_again) == (True, False)


ARGUMENTS = {"id": DRAFT, "to": NEW}


async def ended_call(core: Core) -> ApprovalView:
    end = await core.run(await core.ask_for("readdress", ARGUMENTS))
    assert end.state == "completed"
    return end


def meddle(mailbox: Mailbox, **change: str) -> None:
    """Have somebody else change the draft just before it is read back."""
    then = lambda: mailbox._state.apply({"change": {"id": DRAFT, **change}})  # noqa: E731
    run_on_request(mailbox, PUT, lambda: run_on_request(mailbox, GET, then))


async def outcomes(core: Core) -> list[dict[str, Any]]:
    return [record for record in await core.records() if record["event"].startswith("read_back.")]


async def test_a_change_is_read_back_once_and_found_there(core: Core, mailbox: Mailbox) -> None:
    end = await ended_call(core)
    answer = await core.result(end.approval_id)
    read = await core.read_back(end)
    assert (read.status, read.compared, read.differing) == ("held", 2, ())
    before = [view.read_back for view in core.views(end.approval_id)]
    assert "reading" in {each.status for each in before if each is not None}
    assert read.at >= end.ended_at + core.app.approvals.settings.read_back_delay_seconds
    assert writes(mailbox) == [GET, GET, GET, PUT, GET]
    (record,) = await outcomes(core)
    assert (record["event"], record["actor"]) == ("read_back.held", "aileron")
    assert (record["run"], record["fields"], record["compared"]) == (end.run_id, [], 2)
    assert NEW not in str(record)
    assert (await core.app.audit.verify()).problems == ()
    after = await core.result(end.approval_id)
    assert (after.output, after.state, after.failure) == (answer.output, answer.state, None)
    with pytest.raises(Conflict, match="waits to be seen"):
        await core.do(intents.MarkReadBackSeen(run_id=end.run_id))


async def test_what_the_service_does_not_hold_is_shown(core: Core, mailbox: Mailbox) -> None:
    """New values are the agent's words; a field that was to stay is what was fetched."""
    view = await core.ask_for("readdress", ARGUMENTS)
    subject = next(f.value for f in view.preview.fields if f.label == "Subject")
    meddle(mailbox, to="eve@evil.example", subject="Hello")
    await core.approve(view)
    read = await core.read_back(view)
    assert (read.status, read.labels, read.waits_to_be_seen) == ("differs", ("To", "Subject"), True)
    found = [(each.approved.value, each.found.value, each.from_agent) for each in read.differing]
    assert found == [(NEW, "eve@evil.example", True), (subject, "Hello", False)]
    (record,) = await outcomes(core)
    assert (record["event"], record["fields"]) == ("read_back.differed", ["To", "Subject"])
    assert not {"eve@evil.example", NEW, subject} & set(str(record).split("'"))


@pytest.mark.usefixtures("three_are_recent")
async def test_a_difference_waits(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    """And keeps its call until it was seen."""

    async def kept(core: Core) -> object:
        query = "SELECT args IS NOT NULL, output IS NOT NULL FROM runs WHERE run_id = ?"
        return await core.app.database.read(lambda c: c.execute(query, (end.run_id,)).fetchone())

    async with start() as core:
        meddle(mailbox, to="eve@evil.example")
        end = await ended_call(core)
        assert (await core.read_back(end)).status == "differs"
        await core.app.approvals.mark_delivered(end.approval_id)
        await deny_others(core, clock)
    clock.advance(40 * 86400)
    async with start() as core:
        assert await kept(core) == (1, 1)
        (read,) = [each.read_back for each in await core.approvals() if each.run_id == end.run_id]
        assert (read.waits_to_be_seen, read.labels, read.differing) == (True, ("To",), ())
        await core.do(intents.MarkReadBackSeen(run_id=end.run_id))
        (record,) = await core.records("read_back.seen")
        assert (record["actor"], record["run"]) == ("person", end.run_id)
        with pytest.raises(Conflict, match="waits to be seen"):
            await core.do(intents.MarkReadBackSeen(run_id=end.run_id))
        await forget_after(core, clock, 3601)
        assert await kept(core) == (0, 0)
        assert (await core.app.audit.verify()).problems == ()
    async with start() as core:
        assert end.run_id not in {each.run_id for each in await core.approvals()}
        with pytest.raises(NotFound):
            await core.do(intents.MarkReadBackSeen(run_id=end.run_id))
        read = (await core.opened(end.run_id)).approval.read_back
        assert (read.seen, read.labels) == (True, ("To",))


async def test_what_cannot_be_read_back_is_said_to_be_so(
    core: Core, mailbox: Mailbox, home: Path
) -> None:
    failing = {"fail": {"op": "get", "status": 503, "times": 1}}
    run_on_request(mailbox, PUT, lambda: mailbox._state.apply(failing))
    end = await ended_call(core)
    read = await core.read_back(end)
    expected = ("unavailable", False, True)
    assert (read.status, read.waits_to_be_seen, "503" in read.reason) == expected
    await core.app.approvals.mark_delivered(end.approval_id)
    view = await core.ask_for("readdress", ARGUMENTS)
    while core.app.previews._is_within_rate(core.session.session_id):
        pass
    before = len(writes(mailbox))
    await core.approve(view)
    read = await core.read_back(view)
    expected = ("unavailable", "this session asked for more than 30 previews in a minute")
    assert (read.status, read.reason) == expected
    assert writes(mailbox)[before:] == [GET, GET, PUT]
    # The file is looked for again before the service is asked.
    core.session = await core.another_session()
    run_on_request(mailbox, PUT, (home / "actions" / "readdress.md").unlink)
    read = await core.read_back(await ended_call(core))
    assert (read.status, "readdress" in read.reason) == ("unavailable", True)
    assert writes(mailbox)[-1] == PUT
    assert [record["event"] for record in await outcomes(core)] == ["read_back.unavailable"] * 3


async def test_our_own_fault_is_on_record(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would be under way for ever, and nothing on record; what went wrong quotes nothing."""
    async with start() as core:
        look = core.app.previews.look

        async def fail(run: LiveRun, purpose: Purpose, *outputs: JsonObject) -> PreviewResult:
            if purpose == "read_back":
                raise RuntimeError(NEW)
            return await look(run, purpose, *outputs)

        monkeypatch.setattr(core.app.previews, "look", fail)
        read = await core.read_back(await ended_call(core))
        assert (read.status, NEW in read.reason) == ("unavailable", False)
        (record,) = await outcomes(core)
        assert record["event"] == "read_back.unavailable"


async def test_a_restart_before_the_reading_claims_nothing(start: Start, mailbox: Mailbox) -> None:
    async with start() as core:
        end = await ended_call(core)
    async with start() as core:
        (view,) = await core.approvals()
        assert (view.run_id, view.state, view.read_back) == (end.run_id, "completed", None)
        assert await outcomes(core) == []
    assert writes(mailbox)[-1] == PUT


@pytest.mark.parametrize("effect", ["change", "create", "send"])
async def test_nothing_is_read_back_unsaid(start: Start, home: Path, effect: str) -> None:
    install_examples(home, readdress=readdress("", effect), update_draft=UPDATE_DRAFT)
    async with start() as core:
        end = await ended_call(core)
        await core.call("update-draft", {"id": DRAFT, "to": NEW})
        assert core.live(end).read_back is None
        assert not core.app.outcomes._tasks


@pytest.mark.parametrize(
    ("value", "status", "reason", "last"),
    [("id", "held", "", GET), ("nothing", "unavailable", "lacks a value", PUT)],
)
async def test_what_was_created_is_read_back_by_what_the_run_returned(
    start: Start, home: Path, mailbox: Mailbox, value: str, status: str, reason: str, last: str
) -> None:
    """`read_back` has the op's arguments after the run; `changes` says what is to be there."""
    lines = f'{CHANGES}read_back = {{ id = "${{update.{value}}}" }}\n'
    install_examples(home, readdress=readdress(lines, "create"))
    async with start() as core:
        read = await core.read_back(await ended_call(core))
        assert (read.status, reason in read.reason) == (status, True)
        assert writes(mailbox)[-1] == last
