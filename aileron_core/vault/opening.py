"""What opens the files of a vault: a passphrase, of which wrong ones are counted, or the system's keyring.

The vault file of upstream Aileron, `secrets.json`, version 1, is read, never written: its key is the passphrase's own
(Argon2id with fixed parameters); a known text encrypted with it says whether the passphrase is right, and values
have no associated data.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from aileron_core.canonical import JsonObject
from aileron_core.clock import Clock
from aileron_core.errors import (
    KeyringUnavailable,
    NotFound,
    RateLimited,
    VaultAbsent,
    VaultDamaged,
    WrongPassphrase,
)
from aileron_core.vault.atomic_file import read_private_file, replace_file
from aileron_core.vault.encryption import (
    VaultKeys,
    decrypt,
    passphrase_key,
    unwrap_master_key,
    unwrap_with_keyring,
)
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault_file import KdfParameters, StoredEntry, VaultDocument, decode
from aileron_core.vault.vault_store import OpenVault, VaultStore

_MAX_UPSTREAM_BYTES = 16 * 1024 * 1024
_VERIFICATION = b"aileron-vault-v1"


@dataclass(frozen=True, slots=True)
class UpstreamVault:
    """What such a file says."""

    path: Path
    kdf: KdfParameters
    verification: bytes = field(repr=False)
    entries: Mapping[str, StoredEntry] = field(repr=False)

    def decrypt(self, passphrase: Secret) -> dict[str, tuple[Secret, JsonObject]] | None:
        """Return every value with its metadata; None where *passphrase* is wrong.

        Raises:
            VaultDamaged: the passphrase is right, and a value cannot be decrypted.
        """
        with passphrase_key(passphrase, self.kdf) as key:
            if decrypt(key, self.verification, None) != _VERIFICATION:
                return None
            found: dict[str, tuple[Secret, JsonObject]] = {}
            for path, entry in self.entries.items():
                plain = decrypt(key, entry.value, None)
                if plain is None:
                    raise VaultDamaged(
                        f"{self.path} cannot be imported: one of its values is damaged. "
                        "Nothing was changed."
                    )
                found[path] = (Secret(plain), entry.metadata)
            return found


def read_upstream(path: Path) -> UpstreamVault:
    """Return what the file *path* says.

    Raises:
        NotFound: there is no such file.
        VaultDamaged: it is no vault of version 1.
    """
    try:
        data = read_private_file(path, _MAX_UPSTREAM_BYTES)
        if data is None:
            raise NotFound(f"There is no file {path}. Nothing was changed.")
        content: Any = json.loads(data)
        if content["version"] != 1:
            raise ValueError("another version")
        salt = decode(content["salt"])
        if len(salt) < 16:
            raise ValueError("a short salt")
        return UpstreamVault(
            path,
            KdfParameters(salt=salt),
            decode(content["verification"]),
            _entries(content["secrets"] or {}),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # what was read does not belong into an exception
    raise VaultDamaged(
        f"{path} cannot be read as a vault of version 1. Nothing was changed. Name another file."
    )


def _entries(secrets: Mapping[str, Any]) -> dict[str, StoredEntry]:
    return {
        str(path): StoredEntry(decode(each["value"]), _lower(each.get("metadata")))
        for path, each in secrets.items()
    }


def _lower(metadata: object) -> JsonObject:
    """Return `Type` and `Labels` of *metadata*, which upstream writes, with their keys in lower case.

    Nothing else: no passphrase verifies it, and it must not say which connector an account belongs to.
    """
    if not isinstance(metadata, Mapping):
        return {}
    found = {key.lower(): value for key, value in cast("Mapping[str, Any]", metadata).items()}
    return {key: value for key, value in found.items() if key in ("type", "labels")}


_T = TypeVar("_T")
NAME = "vault-attempts.json"
_WAITS = (0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds to wait after that many wrong passphrases; as the last one, after more."""
_MAX_BYTES = 4096
_IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """Wrong passphrases since the vault was last unlocked."""

    count: int = 0
    since: float = 0.0
    """When the first of them was given, epoch seconds."""
    last: float = 0.0


class AttemptCounter:
    """Counts each attempt before it is made, so that ending the process makes none free."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / NAME
        self._clock = clock

    def failed(self) -> FailedAttempts:
        """Return those on file; none where it is missing or damaged.

        No time is later than now: a clock that was set back makes nobody wait longer.
        """
        try:
            data = read_private_file(self._path, _MAX_BYTES)
            content = json.loads(data or b"{}")
            now = self._clock.now()
            return FailedAttempts(
                max(0, int(content.get("count", 0))),
                min(now, float(content.get("since", 0))),
                min(now, float(content.get("last", 0))),
            )
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return FailedAttempts()

    def begin(self) -> FailedAttempts:
        """Count an attempt as failed until `set` says otherwise; return it with those before.

        Raises:
            RateLimited: it is too early for another; this one was not looked at.
            OSError: it cannot be counted.
        """
        now, before = self._clock.now(), self.failed()
        wait = wait_after(before.count)
        left = before.last + wait - now
        if left > 0:
            raise RateLimited(
                f"After {before.count} wrong passphrases the vault waits: try again in {left:.0f} s.",
                details={"attempts": before.count, "wait_seconds": left},
            )
        attempts = FailedAttempts(before.count + 1, before.since if before.count else now, now)
        self.set(attempts)
        return attempts

    def set(self, attempts: FailedAttempts) -> None:
        """Have *attempts* be those on file."""
        if not attempts.count:
            self._path.unlink(missing_ok=True)
            return
        content = {"count": attempts.count, "since": attempts.since, "last": attempts.last}
        replace_file(self._path, json.dumps(content).encode())


def wait_after(count: int) -> float:
    """Return the seconds that are waited after *count* wrong passphrases."""
    return _WAITS[min(count, len(_WAITS) - 1)]


class VaultOpener:
    """Opens what is in *store*. Its methods take half a second; one passphrase is tried at a time."""

    def __init__(self, store: VaultStore, attempts: AttemptCounter) -> None:
        self._store = store
        self._attempts = attempts

    def open(self, passphrase: Secret) -> tuple[OpenVault, FailedAttempts]:
        """Return what *passphrase* opens, and the wrong ones before it, which stay on file.

        Raises:
            WrongPassphrase: it was wrong, which was counted.
            RateLimited: it is too early after wrong ones; it was not looked at.
            VaultAbsent: there is none.
            VaultDamaged: no file of it can be used.
        """
        found = self._store.read_usable()
        if not found.copies:
            raise VaultAbsent
        return self._try(
            lambda: self._store.open(found, lambda each: unwrap_master_key(passphrase, each))
        )

    def open_with_keyring(self, key: Secret, identity: bytes | None) -> OpenVault:
        """Return what *key* opens, which the keyring keeps.

        Args:
            identity: that of the vault that it has to be; None: any.

        Raises:
            KeyringUnavailable: it opens nothing, or another vault.
            VaultDamaged: no file can be used.
        """
        found = self._store.read_usable()
        opened = self._store.open(found, lambda each: unwrap_with_keyring(key, each))
        if opened is not None and identity in (None, identity_of(opened)):
            return opened
        if opened is not None:
            # Who wrote the file may have written the keyring too.
            opened.keys.wipe()
        raise KeyringUnavailable(
            "The keyring has no key of this vault, or an old one. Type the passphrase, and turn it on "
            "again with `aileron vault keyring on`."
        )

    def keys_of(self, document: VaultDocument, passphrase: Secret) -> VaultKeys:
        """Return the keys of *document*, as it is in memory; raises WrongPassphrase and RateLimited as `open`."""
        master, _ = self._try(lambda: unwrap_master_key(passphrase, document))
        return VaultKeys(master)

    def read_upstream(
        self, path: Path, passphrase: Secret
    ) -> tuple[Mapping[str, tuple[Secret, JsonObject]], FailedAttempts]:
        """Return the entries of the vault of upstream Aileron in *path*, and the wrong passphrases before.

        Raises:
            NotFound: there is no such file.
            WrongPassphrase, RateLimited, VaultDamaged: as of `open`.
        """
        found = read_upstream(path)
        values, failed = self._try(lambda: found.decrypt(passphrase))
        # A path that begins with a dot is the vault's own.
        named = {
            f"imported{path}" if path.startswith(".") else path: v for path, v in values.items()
        }
        return named, failed

    def _try(self, open_: Callable[[], _T | None]) -> tuple[_T, FailedAttempts]:
        """Return what *open_* gives, and the wrong passphrases before it, to be told at the next unlock.

        Raises:
            WrongPassphrase: it gives None, which stays counted.
            RateLimited: as of `AttemptCounter.begin`; *open_* was not called.
        """
        with self._store.file.exclusive():
            failed = self._attempts.begin()
        opened = open_()
        if opened is None:
            raise WrongPassphrase(failed.count, wait_after(failed.count))
        before = FailedAttempts() if failed.count == 1 else replace(failed, count=failed.count - 1)
        self._attempts.set(before)
        return opened, before


def identity_of(opened: OpenVault) -> bytes:
    """Return what no other vault has. It says nothing of the keys."""
    return opened.keys.derive(_IDENTITY)
