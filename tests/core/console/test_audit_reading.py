"""Reading and verifying the audit from the console: page by page, whole, one call, and beside the core."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.read import verify_home
from aileron_core.console import audit_reader
from aileron_core.console_port.events import AuditExported, AuditVerified, RecordRead, RecordsRead
from aileron_core.console_port.intents import ExportAudit, ReadRecord, ReadRecords, VerifyAudit
from aileron_core.errors import Conflict, NotFound, Unavailable
from tests.support.core_harness import DRAFT, Core, Start, change_rows
from tests.support.frozen_clock import FrozenClock


async def read_page(core: Core, before: int | None, limit: int = 4) -> RecordsRead:
    await core.do(ReadRecords(before_seq=before, limit=limit))
    return core.last(RecordsRead)


async def verify(core: Core) -> AuditVerified:
    await core.do(VerifyAudit())
    return core.last(AuditVerified)


async def test_pages_lead_to_the_first_record_and_each_comes_as_stored(core: Core) -> None:
    everything = await core.records()
    seen: list[int] = []
    before: int | None = None
    while True:
        found = await read_page(core, before)
        assert (found.before_seq, found.total) == (before, len(everything))
        if not found.records:
            break
        numbers = [record.seq for record in found.records]
        assert numbers == sorted(numbers)
        seen = numbers + seen
        before = numbers[0]
    assert seen == list(range(1, len(everything) + 1))
    first = (await read_page(core, 2)).records[0]
    assert (first.event, first.actor) == (everything[0]["event"], everything[0]["actor"])
    for limit, got in ((0, 1), (-5, 1), (10**9, len(everything))):
        assert len((await read_page(core, None, limit)).records) == got
    query = "SELECT seq, body, hash, prev FROM audit"
    rows = await core.app.database.read(lambda c: c.execute(query).fetchall())
    for seq, body, hash_, prev in rows:
        await core.do(ReadRecord(seq=seq))
        assert core.events[-1] == RecordRead(seq=seq, body=body, hash=hash_.hex(), prev=prev.hex())
    with pytest.raises(NotFound, match="no record 4711"):
        await core.do(ReadRecord(seq=4711))


async def test_an_audit_is_verified_and_an_edit_named_within_bounds(core: Core, home: Path) -> None:
    good = await verify(core)
    assert good.problems == ()
    assert good.records == len(await core.records())
    assert good.seconds >= 0
    change_rows(home, "UPDATE audit SET body = replace(body, 'console', 'konsole') WHERE seq = 1")
    assert "does not match its hash" in (await verify(core)).problems[0]
    await read_page(core, None)  # and it is read all the same
    await core.do(ReadRecord(seq=1))
    assert "konsole" in json.dumps(core.events[-1].body)  # type: ignore[union-attr]
    for _ in range(300):
        await core.app.records.record_by_person(AuditEvent.CONSOLE_PAUSED, "Something")
    change_rows(home, "UPDATE audit SET body = '{}'")
    problems = (await verify(core)).problems
    assert len(problems) == 201
    assert "more; `aileron audit verify` lists them all" in problems[-1]


async def test_verifying_runs_beside_the_core_and_once_at_a_time(
    core: Core, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        await core.app.records.record_by_person(AuditEvent.CONSOLE_PAUSED, "Something")
    first = asyncio.get_running_loop().create_task(verify(core))
    await asyncio.sleep(0)
    with pytest.raises(Conflict, match="already"):
        await verify(core)
    await core.app.records.record_by_person(AuditEvent.CONSOLE_PAUSED, "Written meanwhile")
    assert (await first).problems == ()
    many = "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT 30000) "
    change_rows(home, f"{many} INSERT INTO audit SELECT i, '', '', NULL, x'', x'', '{{}}' FROM n")

    def closing(*given: Any) -> Any:
        core.app.audit.close()  # it has begun, and cannot be over before this
        return verify_home(*given)

    monkeypatch.setattr(audit_reader, "verify_home", closing)
    with pytest.raises(Unavailable):
        await verify(core)


async def test_a_copy_of_the_audit_is_whole_and_ours_alone(start: Start, home: Path) -> None:
    async with start(clock=FrozenClock()) as core:
        query = "SELECT body FROM audit ORDER BY seq"
        stored = await core.app.database.read(lambda c: [body for (body,) in c.execute(query)])
        await core.do(ExportAudit())
        exported = core.last(AuditExported)
        path = Path(exported.path)
        assert path.parent == home / "exports"
        assert path.read_text(encoding="utf-8").splitlines() == stored
        assert exported.records == len(stored) > 0
        assert [each.stat().st_mode & 0o777 for each in (path, path.parent)] == [0o600, 0o700]
        path.write_text("kept")
        with pytest.raises(Conflict, match="already exists"):
            await core.do(ExportAudit())
        assert path.read_text() == "kept"


async def test_a_copy_that_cannot_be_made_says_so_and_leaves_none(core: Core, home: Path) -> None:
    (home / "exports").write_text("in the way")
    with pytest.raises(Unavailable, match="exports"):
        await core.do(ExportAudit())
    (home / "exports").unlink()
    change_rows(home, "ALTER TABLE audit RENAME TO gone")
    with pytest.raises(Unavailable, match="cannot be read"):
        await core.do(ExportAudit())
    assert list((home / "exports").iterdir()) == []
    change_rows(home, "ALTER TABLE gone RENAME TO audit")


async def evicted(core: Core, run_id: str) -> None:
    """Have the console know the run from its database alone, as it does after 200 others."""
    run = core.app.registry.get(run_id)
    assert run is not None
    core.app.registry.discard(run)


async def test_a_decided_call_is_read_after_a_restart(start: Start) -> None:
    async with start() as core:
        run_id = (await core.run(await core.ask())).run_id
        before = await core.opened(run_id)
        assert before.approval.preview.status == "ready"
    async with start() as core:
        await evicted(core, run_id)
        call = await core.opened(run_id)
    view = call.approval
    assert (view.state, view.decided_by, view.agent) == ("completed", "person", "claude")
    assert [field.value for field in view.arguments] == [DRAFT]
    assert None not in (view.decided_at, view.ended_at)
    assert view.words == before.approval.words
    assert call.result == before.result
    assert '"SENT"' in call.result[0].value
    assert (view.preview.status, view.forgotten, call.edited) == ("none", False, False)
    events = [record.event for record in call.records]
    assert events[0] == "run.requested"
    assert {"approval.approved", "run.completed"} <= set(events)


@pytest.mark.parametrize(
    "edit",
    ["output = replace(output, 'SENT', 'X')", "args = replace(args,'r','q')", "state = 'denied'"],
)
async def test_a_row_another_program_changed_says_so(core: Core, home: Path, edit: str) -> None:
    run_id = (await core.run(await core.ask())).run_id
    await evicted(core, run_id)
    sound = await core.opened(run_id)
    assert not sound.edited
    change_rows(home, f"UPDATE runs SET {edit}")
    call = await core.opened(run_id)
    assert call.edited
