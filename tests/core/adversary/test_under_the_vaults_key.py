"""Another program of the same user at what the vault's key protects: no effect, and one alarm."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.record import GENESIS, chain_hash
from aileron_core.canonical import canonical, sha256_hex
from aileron_core.console_port.intents import Accept
from aileron_core.errors import VaultLocked
from aileron_core.library.authenticated_records import AuthenticatedSet
from tests.support.core_harness import (
    PASSPHRASE,
    Core,
    Mailbox,
    Start,
    change_rows,
    protected_home,
    unlock,
)

__all__ = ["PASSPHRASE", "protected_home", "unlock"]

pytestmark = pytest.mark.usefixtures("protected")


def alarms(core: Core) -> list[str]:
    return [each.message for each in core.app.library.problems_and_alarms()]


def ready(core: Core) -> set[str]:
    return {action.name for action in core.app.library.ready()}


def rewrite_audit(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Apply *change* to every record, and make the chain and its head fit: who can write can do that."""
    with closing(sqlite3.connect(home / "aileron.db")) as connection, connection:
        prev, rows = GENESIS, connection.execute("SELECT seq, at, body FROM audit").fetchall()
        for seq, _, text in rows:
            body = json.loads(text)
            change(body)
            text = canonical(body)
            hash_ = chain_hash(prev, text)
            connection.execute(
                "UPDATE audit SET prev = ?, hash = ?, body = ? WHERE seq = ?",
                (prev, hash_, text.decode(), seq),
            )
            prev = hash_
    seq, at, _ = rows[-1]
    head = {"seq": seq, "hash": prev.hex(), "count": seq, "at": at}
    (home / "audit.head").write_text(json.dumps(head, separators=(",", ":")).ljust(255) + "\n")


def accept_other_bytes(home: Path) -> None:
    """Put other bytes into an accepted file, and into every row and record about it."""
    path = home / "actions" / "list-drafts.md"
    with closing(sqlite3.connect(home / "aileron.db")) as connection:
        query = "SELECT digest FROM pins WHERE name = 'list-drafts.md'"
        (old,) = connection.execute(query).fetchone()
    path.write_text(path.read_text(encoding="utf-8") + "\nOther bytes.\n", encoding="utf-8")
    new = sha256_hex(path.read_bytes())

    def change(body: dict[str, Any]) -> None:
        if body.get("digest") == old:
            body["digest"] = new

    rewrite_audit(home, change)
    change_rows(home, f"UPDATE pins SET digest = '{new}' WHERE digest = '{old}'")


def insert_row(home: Path) -> None:
    """Insert a row of a file that nobody accepted, with a record of its acceptance."""
    text = (home / "actions" / "list-drafts.md").read_text(encoding="utf-8")
    evil = text.replace('"list-drafts"', '"evil"').replace("actions/list-drafts@", "actions/evil@")
    (home / "actions" / "evil.md").write_text(evil, encoding="utf-8")
    digest = sha256_hex(evil.encode())

    def change(body: dict[str, Any]) -> None:
        if body.get("event") == "console.started":
            body |= {"event": "library.accepted", "kind": "action", "name": "evil.md"}
            body["digest"] = digest

    rewrite_audit(home, change)
    change_rows(
        home,
        "UPDATE audit SET event = 'library.accepted' WHERE event = 'console.started'",
        f"INSERT INTO pins VALUES('action', 'evil.md', '{digest}', 1.0, 'person', 1)",
    )


def by(statement: str) -> Callable[[Path], None]:
    """Return the attack that runs *statement*."""
    return lambda home: change_rows(home, statement)


ATTACKS = {
    "other bytes": accept_other_bytes,
    "another row": insert_row,
    "a row less": by("DELETE FROM pins WHERE name = 'list-drafts.md'"),
    "no rows": by("DELETE FROM pins"),
    "another set's HMAC": by(
        "UPDATE meta SET value = (SELECT value FROM meta WHERE key = 'hmac of accepted projects') "
        "WHERE key = 'hmac of accepted files'"
    ),
    "no HMAC": by("DELETE FROM meta WHERE key LIKE 'hmac of %'"),
    "a spoilt HMAC": by("UPDATE meta SET value = '[1]' WHERE key = 'hmac of accepted files'"),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_changed_rows_accept_nothing_and_raise_one_alarm(
    start: Start, home: Path, attack: Callable[[Path], None]
) -> None:
    """Although every record of the audit was made to fit; each file is offered again, and can be accepted."""
    attack(home)
    async with start() as core:
        await unlock(core)
        assert ready(core) == set()
        found = [each for each in alarms(core) if "what was accepted cannot" in each.lower()]
        assert len(found) == 1
        assert "accept it again" in found[0]
        recorded = await core.records("library.unverified")
        assert [each["set"] for each in recorded].count("accepted files") == 1
        with pytest.raises(Exception, match="not accepted"):
            await core.call("list-drafts", {})
        for view in core.app.library.not_accepted():
            await core.do(Accept(kind=view.kind, name=view.name, digest=view.digest))
        assert "list-drafts" in ready(core)
        assert not [each for each in alarms(core) if "what was accepted cannot" in each.lower()]
    async with start() as core:
        await unlock(core)
        assert "list-drafts" in ready(core)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("locked", [False, True])
async def test_rows_changed_under_a_running_console_accept_nothing(
    core: Core, mailbox: Mailbox, home: Path, attack: Callable[[Path], None], locked: bool
) -> None:
    """Unlocked it goes by its memory; the next unlock reads the rows, and finds it."""
    if not locked:
        await unlock(core)
    accepted = ready(core)
    attack(home)
    await core.app.library.poll()
    await core.until(lambda: ready(core) <= accepted)
    if (home / "actions" / "evil.md").exists():
        with pytest.raises(Exception, match="not accepted"):
            await core.call("evil", {"draft_id": "r-8842190447"})
    if not locked:
        await core.app.vault_service.lock()
        await core.until(lambda: core.app.accounts._unverified() == "locked")
    await unlock(core)
    await core.until(lambda: not ready(core))
    assert len([each for each in alarms(core) if "what was accepted cannot" in each.lower()]) == 1
    assert mailbox.state()["requests"] == []


async def test_an_older_copy_of_the_table_does_not_bring_back_what_was_withdrawn(
    start: Start, home: Path
) -> None:
    """Rows, HMAC and audit are all genuine, from before."""
    shutil.copy(home / "aileron.db", home / "older.db")
    head = (home / "audit.head").read_bytes()
    async with start() as core:
        await unlock(core)
        item = next(each for each in core.app.library.items() if each.name == "list-drafts")
        await core.app.library.withdraw_acceptance("action", item.name, item.digest)
    (home / "older.db").replace(home / "aileron.db")
    (home / "audit.head").write_bytes(head)
    async with start() as core:
        await unlock(core)
        assert ready(core) == set()
        (alarm,) = [each for each in alarms(core) if "older copy" in each]
        assert "list-drafts.md" in alarm


async def test_an_older_vault_file_does_not_make_older_rows_count(start: Start, home: Path) -> None:
    """The vault from before two changes: nothing counts, rather than something that was withdrawn."""
    older = (home / "vault.json").read_bytes()
    async with start() as core:
        await unlock(core)
        for name in ("list-drafts", "get-draft"):
            item = next(each for each in core.app.library.items() if each.name == name)
            await core.app.library.withdraw_acceptance("action", item.name, item.digest)
    (home / "vault.json").write_bytes(older)
    (home / "vault.json.previous").unlink()
    async with start() as core:
        await unlock(core)
        assert ready(core) == set()
        assert len([each for each in alarms(core) if "vault was replaced by an older" in each]) == 1


async def test_a_removed_vault_does_not_make_rows_count(start: Start, home: Path) -> None:
    """Else removing one file would bring back the time before there was a vault."""
    accept_other_bytes(home)
    (home / "vault.json").unlink()
    (home / "vault.json.previous").unlink(missing_ok=True)
    async with start() as core:
        assert core.app.vault.state == "absent"
        assert ready(core) == set()
        assert [each for each in alarms(core) if "vault that authenticated it is gone" in each]


async def test_a_change_that_was_cut_short_after_the_database_counts(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vault's counter is written last; a crash before it loses no acceptance."""
    async with start() as core:
        await unlock(core)
        monkeypatch.setattr(AuthenticatedSet, "confirm", lambda *_: None)
        item = next(each for each in core.app.library.items() if each.name == "list-drafts")
        await core.app.library.withdraw_acceptance("action", item.name, item.digest)
    monkeypatch.undo()
    async with start() as core:
        await unlock(core)
        assert "list-drafts" not in ready(core)
        assert "get-draft" in ready(core)
        assert alarms(core) == []


async def test_while_locked_actions_are_listed_and_every_call_waits(
    core: Core, mailbox: Mailbox
) -> None:
    """A call that reads goes on by itself after the unlocking; nothing was asked of the service before."""
    assert "list-drafts" in ready(core)
    answer = await core.call("list-drafts", {})
    assert answer.row.state == "awaiting_vault"
    assert answer.row.approval_id is not None
    gated = await core.call()
    assert gated.row.approval_id is not None
    view = await core.view(gated.row.approval_id, lambda v: v.state == "awaiting_vault")
    assert view.account_need is not None
    assert (view.account_need.reason, view.account_need.kind) == ("locked", "")
    assert mailbox.state()["requests"] == []
    with pytest.raises(VaultLocked):
        await core.app.project_trust.accept("claude", "/somewhere", "0" * 64)
    await unlock(core)
    end = await core.view(answer.row.approval_id, lambda v: v.ended_at is not None)
    assert end.state == "completed"
    asked = await core.looked(gated.row.approval_id)
    assert (await core.run(asked)).state == "completed"


async def test_calls_that_waited_are_refused_where_nothing_verifies(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """Neither the effect nor the preview of an action that only an edited row accepts reaches the service."""
    accept_other_bytes(home)
    async with start() as core:
        answers = [await core.call("list-drafts", {}), await core.call()]
        await unlock(core)
        for answer in answers:
            assert answer.row.approval_id is not None
            end = await core.view(answer.row.approval_id, lambda v: v.ended_at is not None)
            assert end.state == "failed"
        assert mailbox.state()["requests"] == []


async def test_a_file_that_went_while_locked_is_not_accepted_when_it_comes_back(
    start: Start, home: Path
) -> None:
    """What comes in its place waits for a person, whatever its bytes."""
    path = home / "actions" / "list-drafts.md"
    data = path.read_bytes()
    async with start() as core:
        path.unlink()
        await core.until(lambda: "list-drafts" not in ready(core))
        path.write_bytes(data)
        await core.until(
            lambda: "list-drafts" in {each.name for each in core.app.library.not_accepted()}
        )
        await unlock(core)
        await core.until(lambda: bool(ready(core)))
        assert "list-drafts" not in ready(core)
        assert len(await core.records("library.removed")) == 1
        assert alarms(core) == []


PROJECT_EDITS = [
    "UPDATE pins SET taken_at = 1.0 WHERE kind = 'project'",
    "UPDATE pins SET name = 'claude /elsewhere' WHERE kind = 'project'",
    "INSERT INTO pins SELECT 'project', 'codex /home', digest, 1.0, 'person', 1 FROM pins LIMIT 1",
    "DELETE FROM pins WHERE kind = 'project'",
    "DELETE FROM meta WHERE key = 'hmac of accepted projects'",
]


@pytest.mark.parametrize("edit", PROJECT_EDITS)
async def test_edited_rows_of_projects_are_ignored(start: Start, home: Path, edit: str) -> None:
    """The settings of a project are a set of their own."""
    async with start() as core:
        await unlock(core)
        await core.app.project_trust.accept("claude", "/somewhere", "0" * 64)
        assert len(core.app.project_trust.records()) == 1
    change_rows(home, edit)
    async with start() as core:
        assert core.app.project_trust.records() == ()
        await unlock(core)
        await core.until(lambda: bool(alarms(core)))
        assert core.app.project_trust.records() == ()
        assert "list-drafts" in ready(core)
        (alarm,) = alarms(core)
        assert "what was accepted of projects" in alarm.lower()
