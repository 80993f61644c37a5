"""The sealed record: what was shown at one decision, or contained in one call. Only its day's private key opens it.

    version (1 byte) | public key made for this record (32) | AES-256-GCM ciphertext with its tag (16)

Key and nonce are HKDF-SHA256 of the X25519 secret; its salt is both public keys, its info a label. The key
is used once, so a fixed way to the nonce is safe. Associated data: version, day, id, kind, time. The plaintext is its own length (4 bytes), then JSON with sorted keys, then zeros up to a
multiple of 1 KiB. It is not compressed: an agent chooses part of the text, and how well that compresses
beside the service's text would show in the size.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, cast

from aileron_core.canonical import JsonObject
from aileron_core.errors import AileronError

VERSION = 1
MAX_BYTES = 8 * 1024 * 1024
"""Of the JSON text of what was shown at one decision."""
_MAX_CONTENT_BYTES = 512 * 1024 * 1024
"""Of that of a call's arguments or result: the database has held it before."""
_STEP = 1024
_KEY, _NONCE, _TAG, _LENGTH = 32, 12, 16, 4
IS_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""What else a row may say is not asked for: another program may have written it."""
_LABEL = b"aileron history: what was shown, version 1"

DecisionKind = Literal["approved", "denied"]
Kind = DecisionKind | Literal["arguments", "result"]


class HistoryKeys(Protocol):
    """A pair of X25519 keys for each day, each key as its 32 raw bytes. A day is a UTC date, `2026-07-14`.

    Called on any thread. Every method may raise `OSError` where the keys cannot be reached.
    """

    @property
    def locked(self) -> bool:
        """Whether the private keys are out of reach until a person unlocks them."""
        ...

    def public_key(self, day: str) -> bytes | None:
        """Return the key that *day* is sealed to, made on first use; None where nothing is to be kept.

        It works while locked. A day whose key was destroyed has none again.
        """
        ...

    def private_keys(self, day: str) -> Sequence[bytes]:
        """Return the keys that open *day*: none while locked, and for a day whose keys were destroyed.

        A day has another one from its first unlock on, where the first was made while locked.
        """
        ...

    def days(self) -> Sequence[str]:
        """Return the days that have a private key. It works while locked."""
        ...

    def destroy(self, day: str) -> None:
        """Destroy the private keys of *day* for good, wherever they are kept; once gone, nothing happens.

        It works while locked.
        """
        ...


class CannotUnseal(AileronError):
    """A sealed record cannot be read; the message says why."""


class TooLarge(AileronError):
    """What was shown is more than one record holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealLabel:
    """What a record is about. It is stored beside it in clear, and cannot be changed unnoticed."""

    day: str
    """UTC date, `2026-07-14`."""
    subject: str
    """The approval's id; of what a call contained, the run's."""
    kind: Kind
    at: float
    """Of the decision, or of the call's end, in epoch seconds."""

    @property
    def what(self) -> str:
        """The beginning of a sentence on it."""
        return (
            "What was shown" if self.kind in ("approved", "denied") else "What the call contained"
        )

    @property
    def max_bytes(self) -> int:
        return MAX_BYTES if self.kind in ("approved", "denied") else _MAX_CONTENT_BYTES

    def associated_data(self, version: int) -> bytes:
        parts = [version, self.day, self.subject, self.kind, repr(float(self.at))]
        return json.dumps(parts, ensure_ascii=True).encode()


def seal(content: JsonObject, label: SealLabel, public_key: bytes) -> bytes:
    """Return *content* sealed to *public_key* (32 raw bytes); only its private key opens that.

    Raises:
        TooLarge: its JSON text has more than `label.max_bytes`.
        ValueError: *public_key* is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
    if len(text) > label.max_bytes:
        raise TooLarge(f"{label.what} has more than {label.max_bytes // 1024 // 1024} MiB of text.")
    plain = len(text).to_bytes(_LENGTH, "big") + text
    plain += bytes(-len(plain) % _STEP)
    own = X25519PrivateKey.generate()
    ephemeral = own.public_key().public_bytes_raw()
    secret = own.exchange(X25519PublicKey.from_public_bytes(public_key))
    key, nonce = _derive(secret, ephemeral, public_key)
    sealed = AESGCM(key).encrypt(nonce, plain, label.associated_data(VERSION))
    return bytes([VERSION]) + ephemeral + sealed


def unseal(sealed: bytes, label: SealLabel, private_key: bytes) -> dict[str, Any]:
    """Return what `seal` was given.

    Raises:
        CannotUnseal: a newer version wrote it, it was changed or cut, or it is not of *label*.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if sealed and sealed[0] > VERSION:
        raise CannotUnseal(
            f"{label.what} was sealed by a newer Aileron (version {sealed[0]}, this one reads "
            f"{VERSION}). Update Aileron to read it."
        )
    head, largest = 1 + _KEY, label.max_bytes + _LENGTH + _STEP
    if sealed[:1] != bytes([VERSION]) or not _TAG < len(sealed) - head <= largest + _TAG:
        raise _spoilt(label)
    ephemeral = sealed[1:head]
    try:
        own = X25519PrivateKey.from_private_bytes(private_key)
        secret = own.exchange(X25519PublicKey.from_public_bytes(ephemeral))
        key, nonce = _derive(secret, ephemeral, own.public_key().public_bytes_raw())
        plain = AESGCM(key).decrypt(nonce, sealed[head:], label.associated_data(VERSION))
        end = _LENGTH + int.from_bytes(plain[:_LENGTH], "big")
        shown: Any = json.loads(plain[_LENGTH:end])
    except (InvalidTag, ValueError, RecursionError) as error:
        raise _spoilt(label) from error
    if not isinstance(shown, dict):
        raise _spoilt(label)
    return cast("dict[str, Any]", shown)


def unseal_with_day(sealed: bytes, label: SealLabel, keys: HistoryKeys) -> dict[str, Any]:
    """Return what `seal` was given, opened with one of the keys of its day.

    Raises:
        CannotUnseal: those are locked, destroyed or out of reach, or as `unseal` says.
    """
    if not IS_DAY.fullmatch(label.day):
        raise _spoilt(label)
    try:
        found = keys.private_keys(label.day)
    except OSError as error:
        raise CannotUnseal(
            f"{label.what} is sealed, and its key cannot be reached. Check the vault."
        ) from error
    if not found and keys.locked:
        raise CannotUnseal(
            f"{label.what} is sealed, and its key is locked. Unlock the vault to read it."
        )
    if not found:
        raise CannotUnseal(
            f"{label.what} can no longer be read: the key of that day was destroyed."
        )
    for key in found[:-1]:
        with suppress(CannotUnseal):
            return unseal(sealed, label, key)
    return unseal(sealed, label, found[-1])


def day_of(at: float) -> str:
    """Return the UTC date of *at*, in epoch seconds: `2026-07-14`."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _derive(secret: bytes, ephemeral: bytes, public_key: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(
        algorithm=SHA256(), length=_KEY + _NONCE, salt=ephemeral + public_key, info=_LABEL
    ).derive(secret)
    return derived[:_KEY], derived[_KEY:]


def _spoilt(label: SealLabel) -> CannotUnseal:
    return CannotUnseal(
        f"{label.what} cannot be read: its sealed record was changed, cut or moved here from "
        "another call, or its key is not the one that it was sealed to."
    )
