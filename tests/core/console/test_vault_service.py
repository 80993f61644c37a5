"""The vault in a running core: over the console's port, on record, locked when idle, and what it seals."""

from pathlib import Path

import pytest

from aileron_core.console_port.events import CoreEvent, VaultRefused, VaultStatus, VaultUnlocked
from aileron_core.console_port.intents import (
    CreateVault,
    Deny,
    LockVault,
    TouchVault,
    UnlockVault,
    UnlockVaultWithKeyring,
)
from aileron_core.errors import StorageUnavailable
from aileron_core.ids import token_hash
from aileron_core.settings import Settings, VaultSettings
from aileron_core.vault.os_keyring import OsKeyring
from aileron_core.vault.secret import Secret
from tests.core.vault.test_keys import MemoryKeyring
from tests.support.core_harness import Core, Mailbox, Start, hold_answers, open_session
from tests.support.frozen_clock import FrozenClock

PHRASE, OTHER = "canary-phrase-c41d", "canary-other-77aa"


async def last_told(core: Core, kind: type[CoreEvent], state: str | None = None) -> CoreEvent:
    def told() -> list[CoreEvent]:
        found = [event for event in core.events if isinstance(event, kind)]
        return [each for each in found if state in (None, getattr(each, "state", ""))]

    return (await core.until(told))[-1]


async def test_the_screen_learns_of_the_vault_and_unlocks_it(core: Core) -> None:
    assert (await core.app.console.snapshot()).vault == VaultStatus(state="absent")
    await core.app.console.submit(CreateVault(passphrase=Secret("short")))
    refused = await last_told(core, VaultRefused)
    assert "at least 8 characters" in refused.message
    await core.app.console.submit(CreateVault(passphrase=Secret(PHRASE)))
    await last_told(core, VaultStatus, "unlocked")
    await core.app.console.submit(LockVault())
    await last_told(core, VaultStatus, "locked")
    for number in (1, 2, 3):
        await core.app.console.submit(UnlockVault(passphrase=Secret("canary-wrong")))
        refused = await last_told(core, VaultRefused)
        assert (await last_told(core, VaultStatus)).failed_attempts == number
    assert refused.wait_seconds == 1
    early = UnlockVault(passphrase=Secret(PHRASE))
    await core.app.console.submit(early)
    assert 0 < (await last_told(core, VaultRefused)).wait_seconds <= 1
    assert len(early.passphrase) == 0, "it is overwritten even so"
    await core.until(lambda: core.app.vault._attempts.failed().last < core.app.clock.now() - 1)
    await core.app.console.submit(UnlockVault(passphrase=Secret(PHRASE)))
    assert (await last_told(core, VaultUnlocked)).failed_attempts == 3
    service = core.app.vault_service
    await service.change_passphrase(Secret(PHRASE), Secret(OTHER), way="command line")
    events = [each["event"].partition(".") for each in await core.records()]
    told, failed = [name for kind, _, name in events if kind == "vault"], ["unlock_failed"] * 3
    assert told == ["created", "locked", *failed, "unlocked", "passphrase_changed"]
    shown = repr([core.events, early, core.app.options])
    assert "canary" not in shown


async def test_what_was_wrong_is_told_though_a_write_mends_it(core: Core, home: Path) -> None:
    vault = core.app.vault
    vault.create(Secret(PHRASE))
    vault.put("x", Secret("1"), {})  # so that there is a previous file
    vault.lock()
    (home / "vault.json").write_text("{")
    vault.changed.subscribe(
        lambda _: vault.put("x", Secret("2"), {}) if vault.state == "unlocked" else None
    )
    await core.app.console.submit(UnlockVault(passphrase=Secret(PHRASE)))
    wrong = "vault.json is damaged. vault.json.previous"
    assert wrong in (await last_told(core, VaultUnlocked)).problem
    assert vault.problem == ""
    [unlocked] = [each for each in await core.records() if each["event"] == "vault.unlocked"]
    assert wrong in str(unlocked)


async def test_a_vault_does_not_stay_unlocked_unrecorded(core: Core) -> None:
    core.app.database._stopped = StorageUnavailable("The disk is full.")
    with pytest.raises(StorageUnavailable):
        await core.app.vault_service.create(Secret(PHRASE), way="console")
    assert core.app.vault.state == "locked"
    with pytest.raises(StorageUnavailable):
        await core.app.vault_service.unlock(Secret(PHRASE), way="console")
    assert core.app.vault.state == "locked"
    core.app.database._stopped = None


def lock_settings(minutes: int) -> Settings:
    return Settings(vault=VaultSettings(lock_minutes=minutes))


async def state_after(core: Core, clock: FrozenClock, seconds: float) -> str:
    clock.advance(seconds)
    await core.app.vault_service.lock_if_idle()
    return core.app.vault.state


@pytest.mark.core(settings=lock_settings(60))
async def test_it_is_locked_when_nobody_uses_it(core: Core, clock: FrozenClock) -> None:
    await core.app.vault_service.create(Secret(PHRASE), way="console")
    clock.advance(59 * 60)
    await core.app.console.submit(TouchVault())
    assert await state_after(core, clock, 59 * 60) == "unlocked"
    clock.advance(60)
    await last_told(core, VaultStatus, "locked")
    record = (await core.until_record("vault.locked"))[-1]
    assert record["actor"] == "aileron"
    assert "60 minutes" in record["summary"]


@pytest.mark.core(settings=lock_settings(0))
async def test_it_is_not_locked_by_itself_with_0_minutes(core: Core, clock: FrozenClock) -> None:
    await core.app.vault_service.create(Secret(PHRASE), way="console")
    assert await state_after(core, clock, 86400) == "unlocked"


@pytest.mark.core(settings=lock_settings(1))
async def test_it_is_not_locked_in_a_run(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    await core.app.vault_service.create(Secret(PHRASE), way="console")
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        assert await state_after(core, clock, 61) == "unlocked"
    await core.ended(view)
    assert await state_after(core, clock, 61) == "locked"


@pytest.mark.core(settings=lock_settings(1))
async def test_runs_delay_it_ten_minutes(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    """An agent that begins one before another ends does not keep the vault unlocked for ever."""
    await core.app.vault_service.create(Secret(PHRASE), way="console")
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        assert await state_after(core, clock, 60 + 599) == "unlocked"
        assert await state_after(core, clock, 1) == "locked"


@pytest.mark.core(settings=lock_settings(1))
async def test_it_stays_unlocked_while_a_session_uses_it(start: Start, clock: FrozenClock) -> None:
    async with start() as core:
        await core.app.vault_service.create(Secret(PHRASE), way="console")
        session = await open_session(core.app, ttl=9999.0, key_providers=("openai",))
        session_id = session.session.session_id
    async with start() as core:
        after = core.app.sessions.get(session_id)
        assert after.terms.key_providers == ("openai",)
        assert after.placeholder_hash == token_hash(session.placeholder)
        await core.app.vault_service.unlock(Secret(PHRASE), way="console")
        assert await state_after(core, clock, 61) == "unlocked"
        await core.app.session_service.end(session_id, "it was over")
        assert await state_after(core, clock, 59) == "unlocked"
        assert await state_after(core, clock, 2) == "locked"


async def test_what_was_shown_is_sealed_while_locked_and_read_after_a_restart(start: Start) -> None:
    async with start() as core:
        await core.app.vault_service.create(Secret(PHRASE), way="console")
        await core.app.vault_service.lock()
        answer = await core.call()  # it waits, and a person can still say no to it
        view = await core.view(answer.row.approval_id, lambda v: v.state == "awaiting_vault")
        await core.app.console.submit(Deny(approval_id=view.approval_id, reason="not now"))
        await core.ended(view)
        (shown,) = await core.app.screens.read(view.run_id)
        assert shown.approval is None
        assert "Unlock the vault" in shown.problem
    async with start() as core:
        assert core.app.vault.state == "locked"
        await core.app.vault_service.unlock(Secret(PHRASE), way="console")
        (shown,) = await core.app.screens.read(view.run_id)
        assert shown.approval.approval_id == view.approval_id


async def test_the_keyring_unlocks_after_a_persons_key_alone(home: Path) -> None:
    backend = MemoryKeyring()
    keyring = OsKeyring(lambda: backend)
    async with Core.open(home, keyring=keyring) as core:
        await core.app.vault_service.create(Secret(PHRASE), way="console")
        await core.app.vault_service.set_keyring(Secret(PHRASE), on=True)
        status = (await core.app.console.snapshot()).vault
        assert (status.has_keyring, status.keyring_opens) == (True, True)
    async with Core.open(home, keyring=keyring) as core:  # not by what is on disk alone
        status = (await core.app.console.snapshot()).vault
        assert (status.state, status.has_keyring, status.keyring_opens) == ("locked", True, False)
        await core.app.console.submit(UnlockVaultWithKeyring())
        assert "Type the passphrase" in (await last_told(core, VaultRefused)).message
    async with Core.open(home, keyring=keyring, use_keyring=True) as core:
        assert core.app.vault.state == "locked"
        backend.locked = True
        await core.app.console.submit(UnlockVaultWithKeyring())
        assert "cannot be read" in (await last_told(core, VaultRefused)).message
        backend.locked = False
        await core.app.console.submit(UnlockVaultWithKeyring())
        await last_told(core, VaultStatus, "unlocked")
        record = (await core.records("vault.unlocked"))[-1]
        assert (record["actor"], record["way"]) == ("person", "keyring")
        await core.app.vault_service.set_keyring(Secret(PHRASE), on=False)
        assert not (await last_told(core, VaultStatus)).has_keyring
        events = [each["event"] for each in await core.records() if "keyring" in each["event"]]
        assert events == ["vault.keyring_allowed", "vault.keyring_forgotten"]
        (kept,) = {*backend.kept.values()} or {"none"}
        assert kept == "none"
