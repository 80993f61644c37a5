"""What was removed or never accepted does not count: bytes put back, rows made up; what an older version accepted does."""

import asyncio
import hashlib
import os
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import sha256_hex
from aileron_core.clock import SystemClock
from aileron_core.console_port.intents import Accept, AcceptSuite, RemoveFile
from aileron_core.errors import Conflict, HomeError, NotFound
from aileron_core.library.accepted_settings import AcceptedSettings, load_policy
from aileron_core.library.authenticated_records import AuthenticatedSet
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import bind_unix
from aileron_core.settings import load_settings
from aileron_core.storage.migrations import migrate
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from aileron_tui.cli.actions import remove_action
from aileron_tui.cli.connectors import remove_connector
from aileron_tui.cli.output import CommandContext
from tests.support.core_harness import PASSPHRASE, Core, Start, change_rows, unlock

CONNECTOR = "local://aileron/mail-drafts@0.1.0"


def draft_file(home: Path) -> Path:
    return home / "actions" / "get-draft.md"


def connector_folder(home: Path) -> Path:
    (folder,) = (home / "store" / "connectors" / "sha256").iterdir()
    return folder


def module_file(home: Path) -> Path:
    return connector_folder(home) / "connector.wasm"


def item_states(core: Core) -> dict[str, str]:
    return {each.name: each.state for each in core.app.library.items()}


def remove_now(home: Path, command: Callable[[CommandContext, str], int], name: str) -> None:
    """Run the command that removes *name*."""
    assert command(CommandContext(home=home, json=False, color=False), name) == 0


def beside(home: Path, path: Path) -> Path:
    """Copy a file or folder out of the home, with its times, as a program would that puts it back."""
    kept = home.parent / "kept"
    return shutil.copytree(path, kept) if path.is_dir() else Path(shutil.copy2(path, kept))


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("name", "recorded", "place"),
    [
        ("get-draft", "get-draft.md", draft_file),
        (CONNECTOR, CONNECTOR, connector_folder),
        (CONNECTOR, CONNECTOR, module_file),
    ],
    ids=["action", "connector", "module"],
)
async def test_what_is_deleted_by_hand_and_put_back_waits_for_a_person(
    start: Start, home: Path, name: str, recorded: str, place: Callable[[Path], Path], running: bool
) -> None:
    """Whether a console runs meanwhile or starts after it; on record, and over restarts."""
    path = place(home)
    kept = beside(home, path)

    def delete() -> None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    async with start() as core:
        assert "get-draft" in core.ready()
        if running:
            delete()
            await core.app.library.poll()
    if not running:
        delete()
    async with start(accept=False) as core:
        assert "get-draft" not in core.ready()
        (record,) = await core.records("library.removed")
        assert (record["actor"], record["name"]) == ("aileron", recorded)
        kept.rename(path)
        await core.app.library.poll()
        assert item_states(core)[name] == "held_back"
        assert "get-draft" not in core.ready()
        with pytest.raises((Conflict, NotFound)):
            await core.call("get-draft", {"id": "r-1"})
    async with start(accept=False) as core:
        assert item_states(core)[name] == "held_back"
        (held,) = [each for each in core.app.library.not_accepted() if each.name == name]
        await core.do(Accept(kind=held.kind, name=name, digest=held.digest))
        assert "get-draft" in core.ready()
        assert (await core.app.audit.verify()).problems == ()


async def protect_and_lock(core: Core) -> None:
    """Have a vault's key protect what is accepted, and lock the vault."""
    core.app.vault.create(Secret(PASSPHRASE))
    await core.until_record("library.authenticated", 3)
    await core.app.vault_followed()
    core.app.vault.lock()


@pytest.mark.parametrize("vault", [False, True])
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("is_action", [True, False], ids=["action", "connector"])
async def test_what_a_command_removed_counts_no_more_however_soon_it_is_back(
    start: Start, home: Path, is_action: bool, running: bool, vault: bool
) -> None:
    """The console need not have seen that it was gone, and a locked vault is no reason to wait."""
    path = draft_file(home) if is_action else connector_folder(home)
    kept = beside(home, path)

    def remove() -> None:
        if is_action:
            remove_now(home, remove_action, "get-draft")
        else:
            remove_now(home, remove_connector, "mail-drafts")
        kept.rename(path)

    async with start() as core:
        if vault:
            await protect_and_lock(core)
        if running:  # it answers commands at its home's socket
            async with EmbeddedServer(create_app(core.app), [bind_unix(core.app.home.socket)]):
                await asyncio.to_thread(remove)
            assert "get-draft" not in core.ready()
    if not running:
        await asyncio.to_thread(remove)
    async with start(accept=False) as core:
        assert "get-draft" not in core.ready()
        assert len(await core.records("library.removed")) == 1
        if vault:
            await unlock(core)
            await core.until(lambda: "list-drafts" in core.ready() or not is_action)
        assert "get-draft" not in core.ready()
        assert "aileron.db" not in {each.file for each in core.app.library.problems_and_alarms()}


async def test_a_removal_while_locked_is_signed_once_unlocked(core: Core, home: Path) -> None:
    """Else whoever rewrites the record of it brought the acceptance back."""
    await protect_and_lock(core)
    draft_file(home).unlink()
    await core.app.library.poll()
    await unlock(core)
    await core.until(lambda: "list-drafts" in core.ready())
    names = "SELECT name FROM pins WHERE kind = 'action'"
    rows = await core.app.database.read(lambda c: c.execute(names).fetchall())
    assert rows == [("list-drafts.md",), ("send-draft.md",)]


@pytest.mark.parametrize("way", ["by hand", "by a command", "by a command that finds no console"])
@pytest.mark.parametrize("row", ["kept", "deleted as well"])
async def test_what_is_removed_after_an_alarm_counts_no_more_once_the_hmac_is_back(
    start: Start, home: Path, protected: None, way: str, row: str
) -> None:
    """The set is not signed anew meanwhile: what was not removed counts again."""
    path = draft_file(home)
    kept = beside(home, path)
    older = shutil.copy(home / "aileron.db", home.parent / "older.db")
    change_rows(home, "DELETE FROM meta WHERE key = 'hmac of accepted files'")
    if row != "kept":
        change_rows(home, "DELETE FROM pins WHERE name = 'get-draft.md'")
    async with start() as core:
        await unlock(core)
        assert core.ready() == []
        if way == "by hand":
            path.unlink()
            await core.app.library.poll()
        elif way == "by a command":
            await core.do(RemoveFile(kind="action", file=path.name))
    if path.exists():
        await asyncio.to_thread(remove_now, home, remove_action, "get-draft")
    kept.rename(path)
    insert = "INSERT OR IGNORE INTO {0} SELECT * FROM older.{0}"
    put_back = [insert.format(each) for each in ("meta", "pins")]
    change_rows(home, f"ATTACH '{older}' AS older", *put_back)
    async with start() as core:
        await unlock(core)
        assert "list-drafts" in core.ready()
        assert "get-draft" not in core.ready()
        (record,) = await core.records("library.removed")
        assert record["name"] == "get-draft.md"


def rename_over(path: Path) -> None:
    new = path.with_name(".new")
    new.write_bytes(path.read_bytes())
    new.rename(path)


def unlink_and_create(path: Path) -> None:
    text = path.read_bytes()
    path.unlink()
    path.write_bytes(text)


def move_away_and_back(path: Path) -> None:
    path.rename(path.with_name(".away"))
    path.with_name(".away").rename(path)


@pytest.mark.parametrize("save", [rename_over, unlink_and_create, move_away_and_back])
async def test_a_file_that_is_saved_as_it_was_was_not_removed(
    core: Core, home: Path, save: Callable[[Path], None]
) -> None:
    """As editors save: between two looks of the console it is the same file, in the same bytes."""
    await core.app.library.poll()
    save(draft_file(home))
    await core.app.library.poll()
    assert "get-draft" in core.ready()
    assert await core.records("library.removed") == []


async def test_a_yes_to_what_was_removed_and_put_back_runs_nothing(core: Core, home: Path) -> None:
    """What was accepted when the person looked counts no more when they say yes."""
    path = home / "actions" / "send-draft.md"
    kept = beside(home, path)
    view = await core.ask()
    path.unlink()
    await core.app.library.poll()
    kept.rename(path)
    await core.app.library.poll()
    ended = await core.run(view)
    assert ended.state == "failed"
    assert "was removed and put back after you looked" in ended.outcome


@pytest.mark.parametrize(
    "forgery",
    [
        "INSERT INTO pins VALUES('action', 'evil.md', :digest, 1.0, 'person', 1)",
        "INSERT INTO pins SELECT 'action', 'evil.md', :digest, 1.0, 'person', last_record FROM pins LIMIT 1",
        "UPDATE pins SET name='evil.md', digest=:digest WHERE name='get-draft.md'",
        "UPDATE OR IGNORE pins SET digest=:digest WHERE kind='action'",
    ],
)
async def test_a_database_row_accepts_nothing(start: Start, home: Path, forgery: str) -> None:
    text = (home / "actions" / "get-draft.md").read_text(encoding="utf-8")
    async with start() as core:
        assert core.app.library.not_accepted() == ()
    evil = text.replace('"get-draft"', '"evil"').replace("actions/get-draft@", "actions/evil@")
    (home / "actions" / "evil.md").write_text(evil, encoding="utf-8")
    digest = hashlib.sha256(evil.encode()).hexdigest()
    change_rows(home, forgery.replace(":digest", f"'{digest}'"))
    async with start(accept=False) as core:
        assert "evil" not in core.ready()
        assert "evil" in [view.name for view in core.app.library.not_accepted()]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../config.toml", "../actions/get-draft.md", "no-such.md", "x\0.md"]
)
async def test_a_name_of_no_file_removes_nothing(core: Core, home: Path, name: str) -> None:
    """Nor does the hash of an action: only the file's own name in its folder leads to it."""
    digest = hashlib.sha256(draft_file(home).read_bytes()).hexdigest()
    for kind, each in (("action", name), ("action", digest), ("connector", name)):
        with pytest.raises(NotFound):
            await core.app.console.answer(RemoveFile(kind=kind, file=each), "command line")
    assert draft_file(home).exists()
    assert "get-draft" in core.ready()
    assert await core.records("library.removed") == []


@pytest.mark.parametrize("refused", [["unlink"], ["listdir", "scandir"]])
async def test_what_cannot_be_removed_is_accepted_no_more(
    core: Core, home: Path, monkeypatch: pytest.MonkeyPatch, refused: list[str]
) -> None:
    """Its acceptance ends first: what is left after a failure waits for a person."""

    def refuse(real: Callable[..., Any], path: Any = ".", **more: Any) -> Any:
        if str(path).startswith(str(home / "actions")):
            raise PermissionError(1, "not permitted", path)
        return real(path, **more)

    for each in refused:
        monkeypatch.setattr(os, each, partial(refuse, getattr(os, each)))
    remove = RemoveFile(kind="action", file="get-draft.md")
    with pytest.raises(HomeError, match="could not be removed"):
        await core.app.console.answer(remove, "command line")
    monkeypatch.undo()
    await core.app.library.poll()
    assert item_states(core)["get-draft"] == "held_back"
    assert draft_file(home).exists()


@pytest.mark.parametrize("together", [False, True])
async def test_a_yes_ends_with_a_removal_that_comes_before_it_is_recorded(
    start: Start, home: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Else it was recorded for a file that is gone, and counted once that is back."""
    path = draft_file(home)
    kept = beside(home, path)
    async with start(accept=False) as core:
        library = core.app.library
        (view,) = [each for each in library.not_accepted() if each.file == path.name]
        keep = library._keep
        removing: list[asyncio.Task[None]] = []

        async def remove_meanwhile(digests: Collection[str]) -> None:
            removing.append(asyncio.create_task(core.do(RemoveFile(kind="action", file=path.name))))
            if not library._reading.locked():
                await removing[0]
            await keep(digests)

        monkeypatch.setattr(library, "_keep", remove_meanwhile)
        yes = Accept(kind="action", name=view.name, digest=view.digest)
        files = ((view.file, view.digest),)
        await core.do(AcceptSuite(suite_id="none", files=files) if together else yes)
        await removing[0]
        kept.rename(path)
        await library.poll()
        assert item_states(core)["get-draft"] == "held_back"


MINE = '[gateway]\nanthropic = "https://proxy.example.com"\n'
ITS_OWN = '[gateway]\nanthropic = "https://evil.example.com"\n'
RULES = '[[rule]]\ntools = ["Write"]\npaths = ["notes/**"]\ndecision = "allow"\n'


@asynccontextmanager
async def core_on(home: Path, *, unlocks: bool = True) -> AsyncGenerator[Core]:
    """A core on the files as they are, in a home of today's schema."""
    migrate(home / "aileron.db")
    settings, policy = load_settings(home / "config.toml"), load_policy(home / "policy.toml")
    async with Core.open(home, accept=False, settings=settings, policy=policy) as core:
        if unlocks and core.app.vault.state == "locked":
            await unlock(core)
            await core.until(lambda: all(each.count or each.problem for each in sets(core)))
        yield core


def sets(core: Core) -> tuple[AcceptedSettings, AcceptedSettings]:
    return core.app.accepted_settings, core.app.accepted_policy


def counts(core: Core) -> tuple[bool, bool]:
    return core.app.accepted_settings.count, core.app.accepted_policy.count


def accepted_rows(home: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(home / "aileron.db")) as database:
        query = "SELECT kind, name, digest FROM pins WHERE kind IN ('settings', 'policy')"
        return sorted(database.execute(query).fetchall())


def hmac(home: Path, name: str) -> str:
    with closing(sqlite3.connect(home / "aileron.db")) as database:
        query = "SELECT value FROM meta WHERE key = ?"
        return database.execute(query, (f"hmac of {name}",)).fetchone()[0]


def make_older(home: Path) -> None:
    """Leave *home* as a version before schema 7 did."""
    vault = Vault(home, SystemClock())
    if vault.state == "locked":
        vault.unlock(Secret(PASSPHRASE))
        for kind, _, digest in accepted_rows(home):
            set_ = AuthenticatedSet(vault, kind)
            mac = set_.sign(digest)
            set_.confirm(mac)
            statement = f"UPDATE meta SET value = '{mac.to_text()}' WHERE key = 'hmac of {kind}'"
            change_rows(home, statement)
        vault.lock()
    change_rows(
        home,
        "DELETE FROM pins WHERE kind IN ('settings', 'policy')",
        "ALTER TABLE runs DROP COLUMN asked_args",
        "UPDATE meta SET value = '6' WHERE key = 'schema_version'",
        "PRAGMA user_version = 6",
    )


async def accept_older_policy(core: Core) -> None:
    """Accept the rules, which alone wait."""
    (item,) = core.app.library.not_accepted()
    await core.do(Accept(kind="policy", name=item.name, digest=item.digest))


@pytest.fixture
async def ruled(home: Path) -> None:
    """A home with accepted rules, and without a vault."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "policy.toml").write_text(RULES, encoding="utf-8")
    async with core_on(home) as core:
        await accept_older_policy(core)


@pytest.fixture
async def older(home: Path) -> None:
    """A home of a version before schema 7, with both files accepted and a vault."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(MINE, encoding="utf-8")
    (home / "policy.toml").write_text(RULES, encoding="utf-8")
    async with core_on(home) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        await accept_older_policy(core)
    make_older(home)


@pytest.mark.usefixtures("older")
async def test_what_was_accepted_is_accepted_still(home: Path) -> None:
    """As it was before: not before the unlock, then at once, and after a restart under the new signature."""
    for _ in range(2):
        async with core_on(home, unlocks=False) as core:
            assert accepted_rows(home) == [
                ("policy", "policy.toml", sha256_hex(RULES.encode())),
                ("settings", "config.toml", sha256_hex(MINE.encode())),
            ]
            assert counts(core) == (False, False)
        async with core_on(home) as core:
            assert (counts(core), core.app.library.not_accepted()) == ((True, True), ())
            assert await core.records("library.unverified") == []
            assert (await core.app.audit.verify()).problems == ()


@pytest.mark.usefixtures("older")
async def test_a_change_since_is_shown_beside_what_was_accepted(home: Path) -> None:
    (home / "config.toml").write_text(ITS_OWN, encoding="utf-8")
    async with core_on(home) as core:
        (item,) = core.app.library.not_accepted()
        assert item.before is not None
        assert (item.kind, item.before.text) == ("settings", MINE)


ATTACKS = [
    f"UPDATE pins SET digest = '{sha256_hex(ITS_OWN.encode())}' WHERE kind = 'settings'",
    "UPDATE pins SET taken_at = 1.0 WHERE kind = 'settings'",
    "UPDATE pins SET taken_at = 1e300 WHERE kind = 'settings'",
    "UPDATE pins SET taken_by = '--accept-installed' WHERE kind = 'settings'",
    "DELETE FROM pins WHERE kind = 'settings'",
    "DELETE FROM meta WHERE key = 'hmac of settings'",
    "UPDATE meta SET value = (SELECT value FROM meta WHERE key = 'hmac of policy') WHERE key = 'hmac of settings'",
    "DELETE FROM audit WHERE event IN ('library.accepted', 'library.authenticated')",
]


@pytest.mark.parametrize("migrated", [False, True])
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.usefixtures("older")
async def test_nothing_unsigned_is_accepted(home: Path, attack: str, migrated: bool) -> None:
    """Whether the row was touched before the first unlock or the bytes of the home before the migration."""
    if migrated:
        migrate(home / "aileron.db")
    elif " pins " in attack:
        return  # before the migration there is no row
    if "digest" in attack:
        (home / "config.toml").write_text(ITS_OWN, encoding="utf-8")
    change_rows(home, attack)
    async with core_on(home) as core:
        assert not core.app.accepted_settings.count
        assert "settings" in {each.kind for each in core.app.library.not_accepted()}


@pytest.mark.usefixtures("older")
async def test_a_bare_digests_signature_counts_no_more_once_the_row_is_signed(home: Path) -> None:
    bare = hmac(home, "settings")
    async with core_on(home) as core:
        assert counts(core) == (True, True)
    change_rows(home, f"UPDATE meta SET value = '{bare}' WHERE key = 'hmac of settings'")
    async with core_on(home) as core:
        assert not core.app.accepted_settings.count


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.usefixtures("ruled")
async def test_without_a_vault_the_record_of_it_is_enough(home: Path, changed: bool) -> None:
    make_older(home)
    if changed:
        (home / "policy.toml").write_text(f"{RULES}\n{RULES}", encoding="utf-8")
    async with core_on(home) as core:
        assert core.app.accepted_policy.count is not changed


@pytest.mark.parametrize("attack", ["DELETE FROM pins", "UPDATE pins SET digest = 'x'"])
@pytest.mark.usefixtures("ruled")
async def test_rules_whose_row_was_touched_are_not_new_ones(home: Path, attack: str) -> None:
    """Without a vault the record alone still says that some were accepted."""
    change_rows(home, f"{attack} WHERE kind = 'policy'")
    for _ in range(2):
        async with core_on(home) as core:
            (item,) = core.app.library.not_accepted()
            assert (item.change, core.app.accepted_policy.count) == ("changed", False)
            assert await core.records("library.unverified")
    async with core_on(home) as core:
        await accept_older_policy(core)
    async with core_on(home) as core:
        assert core.app.accepted_policy.count
