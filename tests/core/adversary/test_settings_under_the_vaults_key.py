"""Another program of the same user at `config.toml`, with a vault: no call runs, and one item says so."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from aileron_core.console_port.intents import Accept
from aileron_core.errors import Conflict
from aileron_core.settings import load_settings
from aileron_core.vault.secret import Secret
from tests.support.core_harness import PASSPHRASE, Core, Mailbox, Start, change_rows, unlock
from tests.support.frozen_clock import FrozenClock

MINE = '[gateway]\nanthropic = "https://proxy.example.com"\n'
ITS_OWN = '[gateway]\nanthropic = "https://evil.example.com"\n'


@pytest.fixture
def config(home: Path) -> Path:
    return home / "config.toml"


@pytest.fixture(autouse=True)
async def protected(library: None, home: Path, config: Path) -> None:
    """A home whose `config.toml` is under a vault's key."""
    config.write_text(MINE, encoding="utf-8")
    async with Core.open(home, settings=load_settings(config)) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)


@asynccontextmanager
async def reopened(start: Start, config: Path, text: str | None = None) -> AsyncGenerator[Core]:
    """A core with its vault unlocked, on the settings as they are, or as *text* has them."""
    if text is not None:
        config.write_text(text, encoding="utf-8")
    async with start(settings=load_settings(config)) as core:
        await unlock(core)
        yield core


async def accept_offered(core: Core) -> None:
    (item,) = core.app.library.not_accepted()
    await core.app.library.accept(item.kind, item.name, item.digest, by="person")


@pytest.mark.parametrize("attack", ["edited", "removed", "no hmac"])
async def test_changed_settings_hold_every_call_until_they_are_accepted(
    start: Start, config: Path, home: Path, mailbox: Mailbox, attack: str
) -> None:
    """Whatever they widen, nothing runs with them; a person sees all of the file."""
    if attack == "edited":
        config.write_text(ITS_OWN, encoding="utf-8")
    elif attack == "removed":
        config.unlink()
    else:
        change_rows(home, "DELETE FROM meta WHERE key = 'hmac of settings'")
    settings = load_settings(config)
    async with reopened(start, config) as core:
        answer = await core.call("list-drafts", {})
        assert answer.row.approval_id is not None
        view = await core.view(answer.row.approval_id, lambda v: v.state == "awaiting_vault")
        assert view.account_need is not None
        assert view.account_need.reason == "settings"
        (item,) = core.app.library.not_accepted()
        assert (item.kind, item.name) == ("settings", "config.toml")
        assert item.content is not None
        assert item.content.text == settings.text
        assert len(await core.records("library.unverified")) == 1
        assert mailbox.state()["requests"] == []
        with pytest.raises(Conflict):
            await core.app.library.accept("settings", "config.toml", "0" * 64, by="person")
        await core.do(Accept(kind="settings", name="config.toml", digest=item.digest))
        end = await core.view(answer.row.approval_id, lambda v: v.ended_at is not None)
        assert end.state == "completed"
        assert core.app.library.not_accepted() == ()
    async with reopened(start, config) as core:
        assert core.app.library.not_accepted() == ()
        assert (await core.call("list-drafts", {})).row.state == "completed"


async def test_a_changed_config_is_shown_beside_the_accepted_one(
    start: Start, config: Path
) -> None:
    """What allows more first, then every line; the copy has it, after a restart as well."""
    config.write_text(
        '[console]\ntheme = "dark"\n[console.keys]\ndeny = "a"\napprove = "d"\n' + ITS_OWN,
        encoding="utf-8",
    )
    for _ in range(2):
        async with start(settings=load_settings(config)) as core:
            assert core.app.library.not_accepted() == ()
            await unlock(core)
            (item,) = core.app.library.not_accepted()
            assert item.content is not None
            before = item.content.before
            assert before is not None
            assert before.text == MINE
            assert [
                (each.direction, each.name, each.before, each.after) for each in before.changes
            ] == [
                (
                    "wider",
                    "gateway.anthropic",
                    "https://proxy.example.com",
                    "https://evil.example.com",
                ),
                ("wider", "console.keys.approve", "", "d"),
                ("wider", "console.keys.deny", "", "a"),
                ("other", "console.theme", "", "dark"),
            ]


LOOKS = '[console]\ntheme = "light"\nglyphs = "ascii"\nbell = false\n[notify]\nosc9 = "never"\n'


async def test_another_look_holds_no_call(start: Start, config: Path) -> None:
    """Theme, signs and bell decide nothing; whoever changed them had to accept the whole file."""
    config.write_text(f"# a comment\n{LOOKS}{MINE}", encoding="utf-8")
    for _ in range(2):  # the copy is still of what was signed
        async with start(settings=load_settings(config)) as core:
            answer = await core.call("list-drafts", {})
            assert answer.row.state == "awaiting_vault", "nothing is verified before the unlock"
            await unlock(core)
            assert core.app.library.not_accepted() == ()
            assert await core.records("library.unverified") == []
            assert answer.row.approval_id is not None
            end = await core.view(answer.row.approval_id, lambda v: v.ended_at is not None)
            assert end.state == "completed"


@pytest.mark.parametrize(
    "more",
    [
        "[console]\narm_ms = 300\n", "[console]\narm_ms = 900\n", "[console]\nlock_minutes = 5\n",
        '[console.keys]\napprove = "y"\n', '[console.keys]\nline_down = "e"\n',
        '[notify]\ncommand = ["true"]\n', "[history]\ndays = 3\n", '[mcp]\ntools = ["a"]\n',
    ],
)  # fmt: skip
async def test_every_other_setting_still_waits_for_its_acceptance(
    start: Start, config: Path, more: str
) -> None:
    """Decision and movement keys and `arm_ms` among them, beside another look or not."""
    async with reopened(start, config, f"{more}{MINE}") as core:
        (item,) = core.app.library.not_accepted()
        assert item.kind == "settings"
        assert not core.app.accepted_settings.count


async def test_another_look_does_not_bring_back_a_home_whose_vault_is_gone(
    start: Start, config: Path, home: Path
) -> None:
    """Nor one whose signature is: what was accepted is then not known."""
    config.write_text(LOOKS + MINE, encoding="utf-8")
    settings = load_settings(config)
    kept = {each: each.read_bytes() for each in home.glob("vault.json*")}
    for each in kept:
        each.unlink()
    async with start(settings=settings) as core:
        assert "is gone" in core.app.accepted_settings.problem
    for each, data in kept.items():
        each.write_bytes(data)
        each.chmod(0o600)
    change_rows(home, "DELETE FROM meta WHERE key = 'hmac of settings'")
    async with reopened(start, config) as core:
        assert core.app.accepted_settings.problem


@pytest.mark.parametrize("attack", ["edited", "removed", "a link", "no hmac"])
async def test_a_copy_that_was_not_signed_is_not_shown_as_accepted(
    start: Start, config: Path, home: Path, attack: str
) -> None:
    """Else a program could have its own settings look as if only a comment had changed."""
    config.write_text(ITS_OWN, encoding="utf-8")
    copy = home / "store" / "accepted-config.toml"
    assert copy.read_text(encoding="utf-8") == MINE
    assert copy.stat().st_mode & 0o777 == 0o600
    if attack == "edited":
        copy.write_text(f"# a comment\n{ITS_OWN}", encoding="utf-8")
    elif attack == "no hmac":
        change_rows(home, "DELETE FROM meta WHERE key = 'hmac of settings'")
    else:
        copy.unlink()
        if attack == "a link":
            copy.symlink_to(config)
    async with start(settings=load_settings(config)) as core:
        await unlock(core)
        (item,) = core.app.library.not_accepted()
        assert item.content is not None
        assert item.content.before is not None
        assert (item.content.before.text, item.content.before.changes) == (None, ())
        await core.app.library.accept(item.kind, item.name, item.digest, by="person")
    assert copy.read_text(encoding="utf-8") == ITS_OWN


async def test_the_same_settings_need_no_second_yes(start: Start, config: Path) -> None:
    async with start(settings=load_settings(config)) as core:
        assert not core.app.accepted_settings.count
        await unlock(core)
        assert core.app.accepted_settings.count
        core.app.vault.lock()
        assert core.app.accepted_settings.count  # they are in memory, and do not change


async def test_an_accepted_older_config_does_not_count_again(
    start: Start, config: Path, home: Path
) -> None:
    """The file and its genuine HMAC, both put back from before."""
    older = _mac(home)
    async with reopened(start, config, ITS_OWN) as core:
        await accept_offered(core)
    config.write_text(MINE, encoding="utf-8")
    change_rows(home, f"UPDATE meta SET value = '{older}' WHERE key = 'hmac of settings'")
    async with reopened(start, config) as core:
        assert not core.app.accepted_settings.count
        assert "older copy" in core.app.accepted_settings.problem


def _mac(home: Path) -> str:
    with closing(sqlite3.connect(home / "aileron.db")) as connection:
        query = "SELECT value FROM meta WHERE key = 'hmac of settings'"
        return connection.execute(query).fetchone()[0]


@pytest.mark.parametrize(
    ("own", "expires", "minutes"),
    [
        ("[approval]\nexpires_seconds = 0\n[vault]\nlock_minutes = 0\n", 1800, 60),
        ("[approval]\nexpires_seconds = 60\n[vault]\nlock_minutes = 5\n", 60, 5),
    ],
)
async def test_no_call_waits_longer_and_no_vault_stays_open_longer_before_the_settings_are_accepted(
    start: Start, config: Path, own: str, expires: int, minutes: int, clock: FrozenClock
) -> None:
    """The defaults hold, or less; the person's own once they have accepted the file."""
    config.write_text(own, encoding="utf-8")
    settings = load_settings(config)
    async with start(settings=settings) as core:
        assert core.app.gate.expires_seconds() == expires
        early = (await core.call("list-drafts", {})).row
        assert early.expires_at == early.requested_at + expires
        await unlock(core)
        assert core.app.gate.expires_seconds() == expires
        clock.advance(minutes * 60 + 1)
        await core.app.vault_service.lock_if_idle()
        assert core.app.vault.state == "locked"
        await unlock(core)
        await accept_offered(core)
        assert core.app.gate.expires_seconds() == settings.expires_seconds
        assert core.app.vault_service._lock_minutes() == settings.vault.lock_minutes


async def test_commands_are_rehearsed_before_the_settings_that_say_never_are_accepted(
    start: Start, config: Path
) -> None:
    async with reopened(start, config, "[builtin.bash]\nrehearse = 'never'") as core:
        assert core.app.session_library.rehearse() == "ask"
        await accept_offered(core)
        assert core.app.session_library.rehearse() == "never"


async def test_accept_installed_accepts_no_settings(start: Start, config: Path) -> None:
    """They decide where model traffic goes and what a key does: a person looks at them."""
    config.write_text(ITS_OWN, encoding="utf-8")
    async with start(accept=True, settings=load_settings(config)) as core:
        await unlock(core)
        assert [each.kind for each in core.app.library.not_accepted()] == ["settings"]
        assert not core.app.accepted_settings.count
