"""Reading back what an approved run was to change: compared, recorded, for the person alone."""

from pathlib import Path
from time import time
from typing import Any

import pytest

from aileron_core.canonical import JsonObject
from aileron_core.console_port.intents import MarkReadBackSeen
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, NotFound
from aileron_core.runs.live_run import LiveRun, PreviewResult
from aileron_core.runs.preview.fetcher import Purpose
from tests.core.runs.test_unknown_outcomes import deny_others
from tests.support.core_harness import (
    DRAFT,
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

NEW = "ana@example.com"
ARGUMENTS = {"id": DRAFT, "to": NEW}
GET, PUT = f"GET {DRAFT}", f"PUT {DRAFT}"
CHANGES = 'changes = { To = "${args.to}" }\n'
OUTCOMES = ("read_back.held", "read_back.differed", "read_back.unavailable", "read_back.seen")


@pytest.fixture
def library(home: Path) -> None:
    """`readdress`, which says what it changes."""
    install_examples(home, readdress=readdress(CHANGES))


async def ended_call(core: Core) -> ApprovalView:
    end = await core.run(await core.ask_for("readdress", ARGUMENTS))
    assert end.state == "completed"
    return end


def meddle(mailbox: Mailbox, **change: str) -> None:
    """Have somebody else change the draft just before it is read back."""
    then = lambda: mailbox._state.apply({"change": {"id": DRAFT, **change}})  # noqa: E731
    run_on_request(mailbox, PUT, lambda: run_on_request(mailbox, GET, then))


async def outcomes(core: Core) -> list[dict[str, Any]]:
    return [record for record in await core.records() if record["event"] in OUTCOMES]


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
        await core.do(MarkReadBackSeen(run_id=end.run_id))


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
    """However many calls ended after it; what differed is not on disk, but which fields did."""
    async with start() as core:
        meddle(mailbox, to="eve@evil.example")
        end = await ended_call(core)
        await core.read_back(end)
        await core.app.approvals.mark_delivered(end.approval_id)
        await deny_others(core, clock)
    async with start() as core:
        (read,) = [each.read_back for each in await core.approvals() if each.run_id == end.run_id]
        assert (read.waits_to_be_seen, read.labels, read.differing) == (True, ("To",), ())
        await core.do(MarkReadBackSeen(run_id=end.run_id))
        (record,) = await core.records("read_back.seen")
        assert (record["actor"], record["run"]) == ("person", end.run_id)
        with pytest.raises(Conflict, match="waits to be seen"):
            await core.do(MarkReadBackSeen(run_id=end.run_id))
        assert (await core.app.audit.verify()).problems == ()
    async with start() as core:
        assert end.run_id not in {each.run_id for each in await core.approvals()}
        with pytest.raises(NotFound):
            await core.do(MarkReadBackSeen(run_id=end.run_id))
        read = (await core.opened(end.run_id)).approval.read_back
        assert (read.seen, read.labels) == (True, ("To",))


async def test_what_cannot_be_read_back_is_said_to_be_so(core: Core, mailbox: Mailbox) -> None:
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
    assert [record["event"] for record in await outcomes(core)] == ["read_back.unavailable"] * 2


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


async def test_an_unaccepted_action_reads_nothing(core: Core, mailbox: Mailbox, home: Path) -> None:
    """The file is looked for again before the service is asked."""
    run_on_request(mailbox, PUT, (home / "actions" / "readdress.md").unlink)
    read = await core.read_back(await ended_call(core))
    assert (read.status, "readdress" in read.reason) == ("unavailable", True)
    assert writes(mailbox)[-1] == PUT


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


async def test_a_difference_keeps_its_call_until_seen(start: Start, mailbox: Mailbox) -> None:
    """However old it is; then it is deleted as any other."""
    clock = FrozenClock(time())

    async def kept(core: Core) -> object:
        query = "SELECT args IS NOT NULL, output IS NOT NULL FROM runs"
        return await core.app.database.read(lambda c: c.execute(query).fetchone())

    async with start() as core:
        view = await core.ask_for("readdress", ARGUMENTS)
        meddle(mailbox, to="eve@evil.example")
        await core.approve(view)
        assert (await core.read_back(view)).status == "differs"
    clock.advance(40 * 86400)
    async with start(clock=clock) as core:
        assert await kept(core) == (1, 1)
        await core.do(MarkReadBackSeen(run_id=view.run_id))
        clock.advance(3601)
        await core.app.contents.forget_due()
        assert await kept(core) == (0, 0)
        assert (await core.app.audit.verify()).problems == ()
