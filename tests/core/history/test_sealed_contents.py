"""What calls contained: on disk only sealed once nobody awaits it any more, and read with its day's key."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.intents import Acknowledge
from aileron_core.console_port.view_models import CallView
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


async def sealed_later(core: Core, clock: FrozenClock) -> None:
    """Let the minute pass after which ended calls are sealed, and seal them."""
    clock.advance(61)
    while core.app.contents._swept_at < clock.now():
        await core.app.contents.sweep()
    await log_emptied(core)


def call_text(call: CallView) -> str:
    """Return every argument, result, failure and reason of *call* in one text."""
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
    return {
        read.row.run_id: RESULT,
        failed.row.run_id: MISSING,
        sent.run_id: DRAFT,
        denied.run_id: REASON,
    }


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


async def test_what_an_agent_may_still_fetch_stays_until_it_has_it_or_its_session_ends(
    kept: Kept,
) -> None:
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


async def test_it_is_deleted_in_its_time_and_no_old_copy_brings_it_back(
    kept: Kept, tmp_path: Path
) -> None:
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
        with (
            closing(sqlite3.connect(kept.home / "aileron.db")) as source,
            closing(sqlite3.connect(copies / name)) as target,
        ):
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
