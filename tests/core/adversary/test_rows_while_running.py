"""Another program of the same user at the rows, while the console runs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.console_port import StorageHealth
from aileron_core.errors import StorageUnavailable
from aileron_core.home.layout import Home
from tests.support.core_harness import (
    SESSION_SECONDS,
    Core,
    Mailbox,
    install_examples,
    open_session,
)
from tests.support.frozen_clock import FrozenClock


def _elsewhere(home: Path, *statements: str) -> None:
    """Run *statements* as another program would."""
    with closing(
        sqlite3.connect(Home(home).database, isolation_level=None, timeout=10)
    ) as connection:
        for statement in statements:
            connection.execute(statement)


def _healths(core: Core) -> list[bool]:
    return [event.writable for event in core.events if isinstance(event, StorageHealth)]


async def test_a_run_whose_row_was_deleted_ends_and_does_not_hang_in_checking(
    core: Core, mailbox: Mailbox, home: Path
) -> None:
    """Memory is the authority; nothing ran, the person and the agent are told."""
    view = await core.ask()
    _elsewhere(home, "DELETE FROM runs")
    await core.approve(view)
    end = await core.ended(view)
    assert end.state == "failed"
    assert "another program" in end.outcome
    assert any(body.get("tampered") for body in await core.records())
    assert mailbox.state()["sent"] == []


async def test_an_effect_whose_row_was_deleted_meanwhile_is_on_record_all_the_same(
    home: Path, mailbox: Mailbox
) -> None:
    """Nothing happens unrecorded, and no call is held for ever by a deleted row."""
    install_examples(home)

    def spoil(name: str) -> None:
        if name == "after run.started":
            _elsewhere(home, "DELETE FROM runs")

    async with Core.open(home, mailbox, failpoint=spoil) as core:
        view = await core.ask()
        await core.approve(view)
        end = await core.ended(view)
        assert end.state == "completed"
        completed = (await core.records("run.completed"))[0]
        assert completed["tampered"] == ["the whole row"]
        row = await core.result(view.approval_id)
        assert row.output is not None
    assert len(mailbox.state()["sent"]) == 1


async def test_an_effect_whose_approval_id_was_taken_by_another_row_is_on_record(
    home: Path, mailbox: Mailbox
) -> None:
    """The same where a planted row stands in the way of ours."""
    install_examples(home)

    def spoil(name: str) -> None:
        if name == "after run.started":
            _elsewhere(
                home,
                "CREATE TEMP TABLE copy AS SELECT * FROM runs",
                "UPDATE runs SET approval_id = 'moved'",
                "UPDATE copy SET run_id = 'run-planted'",
                "INSERT INTO runs SELECT * FROM copy",
            )

    async with Core.open(home, mailbox, failpoint=spoil) as core:
        view = await core.ask()
        await core.approve(view)
        assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_a_planted_record_does_not_stop_the_clockwork(home: Path) -> None:
    """A row in the chain's next place makes writes fail, and sessions end again once it is gone."""
    install_examples(home)

    clock = FrozenClock()
    async with Core.open(home, clock=clock) as core:
        planted = core.app.database.head.seq + 1
        _elsewhere(home, f"INSERT INTO audit(seq) VALUES({planted})")
        with pytest.raises(StorageUnavailable, match="Another program put a record"):
            await core.call("list-drafts", {})
        # The session's time is over: its end cannot be written now, and is once it can be.
        clock.advance(SESSION_SECONDS + 1)
        await core.until(lambda: _healths(core)[-1:] == [False])
        _elsewhere(home, f"DELETE FROM audit WHERE seq = {planted}")
        await core.until(lambda: _healths(core)[-1:] == [True])
        second, _ = await open_session(core.app)
        clock.advance(SESSION_SECONDS + 1)
        await core.until(lambda: core.app.sessions.get(second.session_id) is None)
