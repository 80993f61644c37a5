"""Another program of the same user that rewrites the whole record: found, once there is a vault."""

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.read import verify_home
from aileron_core.home.layout import Home
from aileron_core.storage.open import open_reader
from tests.core.adversary.test_under_the_vaults_key import (
    alarms,
    execute,
    protected_home,
    rewrite_audit,
    unlock,
)
from tests.support.core_harness import Core, Mailbox


async def a_session_with_a_vault(home: Path) -> None:
    """Let a console with an unlocked vault write some records, and close it."""
    await protected_home(home)
    async with Core.open(home, accept=False) as core:
        await unlock(core)
        await core.app.project_trust.accept("claude", "/somewhere", "0" * 64)


def rewrite(home: Path) -> None:
    """Say of a record that something else happened; hash, chain and `audit.head` fit."""

    def change(body: dict[str, Any]) -> None:
        if body["event"] == "console.started":
            body["summary"] = "Nothing happened"

    head = json.loads((home / "audit.head").read_text())
    rewrite_audit(home, change)
    new = json.loads((home / "audit.head").read_text())
    new["signed"] = head["signed"]
    (home / "audit.head").write_text(json.dumps(new).ljust(511) + "\n")


def rewrite_and_unsign(home: Path) -> None:
    """Take the signed heads away besides."""
    rewrite(home)
    execute(home, "DELETE FROM meta WHERE key = 'signed head'")
    new = json.loads((home / "audit.head").read_text())
    del new["signed"]
    (home / "audit.head").write_text(json.dumps(new).ljust(511) + "\n")


def rewrite_and_forge(home: Path) -> None:
    """State the new head as the signed one, with the old one's HMAC."""
    rewrite(home)
    new = json.loads((home / "audit.head").read_text())
    signed = json.loads(new["signed"]) | {"seq": new["seq"], "hash": new["hash"]}
    new["signed"] = json.dumps(signed)
    (home / "audit.head").write_text(json.dumps(new).ljust(511) + "\n")
    execute(home, f"UPDATE meta SET value = '{new['signed']}' WHERE key = 'signed head'")


def problems(home: Path) -> list[str]:
    """Return what `aileron audit verify` names, which has no key."""
    with closing(open_reader(Home(home).database)) as connection:
        return [each.message for each in verify_home(connection, home).problems]


@pytest.mark.parametrize("attack", [rewrite, rewrite_and_unsign, rewrite_and_forge])
async def test_a_rewritten_record_is_found_when_the_vault_is_unlocked(
    home: Path, attack: Callable[[Path], None]
) -> None:
    """One alarm, a record of it, and every later `audit verify` names it; before that nobody can tell."""
    await a_session_with_a_vault(home)
    attack(home)
    assert problems(home) == []
    async with Core.open(home, accept=False) as core:
        assert alarms(core) == []
        await unlock(core)
        await core.until(lambda: bool(alarms(core)))
        (alarm,) = alarms(core)
        assert "sign" in alarm
        assert len(await core.records("audit.rewritten")) == 1
    assert [each for each in problems(home) if "when the vault was unlocked" in each]


async def test_an_older_copy_of_table_and_head_is_found(home: Path) -> None:
    """Everything in them is genuine, and what was done since is missing."""
    await a_session_with_a_vault(home)
    shutil.copy(home / "aileron.db", home / "older.db")
    head = (home / "audit.head").read_bytes()
    async with Core.open(home, accept=False) as core:
        await unlock(core)
        await core.app.project_trust.accept("claude", "/elsewhere", "0" * 64)
    (home / "older.db").replace(home / "aileron.db")
    (home / "audit.head").write_bytes(head)
    async with Core.open(home, accept=False) as core:
        await unlock(core)
        await core.until(lambda: len(alarms(core)) == 2)
        assert [each for each in alarms(core) if "signed head is an older one" in each]
        # What it accepted is an older copy as well, and a set of its own.
        assert [each for each in alarms(core) if "older copy" in each]


async def test_a_record_rewritten_under_a_running_console_is_found_by_its_verification(
    home: Path, mailbox: Mailbox
) -> None:
    """With and without a vault: the console knows what it wrote."""
    await a_session_with_a_vault(home)
    async with Core.open(home, mailbox, accept=False) as core:
        await unlock(core)
        await core.call("list-drafts", {})
        assert (await core.app.audit.verify()).problems == ()
        rewrite(home)
        (found,) = (await core.app.audit.verify()).problems
        assert "rewritten" in found


async def test_an_honest_home_raises_no_alarm_over_restarts_locks_and_crashes(home: Path) -> None:
    """Records that were written while the vault was locked are not signed, and not missed."""
    await a_session_with_a_vault(home)
    async with Core.open(home, accept=False) as core:  # never unlocked
        await core.another_session()
    async with Core.open(home, accept=False) as core:
        await unlock(core)
        await core.another_session()
        await core.app.vault_service.lock()
        await core.another_session()
        await unlock(core)
        await core.another_session()
        shutil.copytree(home, home.parent / "crashed", ignore=shutil.ignore_patterns("*.sock"))
    for place in (home, home.parent / "crashed"):
        async with Core.open(place, accept=False) as core:
            await unlock(core)
            await core.another_session()
            assert alarms(core) == []
            assert (await core.app.audit.verify()).problems == ()
