"""Another program of the same user at the rows, while the console runs, and what `audit verify` names of it."""

from pathlib import Path

import pytest

from aileron_core.console_port.events import StorageHealth
from aileron_core.errors import StorageUnavailable
from tests.support.core_harness import (
    SESSION_SECONDS,
    Core,
    Mailbox,
    Start,
    audit_problems,
    change_rows,
    problem_kinds,
)
from tests.support.frozen_clock import FrozenClock


def _healths(core: Core) -> list[bool]:
    return [event.writable for event in core.events if isinstance(event, StorageHealth)]


async def test_a_run_whose_row_was_deleted_ends_and_does_not_hang_in_checking(
    core: Core, mailbox: Mailbox, home: Path
) -> None:
    """Memory is the authority; nothing ran, the person and the agent are told."""
    view = await core.ask()
    change_rows(home, "DELETE FROM runs")
    end = await core.run(view)
    assert end.state == "failed"
    assert "another program" in end.outcome
    assert any(body.get("tampered") for body in await core.records())
    assert mailbox.state()["sent"] == []


async def test_an_effect_whose_row_was_deleted_meanwhile_is_on_record_all_the_same(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """Nothing happens unrecorded, and no call is held for ever by a deleted row."""

    def spoil(name: str) -> None:
        if name == "after run.started":
            change_rows(home, "DELETE FROM runs")

    async with start(failpoint=spoil) as core:
        view = await core.ask()
        end = await core.run(view)
        assert end.state == "completed"
        completed = (await core.records("run.completed"))[0]
        assert completed["tampered"] == ["the whole row"]
        row = await core.result(view.approval_id)
        assert row.output is not None
    assert len(mailbox.state()["sent"]) == 1


async def test_an_effect_whose_approval_id_was_taken_by_another_row_is_on_record(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """The same where a planted row stands in the way of ours."""

    def spoil(name: str) -> None:
        if name == "after run.started":
            change_rows(
                home,
                "CREATE TEMP TABLE copy AS SELECT * FROM runs",
                "UPDATE runs SET approval_id = 'moved'",
                "UPDATE copy SET run_id = 'run-planted'",
                "INSERT INTO runs SELECT * FROM copy",
            )

    async with start(failpoint=spoil) as core:
        view = await core.ask()
        assert (await core.run(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_a_planted_record_does_not_stop_the_clockwork(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    """A row in the chain's next place makes writes fail, and sessions end again once it is gone."""
    planted = core.app.database.head.seq + 1
    change_rows(home, f"INSERT INTO audit(seq) VALUES({planted})")
    with pytest.raises(StorageUnavailable, match="Another program put a record"):
        await core.call("list-drafts", {})
    # The session's time is over: its end cannot be written now, and is once it can be.
    clock.advance(SESSION_SECONDS + 1)
    await core.until(lambda: _healths(core)[-1:] == [False])
    change_rows(home, f"DELETE FROM audit WHERE seq = {planted}")
    await core.until(lambda: _healths(core)[-1:] == [True])
    second = await core.another_session()
    clock.advance(SESSION_SECONDS + 1)
    await core.until(lambda: core.app.sessions.get(second.session_id) is None)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET session_id = 'ses-other'",
        "UPDATE runs SET action = 'list-drafts'",
        "UPDATE runs SET approval_id = 'act-20260101T000000-0000000000000000'",
        "UPDATE runs SET digest = 'sha256:00'",
        "UPDATE runs SET state = 'denied'",
        'UPDATE runs SET args = \'{"draft_id":"r-1"}\'',
        "UPDATE runs SET args = NULL, args_sha256 = 'x'",
        "UPDATE runs SET run_id = session_id",
        "UPDATE runs SET last_record = last_record - 1",
        "UPDATE sessions SET token_hash = 'mine'",
        "UPDATE sessions SET opened_by = 'launch'",
        "UPDATE sessions SET session_id = 'ses-other'",
        "UPDATE pins SET digest = 'sha256:00' WHERE kind = 'connector'",
        "UPDATE pins SET name = 'other.md' WHERE name = 'send-draft.md'",
    ],
)
async def test_an_edited_row_is_an_orphan(start: Start, home: Path, edit: str) -> None:
    """A run, session or pin that says something else than its record is named."""
    async with start() as core:
        view = await core.ask()
        await core.run(view)
    assert audit_problems(home) == []
    change_rows(home, edit)
    assert problem_kinds(home) == {"orphan"}
