"""Signatures of releases: SSH's of a suite's sums (as `ssh-keygen -Y` makes them), and plain ed25519.

Formats: OpenSSH PROTOCOL.sshsig; RFC 8709 and RFC 7468 for keys.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from aileron_core.errors import FileProblems, Problem
from aileron_core.releases.suite import (
    PLAIN_SIGNATURE_FILE,
    PUBLIC_KEY_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
)
from aileron_core.text import escape

NAMESPACE: Final = b"aileron-suite"
NEW_KEY_NAMESPACE: Final = b"aileron-publisher"
"""Of a signature by which a publisher's old key names the new one."""
_MAGIC: Final = b"SSHSIG"
_ED25519: Final = b"ssh-ed25519"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_ARMOR = re.compile(f"\\s*{_BEGIN}\\s([A-Za-z0-9+/=\\s]+){_END}\\s*")
_HASHES: Final = {b"sha512": hashlib.sha512, b"sha256": hashlib.sha256}
_SMALL_ORDER: Final = "has a key of small order, for which anybody can sign; make a new ed25519 key"
_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P)
"""The field and the constant of edwards25519 (RFC 8032)."""


@dataclass(frozen=True, slots=True)
class PublisherKey:
    """A publisher's public key; equal keys are equal."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(_blob(self.raw)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def line(self) -> bytes:
        """As OpenSSH has it in a file of a public key."""
        return b"ssh-ed25519 " + base64.b64encode(_blob(self.raw)) + b"\n"

    @property
    def has_small_order(self) -> bool:
        """Whether anybody can make a signature that this key verifies."""
        y = int.from_bytes(self.raw, "little") & (2**255 - 1)
        # y is 0, 1 or -1, or the point's double has the y 0.
        return y * (y * y - 1) * (_D * y**4 + 2 * y * y - 1) % _P == 0

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Return whether *signature*, of 64 bytes, is this key's over *message*."""
        if self.has_small_order:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


def sign_sums(sums: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return the SSH signature of *sums*, as `ssh-keygen -Y sign -n aileron-suite` makes it."""
    public = _blob(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    signature = _string(_ED25519) + _string(key.sign(_to_sign(sums, b"sha512")))
    body = b"".join(
        (
            _MAGIC,
            (1).to_bytes(4, "big"),
            *map(_string, (public, NAMESPACE, b"", b"sha512", signature)),
        )
    )
    text = base64.b64encode(body).decode()
    lines = [text[start : start + 70] for start in range(0, len(text), 70)]
    return "\n".join((_BEGIN, *lines, _END, "")).encode()


def verify_sums(
    sums: bytes, signature: bytes, file: str, namespace: bytes = NAMESPACE
) -> PublisherKey:
    """Return the key whose SSH signature of *sums* *signature* is.

    Args:
        file: its name in messages.
        namespace: what it has to have been made for.

    Raises:
        FileProblems: it is no SSH signature, has another purpose or kind of key, or does not verify.
    """

    def refuse(message: str) -> FileProblems:
        return FileProblems([Problem(file=file, message=message, class_="signature_failure")])

    match = _ARMOR.fullmatch(signature.decode("ascii", "replace"))
    try:
        body = base64.b64decode("".join(match[1].split()), validate=True) if match else b""
        if not body.startswith(_MAGIC + b"\0\0\0\1"):
            raise refuse("is no SSH signature")
        public, made_for, _reserved, hash_name, signed = _strings(body[10:])
        kind, *parts = _strings(public)
        if kind != _ED25519:
            shown = escape(kind[:40].decode("ascii", "replace"))
            raise refuse(f"is of a key of the kind {shown}; use ed25519")
        (raw,), (signed_kind, bare) = parts, _strings(signed)
    except (ValueError, binascii.Error) as error:
        raise refuse("is a damaged SSH signature") from error
    if made_for != namespace:
        raise refuse(f"was made for another purpose; sign with -n {namespace.decode()}")
    if hash_name not in _HASHES or signed_kind != _ED25519 or len(raw) != 32:
        raise refuse("is a damaged SSH signature")
    key = PublisherKey(raw)
    if key.has_small_order:
        raise refuse(_SMALL_ORDER)
    if not key.signed(bare, _to_sign(sums, hash_name, namespace)):
        raise refuse("does not fit these sums: they were changed after they were signed")
    return key


def publisher_of(suite: Release) -> PublisherKey | None:
    """Return whose signature of its sums, or else of its connector, *suite* has.

    None without one, and where a signature of the connector has no public key beside it.

    Raises:
        FileProblems: the signature does not verify.
    """
    if (signature := suite.files.get(SIGNATURE_FILE)) is not None:
        return verify_sums(suite.files[SUMS_FILE], signature, suite.place(SIGNATURE_FILE))
    plain, public = (suite.files.get(each) for each in (PLAIN_SIGNATURE_FILE, PUBLIC_KEY_FILE))
    if plain is None or public is None:
        return None
    key = read_public_key(public, suite.place(PUBLIC_KEY_FILE))
    if not key.signed(plain, suite.module + suite.manifest):
        message = f"does not fit the connector and the key in {PUBLIC_KEY_FILE}"
        place = suite.place(PLAIN_SIGNATURE_FILE)
        raise FileProblems([Problem(file=place, message=message, class_="signature_failure")])
    return key


def read_public_key(data: bytes, file: str) -> PublisherKey:
    """Return the public key in *data*, PEM or OpenSSH.

    Raises:
        FileProblems: it is another kind of key, one that "signs" anything, or none.
    """

    def refuse(message: str) -> FileProblems:
        return FileProblems([Problem(file=file, message=message, class_="signature_failure")])

    kind = data.split(maxsplit=1)[0] if data.strip() else b""
    if kind.startswith((b"sk-", b"ssh-", b"ecdsa-")) and kind != _ED25519:
        shown = escape(kind[:40].decode("ascii", "replace"))
        raise refuse(f"is a key of the kind {shown}; use ed25519")
    load = load_ssh_public_key if kind == _ED25519 else load_pem_public_key
    try:
        key = load(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise refuse("is no ed25519 key in PEM or OpenSSH format") from error
    if not isinstance(key, Ed25519PublicKey):
        shown = "an RSA key" if isinstance(key, RSAPublicKey) else "a key of another kind"
        raise refuse(f"is {shown}; use an ed25519 key")
    found = PublisherKey(key.public_bytes(Encoding.Raw, PublicFormat.Raw))
    if found.has_small_order:
        raise refuse(_SMALL_ORDER)
    return found


def read_private_key(data: bytes, file: str) -> Ed25519PrivateKey:
    """Return the private key in *data*, PEM or OpenSSH.

    Raises:
        FileProblems: it is no key, is of another kind, or has a passphrase.
    """
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        message = (
            "is no ed25519 key in PEM or OpenSSH format without a passphrase; sign with "
            "`ssh-keygen -Y sign` then, and give --signature"
        )
        raise FileProblems([Problem(file=file, message=message)]) from error
    if not isinstance(key, Ed25519PrivateKey):
        kind = "an RSA key" if isinstance(key, RSAPrivateKey) else "a key of another kind"
        raise FileProblems([Problem(file=file, message=f"is {kind}; use an ed25519 key")])
    return key


def _to_sign(sums: bytes, hash_name: bytes, namespace: bytes = NAMESPACE) -> bytes:
    digest = _HASHES[hash_name](sums).digest()
    return _MAGIC + b"".join(map(_string, (namespace, b"", hash_name, digest)))


def _blob(raw: bytes) -> bytes:
    return _string(_ED25519) + _string(raw)


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _strings(data: bytes) -> list[bytes]:
    """Return the strings that *data* holds.

    Raises:
        ValueError: it ends in the middle of one.
    """
    found: list[bytes] = []
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError("cut")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found
