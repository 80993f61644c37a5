"""Many calls waited when the console stopped: it serves at once, and takes them up behind that."""

import asyncio
import shutil
from pathlib import Path

import pytest

from aileron_core.app import App, AppOptions
from aileron_core.console import publisher
from aileron_core.console_port.events import ApprovalsRead
from aileron_core.console_port.intents import ReadApprovals
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.home.layout import Home
from aileron_core.runs import Call
from aileron_core.runs.recovery import BATCH_SIZE
from aileron_core.runs.transitions import RunState
from aileron_core.settings import Settings
from aileron_core.vault.secret import Secret
from tests.support.core_harness import (
    PASSPHRASE,
    UPDATE_DRAFT,
    Start,
    audit_problems,
    install_examples,
    open_session,
    run,
)

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


@pytest.fixture(autouse=True)
def library(home: Path, many_wait: Path) -> None:
    shutil.copytree(many_wait, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run"))


def decidable(view: ApprovalView) -> bool:
    return bool(view.digest) and view.preview.status != "fetching"


async def all_taken_up(app: App, count: int) -> list[ApprovalView]:
    async with asyncio.timeout(30):
        while True:
            views = [v for v in app.publisher.approvals() if v.state == "pending"]
            if len(views) == count and all(decidable(v) and v.version for v in views):
                return views
            await asyncio.sleep(0)


async def test_the_first_can_be_answered_at_once_and_the_rest_soon(home: Path) -> None:
    """Until then each of the rest is being looked at: nobody can say yes to what an old life showed."""
    async with App.open(Home(home), options()) as app:
        views = app.publisher.approvals()
        assert [v.state for v in views] == ["pending"] * MANY
        assert [decidable(v) for v in views] == [True] * BATCH_SIZE + [False] * (MANY - BATCH_SIZE)
        late = views[-1]
        old = late.digest
        with pytest.raises(Conflict, match="still being fetched"):
            await app.approvals.approve(late.approval_id, old)
        found = {v.approval_id: v for v in await all_taken_up(app, MANY)}
        assert found[late.approval_id].digest != old
        with pytest.raises(Conflict, match="The call changed while you answered"):
            await app.approvals.approve(late.approval_id, old)


async def test_a_front_end_is_told_the_first_and_reads_on_to_the_last(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, in order of arrival; one that was answered in between is left out."""
    monkeypatch.setattr(publisher, "APPROVALS_AT_ONCE", 50)
    async with App.open(Home(home), options()) as app:
        every = app.publisher.approvals()
        snapshot = await app.console.snapshot()
        listed = list(snapshot.approvals)
        assert (len(listed), snapshot.approvals_remaining) == (50, MANY - 50)
        gone = every[-2]
        await app.approvals.deny(gone.approval_id, "not any more")
        read: list[ApprovalsRead] = []
        app.events.subscribe(
            lambda event: read.append(event) if isinstance(event, ApprovalsRead) else None
        )
        last = listed[-1]
        await app.console.carry_out(
            ReadApprovals(requested_at=last.requested_at, run_id=last.run_id)
        )
        listed += [view for event in read for view in event.views]
        assert [v.run_id for v in listed] == [v.run_id for v in every if v is not gone]
        assert [len(event.views) for event in read] == [50, 50, MANY - 151]
        assert [event.remaining for event in read] == [MANY - 101, MANY - 151, 0]


async def test_all_wait_for_a_locked_vault_and_for_a_person_once_it_is_unlocked(home: Path) -> None:
    """Those that are taken up later are looked at too: what was accepted is not verified before."""
    async with App.open(Home(home), options()) as app:
        await app.vault_service.create(Secret(PASSPHRASE), way="console")
    async with App.open(Home(home), options()) as app:
        assert len([*app.registry]) == MANY
        async with asyncio.timeout(120):
            while any(run.row.state is not RunState.AWAITING_VAULT for run in app.registry):
                await asyncio.sleep(0.01)
        await app.vault_service.unlock(Secret(PASSPHRASE), way="console")
        async with asyncio.timeout(120):
            while any(not (run.is_waiting and run.row.digest) for run in app.registry):
                await asyncio.sleep(0.01)


async def test_what_is_answered_before_it_was_taken_up_stays_answered(home: Path) -> None:
    """A no in that moment is final, has one record, and nothing is left over that verify would name."""
    async with App.open(Home(home), options()) as app:
        late = app.publisher.approvals()[-1]
        await app.approvals.deny(late.approval_id, "not any more")
        await all_taken_up(app, MANY - 1)
        (ended,) = [v for v in app.publisher.approvals() if v.approval_id == late.approval_id]
        assert (ended.state, ended.reason) == ("denied", "not any more")
        events = await app.database.read(
            lambda c: c.execute(
                "SELECT event FROM audit WHERE run = ? ORDER BY seq", (late.run_id,)
            ).fetchall()
        )
        listed = [event for (event,) in events]
        assert listed[-1] == "approval.denied"
        assert "run.recovered" not in listed
    assert audit_problems(home) == []


async def test_a_console_that_stops_meanwhile_loses_none(start: Start, home: Path) -> None:
    async with App.open(Home(home), options()):
        pass
    async with App.open(Home(home), options()) as app:
        await all_taken_up(app, MANY)
    async with start(settings=Settings(expires_seconds=0)) as core:
        assert (await core.run(core.app.publisher.approvals()[0])).state in ("completed", "failed")
