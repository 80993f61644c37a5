"""The hashes that records have of a call's content: checked as long as it is kept, and good for no guess after."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.chain import content_hash
from aileron_core.audit.read import verify_home
from aileron_core.canonical import canonical
from aileron_core.home.layout import Home
from aileron_core.runs.model import RunRecord
from aileron_core.storage.open import open_reader
from tests.core.adversary.test_under_the_vaults_key import protected_home, unlock
from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0
HEX = re.compile(rb"[0-9a-f]{64}")
GUESS = canonical({"draft_id": DRAFT})
"""The arguments of the call, as whoever guesses right writes them."""


def found_in(home: Path) -> set[str]:
    """Return whatever in the home's files may be a hash or a key, free pages and logs included."""
    found: set[str] = set()
    for file in home.rglob("*"):
        # A new copy of the vault may be renamed meanwhile: it is there under its name.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            found |= {each.decode() for each in HEX.findall(file.read_bytes())}
    return found


def confirmations(home: Path, guess: bytes) -> Iterator[str]:
    """Yield each key in the home under which a hash in the home is that of *guess*; "" for no key."""
    found = found_in(home)
    for key in (None, *found):
        if content_hash(guess, key) in found:
            yield key or ""


def problems(home: Path) -> list[str]:
    with closing(open_reader(Home(home).database)) as connection:
        return [each.message for each in verify_home(connection, home).problems]


def change(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "aileron.db")) as connection, connection:
        connection.execute(statement)


async def decided_call(core: Core) -> RunRecord:
    """Return a completed call of `send-draft` whose end its agent has heard of."""
    view = await core.ask()
    await core.approve(view)
    await core.ended(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    return await core.result(view.approval_id)


@pytest.mark.parametrize("vault", [False, True])
async def test_once_the_content_is_deleted_no_record_confirms_a_guess_of_it(
    home: Path, mailbox: Mailbox, vault: bool
) -> None:
    """As long as it is kept, its key is beside it, and `audit verify` compares; then the key goes with it."""
    clock = FrozenClock()
    await (protected_home(home) if vault else _installed(home))
    async with Core.open(home, mailbox, clock=clock, accept=not vault) as core:
        if vault:
            await unlock(core)
        row = await decided_call(core)
        assert [*confirmations(home, GUESS)] == [row.content_key]
        nonce = core.app._nonce_of(row)
        assert (core.app._nonce_of(row) == nonce) == vault
        clock.advance(31 * DAY)
        await core.app.retention.sweep()
        gone = core.app.registry.get(row.run_id)
        assert gone is not None
        assert (gone.row.content_key, gone.row.args_sha256) == (None, row.args_sha256)
        # Nor does whoever knows the passphrase learn the nonce, and from it what was previewed.
        assert core.app._nonce_of(gone.row) != nonce
    assert row.args_sha256 in found_in(home)
    assert [*confirmations(home, GUESS)] == []
    assert problems(home) == []


async def _installed(home: Path) -> None:
    install_examples(home)


async def test_a_call_that_came_while_the_vault_was_locked_is_checked_like_any_other(
    home: Path, mailbox: Mailbox
) -> None:
    """Locked, unlocked, locked again and restarted: no hash depends on it, nor does `audit verify`."""
    await protected_home(home)
    async with Core.open(home, mailbox, accept=False) as core:
        early = await core.call()
        await unlock(core)
        assert early.row.approval_id is not None
        await core.approve(await core.looked(early.row.approval_id))
        later = await core.ask("r-8842190312")
        await core.app.vault_service.lock()
    async with Core.open(home, mailbox, accept=False) as core:
        assert core.app.registry.by_approval(later.approval_id) is not None
    assert problems(home) == []
    change(home, "UPDATE runs SET args = replace(args, 'r-', 's-')")
    found = problems(home)
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
async def test_a_changed_result_or_key_is_named(home: Path, mailbox: Mailbox, edit: str) -> None:
    """No key makes other content fit the record, and none is missing without a record that it was deleted."""
    install_examples(home)
    async with Core.open(home, mailbox) as core:
        await decided_call(core)
    assert problems(home) == []
    change(home, f"UPDATE runs SET {edit}")
    assert len(problems(home)) == 1
    async with Core.open(home, mailbox) as core:
        assert not [run for run in core.app.registry if run.row.state == "completed"]


async def test_the_preview_is_in_no_file_and_neither_is_a_hash_of_it(
    home: Path, mailbox: Mailbox
) -> None:
    """The digest covers it with a secret nonce; after a restart it is fetched anew, and not compared."""
    await protected_home(home)
    async with Core.open(home, mailbox, accept=False) as core:
        await unlock(core)
        view = await core.ask()
        run = core.app.registry.by_approval(view.approval_id)
        assert run is not None
        hashes = {run.preview.fingerprint, content_hash(canonical(run.preview.output), None)}
        nonce = run.nonce
    assert not hashes & found_in(home)
    assert not [*confirmations(home, canonical(run.preview.output))]
    assert not [
        each for each in home.rglob("*") if each.is_file() and nonce.encode() in each.read_bytes()
    ]
