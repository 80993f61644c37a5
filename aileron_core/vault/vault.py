"""The vault: created, unlocked with a passphrase, locked again; its entries, and the keys derived from it."""

import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from aileron_core.canonical import JsonObject
from aileron_core.clock import Clock
from aileron_core.errors import (
    Conflict,
    KeyringUnavailable,
    VaultAbsent,
    VaultLocked,
)
from aileron_core.events import EventBus
from aileron_core.vault.encryption import KEY_BYTES, PRIVATE_KEY, new_vault
from aileron_core.vault.opening import AttemptCounter, FailedAttempts, VaultOpener, identity_of
from aileron_core.vault.os_keyring import OsKeyring
from aileron_core.vault.secret import Secret, check_passphrase, wiped
from aileron_core.vault.vault_file import (
    KdfParameters,
    StoredEntry,
    VaultDocument,
)
from aileron_core.vault.vault_store import EXISTS, OpenVault, VaultEntries, VaultStore

VaultState = Literal["absent", "locked", "unlocked"]
_SALT = 16


@dataclass(frozen=True, slots=True)
class Unlocked:
    """How an unlocking went."""

    failed: FailedAttempts
    """The wrong passphrases before it."""
    imported: int | None = None
    """How many entries came from a vault of upstream Aileron; None where none was read."""
    problem: str = ""
    """What was wrong with the vault's files, and which was used. The next write mends them."""


class Vault:
    """The vault of one home. Every method may be called on any thread.

    `create`, `unlock` and `change_passphrase` take half a second, and those that write wait for the
    disk: call them off the event loop. The others return at once.

    Args:
        folder: the home.
        deliver: hands a call that publishes a change to where listeners of `changed` run, such as a
            loop's `call_soon_threadsafe`; without it they run on the thread of the change.
        kdf: cost of the passphrases that are set from now on; its salt is not used.
        keyring: that of the operating system; None: the one that runs.
        use_keyring: it may open the vault before a passphrase did: a person said so of this process.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        deliver: Callable[[Callable[[], None]], object] | None = None,
        kdf: KdfParameters | None = None,
        keyring: OsKeyring | None = None,
        use_keyring: bool = False,
    ) -> None:
        self._clock = clock
        self._deliver = deliver
        self._kdf = kdf or KdfParameters(salt=b"")
        self._keyring = keyring or OsKeyring()
        self._use_keyring = use_keyring
        self._attempts = AttemptCounter(folder, clock)
        self._passphrase_lock = threading.Lock()
        """Held for as long as a passphrase is tried; always taken before the other one."""
        self._lock = threading.RLock()
        self._store = VaultStore(folder, self._lock)
        self._opener = VaultOpener(self._store, self._attempts)
        self._open: OpenVault | None = None
        self._public_key: bytes | None = None
        """That of the last unlocking: the file of a locked vault is not verified."""
        self._identity: bytes | None = None
        """That of the last unlocking."""
        self.is_new = False
        """It was created by this object, so that nothing can have been authenticated with it before."""
        self._touched_at = 0.0
        self.changed: EventBus[VaultState] = EventBus()

    # What it is

    @property
    def state(self) -> VaultState:
        with self._lock:
            if self._open is not None:
                return "unlocked"
            found = self._store.read()
            if found.exists or self._store.foreign:
                return "locked"
            return "absent"

    @property
    def is_unlocked(self) -> bool:
        """Asked of thousands of runs in a row, so it looks at no file."""
        return self._open is not None

    @property
    def problem(self) -> str:
        """A sentence on what is wrong with the vault's files and which is used; empty where nothing is."""
        return self._store.problem

    @property
    def failed_attempts(self) -> FailedAttempts:
        """The wrong passphrases since it was last unlocked, over restarts."""
        return self._attempts.failed()

    @property
    def public_key(self) -> bytes | None:
        """The vault's X25519 key, to which anything can be sealed while it is locked; None without one."""
        document = self._document()
        return self._public_key or (None if document is None else document.public_key)

    @property
    def generation(self) -> int:
        """One higher with each change of the vault; 0 without one. While locked, nothing verified it."""
        document = self._document()
        return 0 if document is None else document.generation

    @property
    def has_keyring(self) -> bool:
        """Whether a key for it is in the system's keyring. While locked, nothing verified it."""
        document = self._document()
        return document is not None and bool(document.keyring)

    @property
    def keyring_opens(self) -> bool:
        """Whether the keyring may open it: nothing that is on disk alone says so.

        Another program can put a vault of its own in the place of this one, and that one's key into the
        keyring. So a person says it when the process starts, or the passphrase opened this very vault before.
        """
        return self.has_keyring and (self._use_keyring or self._identity is not None)

    def entries(self) -> Mapping[str, JsonObject]:
        """Return the metadata of every entry, by path. It works while locked; nothing of it is verified then."""
        document = self._document()
        stored = dict[str, StoredEntry]() if document is None else document.entries
        return MappingProxyType(
            {
                path: each.metadata
                for path, each in sorted(stored.items())
                if not path.startswith(".")
            }
        )

    # Its lock

    def create(self, passphrase: Secret, import_from: Path | None = None) -> Unlocked:
        """Make the vault, and leave it unlocked. *passphrase* is overwritten.

        Args:
            import_from: a vault of upstream Aileron, whose passphrase it is. The file stays as it is.

        Raises:
            Conflict: there is one.
            InvalidRequest: the passphrase is too short or too long.
            WrongPassphrase, RateLimited, VaultDamaged: of *import_from*.
            OSError: it cannot be written.
        """
        with self._passphrase_lock, wiped(passphrase):
            if self._store.read_usable().exists:
                raise Conflict(EXISTS)
            if import_from is None:
                check_passphrase(passphrase)
                self._write_new(passphrase, {})
                return Unlocked(FailedAttempts())
            values, failed = self._opener.read_upstream(import_from, passphrase)
            self._write_new(passphrase, values)
            self._attempts.set(FailedAttempts())
            return Unlocked(failed, imported=len(values))

    def unlock(self, passphrase: Secret) -> Unlocked:
        """Unlock the vault. *passphrase* is overwritten.

        Raises:
            WrongPassphrase: it was wrong, which was counted.
            RateLimited: it is too early after wrong ones; it was not looked at.
            VaultAbsent: there is none.
            VaultDamaged: no file of it can be used.
            Conflict: it is unlocked.
        """
        return self._unlock_with(passphrase, lambda: self._opener.open(passphrase))

    def unlock_with_keyring(self) -> Unlocked:
        """Unlock the vault with the key that the system's keyring keeps, which may ask a person first.

        Raises:
            KeyringUnavailable: it does not open it; the passphrase does.
            VaultAbsent, VaultDamaged, Conflict: as for `unlock`.
        """
        public_key = self.public_key
        if not self.keyring_opens or public_key is None:
            raise KeyringUnavailable("The keyring does not open this vault. Type the passphrase.")
        key = self._keyring.load(public_key)
        return self._unlock_with(
            key,
            lambda: (self._opener.open_with_keyring(key, self._identity), self.failed_attempts),
        )

    def _unlock_with(
        self, secret: Secret, open_: Callable[[], tuple[OpenVault, FailedAttempts]]
    ) -> Unlocked:
        with self._passphrase_lock, wiped(secret):
            if self.state == "unlocked":
                raise Conflict("The vault is unlocked already.")
            opened, failed = open_()
            self._set_open(opened)
            self._attempts.set(FailedAttempts())
            return Unlocked(failed, problem=opened.problem)

    def lock(self) -> bool:
        """Overwrite the keys in memory; return whether the vault was unlocked.

        What `kept_open` uses is overwritten when that ends.
        """
        with self._lock:
            opened, self._open = self._open, None
            if opened is None:
                return False
            self._wipe_unused(opened)
        self._publish()
        return True

    def change_passphrase(self, old: Secret, new: Secret) -> None:
        """Have the vault open with *new* alone. Both are overwritten. It stays locked or unlocked.

        Copies of the file that somebody made before still open with the old one.

        Raises:
            InvalidRequest: the new one is too short or too long.
            WrongPassphrase, RateLimited, VaultAbsent, VaultDamaged: as for `unlock`.
            OSError: it could not be written; the old one still holds.
        """
        with self._passphrase_lock, wiped(old, new):
            check_passphrase(new)
            kdf = replace(self._kdf, salt=os.urandom(_SALT))
            self._rewrite(old, lambda opened: {"kdf": kdf, "key": opened.keys.wrap(new, kdf)})

    def allow_keyring(self, passphrase: Secret) -> None:
        """Have the system's keyring keep a key that opens the vault. *passphrase* is overwritten.

        Raises:
            WrongPassphrase, RateLimited, VaultAbsent, VaultDamaged: as for `unlock`.
            KeyringUnavailable, OSError: it could not be written; nothing changed.
        """
        key = Secret(os.urandom(KEY_BYTES))

        def keep(opened: OpenVault) -> dict[str, Any]:
            self._keyring.store(opened.document.public_key, key)
            return {"keyring": opened.keys.wrap_for_keyring(key)}

        with self._passphrase_lock, wiped(passphrase, key):
            self._rewrite(passphrase, keep)

    def forget_keyring(self, passphrase: Secret) -> None:
        """Have the passphrase alone open the vault again; errors as of `allow_keyring`."""
        with self._passphrase_lock, wiped(passphrase):
            self._rewrite(passphrase, lambda _: {"keyring": b""})
        with suppress(KeyringUnavailable):  # the key that stays there opens nothing any more
            if (public_key := self.public_key) is not None:
                self._keyring.delete(public_key)

    def _rewrite(self, passphrase: Secret, change: Callable[[OpenVault], dict[str, Any]]) -> None:
        """Write the file with what *change* returns, leaving none from before.

        While it is unlocked, *passphrase* has to be that of what is in memory: what another program put in
        place of the file may open with one of its own, and would take the real key out of the vault.
        """
        with self._lock:
            current = None if self._open is None else replace(self._unlocked())
        if current is None:
            opened, _ = self._opener.open(passphrase)
        else:
            keys = self._opener.keys_of(current.document, passphrase)
            opened = replace(current, keys=keys, users=0)
        try:
            changes = change(opened)
            with self._lock, self._store.file.exclusive():
                changed = self._open or opened
                self._store.refresh(changed)
                self._store.write(changed, takes_away=True, **changes)
        finally:
            opened.keys.wipe()

    def verify(self, passphrase: Secret) -> None:
        """Check that *passphrase* is that of the vault that is unlocked. It is overwritten.

        What was unlocked counts, not a file that another program may have put in its place.

        Raises:
            WrongPassphrase, RateLimited: as for `unlock`, by the same counter.
            VaultLocked: it is locked, or there is no vault.
        """
        with self._passphrase_lock, wiped(passphrase):
            with self._lock:
                document = self._unlocked().document
            self._opener.keys_of(document, passphrase).wipe()
        self.touch()

    def is_idle(self, seconds: float) -> bool:
        """Return whether it is unlocked, and no person was there for *seconds*."""
        with self._lock:
            idle = self._clock.monotonic() - self._touched_at
            return self._open is not None and idle >= seconds

    def touch(self) -> None:
        """Note that a person was there: the idle time begins anew. That agents use it does not count."""
        self._touched_at = self._clock.monotonic()

    @contextmanager
    def kept_open(self) -> Generator[VaultEntries]:
        """Give access to the entries that `lock` does not end, so that what is under way can be stored.

        A provider that renewed a token may take the old one no more. For everybody else the vault is
        locked at once.

        Raises:
            VaultLocked: it is locked, or there is no vault.
        """
        with self._lock:
            opened = self._unlocked()
            opened.users += 1
        try:
            yield VaultEntries(self._store, opened)
        finally:
            with self._lock:
                opened.users -= 1
                self._wipe_unused(opened)

    def _wipe_unused(self, opened: OpenVault) -> None:
        if opened is not self._open and not opened.users:
            opened.keys.wipe()

    # Its entries

    def get(self, path: str) -> Secret:
        """Return the value of *path*; raises VaultLocked, and as `VaultEntries.get`."""
        with self._lock:
            return self._entries().get(path)

    def put(self, path: str, secret: Secret, metadata: JsonObject) -> None:
        """Store *secret* with *metadata* under *path*; raises VaultLocked, and as `VaultEntries.put`."""
        with self._lock:
            self._entries().put(path, secret, metadata)

    def put_metadata(self, path: str, metadata: JsonObject) -> None:
        """Replace what is said of *path*, whose value stays.

        Raises:
            VaultLocked, NotFound, VaultDamaged, InvalidRequest, OSError: as for `get` and `put`.
        """
        with self._lock:
            self.put(path, self.get(path), metadata)

    def delete(self, path: str) -> None:
        """Delete *path*; raises VaultLocked, and as `VaultEntries.delete`."""
        with self._lock:
            self._entries().delete(path)

    def derive_key(self, label: str) -> bytes:
        """Return 32 bytes for the purpose *label*: the same for as long as the vault lives.

        Raises:
            VaultLocked: it is locked, or there is no vault.
        """
        with self._lock:
            return self._unlocked().keys.derive(label)

    def private_key(self) -> Secret:
        """Return the private half of `public_key`, 32 bytes.

        Raises:
            VaultLocked, VaultDamaged: as for `get`.
        """
        return self.get(PRIVATE_KEY)

    def counter(self, name: str) -> int | None:
        """Return the counter *name*; None where it was never set.

        Raises:
            VaultLocked, VaultDamaged: as for `get`.
        """
        with self._lock:
            return self._entries().counters().get(name)

    def set_counter(self, name: str, value: int) -> None:
        """Store *value* as the counter *name*.

        Raises:
            VaultLocked, VaultDamaged, OSError: as for `get` and `put`.
        """
        with self._lock:
            self._entries().set_counter(name, value)

    # Reading

    def _document(self) -> VaultDocument | None:
        with self._lock:
            if self._open is not None:
                self._store.refresh(self._open)
                return self._open.document
            found = self._store.read()
            return found.copies[0].document if found.copies else None

    def _unlocked(self) -> OpenVault:
        if self._open is None:
            if self.state == "absent":
                raise VaultLocked(VaultAbsent().message)
            raise VaultLocked
        self._store.refresh(self._open)
        return self._open

    def _entries(self) -> VaultEntries:
        return VaultEntries(self._store, self._unlocked())

    # Writing

    def _write_new(
        self, passphrase: Secret, values: Mapping[str, tuple[Secret, JsonObject]]
    ) -> None:
        kdf = replace(self._kdf, salt=os.urandom(_SALT))
        self.is_new = True
        self._set_open(self._store.create(*new_vault(passphrase, kdf, values)))

    def _set_open(self, opened: OpenVault) -> None:
        with self._lock:
            self._open, self._public_key = opened, opened.document.public_key
            self._identity = identity_of(opened)
            self.touch()
        self._publish()

    def _publish(self) -> None:
        state = self.state

        def publish() -> None:
            self.changed.publish(state)

        if self._deliver is None:
            publish()
        else:
            self._deliver(publish)
