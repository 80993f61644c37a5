"""An archive is plain files of known names, read in memory, all else refused by name; its sums' signatures are SSH's."""

import base64
import gzip
import io
import random
import shutil
import subprocess
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable
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

from aileron_core.actions.catalog import open_plain
from aileron_core.errors import FileProblems
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.releases.signing import (
    PublisherKey,
    read_private_key,
    read_public_key,
    sign_sums,
    verify_sums,
)

GOOD = {"SHA256SUMS": b"sums\n", "actions/send.md": b"+++\n+++\n", "suite.toml": b"actions = []\n"}


def limit_of(name: str) -> int | None:
    return 1000 if name in GOOD else None


def member(name: str, data: bytes = b"", **changes: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in changes.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % 512)


def extended(record: bytes, kind: bytes = b"x") -> bytes:
    return member("pax", b"%d%s" % (len(record) + 2, record), type=kind)


def sized(field: bytes, kind: bytes = b"0") -> bytes:
    """A header of that kind whose size is *field*, with the checksum that fits."""
    header = bytearray(member("suite.toml", type=kind))
    header[124:136] = field
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 256 + sum(header[156:512]))
    return bytes(header)


def zeros(size: int) -> bytes:
    """A gzip archive of *size* zeros, in one stream."""
    stream = zlib.compressobj(9, wbits=31)
    block = b"\0" * 2**24
    head, each = (stream.compress(block) + stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return head + each * (size // len(block) - 1)


END = b"\0" * 1024
TEN_GB = b"\x80\0\0\0" + (10 * 2**30).to_bytes(8, "big")
"""As GNU tar states a size that octal digits have no room for."""
SEND = member("actions/send.md", b"x")
FILE, NO_SIZE = "suite.toml", "states no size"
REFUSED: dict[str, tuple[bytes, str]] = {
    "hard link": (member(FILE, type=tarfile.LNKTYPE, linkname="x"), "suite.toml is a hard"),
    "link": (member(FILE, type=tarfile.SYMTYPE, linkname="/etc"), "suite.toml is a symbolic"),
    "device": (member(FILE, type=tarfile.CHRTYPE), "suite.toml is a device"),
    "block device": (member(FILE, type=tarfile.BLKTYPE), "suite.toml is a device"),
    "pipe": (member(FILE, type=tarfile.FIFOTYPE), "suite.toml is a named pipe"),
    "sparse": (member(FILE, type=tarfile.GNUTYPE_SPARSE), "suite.toml is a sparse"),
    "unknown kind": (member(FILE, type=b"Z"), "suite.toml is no plain file"),
    "folder with content": (member("actions", b"x", type=tarfile.DIRTYPE), "folder with content"),
    "absolute": (member("/suite.toml"), "/suite.toml has a name"),
    "rising": (member("actions/../suite.toml"), "has a name"),
    "above": (member("../suite.toml"), "has a name"),
    "no name": (member(""), "has a name"),
    "a dot in the middle": (member("actions/./send.md"), "has a name"),
    "two slashes": (member("actions//send.md"), "has a name"),
    "rising in the prefix": (member(f"{'../' * 40}etc/passwd"), "has a name"),
    "folder above": (member("..", type=tarfile.DIRTYPE), "has a name"),
    "nested": (member("one/suite.toml"), "one/suite.toml is not a file of a release"),
    "unknown name": (member("evil.sh"), "evil.sh is not a file of a release"),
    "control": (member("suite\x1b.toml"), "has a name"),
    "blank": (member("suite .toml"), "has a name"),
    "lines of ours": (
        member("x\nsigned by a friend"),
        "its member x.*signed by a friend has a name",
    ),
    "not ASCII": (member("su\u0456te.toml"), "is not a file of a release"),
    "case": (member(FILE) + member("Suite.toml"), "Suite.toml is not a file"),
    "double": (SEND + SEND, "actions/send.md is there twice"),
    "double with dot": (SEND + member("./actions/send.md"), "is there twice"),
    "too large": (member(FILE, b"x" * 2**18), "suite.toml is larger than"),
    "path by header": (extended(b" path=evil\n") + SEND, "changes the path"),
    "size by header": (extended(b" size=9999999\n") + SEND, "changes the size"),
    "size for all": (extended(b" size=9999999\n", b"g") + SEND, "changes the size"),
    "link by header": (extended(b" linkpath=/etc\n") + SEND, "changes the linkpath"),
    "sparse by header": (extended(b" GNU.sparse.major=1\n") + SEND, "changes the GNU.sparse"),
    "odd header": (member("pax", b"nonsense", type=b"x") + SEND, "cannot be read"),
    "endless record": (member("pax", b"99999 mtime=1\n", type=b"x") + SEND, "cannot be read"),
    "record of no length": (member("pax", b"0 mtime=1\n", type=b"x") + SEND, "cannot be read"),
    "long name": (member("././@LongLink", b"n" * 200, type=b"L") + SEND, "is a long name"),
    "long link": (member("././@LongLink", b"n" * 200, type=b"K") + SEND, "is a long link"),
    "long header": (member("pax", size=5 * 2**30, type=b"x"), "extended header too many, of 53687"),
    "many headers": (
        member("pax", b"24 comment=xxxxxxxxxxxx\n" * 2000, type=b"x") * 30,
        "extended header too many",
    ),
    "negative size": (sized(b"\xff" * 12), NO_SIZE),
    "size in binary": (sized(b"\x80" + b"\0" * 10 + b"\1"), NO_SIZE),
    "size with sign": (sized(b"-0000000001\0"), NO_SIZE),
    **{f"10 GB of kind {kind:c}": (sized(TEN_GB, b"%c" % kind), NO_SIZE) for kind in b"0xgLK"},
    "size of nothing": (sized(b"\0" * 12), NO_SIZE),
    "wrong checksum": (bytes([SEND[0] ^ 1]) + SEND[1:], "has no header"),
    "something after the end": (SEND + END + b"evil", "something after its end"),
    "no end": (SEND, "ends in the middle"),
    "half a member": (SEND[:700], "ends in the middle"),
    "no tar": (b"hello" * 200, "has no header"),
    "nothing": (b"", "ends in the middle"),
}
"""By name: what is inside gzip (an end is added to what states one file or more), and what is said of it."""
ENDLESS = {"no end", "half a member", "something after the end", "nothing", "no tar"}


def refused_archive(name: str) -> bytes:
    """The archive of that name among those that are refused."""
    return gzip.compress(REFUSED[name][0] + (b"" if name in ENDLESS else END))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_file_of_a_known_name_is_refused(name: str) -> None:
    """Nothing of the archive is returned, and the sentence names what it is about."""
    with pytest.raises(FileProblems, match=REFUSED[name][1]) as refused:
        read_archive(refused_archive(name), "a.tar.gz", limit_of)
    assert "\n" not in refused.value.message


PACKED = write_archive(GOOD)
DAMAGED: dict[str, tuple[bytes, str]] = {
    "a web page": (b"<!DOCTYPE html><p>404</p>", "is not a gzip archive"),
    "an empty file": (b"", "is not a gzip archive"),
    "half a file": (PACKED[: len(PACKED) // 2], "ends in the middle"),
    "without its checksum": (PACKED[:-8], "ends in the middle"),
    "a flipped byte": (
        PACKED[:40] + bytes([PACKED[40] ^ 4]) + PACKED[41:],
        "its member|is damaged",
    ),
    "another checksum": (PACKED[:-8] + b"\1" * 4 + PACKED[-4:], "is damaged"),
    "two archives": (PACKED + PACKED, "something after its end"),
    "10 GB of zeros": (zeros(10 * 2**30), "something after its end"),
    "many archives of zeros": (gzip.compress(b"\0" * 2**20) * 10_000, "something after its end"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_refused(name: str) -> None:
    data, said = DAMAGED[name]
    with pytest.raises(FileProblems, match=said):
        read_archive(data, "a.tar.gz", limit_of)


def test_a_member_that_unfolds_without_end_costs_no_memory() -> None:
    """192 MiB are the most that a whole archive has; what states more is not unfolded first."""
    archive = gzip.compress(member("suite.toml", size=5 * 2**30) + b"\0" * 2**26, 1)
    tracemalloc.start()
    with pytest.raises(FileProblems, match="more than 192 MiB"):
        read_archive(archive, "a.tar.gz", lambda _name: 2**40)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_large_member_is_in_memory_once(tmp_path: Path) -> None:
    """And the archive is not: a module may have 128 MiB, and need not get smaller in it."""
    size = 2**24
    archive = write_archive({"suite.toml": random.Random(7).randbytes(size)})
    (tmp_path / "a.tar.gz").write_bytes(archive)
    tracemalloc.start()
    with open_plain(tmp_path / "a.tar.gz", 2 * size) as file:
        found = read_archive(file, "a.tar.gz", lambda _name: size)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found["suite.toml"]) == size
    assert peak < 1.5 * size


def _pax(files: dict[str, bytes]) -> bytes:
    """As `tar` of the standard library and others pack a folder: times, owners, folders, `./`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in (".", "./actions"):
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size, info.mtime, info.uid = len(data), 1.5, 501
            info.uname, info.mode = "me", 0o4777
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [write_archive, _pax])
def test_an_archive_reads_as_it_was_packed(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    assert read_archive(pack(GOOD), "a.tar.gz", limit_of) == GOOD


SUMS = b"0" * 64 + b"  suite.toml\n"
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = PublisherKey(KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
needs_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")


def private(key: Ed25519PrivateKey | rsa.RSAPrivateKey, kind: PrivateFormat) -> bytes:
    return key.private_bytes(Encoding.PEM, kind, NoEncryption())


def ssh_keygen(folder: Path, *words: str) -> str:
    command = ("ssh-keygen", *words)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def signed_by_ssh(folder: Path, namespace: str) -> bytes:
    """Return ssh-keygen's signature of the sums, with the key in the folder."""
    (folder / "SHA256SUMS").write_bytes(SUMS)
    ssh_keygen(folder, "-q", "-Y", "sign", "-n", namespace, "-f", "key", "SHA256SUMS")
    return (folder / "SHA256SUMS.sig").read_bytes()


@needs_ssh
@pytest.mark.parametrize("kind", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
def test_ssh_keygen_makes_and_takes_the_same_bytes(tmp_path: Path, kind: PrivateFormat) -> None:
    """With a key in either format; the fingerprint is the one that it prints."""
    (tmp_path / "key").write_bytes(private(KEY, PrivateFormat.OpenSSH))
    (tmp_path / "key").chmod(0o600)
    theirs = signed_by_ssh(tmp_path, "aileron-suite")
    assert theirs == sign_sums(SUMS, read_private_key(private(KEY, kind), "key"))
    assert verify_sums(SUMS, theirs, "s").fingerprint in ssh_keygen(tmp_path, "-lf", "key")
    public = ssh_keygen(tmp_path, "-y", "-f", "key").encode()
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
    ssh_keygen(tmp_path, "-q", "-t", kind, "-N", "", "-f", "key")
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
    body = base64.b64decode("".join(sign_sums(SUMS, KEY).decode().splitlines()[1:-1]))
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
