"""Signatures of a suite's sums are SSH's: ours and ssh-keygen's are taken for each other."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from aileron_core.errors import FileProblems
from aileron_core.releases.signing import (
    PublisherKey,
    read_private_key,
    read_public_key,
    sign_sums,
    verify_sums,
)

SUMS = b"0" * 64 + b"  suite.toml\n"
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = PublisherKey(KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
needs_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")


def private(key: Ed25519PrivateKey | rsa.RSAPrivateKey, kind: PrivateFormat) -> bytes:
    return key.private_bytes(Encoding.PEM, kind, NoEncryption())


def keygen(folder: Path, *words: str) -> str:
    command = ("ssh-keygen", *words)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def signed_by_ssh(folder: Path, namespace: str) -> bytes:
    """Return ssh-keygen's signature of the sums, with the key in the folder."""
    (folder / "SHA256SUMS").write_bytes(SUMS)
    keygen(folder, "-q", "-Y", "sign", "-n", namespace, "-f", "key", "SHA256SUMS")
    return (folder / "SHA256SUMS.sig").read_bytes()


@needs_ssh
@pytest.mark.parametrize("kind", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
def test_ssh_keygen_makes_and_takes_the_same_bytes(tmp_path: Path, kind: PrivateFormat) -> None:
    """With a key in either format; the fingerprint is the one that it prints."""
    (tmp_path / "key").write_bytes(private(KEY, PrivateFormat.OpenSSH))
    (tmp_path / "key").chmod(0o600)
    theirs = signed_by_ssh(tmp_path, "aileron-suite")
    assert theirs == sign_sums(SUMS, read_private_key(private(KEY, kind), "key"))
    assert verify_sums(SUMS, theirs, "s").fingerprint in keygen(tmp_path, "-lf", "key")
    public = keygen(tmp_path, "-y", "-f", "key").encode()
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert {read_public_key(each, "k") for each in (public, pem, PUBLIC.line)} == {PUBLIC}


def test_a_signature_counts_for_its_sums_and_purpose_alone() -> None:
    signature = sign_sums(SUMS, KEY)
    assert verify_sums(SUMS, signature, "s") == PUBLIC
    with pytest.raises(FileProblems, match="were changed after they were signed"):
        verify_sums(SUMS + b" ", signature, "s")


@needs_ssh
@pytest.mark.parametrize(
    ("kind", "namespace", "said"),
    [
        ("ed25519", "file", "for another purpose"),
        ("rsa", "aileron-suite", "a key of the kind ssh-rsa"),
    ],
)
def test_other_signatures_are_refused(tmp_path: Path, kind: str, namespace: str, said: str) -> None:
    keygen(tmp_path, "-q", "-t", kind, "-N", "", "-f", "key")
    with pytest.raises(FileProblems, match=said):
        verify_sums(SUMS, signed_by_ssh(tmp_path, namespace), "s")


OF_ORDER_8 = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
)
SMALL_Y = (
    *(0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18),
    *(int.from_bytes(bytes.fromhex(each), "little") for each in OF_ORDER_8),
)


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("y", SMALL_Y)
def test_a_key_for_which_anybody_can_sign_is_refused(y: int, sign: int) -> None:
    """The points of small order: of each, one signature in eight of this form fits without a private key."""
    raw = (y | sign << 255).to_bytes(32, "little")
    made = b"\1" + bytes(63)  # R is the point 1, S is 0
    Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little")).verify(made, SUMS)
    forged = sign_sums(SUMS, KEY)
    body = base64.b64decode("".join(forged.decode().splitlines()[1:-1]))
    for before, after in ((PUBLIC.raw, raw), (body[-64:], made)):
        body = body.replace(before, after)
    head, tail = b"-----BEGIN SSH SIGNATURE-----\n", b"\n-----END SSH SIGNATURE-----"
    with pytest.raises(FileProblems, match="has a key of small order"):
        verify_sums(SUMS, head + base64.b64encode(body) + tail, "s")
    assert not PublisherKey(raw).signed(made, SUMS)


def test_no_changed_signature_is_taken() -> None:
    """Of each byte of it: what still counts is read as the same key's, as where only a line is broken elsewhere."""
    signature = sign_sums(SUMS, KEY)
    for at in range(len(signature)):
        changed = signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1 :]
        try:
            key = verify_sums(SUMS, changed, "s")
        except FileProblems:
            continue
        assert key == PUBLIC


RSA = rsa.generate_private_key(65537, 2048)
ENCRYPTED = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass"))
BAD_KEYS: dict[str, tuple[bytes, str]] = {
    "RSA": (private(RSA, PrivateFormat.PKCS8), "is an RSA key"),
    "RSA of OpenSSH": (private(RSA, PrivateFormat.OpenSSH), "is an RSA key"),
    "with a passphrase": (ENCRYPTED, "without a passphrase"),
    "no key": (b"hello", "is no ed25519 key"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_another_private_key_is_refused_by_its_kind(name: str) -> None:
    data, said = BAD_KEYS[name]
    with pytest.raises(FileProblems, match=said):
        read_private_key(data, "key")


PUBLIC_RSA = RSA.public_key()
ID = b"AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t"
BAD_PUBLIC_KEYS: dict[str, tuple[bytes, str]] = {
    "RSA": (PUBLIC_RSA.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "an RSA key"),
    "RSA of OpenSSH": (
        PUBLIC_RSA.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
        "of the kind ssh-rsa",
    ),
    "in hardware": (b"sk-ssh-ed25519@openssh.com " + ID, "of the kind sk-ssh-ed25519@openssh.com"),
    "of small order": (PublisherKey((1).to_bytes(32, "little")).line, "has a key of small order"),
    "no key": (b"hello", "is no ed25519 key"),
    "nothing": (b"", "is no ed25519 key"),
}


@pytest.mark.parametrize("name", BAD_PUBLIC_KEYS)
def test_another_public_key_is_refused_by_its_kind(name: str) -> None:
    data, said = BAD_PUBLIC_KEYS[name]
    with pytest.raises(FileProblems, match=said):
        read_public_key(data, "publisher.pub")
