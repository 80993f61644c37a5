"""What a paired device signs: each request, and each decision. ECDSA on P-256 with SHA-256, as `r || s`.

A decision is signed over everything that it is about, so that its record proves by itself which key said
yes to what (`aileron audit verify`), whatever carried it here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, cast

from aileron_core.canonical import Json, JsonObject, canonical, sha256_hex
from aileron_core.ids import APPROVAL_ID

Verdict: TypeAlias = Literal["approve", "deny"]
MAX_NUMBER: Final = 2**53 - 1
_REQUEST: Final = b"aileron request v1\0"
_DECISION: Final = b"aileron decision v1\0"
_INTENT: Final = b"aileron intent v1\0"
_HALF: Final = 32
"""Bytes of `r` and of `s`."""
_POINT: Final = 65
"""Bytes of an uncompressed point."""
_HASH: Final = re.compile("[0-9a-f]{64}")


# What follows is imported where it is used: it takes 60 ms, and most consoles pair nothing.


def is_key(point: bytes) -> bool:
    """Return whether this is an uncompressed point on P-256."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    try:
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    except ValueError:
        return False
    return len(point) == _POINT


def is_signed(point: bytes, signature: bytes, text: bytes) -> bool:
    """Return whether *signature* is over *text*, by the key with this *point* (`is_key`)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import (
        ECDSA,
        SECP256R1,
        EllipticCurvePublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    if len(signature) != 2 * _HALF:
        return False
    r, s = (int.from_bytes(part) for part in (signature[:_HALF], signature[_HALF:]))
    try:
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
        key.verify(encode_dss_signature(r, s), text, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def request_text(start: str, method: str, path: str, number: int, body: bytes) -> bytes:
    """Return what a device signs of a request.

    Args:
        start: names this start of the console.
        number: only rises, so that no request counts twice.
    """
    return _REQUEST + canonical(
        {"start": start, "method": method, "path": path, "number": number, "body": sha256_hex(body)}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's answer on another device, as it is signed there; the fields are the members that are signed."""

    home: str
    approval: str
    digest: str
    """Hex; empty while the call has none, and can only be denied."""
    shown: str
    """SHA-256, hex, of the bytes of the item that the home sent under this digest."""
    verdict: Verdict
    reason: str
    """SHA-256, hex; of the empty text where none was given."""
    unseen: int
    """Lines that were not on the screen."""
    device: str
    at: int
    """Epoch milliseconds by the device's clock: a claim. Deadlines go by the home's."""

    @classmethod
    def from_json(cls, stored: object) -> "Decision":
        """Read a decision as a device sends it, or a record keeps it.

        Raises:
            ValueError: it is none. The message quotes nothing of it.
        """
        names = {each.name for each in fields(cls)}
        if not isinstance(stored, dict) or cast("dict[str, Any]", stored).keys() != names:
            raise ValueError("a decision has other members")
        found = cast("dict[str, Any]", stored)
        numbers = {name: found.pop(name) for name in ("unseen", "at")}
        if not all(type(each) is int and 0 <= each <= MAX_NUMBER for each in numbers.values()):
            raise ValueError("'unseen' and 'at' are whole numbers from 0 to 2^53 - 1")
        if not all(isinstance(each, str) and len(each) <= 4096 for each in found.values()):
            raise ValueError("the other members of a decision are texts")
        hashes = [
            found[name] for name in ("digest", "shown", "reason") if found[name] or name != "digest"
        ]
        if not all(map(_HASH.fullmatch, hashes)):
            raise ValueError("'digest', 'shown' and 'reason' are SHA-256 in lower-case hex")
        if found["verdict"] not in ("approve", "deny") or not APPROVAL_ID.fullmatch(
            found["approval"]
        ):
            raise ValueError("a decision approves or denies one approval")
        decision = cls(**found, **numbers)
        decision.text()
        return decision

    def text(self) -> bytes:
        """Return the bytes that are signed.

        Raises:
            ValueError: a text in it is none that UTF-8 can hold.
        """
        return _DECISION + canonical({each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedDecision:
    """A decision with what proves it, as its record keeps it."""

    decision: Decision
    key: bytes
    """The device's public key, an uncompressed point."""
    signature: bytes

    @property
    def holds(self) -> bool:
        """Whether the key signed exactly this."""
        return is_key(self.key) and is_signed(self.key, self.signature, self.decision.text())

    def to_record(self) -> Mapping[str, Json]:
        """Return what an audit record keeps of it: the signed text without its prefix, key and signature."""
        return {
            "signed": self.decision.text()[len(_DECISION) :].decode(),
            "device_key": self.key.hex(),
            "signature": self.signature.hex(),
        }


def commitment(random: bytes, value: bytes) -> str:
    """Return what is signed in place of *value*, in hex: who has not *random*, 32 bytes, cannot guess by it."""
    return sha256_hex(random + value)


def intent_text(home: str, device: str, number: int, at: int, intent: JsonObject) -> bytes:
    """Return what a device signs of anything else that it asks for.

    Args:
        number: of the request that carries it.
        at: epoch milliseconds by the device's clock: a claim.
        intent: as the codec of the port has it (`to_signed`).

    Raises:
        ValueError: something in it is not canonical JSON.
    """
    members: dict[str, Json] = {"home": home, "device": device, "number": number, "at": at}
    return _INTENT + canonical({**members, "intent": intent})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIntent:
    """An intent with what proves it, as its record keeps it."""

    text: bytes
    """Of `intent_text`."""
    key: bytes
    """The device's public key, an uncompressed point."""
    signature: bytes

    @classmethod
    def from_record(cls, signed: str, key: str, signature: str) -> "SignedIntent":
        """Read what `to_record` returned.

        Raises:
            ValueError: it is none.
        """
        return cls(
            text=_INTENT + signed.encode(),
            key=bytes.fromhex(key),
            signature=bytes.fromhex(signature),
        )

    @property
    def holds(self) -> bool:
        """Whether the key signed exactly this."""
        return is_key(self.key) and is_signed(self.key, self.signature, self.text)

    def to_record(self) -> Mapping[str, Json]:
        """Return what an audit record keeps of it: the signed text without its prefix, key and signature."""
        return {
            "signed": self.text[len(_INTENT) :].decode(),
            "device_key": self.key.hex(),
            "signature": self.signature.hex(),
        }
