"""The vault as a person uses it: each step on record, every change published, locked when nobody uses it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.canonical import Json
from aileron_core.console.records import ConsoleRecords
from aileron_core.console_port.events import CoreEvent, VaultStatus, VaultUnlocked
from aileron_core.console_port.intents import (
    ChangePassphrase,
    CreateVault,
    LockVault,
    ReadVault,
    SetKeyring,
    TouchVault,
    UnlockVault,
    UnlockVaultWithKeyring,
    VaultIntent,
)
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import Forbidden, InvalidRequest, StorageUnavailable, WrongPassphrase
from aileron_core.events import EventBus
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.transitions import RunState
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Unlocked, Vault

_T = TypeVar("_T")
_RUN_SECONDS = 600.0
"""For how long runs put the idle lock off: longer than any of them takes. Agents can begin one after another."""
Way: TypeAlias = Literal["console", "command line", "keyring", "unattended"]
"""What opened the vault: a passphrase that was typed there, a key press and the keyring, or nobody."""


class VaultService:
    """Unlocks, locks and creates the vault, for the console and the command line.

    Args:
        is_needed: whether an open session uses a key from it, so that it is not locked by itself.
        lock_minutes: returns after how many of idling the vault is locked; 0: never.
    """

    def __init__(
        self,
        vault: Vault,
        records: ConsoleRecords,
        events: EventBus[CoreEvent],
        registry: RunRegistry,
        *,
        is_needed: Callable[[], bool] = lambda: False,
        lock_minutes: Callable[[], float],
    ) -> None:
        self._vault = vault
        self._records = records
        self._events = events
        self._registry = registry
        self._is_needed = is_needed
        self._lock_minutes = lock_minutes
        self.started_unattended = False
        """A file or variable had its passphrase: for as long as this process lives, knowing it lets nobody decide."""
        self._unattended = False
        vault.changed.subscribe(lambda _: self._publish())

    def status(self) -> VaultStatus:
        vault, failed = self._vault, self._vault.failed_attempts
        return VaultStatus(
            state=vault.state,
            problem=vault.problem,
            entries=len(vault.entries()),
            failed_attempts=failed.count,
            failed_since=failed.since if failed.count else None,
            unattended=self.started_unattended and vault.state == "unlocked",
            has_keyring=vault.has_keyring,
            keyring_opens=vault.keyring_opens,
        )

    def _publish(self) -> None:
        self._events.publish(self.status())

    async def answer(
        self, intent: VaultIntent, way: Way, hand: Hand = CONSOLE
    ) -> VaultStatus | VaultUnlocked | None:
        """Carry out *intent*, given in this *way*; return what it says to who asked. *hand*: of a lock.

        Raises:
            AileronError, OSError: it did nothing. No message quotes a passphrase.
        """
        match intent:
            case ReadVault():
                return self.status()
            case CreateVault():
                source = Path(intent.import_from) if intent.import_from else None
                if source is not None and not source.is_absolute():
                    raise InvalidRequest("'import_from' must be an absolute path.")
                return _unlocked(await self.create(intent.passphrase, way=way, import_from=source))
            case UnlockVault():
                return _unlocked(await self.unlock(intent.passphrase, way=way))
            case UnlockVaultWithKeyring():
                return _unlocked(await self.unlock_with_keyring())
            case LockVault():
                await self.lock(hand)
            case ChangePassphrase():
                await self.change_passphrase(intent.old, intent.new, way=way)
            case SetKeyring():
                await self.set_keyring(intent.passphrase, on=intent.on)
            case TouchVault():
                self.touch()
        return None

    async def create(
        self, passphrase: Secret, *, way: Way, import_from: Path | None = None
    ) -> Unlocked:
        """Create the vault, and leave it unlocked; errors as of `Vault.create`.

        Raises:
            StorageUnavailable: it could not be recorded. The vault is there, and locked.
        """
        created = await self._attempt(lambda: self._vault.create(passphrase, import_from), way)
        await self._record(AuditEvent.VAULT_CREATED, "The vault was created", created, way)
        return created

    async def unlock(self, passphrase: Secret, *, way: Way) -> Unlocked:
        """Unlock the vault; errors as of `Vault.unlock`.

        Raises:
            StorageUnavailable: it could not be recorded. The vault is locked.
        """
        return await self._unlock(lambda: self._vault.unlock(passphrase), way)

    async def unlock_with_keyring(self) -> Unlocked:
        """Unlock the vault after a person's key; errors as of `Vault.unlock_with_keyring`, and of `unlock`."""
        return await self._unlock(self._vault.unlock_with_keyring, "keyring")

    async def _unlock(self, unlock: Callable[[], Unlocked], way: Way) -> Unlocked:
        unlocked = await self._attempt(unlock, way)
        self._unattended = way == "unattended"
        self.started_unattended |= self._unattended
        await self._record(AuditEvent.VAULT_UNLOCKED, "The vault was unlocked", unlocked, way)
        return unlocked

    async def lock(self, hand: Hand = CONSOLE) -> bool:
        """Lock the vault; return whether it was unlocked."""
        if not self._vault.lock():
            return False
        await self._records.record_by_person(
            AuditEvent.VAULT_LOCKED, "A person locked the vault", hand
        )
        return True

    async def verify(self, passphrase: Secret) -> None:
        """Check that a request of the command line comes from who knows the passphrase; errors as of `Vault.verify`.

        Raises:
            Forbidden: the console was started unattended, so other programs may know it too.
        """
        self._require_attended()
        await self._attempt(lambda: self._vault.verify(passphrase), "command line")

    async def change_passphrase(self, old: Secret, new: Secret, *, way: Way) -> None:
        """Change the passphrase; errors as of `Vault.change_passphrase`."""
        await self._attempt(lambda: self._vault.change_passphrase(old, new), way)
        summary = "The vault's passphrase was changed"
        await self._record_change(AuditEvent.VAULT_PASSPHRASE_CHANGED, summary)

    async def set_keyring(self, passphrase: Secret, *, on: bool) -> None:
        """Have the system's keyring keep a key that opens the vault, or not; errors as of `Vault.allow_keyring`.

        Raises:
            Forbidden: it is to be turned on, and the console was started unattended.
        """
        if on:
            self._require_attended()
        change = self._vault.allow_keyring if on else self._vault.forget_keyring
        await self._attempt(lambda: change(passphrase), "command line")
        await self._record_change(
            AuditEvent.VAULT_KEYRING_ALLOWED if on else AuditEvent.VAULT_KEYRING_FORGOTTEN,
            "The system's keyring keeps a key of the vault"
            if on
            else "The system's keyring no longer opens the vault",
        )
        self._publish()

    def _require_attended(self) -> None:
        if self.started_unattended:
            raise Forbidden(
                "This console got the vault's passphrase from a file, a descriptor or a variable, where other "
                "programs may read it too: it does not show that you are asking. Nothing changed. Use the "
                "console's own keys (A lists the accounts), or start the console without it."
            )

    async def _record_change(self, event: AuditEvent, summary: str) -> None:
        await self._records.record(event, summary, extra={"generation": self._vault.generation})

    async def record_replaced(self, problem: str) -> None:
        """Record that what was unlocked is an older copy of the vault, as *problem* says."""
        await self._record_change(AuditEvent.VAULT_REPLACED, problem)

    def touch(self) -> None:
        """Note that a person pressed a key."""
        self._vault.touch()

    async def lock_if_idle(self) -> None:
        """Lock the vault if no key was pressed for long, nothing that goes on needs it, and a person can unlock it."""
        minutes = self._lock_minutes()
        if not minutes or self._unattended:
            return
        if not self._vault.is_idle(minutes * 60):
            return
        if self._is_needed():
            self._vault.touch()
            return
        # Without a touch: agents that call again and again do not keep it open.
        runs = any(run.row.state is RunState.EXECUTING for run in self._registry)
        if runs and not self._vault.is_idle(minutes * 60 + _RUN_SECONDS):
            return
        if self._vault.lock():
            summary = f"The vault was locked after {minutes:g} minutes without a key"
            await self._records.record(AuditEvent.VAULT_LOCKED, summary, by="aileron")

    async def _attempt(self, try_it: Callable[[], _T], way: Way) -> _T:
        """Return what *try_it* does, off the loop; a wrong passphrase goes on record."""
        try:
            return await asyncio.to_thread(try_it)
        except WrongPassphrase as error:
            self._publish()
            await self._records.record(
                AuditEvent.VAULT_UNLOCK_FAILED,
                f"A wrong passphrase for the vault, number {error.attempts} since it was unlocked",
                by=_actor(way),
                extra={"attempts": error.attempts, "way": way},
            )
            raise

    async def _record(self, event: AuditEvent, summary: str, done: Unlocked, way: Way) -> None:
        """Record that the vault was unlocked; it does not stay so unrecorded."""
        extra: dict[str, Json] = {
            "way": way,
            "failed_attempts": done.failed.count,
            "generation": self._vault.generation,
        }
        if done.imported is not None:
            extra["imported"] = done.imported
        if done.problem:
            extra["problem"] = done.problem
        try:
            await self._records.record(event, summary, by=_actor(way), extra=extra)
        except StorageUnavailable:
            self._vault.lock()
            raise


def _unlocked(done: Unlocked) -> VaultUnlocked:
    failed = done.failed
    return VaultUnlocked(
        failed_attempts=failed.count,
        failed_since=failed.since if failed.count else None,
        problem=done.problem,
        imported=done.imported,
    )


def _actor(way: Way) -> Actor:
    return "aileron" if way == "unattended" else "person"
