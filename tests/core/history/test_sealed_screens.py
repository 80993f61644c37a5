"""What was shown at a decision: on disk only sealed, read back with its day's key, gone with it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.console_port import (
    Approve,
    CallRead,
    CallView,
    DecidedScreenView,
    Deny,
    ExportAudit,
    ReadCall,
)
from aileron_core.history.sealing import SealLabel, seal
from aileron_core.history.view_json import view_from_json, view_to_json
from aileron_core.settings import Settings
from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples
from tests.support.frozen_clock import FrozenClock
from tests.support.history_keys import DayKeys

DAY = 86400.0
TODAY = "2026-10-08"
"""The day on which a frozen clock begins."""
SHOWN = "Q3 numbers"
"""The subject of the draft: fetched for the person, and in no argument or result of `send-draft`."""


async def decided(core: Core, *, approve: bool = True) -> str:
    """Decide a call as the console does, and return its run's id once that is over."""
    view = await core.ask()
    assert SHOWN in [field.value for field in view.preview.fields]
    await core.app.console.carry_out(
        Approve(approval_id=view.approval_id, digest=view.digest)
        if approve
        else Deny(approval_id=view.approval_id, reason="wrong list")
    )
    ended = await core.ended(view)
    await core.app.approvals.mark_delivered(view.approval_id)  # so that the next call is a new one
    return ended.run_id


async def opened(core: Core, run_id: str) -> CallView:
    await core.app.console.carry_out(ReadCall(run_id=run_id))
    call = [event for event in core.events if isinstance(event, CallRead)][-1].call
    assert call is not None
    return call


async def screen(core: Core, run_id: str) -> DecidedScreenView:
    (found,) = (await opened(core, run_id)).screens
    return found


def subject(shown: DecidedScreenView) -> list[str]:
    assert shown.approval is not None, shown.problem
    assert not shown.problem
    return [field.value for field in shown.approval.preview.fields if field.label == "Subject"]


def bytes_of(home: Path) -> bytes:
    """Return what every file of the home holds: database, log of writes, log, exports, copies."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def edit(home: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "aileron.db")) as other, other:
        assert other.execute(statement, values).rowcount


def rows(home: Path) -> int:
    with closing(sqlite3.connect(home / "aileron.db")) as other:
        (count,) = other.execute("SELECT COUNT(*) FROM sealed_screens").fetchone()
        return int(count)


@pytest.mark.parametrize("approve", [True, False], ids=["approved", "denied"])
async def test_it_is_written_while_locked_and_read_once_unlocked_after_a_restart_too(
    home: Path, mailbox: Mailbox, approve: bool
) -> None:
    """All of it comes back: fields, arguments, words, session."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    keys.locked = True
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        run_id = await decided(core, approve=approve)
        sealed = await screen(core, run_id)
        assert sealed.approval is None
        assert "locked" in sealed.problem
        keys.locked = False
        before = await screen(core, run_id)
        assert subject(before) == [SHOWN]
        (record,) = await core.records("history.sealed")
        assert (record["run"], record["day"]) == (run_id, TODAY)
        assert (await core.app.audit.verify()).problems == ()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        after = await screen(core, run_id)
    assert after == before
    assert after.approval is not None
    assert (after.approval.state, after.approval.run_id) == ("pending", run_id)
    assert [field.value for field in after.approval.arguments] == [DRAFT]
    assert view_from_json(view_to_json(after.approval)) == after.approval


@pytest.mark.parametrize("has_keys", [True, False])
async def test_what_was_shown_is_nowhere_in_the_homes_files(
    home: Path, mailbox: Mailbox, has_keys: bool
) -> None:
    """Neither while the console runs nor after it; without a key there is no row either."""
    install_examples(home)
    keys = DayKeys() if has_keys else None
    async with Core.open(home, mailbox, history_keys=keys) as core:
        run_id = await decided(core)
        await core.app.console.carry_out(ExportAudit())
        assert any((home / "exports").iterdir())
        assert DRAFT.encode() in bytes_of(home), "what an agent sent is looked for as well"
        assert SHOWN.encode() not in bytes_of(home)
        assert bool((await opened(core, run_id)).screens) is has_keys
        assert bool(await core.records("history.sealed")) is has_keys
    assert SHOWN.encode() not in bytes_of(home)
    assert rows(home) == has_keys


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            "SET sealed = CAST(substr(sealed, 1, 200) || x'00' || substr(sealed, 202) AS BLOB)",
            "cut",
        ),
        ("SET sealed = substr(sealed, 1, 400)", "cut"),
        ("SET sealed = CAST(x'02' || substr(sealed, 2) AS BLOB)", "newer Aileron"),
        ("SET sealed = x''", "cut"),
        ("SET day = '2026-10-07'", "destroyed"),
        ("SET day = '../../day'", "moved here"),
        ("SET kind = 'denied'", "moved here"),
        ("SET kind = 'other'", "moved here"),
        ("SET decided_at = decided_at - 1", "moved here"),
        ("SET last_record = last_record - 1", "not the one that the audit names"),
        ("SET last_record = 99999", "not the one that the audit names"),
    ],
)
async def test_a_row_that_was_changed_is_refused_with_a_sentence(
    home: Path, mailbox: Mailbox, spoil: str, said: str
) -> None:
    """The rest of the call is shown as ever."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        run_id = await decided(core)
        edit(home, f"UPDATE sealed_screens {spoil}")
        call = await opened(core, run_id)
    (found,) = call.screens
    assert found.approval is None
    assert said in found.problem
    assert call.approval.state == "completed"
    assert call.result


async def test_a_row_moved_to_another_call_or_day_is_refused(home: Path, mailbox: Mailbox) -> None:
    """Each with a key that is there: it is the record itself that says what it is of."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        first = await decided(core, approve=False)
        clock.advance(DAY)
        second = await decided(core, approve=False)
        query = "SELECT day, approval_id FROM sealed_screens ORDER BY decided_at"
        with closing(sqlite3.connect(home / "aileron.db")) as other:
            (_, of_first), (tomorrow, _) = other.execute(query).fetchall()
        edit(home, "UPDATE sealed_screens SET day = ? WHERE run_id = ?", tomorrow, first)
        assert "moved here" in (await screen(core, first)).problem
        edit(
            home,
            "UPDATE sealed_screens SET run_id = ?, approval_id = ?, decided_at = decided_at + 0.5 "
            "WHERE run_id = ?",
            first,
            of_first,
            second,
        )
        for found in (await opened(core, first)).screens:
            assert "moved here" in found.problem
        assert (await opened(core, second)).screens == ()


async def test_a_record_that_another_program_sealed_is_refused(
    home: Path, mailbox: Mailbox
) -> None:
    """The public key is no secret: what counts is what the audit names."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        run_id = await decided(core)
        real = await screen(core, run_id)
        assert real.approval is not None
        label = SealLabel(day=TODAY, subject=real.approval.approval_id, kind="approved", at=real.at)
        public = keys.public_key(TODAY)
        assert public is not None
        edit(
            home,
            "UPDATE sealed_screens SET sealed = ?",
            seal(view_to_json(real.approval), label, public),
        )
        forged = await screen(core, run_id)
        assert forged.approval is None
        assert "not the one that the audit names" in forged.problem
        edit(home, "UPDATE sealed_screens SET sealed = ?", seal({"to": "nobody"}, label, public))
        assert (await screen(core, run_id)).approval is None


async def test_a_day_is_erased_with_its_key_and_no_old_copy_brings_it_back(
    home: Path, mailbox: Mailbox, tmp_path: Path
) -> None:
    """After 30 whole days; the audit says so and still verifies."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        run_id = await decided(core)
        assert subject(await screen(core, run_id)) == [SHOWN]
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    clock.advance(30 * DAY)
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await core.app.screens.sweep()
        assert subject(await screen(core, run_id)) == [SHOWN], "30 days are kept"
        clock.advance(DAY)
        await core.app.screens.sweep()
        assert (await opened(core, run_id)).screens == ()
        (record,) = await core.records("history.erased")
        assert record["days"] == [TODAY]
        assert (await core.app.audit.verify()).problems == ()
    assert keys.destroyed == {TODAY}
    assert rows(home) == 0
    async with Core.open(copy, mailbox, clock=FrozenClock(), history_keys=keys) as core:
        found = await screen(core, run_id)
        assert found.approval is None
        assert "destroyed" in found.problem
    assert SHOWN.encode() not in bytes_of(copy)


async def test_the_bytes_of_an_erased_day_are_overwritten(home: Path, mailbox: Mailbox) -> None:
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await decided(core)
        with closing(sqlite3.connect(home / "aileron.db")) as other:
            ((sealed,),) = other.execute("SELECT sealed FROM sealed_screens").fetchall()
        piece = sealed[100:400]
        assert piece in bytes_of(home)
        clock.advance(31 * DAY)
        await core.app.screens.sweep()
        assert piece not in bytes_of(home)


async def test_an_end_between_key_and_rows_leaves_what_nobody_can_read(
    home: Path, mailbox: Mailbox
) -> None:
    """The next start finishes it."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        run_id = await decided(core)
        keys.ends_the_process = True
        clock.advance(31 * DAY)
        with pytest.raises(sqlite3.OperationalError):
            await core.app.screens.sweep()
        assert rows(home) == 1
        found = await screen(core, run_id)
        assert found.approval is None
        assert "destroyed" in found.problem
    keys.ends_the_process = False
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await core.app.screens.sweep()
        assert (await opened(core, run_id)).screens == ()
    assert rows(home) == 0


async def test_a_key_that_cannot_be_destroyed_is_not_forgotten(
    home: Path, mailbox: Mailbox
) -> None:
    """Its rows stay, for they name the day; an hour later it is tried again."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    keys.refuses_to_destroy = True
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await decided(core)
        clock.advance(31 * DAY)
        await core.app.screens.sweep()
        assert rows(home) == 1
        assert not await core.records("history.erased")
        keys.refuses_to_destroy = False
        clock.advance(3601)
        await core.app.screens.sweep()
        assert rows(home) == 0
        assert keys.destroyed == {TODAY}


@pytest.mark.parametrize(
    "edited", ["DELETE FROM sealed_screens", "UPDATE sealed_screens SET day = '../day'"]
)
async def test_no_edit_of_the_rows_saves_a_key(home: Path, mailbox: Mailbox, edited: str) -> None:
    """A copy of the file from before could be read for as long as the key is there."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await decided(core)
        edit(home, edited)
        clock.advance(31 * DAY)
        await core.app.screens.sweep()
        assert keys.destroyed == {TODAY}
        assert rows(home) == 0


async def test_no_days_keep_nothing(home: Path, mailbox: Mailbox) -> None:
    """What was kept before goes at once, and nothing new comes."""
    install_examples(home)
    keys, clock = DayKeys(), FrozenClock()
    async with Core.open(home, mailbox, clock=clock, history_keys=keys) as core:
        await decided(core, approve=False)
    assert rows(home) == 1
    none = Settings(history_days=0)
    async with Core.open(home, mailbox, clock=clock, history_keys=keys, settings=none) as core:
        await core.app.screens.sweep()
        assert rows(home) == 0
        assert keys.destroyed == {TODAY}
        clock.advance(DAY)
        await decided(core, approve=False)
        assert rows(home) == 0
        assert keys.days() == []


async def test_what_was_not_on_screen_is_not_kept(home: Path, mailbox: Mailbox) -> None:
    """A call denied as an equal of another was never looked at."""
    install_examples(home)
    async with Core.open(home, mailbox, history_keys=DayKeys()) as core:
        view = await core.ask()
        await core.app.console.carry_out(Deny(approval_id=view.approval_id, on_screen=False))
        assert (await opened(core, view.run_id)).screens == ()
    assert rows(home) == 0
