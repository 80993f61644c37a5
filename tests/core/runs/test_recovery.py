"""After a restart: what waited waits, what ran is unknown, and no row is an authority."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.app import App, AppOptions
from aileron_core.console import publisher
from aileron_core.console_port.events import ApprovalsRead
from aileron_core.console_port.intents import ReadApprovals
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, NotFound
from aileron_core.home.layout import Home
from aileron_core.runs import Call
from aileron_core.runs.recovery import BATCH_SIZE
from aileron_core.runs.transitions import RunState
from aileron_core.settings import Settings
from aileron_core.vault.secret import Secret
from tests.core.runs.test_retention import forget_after
from tests.support.core_harness import (
    DRAFT,
    PASSPHRASE,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    audit_problems,
    change_rows,
    install_examples,
    open_session,
    problem_kinds,
    records,
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
async def test_a_console_that_stops_comes_back_in_a_state_that_is_true(
    home: Path, tmp_path: Path, step: str, state: str, note: str, mailbox: Mailbox
) -> None:
    """Pending, checking, approved wait again with a note; executing is unknown."""
    install_examples(home)
    left = tmp_path / "left"

    def stop(name: str) -> None:
        if name == step and not left.exists():
            shutil.copytree(home, left, ignore=shutil.ignore_patterns("run"))

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
    assert len(mailbox.state()["sent"]) == 1  # by the first life alone


@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_deadline_holds_over_a_restart(start: Start, clock: FrozenClock) -> None:
    async with start() as core:
        view = await core.ask()
    clock.advance(61)
    async with start() as core:
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
    async with start() as core:
        view = await core.ask()
    change_rows(home, FORGED.format(state=state, record=record))
    async with start() as core:
        assert [found.approval_id for found in await core.approvals()] == [view.approval_id]
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
async def test_no_changed_row_counts(start: Start, mailbox: Mailbox, home: Path, edit: str) -> None:
    async with start() as core:
        await core.ask()
    change_rows(home, f"UPDATE runs SET {edit}")
    async with start() as core:
        assert await core.approvals() == ()
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("state", ["approved", "executing", "completed", "denied"])
async def test_no_edited_state_counts(core: Core, mailbox: Mailbox, home: Path, state: str) -> None:
    """Memory is the authority; the next record says that the row had been changed."""
    view = await core.ask()
    change_rows(home, f"UPDATE runs SET state='{state}'")
    await core.app.approvals.expire_overdue()
    assert core.views(view.approval_id)[-1].state == "pending"
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
async def test_spoilt_records_stop_no_console(start: Start, home: Path, spoiling: str) -> None:
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
    for _ in range(2):
        async with start() as core:
            assert await core.records("audit.cut") == []
    if damage == "cut":
        change_rows(home, "DELETE FROM audit WHERE seq > (SELECT MAX(seq) - 2 FROM audit)")
    elif damage == "rewritten":
        last = "(SELECT MAX(seq) FROM audit)"
        change_rows(home, f"UPDATE audit SET hash=zeroblob(32) WHERE seq={last}")
    else:
        (home / "audit.head").unlink()
    async with start() as core:
        assert len(await core.records("audit.cut")) == 1
    assert "cut" in problem_kinds(home)


async def test_forgotten_arguments_stay_away(start: Start, home: Path, clock: FrozenClock) -> None:
    """Regression: a delivery after a restart wrote them back and raised an alarm."""
    day = 86400.0

    async def arguments(core: Core) -> object:
        query = "SELECT args IS NULL, args_sha256 != '' FROM runs"
        return await core.app.database.read(lambda c: c.execute(query).fetchall())

    async with start() as core:
        view = await core.ask()
        await core.app.approvals.deny(view.approval_id, "")
        await forget_after(core, clock, 30 * day - 1)
        assert await arguments(core) == [(0, 1)]
    clock.advance(2)
    async with start() as core:
        assert await arguments(core) == [(1, 1)]
        await core.app.approvals.mark_delivered(view.approval_id)
        assert await arguments(core) == [(1, 1)]
        # And in a console that runs for months.
        again = await core.ask("r-8842190312")
        await core.app.approvals.deny(again.approval_id, "")
        await forget_after(core, clock, 31 * day)
        for _ in range(2):
            assert await arguments(core) == [(1, 1)] * 2
            await core.app.approvals.mark_delivered(again.approval_id)
        assert all("tampered" not in record for record in await core.records())
    assert problem_kinds(home) == set()


async def test_an_undelivered_end_is_attached_after_restart(start: Start, mailbox: Mailbox) -> None:
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
    query = "SELECT requested_at FROM runs WHERE state = 'pending'"
    with closing(sqlite3.connect(home / "aileron.db")) as connection:
        connection.executescript((HOMES / "schema-1.sql").read_text(encoding="utf-8"))
        ((asked_at,),) = connection.execute(query).fetchall()
    (home / "aileron.db").chmod(0o600)
    shutil.copy(HOMES / "schema-1.audit.head", home / "audit.head")
    async with start(clock=FrozenClock(asked_at + 60)) as core:
        assert [view.state for view in await core.approvals()].count("pending") == 1


GATED = UPDATE_DRAFT.replace("\n+++\n\n#", "\n[approval]\nrequired = true\n+++\n\n#")
MANY = BATCH_SIZE * 3
PER_SESSION = 20


def options() -> AppOptions:
    return AppOptions(accept_installed=True, settings=Settings(expires_seconds=0))


@pytest.fixture(scope="module")
def many_wait(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which `MANY` calls wait."""
    left = tmp_path_factory.mktemp("left") / "home"

    async def leave() -> None:
        install_examples(left, update_draft=GATED)
        async with App.open(Home(left), options()) as app:
            for first in range(0, MANY, PER_SESSION):
                session = (await open_session(app)).session
                for number in range(first, min(first + PER_SESSION, MANY)):
                    args = {"id": str(number)}
                    await app.gate.run(Call(session=session, action="update-draft", args=args))

    left.mkdir(mode=0o700)
    run(leave())
    return left


@pytest.fixture
def many(home: Path, many_wait: Path) -> Path:
    """A home in which `MANY` calls wait."""
    shutil.copytree(many_wait, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run"))
    return home


def decidable(view: ApprovalView) -> bool:
    return bool(view.digest) and view.preview.status != "fetching"


async def all_taken_up(app: App, count: int) -> list[ApprovalView]:
    async with asyncio.timeout(30):
        while True:
            views = [v for v in app.publisher.approvals() if v.state == "pending"]
            if len(views) == count and all(decidable(v) and v.version for v in views):
                return views
            await asyncio.sleep(0)


async def test_the_first_can_be_answered_at_once_and_the_rest_soon(many: Path) -> None:
    """Until then each of the rest is being looked at: nobody can say yes to what an old life showed.

    A no in that moment is final, has one record, and nothing is left over that verify would name.
    """
    async with App.open(Home(many), options()) as app:
        views = app.publisher.approvals()
        assert [v.state for v in views] == ["pending"] * MANY
        assert [decidable(v) for v in views] == [True] * BATCH_SIZE + [False] * (MANY - BATCH_SIZE)
        late, old = views[-1], views[-1].digest
        with pytest.raises(Conflict, match="still being fetched"):
            await app.approvals.approve(late.approval_id, old)
        gone = views[-2]
        await app.approvals.deny(gone.approval_id, "not any more")
        found = {v.approval_id: v for v in await all_taken_up(app, MANY - 1)}
        assert found[late.approval_id].digest != old
        with pytest.raises(Conflict, match="The call changed while you answered"):
            await app.approvals.approve(late.approval_id, old)
        (ended,) = [v for v in app.publisher.approvals() if v.approval_id == gone.approval_id]
        assert (ended.state, ended.reason) == ("denied", "not any more")
        events = [each["event"] for each in await records(app) if each["run"] == gone.run_id]
        assert (events[-1], "run.recovered" in events) == ("approval.denied", False)
    assert audit_problems(many) == []


async def test_a_front_end_reads_to_the_last(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in order of arrival; one that was answered in between is left out."""
    monkeypatch.setattr(publisher, "APPROVALS_AT_ONCE", 50)
    async with App.open(Home(many), options()) as app:
        every = app.publisher.approvals()
        snapshot = await app.console.snapshot()
        listed = [*snapshot.approvals]
        assert (len(listed), snapshot.approvals_remaining) == (50, MANY - 50)
        gone = every[-2]
        await app.approvals.deny(gone.approval_id, "not any more")
        read: list[ApprovalsRead] = []
        app.events.subscribe(lambda e: read.append(e) if isinstance(e, ApprovalsRead) else None)
        at, last = listed[-1].requested_at, listed[-1].run_id
        await app.console.carry_out(ReadApprovals(requested_at=at, run_id=last))
        listed += [view for event in read for view in event.views]
        assert [v.run_id for v in listed] == [v.run_id for v in every if v is not gone]
        assert [len(event.views) for event in read] == [50, 50, MANY - 151]
        assert [event.remaining for event in read] == [MANY - 101, MANY - 151, 0]


async def test_all_wait_for_a_locked_vault_and_for_a_person_once_it_is_unlocked(many: Path) -> None:
    """Those that are taken up later are looked at too: what was accepted is not verified before."""
    async with App.open(Home(many), options()) as app:
        await app.vault_service.create(Secret(PASSPHRASE), way="console")
    async with App.open(Home(many), options()) as app:
        assert len([*app.registry]) == MANY
        async with asyncio.timeout(120):
            while any(run.row.state is not RunState.AWAITING_VAULT for run in app.registry):
                await asyncio.sleep(0.01)
        await app.vault_service.unlock(Secret(PASSPHRASE), way="console")
        async with asyncio.timeout(120):
            while any(not (run.is_waiting and run.row.digest) for run in app.registry):
                await asyncio.sleep(0.01)


async def test_a_console_that_stops_meanwhile_loses_none(start: Start, many: Path) -> None:
    async with App.open(Home(many), options()):
        pass
    async with App.open(Home(many), options()) as app:
        await all_taken_up(app, MANY)
    async with start(settings=Settings(expires_seconds=0)) as core:
        assert (await core.run(core.app.publisher.approvals()[0])).state in ("completed", "failed")
