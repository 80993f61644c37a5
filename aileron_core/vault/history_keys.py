"""The keys that the history is sealed to: a pair for each day, its private half sealed to the vault.

They are in `history-keys.json` (0600), which no backup of Aileron's has: without it nobody reads what was
sealed to a day, whoever knows the passphrase.

Anybody can seal a private key to the vault's public one. So while the vault is unlocked only a key is used
that has the vault's HMAC, else another program could read what is shown with one of its own. A locked
console cannot know; what it seals is what its database has in clear anyway, since no call is previewed then.
"""

import hmac
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from aileron_core.canonical import canonical
from aileron_core.errors import VaultDamaged, VaultLocked
from aileron_core.vault.atomic_file import read_private_file, replace_file
from aileron_core.vault.vault import Vault
from aileron_core.vault.vault_file import decode, encode

NAME = "history-keys.json"
_VERSION = 1
_MAX_BYTES = 4 * 1024 * 1024


class VaultHistoryKeys:
    """Implements `aileron_core.history.sealing.HistoryKeys`. Without a vault there are no keys."""

    def __init__(self, vault: Vault, folder: Path) -> None:
        self._vault = vault
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._public: dict[str, bytes] = {}
        """The public keys that this process made or used: another program may replace the file's."""

    @property
    def locked(self) -> bool:
        return self._vault.state == "locked"

    def public_key(self, day: str) -> bytes | None:
        """Return the key that *day* is sealed to, made on first use; None without a vault, or once destroyed.

        Raises:
            OSError: the file cannot be read or written, or another program replaced the day's key.
        """
        vault_key = self._vault.public_key
        if vault_key is None:
            return None
        with self._lock:
            content = self._read()
            if day in content["destroyed"]:
                return None
            found, mac_key = content["days"].get(day), self._mac_key()
            if found is not None:
                public = decode(found["public"])
                if self._public.setdefault(day, public) != public:
                    raise OSError(f"the key of {day} in {NAME} was replaced by another program")
            if found is None or (mac_key is not None and not _has_mac(found, day, mac_key)):
                public = self._public[day] = self._add(content, day, vault_key, mac_key)
            return self._public[day]

    def private_keys(self, day: str) -> Sequence[bytes]:
        """Return the keys that open *day*: none while locked, and for a day whose keys were destroyed.

        Raises:
            OSError: the file cannot be read, or no key of the day was sealed to this vault.
        """
        with self._lock:
            found = self._read()["days"].get(day)
        opened: list[bytes] = []
        failed: OSError | None = None
        for each in () if found is None else (found, *found.get("earlier", ())):
            try:
                key = self._opened(each, day)
            except OSError as error:
                failed = error
            else:
                opened += () if key is None else (key,)
        if failed is not None and not opened:
            raise failed
        return opened

    def _opened(self, found: dict[str, Any], day: str) -> bytes | None:
        """Return the private key of *found*; None while locked."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        try:
            with self._vault.private_key().view() as own:
                private = X25519PrivateKey.from_private_bytes(own)
            sealed = decode(found["sealed_private"])
            opened = _suite().decrypt(sealed, private, info=_info(day))
            public = X25519PrivateKey.from_private_bytes(opened).public_key().public_bytes_raw()
        except VaultLocked:
            return None
        except (VaultDamaged, InvalidTag, ValueError, KeyError, TypeError) as error:
            raise OSError(f"the key of {day} is not sealed to this vault") from error
        if public != decode(found["public"]):
            raise OSError(f"the key of {day} in {NAME} was replaced by another program")
        return opened

    def days(self) -> Sequence[str]:
        """Return the days that have a private key.

        Raises:
            OSError: the file cannot be read.
        """
        with self._lock:
            return tuple(self._read()["days"])

    def destroy(self, day: str) -> None:
        """Destroy the private key of *day*: the bytes of the file that had it are overwritten.

        Raises:
            OSError: the file cannot be read or written.
        """
        with self._lock:
            content = self._read()
            if content["days"].pop(day, None) is None:
                return
            content["destroyed"].append(day)
            self._write(content)

    def _mac_key(self) -> bytes | None:
        try:
            return self._vault.derive_key("history keys")
        except VaultLocked:
            return None

    def _add(
        self, content: dict[str, Any], day: str, vault_key: bytes, mac_key: bytes | None
    ) -> bytes:
        """Store another pair for *day*, beside those that it has; return its public key."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import (
            X25519PrivateKey,
            X25519PublicKey,
        )

        pair, vault = X25519PrivateKey.generate(), X25519PublicKey.from_public_bytes(vault_key)
        sealed = _suite().encrypt(pair.private_bytes_raw(), vault, info=_info(day))
        public, before = pair.public_key().public_bytes_raw(), content["days"].get(day)
        made: dict[str, Any] = {"public": encode(public), "sealed_private": encode(sealed)}
        if mac_key is not None:
            made["mac"] = _mac(made, day, mac_key)
        if before is not None:
            made["earlier"] = [before, *before.pop("earlier", ())]
        content["days"][day] = made
        self._write(content)
        return public

    def _write(self, content: dict[str, Any]) -> None:
        replace_file(self._path, json.dumps(content, indent=1).encode(), overwrite_old=True)

    def _read(self) -> dict[str, Any]:
        data = read_private_file(self._path, _MAX_BYTES)
        if data is None:
            return {"version": _VERSION, "days": {}, "destroyed": []}
        try:
            content: Any = json.loads(data)
            if content["version"] != _VERSION:
                raise ValueError("another version")
            days, destroyed = content["days"], content["destroyed"]
            if not isinstance(days, dict) or not isinstance(destroyed, list):
                raise ValueError("another form")
            for each in cast("dict[str, Any]", days).values():
                decode(each["public"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise OSError(f"{NAME} is damaged") from error
        return content


def _mac(found: dict[str, Any], day: str, key: bytes) -> str:
    text = canonical([day, found["public"], found["sealed_private"]])
    return hmac.digest(key, text, "sha256").hex()


def _has_mac(found: dict[str, Any], day: str, key: bytes) -> bool:
    mac = found.get("mac")
    return isinstance(mac, str) and hmac.compare_digest(
        mac.encode(), _mac(found, day, key).encode()
    )


def _info(day: str) -> bytes:
    return b"aileron history key, version 1, " + day.encode()


def _suite() -> Any:
    """Return how a day's private key is sealed: HPKE (RFC 9180) in its base mode."""
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
