"""What an earlier version sealed: moved as it is, without its key; opened with that; deleted for real in its time."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.read import verify_home
from aileron_core.storage.open import open_reader
from aileron_tui.cli.kept_call import read_call
from tests.core.adversary.test_under_the_vaults_key import unlock
from tests.core.history.kept import DAY, bytes_of, log_emptied
from tests.support.core_harness import Core, Mailbox
from tests.support.frozen_clock import FrozenClock
from tests.support.older_home import EXPECTED, write_older_home

LEFT_AT = 1_795_878_720.0
"""A minute after its last record, epoch seconds."""
SHOWN = ("run-01m8hb6stbp7yv8fh32ajgje83", "run-01m8hb6swxvptykjq12ny3cavd")
"""The calls that a person decided."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_older_home(tmp_path / "home")


def sealed_of(home: Path, *tables: str) -> list[bytes]:
    with closing(sqlite3.connect(home / "aileron.db")) as other:
        rows = [row for each in tables for row in other.execute(f"SELECT sealed FROM {each}")]
    return sorted(sealed for (sealed,) in rows)


def pieces_of(sealed: bytes) -> list[bytes]:
    """Return what would be found of it wherever a page ends in it."""
    return [sealed[at : at + 32] for at in range(0, len(sealed) - 32, 32)]


def test_it_is_verified_and_read_before_it_is_migrated(old: Path) -> None:
    with closing(open_reader(old / "aileron.db")) as connection:
        assert verify_home(connection, old).problems == ()
        call = read_call(connection, SHOWN[0])
    assert call is not None
    assert (call["state"], call["sealed"]) == ("completed", True)


async def test_what_it_sealed_is_moved_opened_and_deleted(old: Path, mailbox: Mailbox) -> None:
    clock = FrozenClock(LEFT_AT)
    sealed = sealed_of(old, "sealed_screens", "sealed_contents")
    assert len(sealed) == 9
    async with Core.open(old, mailbox, accept=False, clock=clock) as core:
        assert sealed_of(old, "sealed") == sealed
        for run_id in EXPECTED["calls"]:
            call = await core.opened(run_id)
            assert "Unlock the vault" in call.approval.sealed
            assert all("Unlock the vault" in each.problem for each in call.screens)
        await unlock(core)
        await core.app.vault_followed()  # what is in memory is read anew
        for run_id, expected in EXPECTED["calls"].items():
            call = await core.opened(run_id)
            fields = {field.label: field.value for field in call.approval.arguments}
            assert list(fields.values()) == list(expected["arguments"].values())
            assert (call.approval.reason, call.edited) == (expected["reason"] or "", False)
            assert (call.approval.sealed, len(call.screens)) == ("", run_id in SHOWN)
            for screen in call.screens:
                assert screen.approval is not None, screen.problem
                assert screen.approval.approval_id == expected["approval_id"]
                assert screen.approval.preview.fields
        assert (await core.app.audit.verify()).problems == ()
    held = bytes_of(old)
    assert all(any(piece in held for piece in pieces_of(each)) for each in sealed)

    for copy in (old / "backups").iterdir():  # gone already where there was time for that
        os.utime(copy, (LEFT_AT, LEFT_AT))
    clock.advance(32 * DAY)
    async with Core.open(old, mailbox, accept=False, clock=clock) as core:  # still locked
        for run_id in EXPECTED["calls"]:
            call = await core.opened(run_id)
            assert (call.approval.forgotten, call.screens) == (True, ())
        await log_emptied(core)
        left = bytes_of(old)
        assert not [piece for each in sealed for piece in pieces_of(each) if piece in left]
        assert (await core.app.audit.verify()).problems == ()
    left = bytes_of(old)
    assert not [piece for each in sealed for piece in pieces_of(each) if piece in left]
