"""After a restart: what waited waits, what ran is unknown, and no row is an authority."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from aileron_core.errors import Conflict, NotFound
from aileron_core.settings import Settings
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    change_rows,
    install_examples,
    problem_kinds,
    run,
)
from tests.support.frozen_clock import FrozenClock


@pytest.mark.parametrize(
    ("step", "state", "note"),
    [
        ("after preview.fetched", "pending", ""),
        ("after approval.approved", "pending", "during the last check"),
        ("after recheck.held", "pending", "before the run began"),
        ("after run.started", "unknown", ""),
    ],
)
def test_a_console_that_stops_comes_back_in_a_state_that_is_true(
    home: Path, tmp_path: Path, step: str, state: str, note: str, mailbox: Mailbox
) -> None:
    """Pending, checking, approved wait again with a note; executing is unknown."""
    install_examples(home)
    left = tmp_path / "left"

    def stop(name: str) -> None:
        if name == step and not left.exists():
            shutil.copytree(home, left, ignore=shutil.ignore_patterns("run"))

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox, failpoint=stop) as core:
            view = await core.ask()
            await core.run(view)
        # What a killed console would have left at that step.
        assert left.exists()
        async with Core.open(left, mailbox) as core:
            (found,) = await core.approvals()
            assert (found.approval_id, found.state) == (view.approval_id, state)
            assert note in found.note
            if state == "unknown":
                assert "may or may not have happened" in found.outcome
                row = await core.app.approvals.wait_for_result(view.session_id, view.approval_id, 0)
                assert row.failure.class_ == "outcome_unknown"
                return
            # The yes of the earlier life is void: no words, no decision, the preview fetched anew.
            assert found.decided_at is None
            again = await core.looked(view.approval_id)
            assert again.words != view.words
            with pytest.raises(Conflict, match="The call changed"):
                await core.approve(view)
        assert problem_kinds(left) == set()

    run(story(mailbox))
    assert len(mailbox.state()["sent"]) == 1  # by the first life alone


async def test_a_deadline_holds_over_a_restart(home: Path, mailbox: Mailbox) -> None:
    install_examples(home)
    clock = FrozenClock()
    options = {"clock": clock, "settings": Settings(expires_seconds=60)}
    async with Core.open(home, mailbox, **options) as core:  # type: ignore[arg-type]
        view = await core.ask()
    clock.advance(61)
    async with Core.open(home, mailbox, **options) as core:  # type: ignore[arg-type]
        await core.app.approvals.expire_overdue()
        (found,) = await core.approvals()
        assert (found.approval_id, found.state) == (view.approval_id, "expired")


FORGED = (
    "INSERT INTO runs SELECT 'run-00000000000000000000000000', "
    "'act-20260101T000000-0000000000000000', session_id, action, action_sha256, args, "
    "args_sha256, NULL, 1, '{state}', requested_at, NULL, 1, digest, words, 1.0, 'person', NULL, "
    "'', NULL, NULL, NULL, 0, {record}, NULL, content_key, NULL, NULL FROM runs WHERE action='send-draft'"
)


@pytest.mark.parametrize(
    ("state", "record"),
    [
        ("pending", "last_record"),
        ("approved", "1"),
        ("executing", "999"),
        ("completed", "last_record"),
    ],
)
async def test_an_inserted_approval_is_nothing(
    start: Start, mailbox: Mailbox, home: Path, state: str, record: str
) -> None:
    """A row is never authority: not shown, not run, named by `audit verify`."""
    async with start() as core:
        view = await core.ask()
    change_rows(home, FORGED.format(state=state, record=record))
    async with start() as core:
        shown = [found.approval_id for found in await core.approvals()]
        assert shown == [view.approval_id]
        with pytest.raises(NotFound):
            await core.app.approvals.approve("act-20260101T000000-0000000000000000", view.digest)
        assert "orphan" in problem_kinds(home)
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize(
    "edit",
    [
        "state='approved'",
        "state='executing'",
        'args=\'{"draft_id":"r-8842189771"}\'',
        "session_id='ses-other'",
        "action='get-draft'",
        "approval_id='act-20260101T000000-0000000000000000'",
        "args=CAST(x'7bff' AS TEXT)",
        pytest.param(f"args='{'[' * 100_000}'", id="args nested too deeply"),
    ],
)
async def test_a_row_changed_while_the_console_was_away_is_not_taken_up(
    start: Start, mailbox: Mailbox, home: Path, edit: str
) -> None:
    """`UPDATE ... SET state` and its like have no effect and are named."""
    async with start() as core:
        await core.ask()
    change_rows(home, f"UPDATE runs SET {edit}")
    async with start() as core:
        assert await core.approvals() == ()
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("state", ["approved", "executing", "completed", "denied"])
async def test_a_state_changed_in_the_database_has_no_effect_and_is_on_record(
    core: Core, mailbox: Mailbox, home: Path, state: str
) -> None:
    """Memory is the authority; the next record says that the row had been changed."""
    view = await core.ask()
    change_rows(home, f"UPDATE runs SET state='{state}'")
    await core.app.approvals.expire_overdue()
    assert core.views(view.approval_id)[-1].state == "pending"
    assert mailbox.state()["sent"] == []
    await core.app.approvals.deny(view.approval_id, "")
    assert (await core.records("approval.denied"))[0]["tampered"] == ["state"]
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize(
    "spoiling",
    [
        "UPDATE audit SET body='{' WHERE event != 'run.requested'",
        "UPDATE audit SET body=CAST(x'7bff' AS TEXT)",
        "UPDATE audit SET body=NULL, prev=7, run=x'00'",
    ],
)
async def test_spoilt_records_keep_no_console_from_starting(
    start: Start, home: Path, spoiling: str
) -> None:
    """Damage is found and named, not a reason to fall over; nothing is taken up on its word."""
    async with start() as core:
        await core.ask()
    change_rows(home, spoiling)
    async with start(accept=False) as core:
        snapshot = await core.app.console.snapshot()
        assert snapshot.approvals == ()
        assert snapshot.actions_ready == 0  # nor are its pins accounted for
        assert any(record.event == "audit.unreadable" for record in snapshot.records)
        assert [s.session_id for s in snapshot.sessions] == [core.session.session_id]
    assert "edited" in problem_kinds(home)


@pytest.mark.parametrize("damage", ["cut", "rewritten", "no head"])
async def test_a_cut_is_named_after_another_start(start: Start, home: Path, damage: str) -> None:
    """Regression: the first record of the next life overwrote the head that knew."""
    async with start() as core:
        assert await core.records("audit.cut") == []
    async with start() as core:
        assert await core.records("audit.cut") == []
    if damage == "cut":
        change_rows(home, "DELETE FROM audit WHERE seq > (SELECT MAX(seq) - 2 FROM audit)")
    elif damage == "rewritten":
        change_rows(
            home, "UPDATE audit SET hash=zeroblob(32) WHERE seq=(SELECT MAX(seq) FROM audit)"
        )
    else:
        (home / "audit.head").unlink()
    async with start() as core:
        assert len(await core.records("audit.cut")) == 1
    assert "cut" in problem_kinds(home)


async def test_arguments_are_forgotten_after_thirty_days_and_never_come_back(
    start: Start, home: Path, clock: FrozenClock
) -> None:
    """Regression: a delivery after a restart wrote them back and raised an alarm."""
    day = 86400.0

    async def arguments(core: Core) -> object:
        query = "SELECT args IS NULL, args_sha256 != '' FROM runs"
        return await core.app.database.read(lambda c: c.execute(query).fetchall())

    async with start() as core:
        view = await core.ask()
        await core.app.approvals.deny(view.approval_id, "")
        clock.advance(30 * day - 1)
        await core.app.contents.forget_due()
        assert await arguments(core) == [(0, 1)]
    clock.advance(2)
    async with start() as core:
        assert await arguments(core) == [(1, 1)]
        await core.app.approvals.mark_delivered(view.approval_id)
        assert await arguments(core) == [(1, 1)]
        assert all("tampered" not in record for record in await core.records())
        # And in a console that runs for months.
        again = await core.ask("r-8842190312")
        await core.app.approvals.deny(again.approval_id, "")
        clock.advance(31 * day)
        await core.app.contents.forget_due()
        assert await arguments(core) == [(1, 1)] * 2
        await core.app.approvals.mark_delivered(again.approval_id)
        assert await arguments(core) == [(1, 1)] * 2
        assert all("tampered" not in record for record in await core.records())
    assert problem_kinds(home) == set()


async def test_an_undelivered_end_is_attached_after_restart(start: Start, mailbox: Mailbox) -> None:
    """An equal call is attached while its end is undelivered, over restarts too."""
    async with start() as core:
        view, session = await core.ask(), core.session
        await core.run(view)
    async with start() as core:
        again = await core.call(session=session)
        assert (again.attached, again.row.approval_id) == (True, view.approval_id)
        await core.app.approvals.mark_delivered(view.approval_id)
    async with start() as core:
        assert not (await core.call(session=session)).attached
    assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]


HOMES = Path(__file__).parents[2] / "fast" / "storage" / "homes"


async def test_a_call_that_waited_in_the_first_version_waits_on(start: Start, home: Path) -> None:
    """Its record says less than today's, and what it says is held against its row."""
    connection = sqlite3.connect(home / "aileron.db")
    connection.executescript((HOMES / "schema-1.sql").read_text(encoding="utf-8"))
    ((asked_at,),) = connection.execute(
        "SELECT requested_at FROM runs WHERE state = 'pending'"
    ).fetchall()
    connection.close()
    (home / "aileron.db").chmod(0o600)
    shutil.copy(HOMES / "schema-1.audit.head", home / "audit.head")
    clock = FrozenClock(asked_at + 60)
    async with start(clock=clock) as core:
        states = [view.state for view in await core.approvals()]
        assert states.count("pending") == 1
