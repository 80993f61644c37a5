"""What calls contained and what was shown at a decision: on disk only sealed, read with its day's key, gone with it."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.codec import from_json, to_json
from aileron_core.console_port.intents import Acknowledge, Approve, Deny, ExportAudit
from aileron_core.console_port.view_models import ApprovalView, CallView, DecidedScreenView
from aileron_core.history.sealing import SealLabel, day_of, seal
from aileron_core.settings import Settings
from tests.core.adversary.test_under_the_vaults_key import unlock
from tests.core.history.kept import DAY, Kept, bytes_of, log_emptied
from tests.support.core_harness import DRAFT, Core, Start, run_on_request, writes
from tests.support.frozen_clock import FrozenClock

REASON = "because the salaries of 1984 are in it"
MISSING = "no-draft-of-winston"
RESULT = "Q3 numbers"
ENDLESS = (
    "WITH RECURSIVE n(args) AS (SELECT NULL UNION ALL SELECT NULL FROM n) "
    "SELECT args, args output, args failure, args reason, '' note FROM n"
)
TODAY = "2026-10-08"
"""The day on which a frozen clock begins."""
SHOWN = "Q3 numbers"
"""The subject of the draft: fetched for the person, and in no argument or result of `send-draft`."""


async def sealed_later(core: Core, clock: FrozenClock) -> None:
    """Let the minute pass after which ended calls are sealed, and seal them."""
    clock.advance(61)
    while core.app.contents._swept_at < clock.now():
        await core.app.contents.sweep()
    await log_emptied(core)


def call_text(call: CallView) -> str:
    values = [field.value for field in (*call.approval.arguments, *call.result)]
    return " ".join([*values, call.approval.outcome, call.approval.reason])


async def four_calls(core: Core) -> dict[str, str]:
    """Make calls that end in four ways; return by run a text that each contained."""
    read = await core.call("get-draft", {"id": DRAFT}, key="read")
    failed = await core.call("get-draft", {"id": MISSING}, key="failed")
    sent, denied = await core.ask(), await core.ask("r-8842190312")
    await core.run(sent)
    await core.app.approvals.deny(denied.approval_id, REASON)
    for view in (sent, denied):
        await core.app.approvals.mark_delivered(view.approval_id)
    runs = (read.row.run_id, failed.row.run_id, sent.run_id, denied.run_id)
    return dict(zip(runs, (RESULT, MISSING, DRAFT, REASON), strict=True))


@pytest.mark.usefixtures("protected")
async def test_with_a_vault_nothing_of_an_ended_call_is_plain_text_in_any_file_of_the_home(
    start: Start, home: Path, clock: FrozenClock
) -> None:
    async with start() as core:
        await unlock(core)
        contained = await four_calls(core)
        for each in contained.values():
            assert each.encode() in bytes_of(home), "or nothing would be looked for"
        await sealed_later(core, clock)
        for each in (*contained.values(), "r-8842190312"):
            assert each.encode() not in bytes_of(home)
        for run_id, each in contained.items():
            assert each in call_text(await core.opened(run_id))
        assert (await core.app.audit.verify()).problems == ()
    assert not [each for each in contained.values() if each.encode() in bytes_of(home)]
    async with start() as core:
        for run_id in contained:
            call = await core.opened(run_id)
            assert (call.approval.arguments, call.result, call.edited) == ((), (), False)
            assert "Unlock the vault to read it" in call.approval.sealed
            assert not call.approval.forgotten
        await unlock(core)
        for run_id, each in contained.items():
            call = await core.opened(run_id)
            assert (each in call_text(call), call.approval.sealed, call.edited) == (True, "", False)
        assert (await core.app.audit.verify()).problems == ()


async def test_what_is_in_the_list_is_there_again_once_it_is_unlocked(kept: Kept) -> None:
    async with kept.open() as core:
        contained = await four_calls(core)
        await sealed_later(core, kept.clock)
    kept.keys.locked = True
    async with kept.open() as core:
        shown = {view.run_id: view for view in (await core.app.console.snapshot()).approvals}
        assert {view.sealed != "" for view in shown.values()} == {True}
        kept.keys.locked = False
        await core.app.contents.reveal()
        for view in (await core.app.console.snapshot()).approvals:
            assert view.sealed == ""
            assert contained[view.run_id] in (DRAFT, view.reason)


async def test_an_agent_that_asks_later_has_the_same_answer_unless_it_is_locked(kept: Kept) -> None:
    """By the approval and by the key; a locked one gives the state alone. Nothing runs twice."""
    async with kept.open() as core:
        first = await core.call("get-draft", {"id": DRAFT}, key="read")
        await sealed_later(core, kept.clock)
        asked = len(writes(kept.mailbox))
        again = await core.call("get-draft", {"id": DRAFT}, key="read")
        assert (again.row.run_id, again.row.output) == (first.row.run_id, first.row.output)
        kept.keys.locked = True
        row = (await core.call("get-draft", {"id": DRAFT}, key="read")).row
        assert (row.run_id, row.state, row.output) == (first.row.run_id, "completed", None)
        assert len(writes(kept.mailbox)) == asked


async def test_what_an_agent_may_fetch_stays_till_it_has_it_or_its_session_ends(kept: Kept) -> None:
    settings = Settings(expires_seconds=0)
    async with kept.open(settings=settings) as core:
        waiting, fetched = await core.ask(), await core.ask("r-8842190312")
        for view in (waiting, fetched):
            await core.app.approvals.deny(view.approval_id, f"{REASON} {view.run_id}")
        await core.app.approvals.mark_delivered(fetched.approval_id)
        await sealed_later(core, kept.clock)
        assert not kept.holds(f"{REASON} {fetched.run_id}")
        assert (await core.result(waiting.approval_id)).reason == f"{REASON} {waiting.run_id}"
        assert kept.holds(f"{REASON} {waiting.run_id}")
        await core.app.session_service.end(core.session.session_id, "it is over")
        await sealed_later(core, kept.clock)
        assert not kept.holds(REASON)


async def test_what_waits_for_a_person_is_not_sealed_before_they_took_note(kept: Kept) -> None:
    """An unknown outcome has to be looked at after a restart, also while the vault is locked."""
    action = kept.home / "actions" / "send-draft.md"
    text = action.read_text(encoding="utf-8")
    limited = text.replace("[approval]\n", "[limits]\nwall_seconds = 1\n\n[approval]\n")
    action.write_text(limited, encoding="utf-8")
    async with kept.open() as core:
        unknown = await core.ask()
        kept.mailbox.control(hang="send")
        run_on_request(kept.mailbox, "POST send", lambda: kept.clock.advance(2))
        assert (await core.run(unknown)).state == "unknown"
        await core.app.approvals.mark_delivered(unknown.approval_id)
        await sealed_later(core, kept.clock)
        assert kept.holds(DRAFT)
        await core.do(Acknowledge(call_id=unknown.approval_id, looked_at=None))
        await sealed_later(core, kept.clock)
        assert not kept.holds(DRAFT)


async def test_it_is_deleted_in_time_and_no_copy_brings_it_back(kept: Kept, tmp_path: Path) -> None:
    async with kept.open() as core:
        contained = await four_calls(core)
        await sealed_later(core, kept.clock)
    shutil.copytree(kept.home, tmp_path / "copy")
    kept.clock.advance(32 * DAY)
    async with kept.open() as core:
        await core.app.contents.forget_due()
        for run_id in contained:
            call = await core.opened(run_id)
            assert (call.approval.forgotten, call.approval.sealed) == (True, "")
        assert (await core.app.audit.verify()).problems == ()
    assert kept.count("sealed") == 0
    async with kept.open(home=tmp_path / "copy", clock=FrozenClock()) as core:
        for run_id in contained:
            assert "was destroyed" in (await core.opened(run_id)).approval.sealed


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("DELETE FROM sealed WHERE run_id = ?", "another program removed"),
        ("UPDATE sealed SET sealed = x'00' WHERE run_id = ?", "cut"),
        ("UPDATE runs SET sealed_day = '../../day' WHERE run_id = ?", "cut"),
        ("UPDATE runs SET ended_at = ended_at + 1 WHERE run_id = ?", "moved here"),
        ("UPDATE sealed SET part = part || '2' WHERE run_id = ?", "another program removed"),
    ],
)
async def test_what_another_program_changed_is_not_shown(kept: Kept, spoil: str, said: str) -> None:
    async with kept.open() as core:
        read = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        await sealed_later(core, kept.clock)
        kept.edit(spoil, read)
        call = await core.opened(read)
        assert (call.approval.arguments, call.result) == ((), ())
        assert said in call.approval.sealed.replace("gone: another", "another")
        found = (await core.app.audit.verify()).problems
        assert bool(found) == ("removed" in said)


@pytest.mark.parametrize("locked", [True, False])
async def test_plain_text_beside_what_is_sealed_counts_as_edited(kept: Kept, locked: bool) -> None:
    async with kept.open() as core:
        read = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        await sealed_later(core, kept.clock)
        kept.keys.locked = locked
        assert not (await core.opened(read)).edited
        kept.edit('UPDATE runs SET output = \'{"subject":"forged"}\' WHERE run_id = ?', read)
        assert (await core.opened(read)).edited


async def test_a_run_whose_id_is_no_text_any_more_is_deleted_too(kept: Kept) -> None:
    async with kept.open() as core:
        read = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        await core.call("get-draft", {"id": DRAFT}, key="intact")
    kept.edit("UPDATE runs SET run_id = CAST(x'3180' AS TEXT) WHERE run_id = ?", read)
    kept.clock.advance(32 * DAY)
    async with kept.open() as core:
        await core.app.contents.forget_due()
        assert kept.rows("SELECT COUNT(args) + COUNT(output) FROM runs") == [(0,)]


async def test_arguments_that_another_program_sealed_are_not_shown(kept: Kept) -> None:
    """The public key is no secret: what counts is the hash on record, which has a key that is sealed too."""
    async with kept.open() as core:
        row = (await core.call("get-draft", {"id": DRAFT})).row
        await sealed_later(core, kept.clock)
        day = day_of(row.ended_at)
        public = kept.keys.public_key(day)
        label = SealLabel(day=day, subject=row.run_id, kind="arguments", at=row.ended_at)
        forgeries: list[dict[str, Any]] = [
            {"args": '{"id":"forged"}', "progress": None, "content_key": row.content_key},
            {"args": '{"id":"forged"}', "progress": None, "content_key": "00" * 32},
            {"args": {"id": "forged"}, "progress": None, "content_key": None},
            {"to": "nobody"},
        ]
        put = "UPDATE sealed SET sealed = ? WHERE run_id = ? AND part = 'arguments'"
        for forged in forgeries:
            kept.edit(put, seal(forged, label, public), row.run_id)
            call = await core.opened(row.run_id)
            assert call.approval.arguments == ()
            assert "Another program changed it" in call.approval.sealed


@pytest.mark.parametrize("days", [0, 30])
async def test_without_a_key_and_with_no_days_nothing_is_sealed(kept: Kept, days: int) -> None:
    settings = Settings(history_days=days)
    keys = kept.keys if days == 0 else None
    async with kept.open(settings=settings, history_keys=keys) as core:
        await core.call("get-draft", {"id": DRAFT})
        kept.clock.advance(61)
        await core.app.contents.sweep()
        assert kept.holds(RESULT)
    assert kept.count("sealed") == 0


async def test_a_copy_from_before_goes_once_everything_is_sealed(kept: Kept) -> None:
    """It has calls in plain text, as one has that cannot be read. One in which all is sealed stays its 30 days."""
    copies = kept.home / "backups"
    copies.mkdir()

    def copied(name: str) -> Path:
        source, target = (
            sqlite3.connect(each) for each in (kept.home / "aileron.db", copies / name)
        )
        with closing(source), closing(target):
            source.backup(target)
        return copies / name

    async with kept.open() as core:
        await core.call("get-draft", {"id": DRAFT})
        assert RESULT.encode() in copied("schema-5-plain.db").read_bytes()
        for name in ("schema-4-a.db", "schema-5-damaged.db", "mine.db"):
            (copies / name).write_bytes(RESULT.encode())
        with closing(sqlite3.connect(copies / "schema-5-view.db")) as view:
            view.execute(f"CREATE VIEW runs AS {ENDLESS}")
        os.mkfifo(copies / "schema-6-pipe.db")
        await sealed_later(core, kept.clock)
        assert {path.name for path in copies.iterdir()} == {"mine.db"}
        copied("schema-6-sealed.db")
        kept.clock.advance(61)
        await core.app.contents.sweep()
        assert {path.name for path in copies.iterdir()} == {"schema-6-sealed.db", "mine.db"}


async def test_many_calls_are_sealed_a_few_at_a_time(kept: Kept) -> None:
    async with kept.open() as core:
        for _ in range(40):
            await core.call("get-draft", {"id": DRAFT})
        await sealed_later(core, kept.clock)
        assert not kept.holds(DRAFT)
        assert (await core.app.audit.verify()).problems == ()


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


async def test_a_day_goes_with_its_key_and_no_copy_restores_it(kept: Kept, tmp_path: Path) -> None:
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
