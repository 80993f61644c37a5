"""The system's keyring in a running core: what it unlocks, on record, and that a passphrase is always left."""

from pathlib import Path

from aileron_core.console_port import UnlockVaultWithKeyring, VaultRefused, VaultStatus
from aileron_core.vault.os_keyring import OsKeyring
from aileron_core.vault.secret import Secret
from tests.core.console.test_vault_service import PHRASE, last, opened
from tests.core.vault.test_keyring import MemoryKeyring


async def test_the_keyring_unlocks_after_a_persons_key_alone(home: Path) -> None:
    """A start finds it locked; what the keyring does is on record, and where it fails a passphrase is left."""
    backend = MemoryKeyring()
    keyring = OsKeyring(lambda: backend)
    async with opened(home, keyring=keyring) as core:
        await core.app.vault_service.create(Secret(PHRASE), way="console")
        await core.app.vault_service.set_keyring(Secret(PHRASE), on=True)
        status = (await core.app.console.snapshot()).vault
        assert (status.has_keyring, status.keyring_opens) == (True, True)
    async with opened(home, keyring=keyring) as core:  # not by what is on disk alone
        status = (await core.app.console.snapshot()).vault
        assert (status.state, status.has_keyring, status.keyring_opens) == ("locked", True, False)
        await core.app.console.submit(UnlockVaultWithKeyring())
        assert "Type the passphrase" in (await last(core, VaultRefused)).message
    async with opened(home, keyring=keyring, use_keyring=True) as core:
        assert core.app.vault.state == "locked"
        backend.locked = True
        await core.app.console.submit(UnlockVaultWithKeyring())
        assert "cannot be read" in (await last(core, VaultRefused)).message
        backend.locked = False
        await core.app.console.submit(UnlockVaultWithKeyring())
        await last(core, VaultStatus, "unlocked")
        record = (await core.records("vault.unlocked"))[-1]
        assert (record["actor"], record["way"]) == ("person", "keyring")
        await core.app.vault_service.set_keyring(Secret(PHRASE), on=False)
        assert not (await last(core, VaultStatus)).has_keyring
        events = [each["event"] for each in await core.records() if "keyring" in each["event"]]
        assert events == ["vault.keyring_allowed", "vault.keyring_forgotten"]
        (kept,) = {*backend.kept.values()} or {"none"}
        assert kept == "none"
