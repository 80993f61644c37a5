"""The hashes that records have of a call's content: checked as long as it is kept, and good for no guess after."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.audit.record import content_hash
from aileron_core.canonical import canonical
from aileron_core.runs.model import RunRecord
from tests.support.core_harness import (
    DRAFT,
    Core,
    Start,
    change_rows,
    problem_messages,
    protected_home,
    unlock,
)
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0
HEX = re.compile(rb"[0-9a-f]{64}")
GUESS = canonical({"draft_id": DRAFT})
"""The arguments of the call, as whoever guesses right writes them."""


def hashes_in(home: Path) -> set[str]:
    """Return whatever in the home's files may be a hash or a key, free pages and logs included."""
    found: set[str] = set()
    for file in home.rglob("*"):
        # A new copy of the vault may be renamed meanwhile: it is there under its name.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            found |= {each.decode() for each in HEX.findall(file.read_bytes())}
    return found


def confirmations(home: Path, guess: bytes) -> Iterator[str]:
    """Yield each key in the home under which a hash in the home is that of *guess*; "" for no key."""
    found = hashes_in(home)
    for key in (None, *found):
        if content_hash(guess, key) in found:
            yield key or ""


async def decided_call(core: Core) -> RunRecord:
    """Return a completed call of `send-draft` whose end its agent has heard of."""
    view = await core.ask()
    await core.run(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    return await core.result(view.approval_id)


@pytest.mark.parametrize("vault", [False, True])
async def test_once_the_content_is_deleted_no_record_confirms_a_guess_of_it(
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
        clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        gone = core.app.registry.get(row.run_id)
        assert (gone.row.content_key, gone.row.args_sha256) == (None, row.args_sha256)
        # Nor does whoever knows the passphrase learn the nonce, and from it what was previewed.
        assert core.app.nonce_of(gone.row) != nonce
    assert row.args_sha256 in hashes_in(home)
    assert [*confirmations(home, GUESS)] == []
    assert problem_messages(home) == []


@pytest.mark.usefixtures("protected")
async def test_a_call_that_came_while_the_vault_was_locked_is_checked_like_any_other(
    start: Start, home: Path
) -> None:
    """Locked, unlocked, locked again and restarted: no hash depends on it, nor does `audit verify`."""
    async with start() as core:
        early = await core.call()
        await unlock(core)
        await core.approve(await core.looked(early.row.approval_id))
        later = await core.ask("r-8842190312")
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
    assert not [
        each for each in home.rglob("*") if each.is_file() and nonce.encode() in each.read_bytes()
    ]


@pytest.mark.usefixtures("protected")
async def test_words_stay_over_a_restart_with_a_vault(start: Start) -> None:
    """Also those of a call that was made while the vault was locked; no two calls share a nonce."""
    async with start() as core:
        early = await core.call()
        await unlock(core)
        first = await core.looked(early.row.approval_id)
        second = await core.ask("r-8842190312")
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
