"""The sealed record: what was shown at one decision, readable with the private key of its day alone.

    version (1 byte) | public key made for this record (32) | AES-256-GCM ciphertext with its tag (16)

Key and nonce are HKDF-SHA256 of the X25519 secret; its salt is both public keys, its info a label. The key
is used once, so a fixed way to the nonce is safe. Associated data: version, day, approval, kind, time of
the decision. The plaintext is its own length (4 bytes), then JSON with sorted keys, then zeros up to a
multiple of 1 KiB. It is not compressed: an agent chooses part of the text, and how well that compresses
beside the service's text would show in the size.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal, cast

from aileron_core.canonical import JsonObject
from aileron_core.errors import AileronError

VERSION = 1
MAX_BYTES = 8 * 1024 * 1024
"""Of the JSON text of one record."""
_STEP = 1024
_KEY, _NONCE, _TAG, _LENGTH = 32, 12, 16, 4
_LABEL = b"aileron history: what was shown, version 1"

Kind = Literal["approved", "denied"]


class CannotUnseal(AileronError):
    """A sealed record cannot be read; the message says why."""


class TooLarge(AileronError):
    """What was shown is more than one record holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealLabel:
    """What a record is about. It is stored beside it in clear, and cannot be changed unnoticed."""

    day: str
    """UTC date, `2026-07-14`."""
    approval_id: str
    kind: Kind
    decided_at: float
    """Epoch seconds."""

    def associated_data(self, version: int) -> bytes:
        parts = [version, self.day, self.approval_id, self.kind, repr(float(self.decided_at))]
        return json.dumps(parts, ensure_ascii=True).encode()


def seal(shown: JsonObject, label: SealLabel, public_key: bytes) -> bytes:
    """Return *shown* sealed to *public_key* (32 raw bytes); only its private key opens that.

    Raises:
        TooLarge: it has more than `MAX_BYTES`.
        ValueError: *public_key* is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    text = json.dumps(shown, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
    if len(text) > MAX_BYTES:
        raise TooLarge(f"What was shown has more than {MAX_BYTES // 1024 // 1024} MiB of text.")
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
            f"What was shown was sealed by a newer Aileron (version {sealed[0]}, this one reads "
            f"{VERSION}). Update Aileron to read it."
        )
    head, largest = 1 + _KEY, MAX_BYTES + _LENGTH + _STEP
    if sealed[:1] != bytes([VERSION]) or not _TAG < len(sealed) - head <= largest + _TAG:
        raise _spoilt()
    ephemeral = sealed[1:head]
    try:
        own = X25519PrivateKey.from_private_bytes(private_key)
        secret = own.exchange(X25519PublicKey.from_public_bytes(ephemeral))
        key, nonce = _derive(secret, ephemeral, own.public_key().public_bytes_raw())
        plain = AESGCM(key).decrypt(nonce, sealed[head:], label.associated_data(VERSION))
        end = _LENGTH + int.from_bytes(plain[:_LENGTH], "big")
        shown: Any = json.loads(plain[_LENGTH:end])
    except (InvalidTag, ValueError, RecursionError) as error:
        raise _spoilt() from error
    if not isinstance(shown, dict):
        raise _spoilt()
    return cast("dict[str, Any]", shown)


def _derive(secret: bytes, ephemeral: bytes, public_key: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(
        algorithm=SHA256(), length=_KEY + _NONCE, salt=ephemeral + public_key, info=_LABEL
    ).derive(secret)
    return derived[:_KEY], derived[_KEY:]


def _spoilt() -> CannotUnseal:
    return CannotUnseal(
        "What was shown cannot be read: its sealed record was changed, cut or moved here from "
        "another call, or its key is not the one that it was sealed to."
    )
