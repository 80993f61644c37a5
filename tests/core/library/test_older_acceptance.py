"""`config.toml` and `policy.toml` as accepted with a version before schema 7, which signed a bare digest and kept no row."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from aileron_core.canonical import sha256_hex
from aileron_core.clock import SystemClock
from aileron_core.console_port.intents import Accept
from aileron_core.library.accepted_settings import AcceptedSettings, load_policy
from aileron_core.library.authenticated_records import AuthenticatedSet
from aileron_core.settings import load_settings
from aileron_core.storage.migrations import migrate
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.support.core_harness import PASSPHRASE, Core, change_rows, unlock

MINE = '[gateway]\nanthropic = "https://proxy.example.com"\n'
ITS_OWN = '[gateway]\nanthropic = "https://evil.example.com"\n'
RULES = '[[rule]]\ntools = ["Write"]\npaths = ["notes/**"]\ndecision = "allow"\n'


@asynccontextmanager
async def opened(home: Path, *, unlocks: bool = True) -> AsyncGenerator[Core]:
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


def rows(home: Path) -> list[tuple[str, str, str]]:
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
        for kind, _, digest in rows(home):
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


async def accept_policy(core: Core) -> None:
    """Accept the rules, which alone wait."""
    (item,) = core.app.library.not_accepted()
    await core.do(Accept(kind="policy", name=item.name, digest=item.digest))


@pytest.fixture
async def ruled(home: Path) -> None:
    """A home with accepted rules, and without a vault."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "policy.toml").write_text(RULES, encoding="utf-8")
    async with opened(home) as core:
        await accept_policy(core)


@pytest.fixture
async def older(home: Path) -> None:
    """A home of a version before schema 7, with both files accepted and a vault."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(MINE, encoding="utf-8")
    (home / "policy.toml").write_text(RULES, encoding="utf-8")
    async with opened(home) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        await accept_policy(core)
    make_older(home)


@pytest.mark.usefixtures("older")
async def test_what_was_accepted_is_accepted_still(home: Path) -> None:
    """As it was before: not before the unlock, then at once, and after a restart under the new signature."""
    for _ in range(2):
        async with opened(home, unlocks=False) as core:
            assert rows(home) == [
                ("policy", "policy.toml", sha256_hex(RULES.encode())),
                ("settings", "config.toml", sha256_hex(MINE.encode())),
            ]
            assert counts(core) == (False, False)
        async with opened(home) as core:
            assert counts(core) == (True, True)
            assert core.app.library.not_accepted() == ()
            assert await core.records("library.unverified") == []
            assert (await core.app.audit.verify()).problems == ()


@pytest.mark.usefixtures("older")
async def test_a_change_since_is_shown_beside_what_was_accepted(home: Path) -> None:
    (home / "config.toml").write_text(ITS_OWN, encoding="utf-8")
    async with opened(home) as core:
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
    async with opened(home) as core:
        assert not core.app.accepted_settings.count
        assert "settings" in {each.kind for each in core.app.library.not_accepted()}


@pytest.mark.usefixtures("older")
async def test_a_bare_digests_signature_counts_no_more_once_the_row_is_signed(home: Path) -> None:
    bare = hmac(home, "settings")
    async with opened(home) as core:
        assert counts(core) == (True, True)
    change_rows(home, f"UPDATE meta SET value = '{bare}' WHERE key = 'hmac of settings'")
    async with opened(home) as core:
        assert not core.app.accepted_settings.count


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.usefixtures("ruled")
async def test_without_a_vault_the_record_of_it_is_enough(home: Path, changed: bool) -> None:
    make_older(home)
    if changed:
        (home / "policy.toml").write_text(f"{RULES}\n{RULES}", encoding="utf-8")
    async with opened(home) as core:
        assert core.app.accepted_policy.count is not changed


@pytest.mark.parametrize("attack", ["DELETE FROM pins", "UPDATE pins SET digest = 'x'"])
@pytest.mark.usefixtures("ruled")
async def test_rules_whose_row_was_touched_are_not_new_ones(home: Path, attack: str) -> None:
    """Without a vault the record alone still says that some were accepted."""
    change_rows(home, f"{attack} WHERE kind = 'policy'")
    for _ in range(2):
        async with opened(home) as core:
            (item,) = core.app.library.not_accepted()
            assert (item.change, core.app.accepted_policy.count) == ("changed", False)
            assert await core.records("library.unverified")
    async with opened(home) as core:
        await accept_policy(core)
    async with opened(home) as core:
        assert core.app.accepted_policy.count
