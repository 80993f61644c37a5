"""What is kept of calls' contents: for how long, how much, and under which hashes; and what is gone leaves no trace."""

import asyncio
import contextlib
import gc
import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.record import content_hash
from aileron_core.canonical import canonical
from aileron_core.console_port.intents import Acknowledge
from aileron_core.errors import Conflict, RateLimited, StorageUnavailable
from aileron_core.runs.interfaces import GateSettings
from aileron_core.runs.model import RunRecord
from aileron_core.server.agent_api import AgentApi
from aileron_core.settings import Settings
from tests.support.core_harness import (
    DRAFT,
    SHORT_OF_TIME,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    audit_problems,
    change_rows,
    problem_messages,
    protected_home,
    run_on_request,
    unlock,
)
from tests.support.frozen_clock import FrozenClock

OTHER = "r-8842190312"
DAY = 86400.0
HOUR = 3600.0
REASON = "because the salaries of 1984 are in it"
MISSING = "no-draft-of-winston"


def database_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.glob("aileron.db*")))


async def forget_after(core: Core, clock: FrozenClock, seconds: float) -> None:
    clock.advance(seconds)
    await core.app.contents.forget_due()


async def test_what_is_old_is_deleted_for_real(core: Core, home: Path, clock: FrozenClock) -> None:
    """Neither pages nor log have a trace of it, and the agent still reads how its call ended."""
    free = await core.call("get-draft", {"id": DRAFT}, key="once")
    view = await core.ask()
    await core.run(view)
    await forget_after(core, clock, 29 * DAY)
    for content in (DRAFT.encode(), b"Q3 numbers"):
        assert content in database_bytes(home)
    assert await core.records("arguments.forgotten") == []
    await forget_after(core, clock, 2 * DAY)
    for content in (DRAFT.encode(), b"Q3 numbers"):
        assert content not in database_bytes(home)
    (record,) = await core.records("arguments.forgotten")
    assert "2 old runs" in record["summary"]
    assert (await core.app.audit.verify()).problems == ()
    assert (await core.result(view.approval_id)).state == "completed"
    again = await core.call("get-draft", {"id": DRAFT}, key="once")
    assert (again.attached, again.row.run_id) == (True, free.row.run_id), "nothing ran twice"


async def contents(core: Core) -> list[tuple[object, ...]]:
    columns = "args, output, failure, reason, progress, NULLIF(note, '')"
    query = f"SELECT {columns} FROM runs ORDER BY run_id"
    return await core.app.database.read(lambda c: c.execute(query).fetchall())


async def test_failures_and_reasons_go_too(core: Core, home: Path, clock: FrozenClock) -> None:
    """What agents asked for by the same key is not run again, and nothing of it was in the audit."""
    failed = await core.call("get-draft", {"id": MISSING}, key="once")
    denied, withdrawn = await core.ask(), await core.ask(OTHER)
    await core.app.approvals.deny(denied.approval_id, REASON)
    session = core.session.session_id
    await core.app.approvals.withdraw(session, withdrawn.approval_id, f"withdrawn {REASON}")
    assert REASON.encode() in database_bytes(home)
    assert failed.row.failure.message.encode() in database_bytes(home)
    asked = json.dumps(await core.records())
    assert REASON not in asked
    assert failed.row.failure.message not in asked
    await forget_after(core, clock, 31 * DAY)
    assert set(await contents(core)) == {(None,) * 6}
    left = database_bytes(home)
    for gone in (REASON, MISSING, failed.row.failure.message):
        assert gone.encode() not in left
    assert (await core.result(denied.approval_id)).state == "denied"
    seen = core.views(denied.approval_id)[-1]
    assert (seen.reason, seen.outcome, seen.forgotten) == ("", "", True)
    api = AgentApi(core.app)
    with pytest.raises(Conflict, match="Nothing ran again") as refused:
        await api.run(core.session, "get-draft", {"id": MISSING}, idempotency_key="once")
    assert refused.value.details == {"outcome": "failed"}
    await core.app.approvals.mark_delivered(denied.approval_id)
    assert all("tampered" not in record for record in await core.records())
    assert (await core.app.audit.verify()).problems == ()


@pytest.mark.core(settings=Settings(history_days=0))
async def test_no_days_keep_nothing(core: Core, home: Path, clock: FrozenClock) -> None:
    """A minute after the agent has its answer it is gone from rows, memory and file; without, after an hour."""
    unheard, heard = await core.ask(), await core.ask(OTHER)
    await core.run(heard)
    await core.run(unheard)
    await core.app.approvals.mark_delivered(heard.approval_id)
    for seconds, kept in ((30, 2), (61, 1), (HOUR - 92, 1), (61, 0)):
        await forget_after(core, clock, seconds)
        ends = [await core.result(each.approval_id) for each in (unheard, heard)]
        assert sum(each.output is not None for each in ends) == kept
    assert DRAFT.encode() not in database_bytes(home)


@pytest.mark.actions(send_draft=SHORT_OF_TIME)
@pytest.mark.core(settings=Settings(history_days=1, expires_seconds=0))
async def test_what_waits_is_kept_whole(start: Start, mailbox: Mailbox, clock: FrozenClock) -> None:
    """An unknown outcome until a person acknowledges it, over restarts too; and a call that nobody answered."""
    async with start() as core:
        unknown = await core.ask()
        mailbox.control(hang="send")
        run_on_request(mailbox, "POST send", lambda: clock.advance(2))
        assert (await core.run(unknown)).state == "unknown"
        waiting = await core.ask(OTHER)
        await forget_after(core, clock, 400 * DAY)
        assert [bool(args) for args, *_ in await contents(core)] == [True, True]
        assert await core.records("arguments.forgotten") == []
    async with start() as core:
        await forget_after(core, clock, 400 * DAY)
        assert [bool(args) for args, *_ in await contents(core)] == [True, True]
        seen = (await core.opened(unknown.run_id)).approval
        expected = (True, False, True)
        assert (seen.awaits_acknowledgement, seen.forgotten, bool(seen.outcome)) == expected
        await core.do(Acknowledge(call_id=unknown.approval_id, looked_at=None))
        await forget_after(core, clock, HOUR + 1)
        kept = await contents(core)
        assert ([bool(args) for args, *_ in kept], kept[0]) == ([False, True], (None,) * 6)
        assert (await core.app.audit.verify()).problems == ()
        assert waiting.run_id > unknown.run_id


@pytest.mark.core(settings=Settings(history_days=2))
async def test_old_copies_go_while_it_runs(core: Core, home: Path, clock: FrozenClock) -> None:
    old, new, other = (home / "backups" / n for n in ("schema-1-a.db", "schema-1-b.db", "mine.db"))
    old.parent.mkdir(exist_ok=True)
    for path, days in ((old, 3), (new, 1), (other, 9)):
        path.write_bytes(DRAFT.encode())
        os.utime(path, (clock.now(), clock.now() - (days - 0.1) * DAY))
    await forget_after(core, clock, 0.2 * DAY)
    assert [path.exists() for path in (old, new, other)] == [False, True, True]


async def test_a_file_from_before_secure_deletion_is_cleaned_once(start: Start, home: Path) -> None:
    """Its free pages hold what was deleted then; a later start leaves them alone."""
    async with start():
        pass
    trace = b"a trace of an argument " * 400
    with closing(sqlite3.connect(home / "aileron.db", isolation_level=None)) as old:
        old.execute("PRAGMA secure_delete = OFF")
        old.execute("DELETE FROM meta WHERE key = 'deleted_is_overwritten'")
        old.execute("INSERT INTO meta VALUES('long', ?)", (trace.decode(),))
        old.execute("DELETE FROM meta WHERE key = 'long'")
    assert b"a trace of an argument" in database_bytes(home)
    async with start() as core:
        assert b"a trace of an argument" not in database_bytes(home)
        assert (await core.app.audit.verify()).problems == ()
        await core.call("get-draft", {"id": DRAFT})


GUESS = canonical({"draft_id": DRAFT})
"""The arguments of the call, as whoever guesses right writes them."""


def hashes_in(home: Path) -> set[str]:
    """Return whatever in the home's files may be a hash or a key, free pages and logs included."""
    found: set[str] = set()
    for file in home.rglob("*"):
        # A new copy of the vault may be renamed meanwhile: it is there under its name.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            found |= {each.decode() for each in re.findall(rb"[0-9a-f]{64}", file.read_bytes())}
    return found


def confirmations(home: Path, guess: bytes) -> Iterator[str]:
    """Yield each key in the home under which a hash in the home is that of *guess*; "" for no key."""
    found = hashes_in(home)
    for key in (None, *found):
        if content_hash(guess, key) in found:
            yield key or ""


async def decided_call(core: Core) -> RunRecord:
    view = await core.ask()
    await core.run(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    return await core.result(view.approval_id)


@pytest.mark.parametrize("vault", [False, True])
async def test_none_confirm_a_guess(
    start: Start, home: Path, clock: FrozenClock, vault: bool
) -> None:
    """As long as it is kept, its key is beside it, and `audit verify` compares; then the key goes with it."""
    if vault:
        await protected_home(home)
    async with start(accept=not vault) as core:
        if vault:
            await unlock(core)
        row = await decided_call(core)
        assert [*confirmations(home, GUESS)] == [row.content_key]
        nonce = core.app.nonce_of(row)
        assert (core.app.nonce_of(row) == nonce) == vault
        await forget_after(core, clock, 31 * DAY)
        gone = core.app.registry.get(row.run_id)
        assert (gone.row.content_key, gone.row.args_sha256) == (None, row.args_sha256)
        # Nor does whoever knows the passphrase learn the nonce, and from it what was previewed.
        assert core.app.nonce_of(gone.row) != nonce
    assert row.args_sha256 in hashes_in(home)
    assert ([*confirmations(home, GUESS)], problem_messages(home)) == ([], [])


@pytest.mark.usefixtures("protected")
async def test_a_call_that_came_to_a_locked_vault_is_checked(start: Start, home: Path) -> None:
    """Locked, unlocked, locked again and restarted: no hash depends on it, nor does `audit verify`."""
    async with start() as core:
        early = await core.call()
        await unlock(core)
        await core.approve(await core.looked(early.row.approval_id))
        later = await core.ask(OTHER)
        await core.app.vault_service.lock()
    async with start() as core:
        assert core.app.registry.by_approval(later.approval_id) is not None
    assert problem_messages(home) == []
    change_rows(home, "UPDATE runs SET args = replace(args, 'r-', 's-')")
    found = problem_messages(home)
    assert len([each for each in found if "its arguments differ" in each]) == 2


@pytest.mark.parametrize(
    "edit",
    [
        "output = json_set(output, '$.output', 'another')",
        "content_key = NULL",
        "content_key = 'no key'",
        f"content_key = '{'0' * 64}'",
        "content_key = NULL, args = NULL",
        "content_key = NULL, args = NULL, output = NULL",
        "content_key = NULL, args = NULL, output = json_set(output, '$.output', 'another')",
    ],
)
async def test_a_changed_result_or_key_is_named(start: Start, home: Path, edit: str) -> None:
    """No key makes other content fit the record, and none is missing without a record that it was deleted."""
    async with start() as core:
        await decided_call(core)
    assert problem_messages(home) == []
    change_rows(home, f"UPDATE runs SET {edit}")
    assert len(problem_messages(home)) == 1
    async with start() as core:
        assert not [run for run in core.app.registry if run.row.state == "completed"]


@pytest.mark.usefixtures("protected")
async def test_the_preview_is_in_no_file_and_neither_is_its_hash(start: Start, home: Path) -> None:
    """The digest covers it with a secret nonce; after a restart it is fetched anew, and not compared."""
    async with start() as core:
        await unlock(core)
        view = await core.ask()
        run = core.live(view)
        hashes = {run.preview.fingerprint, content_hash(canonical(run.preview.output), None)}
        nonce = run.nonce
    assert not hashes & hashes_in(home)
    assert not [*confirmations(home, canonical(run.preview.output))]
    files = [each.read_bytes() for each in home.rglob("*") if each.is_file()]
    assert not [each for each in files if nonce.encode() in each]


@pytest.mark.usefixtures("protected")
async def test_words_stay_over_a_restart_with_a_vault(start: Start) -> None:
    """Also those of a call that was made while the vault was locked; no two calls share a nonce."""
    async with start() as core:
        early = await core.call()
        await unlock(core)
        first = await core.looked(early.row.approval_id)
        second = await core.ask(OTHER)
        runs = [core.app.registry.by_approval(each.approval_id) for each in (first, second)]
        assert len({run.nonce for run in runs if run is not None}) == 2
        core.app.vault.lock()
        waits = await core.view(first.approval_id, lambda v: v.state == "awaiting_vault")
        await unlock(core)
        again = await core.looked(first.approval_id, after=waits.version)
        assert (again.digest, again.words) == (first.digest, first.words)
    async with start() as core:
        await unlock(core)
        for view in (first, second):
            again = await core.looked(view.approval_id)
            assert (again.digest, again.words) == (view.digest, view.words)
        assert (await core.run(again)).state == "completed"


GATED = UPDATE_DRAFT.replace("update-draft", "change-draft").replace(
    "+++\n\n#", "\n[approval]\nrequired = true\n+++\n\n#"
)
"""A gated action without a preview, for arguments of any size."""
BIG = 10_000


def big(mark: object, size: int = BIG) -> dict[str, str]:
    """Return arguments of *size* bytes, unlike those with another *mark*."""
    return {"id": DRAFT, "to": f"{mark}-".ljust(size, "x")}


async def asked_with(core: Core, mark: object, size: int = BIG) -> RunRecord:
    return (await core.call("change-draft", big(mark, size))).row


async def withdraw_call(core: Core, mark: object, size: int = BIG) -> RunRecord:
    row = await asked_with(core, mark, size)
    return await core.app.approvals.withdraw(core.session.session_id, row.approval_id, "")


async def kept_arguments(core: Core) -> tuple[int, list[str]]:
    query = "SELECT run_id, LENGTH(args) FROM runs WHERE session_id = ? AND args IS NOT NULL ORDER BY run_id"
    own = (core.session.session_id,)
    found = await core.app.database.read(lambda c: c.execute(query, own).fetchall())
    return sum(size for _, size in found), [run_id for run_id, _ in found]


def in_memory(core: Core) -> int:
    kept = [run.row.args for run in core.app.registry if run.row.args is not None]
    return sum(len(str(args["to"])) for args in kept)


@pytest.mark.actions(change_draft=GATED)
async def test_withdrawn_calls_keep_no_more_than_a_session_may(start: Start, home: Path) -> None:
    assert GateSettings().argument_bytes == 16 * 2**20
    most = 200_000
    async with start() as core:
        core.app.gate.argument_quota.max_bytes = most
        rows = [await withdraw_call(core, number) for number in range(40)]
        size, runs = await kept_arguments(core)
        assert 0 < size <= most
        assert in_memory(core) <= most
        gone = [row for row in rows if row.run_id not in runs]
        assert gone == rows[: len(gone)]  # the oldest
        records = await core.records("arguments.forgotten")
        forgotten = [run_id for each in records for run_id in each["runs"]]
        assert forgotten == [row.run_id for row in gone]
        assert sum(each["count"] for each in records) == len(gone)
        assert {each["session"] for each in records} == {core.session.session_id}
        first = gone[0]
        withdrawn_run = await core.result(first.approval_id)
        assert (withdrawn_run.state, withdrawn_run.args_sha256) == ("withdrawn", first.args_sha256)
        assert core.views(first.approval_id)[-1].arguments == ()
        session = core.session
    assert audit_problems(home) == []
    async with start() as core:
        core.session = session
        core.app.gate.argument_quota.max_bytes = most
        await withdraw_call(core, "after a restart")
        assert (await kept_arguments(core))[0] <= most
        assert all("tampered" not in record for record in await core.records())


@pytest.mark.actions(change_draft=GATED, update_draft=UPDATE_DRAFT)
async def test_what_a_person_decided_and_what_waits_is_kept_and_more_is_refused(core: Core) -> None:
    """Never forgotten for room: the session hears `rate_limited`, and another one is not concerned."""
    core.app.gate.argument_quota.max_bytes = 100_000
    rows = [await asked_with(core, mark, 30_000) for mark in ("one", "two", "waits")]
    for row in rows[:2]:
        await core.app.approvals.deny(row.approval_id, "no")
    for action in ("change-draft", "update-draft"):
        with pytest.raises(RateLimited, match="MiB of arguments"):
            await core.call(action, big("more", 30_000))
    assert (await kept_arguments(core))[1] == [row.run_id for row in rows]
    await core.app.gate.refused_calls.sweep(everything=True)
    expected = ["change-draft", "update-draft"]
    assert [r["action"] for r in await core.records("call.refused")] == expected
    assert await core.records("arguments.forgotten") == []
    await asked_with(core, "small", 100)
    await core.call("change-draft", big("more", 30_000), session=await core.another_session())


@pytest.mark.actions(change_draft=GATED, update_draft=UPDATE_DRAFT)
async def test_withdrawn_calls_go_before_ungated_and_these_before_a_refusal(core: Core) -> None:
    """An agent that only reads is never stopped by what its earlier calls were."""
    core.app.gate.argument_quota.max_bytes = 100_000
    free = (await core.call("update-draft", big("free", 30_000))).row
    gone = await withdraw_call(core, "withdrawn", 30_000)
    waits = await asked_with(core, "waits", 30_000)
    later = await asked_with(core, "later", 30_000)
    runs = (await kept_arguments(core))[1]
    assert gone.run_id not in runs
    for number in range(5):
        await core.call("update-draft", big(number, 30_000))
    size, runs = await kept_arguments(core)
    assert size <= 100_000
    assert free.run_id not in runs
    assert {waits.run_id, later.run_id} <= set(runs)


@pytest.mark.actions(change_draft=GATED)
async def test_calls_at_once_do_not_pass_the_bound_together(start: Start) -> None:
    """Each counts before it is written; one that cannot be written counts no more."""
    full = [True] * 5

    def failpoint(name: str) -> None:
        if name == "before run.requested" and full and full.pop():
            raise StorageUnavailable("The disk is full.")

    async with start(failpoint=failpoint) as core:
        for number in range(5):
            with pytest.raises(StorageUnavailable):
                await asked_with(core, number, 60_000)
        core.app.gate.argument_quota.max_bytes = 100_000
        calls = (core.call("change-draft", big(number, 30_000)) for number in range(10))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused = [each for each in answers if isinstance(each, BaseException)]
        assert (len(refused), {type(each) for each in refused}) == (7, {RateLimited})
        assert (await kept_arguments(core))[0] <= 100_000
        gc.collect()
        assert in_memory(core) <= 100_000
