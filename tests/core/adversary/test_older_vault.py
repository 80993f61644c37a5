"""An older copy of the vault, put in the place of a locked one: found by the record when it is unlocked."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aileron_core.vault.secret import Secret
from tests.core.adversary.test_under_the_vaults_key import alarms
from tests.support.core_harness import PASSPHRASE, Core, Start, problem_messages

pytestmark = pytest.mark.usefixtures("protected")

_FILES = ("vault.json", "vault.json.previous")


async def unlock_and_compare(core: Core) -> None:
    """Unlock as a person does, and wait until record and vault have been compared."""
    await core.app.vault_service.unlock(Secret(PASSPHRASE), way="console")
    await core.until(lambda: core.app.signing._may_sign)


async def revoke(core: Core) -> None:
    await unlock_and_compare(core)
    core.app.vault.delete("api_key/mail/work")
    await core.another_session()  # any record


async def bind_another(core: Core) -> None:
    await unlock_and_compare(core)
    core.app.vault.put("api_key/mail/home", Secret("another secret"), {})
    await core.another_session()


async def change_passphrase_while_locked(core: Core) -> None:
    """No head is signed then: the record of the change alone knows."""
    await core.app.vault_service.change_passphrase(
        Secret(PASSPHRASE), Secret("another passphrase"), way="command line"
    )


@pytest.mark.parametrize("change", [revoke, bind_another, change_passphrase_while_locked])
async def test_an_older_vault_is_found_when_it_is_unlocked(
    start: Start, home: Path, change: Callable[[Core], object]
) -> None:
    """One alarm, one record of it, and every later `audit verify` names it; the home is as it was left."""
    async with start() as core:
        await unlock_and_compare(core)
        core.app.vault.put("api_key/mail/work", Secret("a secret"), {})
        await core.another_session()
    older = home.parent / "older"
    older.mkdir()
    for name in _FILES:
        shutil.copy(home / name, older)
    async with start() as core:
        await change(core)
    for name in _FILES:
        shutil.copy(older / name, home)
    assert problem_messages(home) == []
    async with start() as core:
        await unlock_and_compare(core)
        assert "The vault is an older copy" in core.app.signing.alarm
        await core.until(lambda: any("older copy" in each for each in alarms(core)))
        assert [each for each in problem_messages(home) if "The vault is an older copy" in each]
    async with start() as core:
        await unlock_and_compare(core)
        assert core.app.signing.alarm == ""
        assert len(await core.records("vault.replaced")) == 1


async def test_a_vault_that_was_only_used_is_not_called_older(start: Start, home: Path) -> None:
    """Over restarts, locks, a change of the passphrase and a crash after the last record."""
    async with start() as core:
        await unlock_and_compare(core)
        core.app.vault.put("api_key/mail/work", Secret("a secret"), {})
        await core.another_session()
        await core.app.vault_service.lock()
        await core.app.vault_service.change_passphrase(
            Secret(PASSPHRASE), Secret("another passphrase"), way="console"
        )
        await core.app.vault_service.change_passphrase(
            Secret("another passphrase"), Secret(PASSPHRASE), way="console"
        )
        await unlock_and_compare(core)
        core.app.vault.delete("api_key/mail/work")
        shutil.copytree(home, home.parent / "crashed", ignore=shutil.ignore_patterns("*.sock"))
    for place in (home, home.parent / "crashed"):
        async with Core.open(place, accept=False) as core:
            await unlock_and_compare(core)
            assert (core.app.signing.alarm, alarms(core)) == ("", [])
            assert (await core.app.audit.verify()).problems == ()
