"""Another program of the same user that rewrites the whole record: found, once there is a vault."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.adversary.test_under_the_vaults_key import alarms, rewrite_audit
from tests.support.core_harness import Core, Start, change_rows, problem_messages, unlock


@pytest.fixture(autouse=True)
async def recorded(protected: None, start: Start) -> None:
    """Let a console with an unlocked vault write some records, and close it."""
    async with start() as core:
        await unlock(core)
        await core.app.project_trust.accept("claude", "/somewhere", "0" * 64)


def edit_head(home: Path, **members: Any) -> dict[str, Any]:
    """Put *members* into `audit.head`, and return all that are there; None takes one out."""
    path = home / "audit.head"
    head = json.loads(path.read_text()) | members
    head = {name: value for name, value in head.items() if value is not None}
    path.write_text(json.dumps(head).ljust(511) + "\n")
    return head


def rewrite(home: Path) -> None:
    """Say of a record that something else happened; hash, chain and `audit.head` fit."""

    def change(body: dict[str, Any]) -> None:
        if body["event"] == "console.started":
            body["summary"] = "Nothing happened"

    signed = json.loads((home / "audit.head").read_text())["signed"]
    rewrite_audit(home, change)
    edit_head(home, signed=signed)


def rewrite_and_unsign(home: Path) -> None:
    """Take the signed heads away besides."""
    rewrite(home)
    change_rows(home, "DELETE FROM meta WHERE key = 'signed head'")
    edit_head(home, signed=None)


def rewrite_and_forge(home: Path) -> None:
    """State the new head as the signed one, with the old one's HMAC."""
    rewrite(home)
    head = edit_head(home)
    signed = json.dumps(json.loads(head["signed"]) | {"seq": head["seq"], "hash": head["hash"]})
    edit_head(home, signed=signed)
    change_rows(home, f"UPDATE meta SET value = '{signed}' WHERE key = 'signed head'")


@pytest.mark.parametrize("attack", [rewrite, rewrite_and_unsign, rewrite_and_forge])
async def test_a_rewritten_record_is_found_when_the_vault_is_unlocked(
    start: Start, home: Path, attack: Callable[[Path], None]
) -> None:
    """One alarm, a record of it, and every later `audit verify` names it; before that nobody can tell."""
    attack(home)
    assert problem_messages(home) == []
    async with start() as core:
        assert alarms(core) == []
        await unlock(core)
        await core.until(lambda: bool(alarms(core)))
        (alarm,) = alarms(core)
        assert "sign" in alarm
        assert len(await core.records("audit.rewritten")) == 1
    assert [each for each in problem_messages(home) if "when the vault was unlocked" in each]


async def test_an_older_copy_of_table_and_head_is_found(start: Start, home: Path) -> None:
    """Everything in them is genuine, and what was done since is missing."""
    shutil.copy(home / "aileron.db", home / "older.db")
    head = (home / "audit.head").read_bytes()
    async with start() as core:
        await unlock(core)
        await core.app.project_trust.accept("claude", "/elsewhere", "0" * 64)
    (home / "older.db").replace(home / "aileron.db")
    (home / "audit.head").write_bytes(head)
    async with start() as core:
        await unlock(core)
        await core.until(lambda: len(alarms(core)) == 2)
        assert [each for each in alarms(core) if "signed head is an older one" in each]
        # What it accepted is an older copy as well, and a set of its own.
        assert [each for each in alarms(core) if "older copy" in each]


async def test_a_record_rewritten_under_a_running_console_is_found(
    start: Start, home: Path
) -> None:
    """By its own verification, and by anybody's from its next record on: the console knows what it wrote."""
    async with start() as core:
        await unlock(core)
        await core.call("list-drafts", {})
        assert (await core.app.audit.verify()).problems == ()
        rewrite(home)
        (found,) = (await core.app.audit.verify()).problems
        assert "rewritten" in found
        await core.another_session()
        (found,) = problem_messages(home)
        assert "is not the one that record" in found


async def test_an_honest_home_raises_no_alarm_over_restarts_locks_and_crashes(
    start: Start, home: Path
) -> None:
    """Records that were written while the vault was locked are not signed, and not missed."""
    async with start() as core:  # never unlocked
        await core.another_session()
    async with start() as core:
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
