"""Arguments and outputs of runs are deleted 30 days after the end, and leave nothing in the home's files."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.console_port.intents import Acknowledge
from aileron_core.errors import Conflict
from aileron_core.runs import Call
from aileron_core.server.agent_api import AgentApi
from aileron_core.settings import Settings
from tests.support.core_harness import DRAFT, SHORT_OF_TIME, Core, Mailbox, Start, run_on_request
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0
HOUR = 3600.0
REASON = "because the salaries of 1984 are in it"
MISSING = "no-draft-of-winston"


def database_bytes(home: Path) -> bytes:
    """Return what the database and its log hold, byte by byte."""
    return b"".join(path.read_bytes() for path in sorted(home.glob("aileron.db*")))


async def test_what_is_old_is_deleted_for_real_and_the_audit_stays_whole(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    """Neither pages nor log have a trace of it, and the agent still reads how its call ended."""
    free = await core.call("get-draft", {"id": DRAFT}, key="once")
    view = await core.ask()
    await core.run(view)
    assert DRAFT.encode() in database_bytes(home)
    assert b"Q3 numbers" in database_bytes(home)
    clock.advance(31 * DAY)
    await core.app.contents.forget_due()
    assert DRAFT.encode() not in database_bytes(home)
    assert b"Q3 numbers" not in database_bytes(home)
    (record,) = await core.records("arguments.forgotten")
    assert "2 old runs" in record["summary"]
    assert (await core.app.audit.verify()).problems == ()
    assert (await core.result(view.approval_id)).state == "completed"
    again = await core.app.gate.run(
        Call(session=core.session, action="get-draft", args={"id": DRAFT}, idempotency_key="once")
    )
    assert (again.attached, again.row.run_id) == (True, free.row.run_id), "nothing ran twice"


async def test_what_is_not_old_enough_is_kept(core: Core, home: Path, clock: FrozenClock) -> None:
    await core.call("get-draft", {"id": DRAFT})
    clock.advance(29 * DAY)
    await core.app.contents.forget_due()
    assert b"Q3 numbers" in database_bytes(home)
    assert await core.records("arguments.forgotten") == []


async def contents(core: Core) -> list[tuple[object, ...]]:
    """Return, of each run, the columns in which what it contained is kept."""
    query = (
        "SELECT args, output, failure, reason, progress, NULLIF(note, '') FROM runs ORDER BY run_id"
    )
    return await core.app.database.read(lambda c: c.execute(query).fetchall())


async def test_failures_and_reasons_are_deleted_too_and_agents_still_read_the_state(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    """What agents asked for by the same key is not run again, and nothing of it was in the audit."""
    failed = await core.call("get-draft", {"id": MISSING}, key="once")
    denied, withdrawn = await core.ask(), await core.ask("r-8842190312")
    await core.app.approvals.deny(denied.approval_id, REASON)
    session = core.session.session_id
    await core.app.approvals.withdraw(session, withdrawn.approval_id, f"withdrawn {REASON}")
    assert REASON.encode() in database_bytes(home)
    assert failed.row.failure.message.encode() in database_bytes(home)
    asked = json.dumps(await core.records())
    assert REASON not in asked
    assert failed.row.failure.message not in asked
    clock.advance(31 * DAY)
    await core.app.contents.forget_due()
    assert set(await contents(core)) == {(None,) * 6}
    left = database_bytes(home)
    for gone in (REASON, MISSING, failed.row.failure.message):
        assert gone.encode() not in left
    assert (await core.result(denied.approval_id)).state == "denied"
    seen = core.views(denied.approval_id)[-1]
    assert (seen.reason, seen.outcome, seen.forgotten) == ("", "", True)
    with pytest.raises(Conflict, match="Nothing ran again") as refused:
        await AgentApi(core.app).run(
            core.session, "get-draft", {"id": MISSING}, idempotency_key="once"
        )
    assert refused.value.details == {"outcome": "failed"}
    await core.app.approvals.mark_delivered(denied.approval_id)
    assert all("tampered" not in record for record in await core.records())
    assert (await core.app.audit.verify()).problems == ()


@pytest.mark.core(settings=Settings(history_days=0))
async def test_no_days_keep_nothing_of_a_call_whose_agent_has_its_answer(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    """A minute later it is gone from rows, memory and file; nothing is left to open."""
    view = await core.ask()
    await core.run(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    clock.advance(30)
    await core.app.contents.forget_due()
    clock.advance(61)
    await core.app.contents.forget_due()
    assert (await core.result(view.approval_id)).output is None
    assert DRAFT.encode() not in database_bytes(home)


@pytest.mark.core(settings=Settings(history_days=0))
async def test_no_days_keep_an_answer_for_an_hour_that_its_agent_does_not_have(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    view = await core.ask()
    await core.run(view)
    await core.app.contents.forget_due()
    clock.advance(HOUR - 1)
    await core.app.contents.forget_due()
    assert (await core.result(view.approval_id)).output is not None
    clock.advance(61)
    await core.app.contents.forget_due()
    assert (await core.result(view.approval_id)).output is None
    assert DRAFT.encode() not in database_bytes(home)


@pytest.mark.actions(send_draft=SHORT_OF_TIME)
@pytest.mark.core(settings=Settings(history_days=1, expires_seconds=0))
async def test_what_waits_for_a_person_and_what_is_not_over_keeps_everything(
    start: Start, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """An unknown outcome until a person acknowledges it, over restarts too; and a call that nobody answered."""
    async with start() as core:
        unknown = await core.ask()
        mailbox.control(hang="send")
        run_on_request(mailbox, "POST send", lambda: clock.advance(2))
        assert (await core.run(unknown)).state == "unknown"
        waiting = await core.ask("r-8842190312")
        clock.advance(400 * DAY)
        await core.app.contents.forget_due()
        assert [bool(args) for args, *_ in await contents(core)] == [True, True]
        assert await core.records("arguments.forgotten") == []
    async with start() as core:
        clock.advance(400 * DAY)
        await core.app.contents.forget_due()
        assert [bool(args) for args, *_ in await contents(core)] == [True, True]
        read = await core.app.console.calls.read(unknown.run_id)
        seen = read.call.approval
        assert (seen.awaits_acknowledgement, seen.forgotten, bool(seen.outcome)) == (
            True,
            False,
            True,
        )
        await core.do(Acknowledge(call_id=unknown.approval_id, looked_at=None))
        clock.advance(HOUR + 1)
        await core.app.contents.forget_due()
        kept = await contents(core)
        assert [bool(args) for args, *_ in kept] == [False, True]
        assert kept[0] == (None,) * 6
        assert (await core.app.audit.verify()).problems == ()
        assert waiting.run_id > unknown.run_id


@pytest.mark.core(settings=Settings(history_days=2))
async def test_old_copies_go_while_it_runs(core: Core, home: Path, clock: FrozenClock) -> None:
    old, new, other = (home / "backups" / n for n in ("schema-1-a.db", "schema-1-b.db", "mine.db"))
    old.parent.mkdir(exist_ok=True)
    for path, days in ((old, 3), (new, 1), (other, 9)):
        path.write_bytes(DRAFT.encode())
        os.utime(path, (clock.now(), clock.now() - (days - 0.1) * DAY))
    clock.advance(0.2 * DAY)
    await core.app.contents.forget_due()
    assert [path.exists() for path in (old, new, other)] == [False, True, True]


async def test_a_file_begun_before_deletion_overwrote_is_cleaned_once(
    start: Start, home: Path
) -> None:
    """Its free pages hold what was deleted then; a later start leaves them alone."""
    async with start():
        pass
    trace = b"a trace of an argument " * 400
    with closing(sqlite3.connect(home / "aileron.db", isolation_level=None)) as old:
        old.execute("PRAGMA secure_delete = OFF")
        old.execute("DELETE FROM meta WHERE key = 'deleted_is_overwritten'")
        old.execute("INSERT INTO meta VALUES('long', ?)", (trace.decode(),))
        old.execute("DELETE FROM meta WHERE key = 'long'")
    assert b"a trace of an argument" in database_bytes(home)
    async with start() as core:
        assert b"a trace of an argument" not in database_bytes(home)
        assert (await core.app.audit.verify()).problems == ()
        await core.call("get-draft", {"id": DRAFT})
