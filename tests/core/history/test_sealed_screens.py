"""What was shown at a decision: on disk only sealed, read back with its day's key, gone with it."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from aileron_core.console_port.codec import from_json, to_json
from aileron_core.console_port.intents import Approve, Deny, ExportAudit
from aileron_core.console_port.view_models import ApprovalView, DecidedScreenView
from aileron_core.history.sealing import SealLabel, seal
from aileron_core.settings import Settings
from tests.core.history.kept import DAY, Kept, bytes_of, log_emptied
from tests.support.core_harness import DRAFT, Core
from tests.support.frozen_clock import FrozenClock

TODAY = "2026-10-08"
"""The day on which a frozen clock begins."""
SHOWN = "Q3 numbers"
"""The subject of the draft: fetched for the person, and in no argument or result of `send-draft`."""


async def decide_call(core: Core, *, approve: bool = True) -> str:
    """Decide a call as the console does, and return its run's id once that is over."""
    view = await core.ask()
    assert SHOWN in [field.value for field in view.preview.fields]
    yes = Approve(approval_id=view.approval_id, digest=view.digest)
    await core.do(yes if approve else Deny(approval_id=view.approval_id, reason="wrong list"))
    ended = await core.ended(view)
    await core.app.approvals.mark_delivered(view.approval_id)  # so that the next call is a new one
    return ended.run_id


async def screen(core: Core, run_id: str) -> DecidedScreenView:
    (found,) = (await core.opened(run_id)).screens
    return found


def subject(shown: DecidedScreenView) -> list[str]:
    assert shown.approval is not None, shown.problem
    assert not shown.problem
    return [field.value for field in shown.approval.preview.fields if field.label == "Subject"]


@pytest.mark.parametrize("approve", [True, False], ids=["approved", "denied"])
async def test_it_is_written_while_locked_and_read_once_unlocked_after_a_restart_too(
    kept: Kept, approve: bool
) -> None:
    kept.keys.locked = True
    async with kept.open() as core:
        run_id = await decide_call(core, approve=approve)
        sealed = await screen(core, run_id)
        assert sealed.approval is None
        assert "locked" in sealed.problem
        kept.keys.locked = False
        before = await screen(core, run_id)
        assert subject(before) == [SHOWN]
        (record,) = await core.records("history.sealed")
        assert (record["run"], record["day"]) == (run_id, TODAY)
        assert (await core.app.audit.verify()).problems == ()
    async with kept.open() as core:
        after = await screen(core, run_id)
    assert after == before
    assert (after.approval.state, after.approval.run_id) == ("pending", run_id)
    assert [field.value for field in after.approval.arguments] == [DRAFT]
    assert from_json(ApprovalView, to_json(after.approval)) == after.approval


@pytest.mark.parametrize("has_keys", [True, False])
async def test_what_was_shown_is_nowhere_in_the_homes_files(kept: Kept, has_keys: bool) -> None:
    async with kept.open(history_keys=kept.keys if has_keys else None) as core:
        run_id = await decide_call(core)
        await core.do(ExportAudit())
        assert any((kept.home / "exports").iterdir())
        assert kept.holds(DRAFT), "what an agent sent is looked for as well"
        assert not kept.holds(SHOWN)
        assert bool((await core.opened(run_id)).screens) is has_keys
        assert bool(await core.records("history.sealed")) is has_keys
    assert not kept.holds(SHOWN)
    assert kept.count("sealed") == has_keys


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("SET sealed = CAST(substr(sealed,1,200)||x'00'||substr(sealed,202) AS BLOB)", "cut"),
        ("SET sealed = CAST(x'02' || substr(sealed, 2) AS BLOB)", "newer Aileron"),
        ("SET sealed = x''", "cut"),
        ("SET day = '2026-10-07'", "destroyed"),
        ("SET day = '../../day'", "moved here"),
        ("SET part = 'denied'", "moved here"),
        ("SET at = at - 1", "moved here"),
        ("SET last_record = last_record - 1", "not the one that the audit names"),
    ],
)
async def test_a_changed_row_is_refused_with_a_sentence(kept: Kept, spoil: str, said: str) -> None:
    async with kept.open() as core:
        run_id = await decide_call(core)
        kept.edit(f"UPDATE sealed {spoil}")
        call = await core.opened(run_id)
    (found,) = call.screens
    assert found.approval is None
    assert said in found.problem
    assert call.approval.state == "completed"
    assert call.result


async def test_a_row_moved_to_another_call_or_day_is_refused(kept: Kept) -> None:
    """Each with a key that is there: it is the record itself that says what it is of."""
    async with kept.open() as core:
        first = await decide_call(core, approve=False)
        kept.clock.advance(DAY)
        second = await decide_call(core, approve=False)
        query = "SELECT day FROM sealed ORDER BY at"
        _, (tomorrow,) = kept.rows(query)
        kept.edit("UPDATE sealed SET day = ? WHERE run_id = ?", tomorrow, first)
        assert "moved here" in (await screen(core, first)).problem
        kept.edit("UPDATE sealed SET run_id = ?, at = at + 0.5 WHERE run_id = ?", first, second)
        for found in (await core.opened(first)).screens:
            assert "moved here" in found.problem
        assert (await core.opened(second)).screens == ()


async def test_a_record_that_another_program_sealed_is_refused(kept: Kept) -> None:
    """The public key is no secret: what counts is what the audit names."""
    async with kept.open() as core:
        run_id = await decide_call(core)
        real = await screen(core, run_id)
        label = SealLabel(day=TODAY, subject=real.approval.approval_id, kind="approved", at=real.at)
        public = kept.keys.public_key(TODAY)
        kept.edit("UPDATE sealed SET sealed = ?", seal(to_json(real.approval), label, public))
        forged = await screen(core, run_id)
        assert forged.approval is None
        assert "not the one that the audit names" in forged.problem
        kept.edit("UPDATE sealed SET sealed = ?", seal({"to": "nobody"}, label, public))
        assert (await screen(core, run_id)).approval is None


async def test_a_day_is_erased_with_its_key_and_no_old_copy_brings_it_back(
    kept: Kept, tmp_path: Path
) -> None:
    async with kept.open() as core:
        run_id = await decide_call(core)
        assert subject(await screen(core, run_id)) == [SHOWN]
        ((sealed,),) = kept.rows("SELECT sealed FROM sealed")
        piece = sealed[100:400]
        assert kept.holds(piece)
    copy = tmp_path / "copy"
    shutil.copytree(kept.home, copy)
    kept.clock.advance(30 * DAY)
    async with kept.open() as core:
        await core.app.contents.forget_due()
        assert subject(await screen(core, run_id)) == [SHOWN], "30 days are kept"
        kept.clock.advance(DAY)
        await core.app.contents.forget_due()
        await log_emptied(core)
        assert not kept.holds(piece), "its bytes are overwritten"
        assert (await core.opened(run_id)).screens == ()
        (record,) = await core.records("history.erased")
        assert record["days"] == [TODAY]
        assert (await core.app.audit.verify()).problems == ()
    assert kept.keys.destroyed == {TODAY}
    assert kept.count("sealed") == 0
    async with kept.open(home=copy, clock=FrozenClock()) as core:
        found = await screen(core, run_id)
        assert found.approval is None
        assert "destroyed" in found.problem
    assert SHOWN.encode() not in bytes_of(copy)


async def test_an_end_between_key_and_rows_leaves_what_nobody_can_read(kept: Kept) -> None:
    async with kept.open() as core:
        run_id = await decide_call(core)
        kept.keys.ends_the_process = True
        kept.clock.advance(31 * DAY)
        with pytest.raises(sqlite3.OperationalError):
            await core.app.contents.forget_due()
        assert kept.count("sealed") == 1
        found = await screen(core, run_id)
        assert found.approval is None
        assert "destroyed" in found.problem
    kept.keys.ends_the_process = False
    async with kept.open() as core:
        await core.app.contents.forget_due()
        assert (await core.opened(run_id)).screens == ()
    assert kept.count("sealed") == 0


async def test_a_key_that_cannot_be_destroyed_is_not_forgotten(kept: Kept) -> None:
    kept.keys.refuses_to_destroy = True
    async with kept.open() as core:
        await decide_call(core)
        kept.clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        assert kept.count("sealed") == 1
        assert not await core.records("history.erased")
        kept.keys.refuses_to_destroy = False
        kept.clock.advance(3601)
        await core.app.contents.forget_due()
        assert kept.count("sealed") == 0
        assert kept.keys.destroyed == {TODAY}


@pytest.mark.parametrize("edited", ["DELETE FROM sealed", "UPDATE sealed SET day = '../day'"])
async def test_no_edit_of_the_rows_saves_a_key(kept: Kept, edited: str) -> None:
    """A copy of the file from before could be read for as long as the key is there."""
    async with kept.open() as core:
        await decide_call(core)
        kept.edit(edited)
        kept.clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        assert kept.keys.destroyed == {TODAY}
        assert kept.count("sealed") == 0


async def test_what_is_no_day_is_erased_too_and_the_home_still_opens(kept: Kept) -> None:
    """Another program may have written any bytes as a day, to the rows and to the file of the keys."""
    kept.keys.public_key("19\ud8000-01-01")
    kept.keys.refuses_to_destroy = True
    async with kept.open() as core:
        await decide_call(core)
        kept.edit("UPDATE sealed SET day = CAST(x'3180' AS TEXT)")
    kept.keys.refuses_to_destroy = False
    kept.clock.advance(31 * DAY)
    async with kept.open() as core:
        (record,) = await core.records("history.erased")
        assert record["days"] == [TODAY]
        assert (await core.app.audit.verify()).problems == ()
    assert kept.count("sealed") == len(kept.keys.days()) == 0


async def test_no_days_keep_nothing(kept: Kept) -> None:
    async with kept.open() as core:
        await decide_call(core, approve=False)
    assert kept.count("sealed") == 1
    none = Settings(history_days=0)
    async with kept.open(settings=none) as core:
        await core.app.contents.forget_due()
        assert kept.count("sealed") == 0
        assert kept.keys.destroyed == {TODAY}
        kept.clock.advance(DAY)
        await decide_call(core, approve=False)
        assert kept.count("sealed") == 0
        assert kept.keys.days() == []


async def test_what_was_not_on_screen_is_not_kept(kept: Kept) -> None:
    """A call denied as an equal of another was never looked at."""
    async with kept.open() as core:
        view = await core.ask()
        await core.do(Deny(approval_id=view.approval_id, on_screen=False))
        assert (await core.opened(view.run_id)).screens == ()
    assert kept.count("sealed") == 0
