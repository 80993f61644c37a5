"""Any archive of a release is one or is refused: nothing crashes on it, and nothing of it reaches the disk."""

import gzip
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron_core.connectors.manifest import parse_manifest
from aileron_core.errors import FileProblems
from aileron_core.releases.archive import write_archive
from aileron_core.releases.kept import signatures_of, unsigned_actions
from aileron_core.releases.rules import file_problems
from aileron_core.releases.signing import publisher_of, sign_sums
from aileron_core.releases.suite import (
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    archive_of,
    connector_of_archive,
    pack,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
PARTS = 2
EACH = 25_000 // PARTS if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 250
"""Of each kind; 100,000 in all in `make fuzz`."""
SIGNS = tuple(bytes([each]) for each in b'\xff\n"=]\r')
TOKENS = (*SIGNS, b"\0" * 512, b"../", b"1" * 40, b"+++\n", b"'''", b"{}")
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)


@cache
def good() -> Release:
    """A signed suite of two actions; of its module there is only the beginning."""
    files = {
        "connector.wasm": b"\0asm\1\0\0\0",
        "manifest.toml": (EXAMPLES / "connectors/mail-drafts/manifest.toml").read_bytes(),
        "suite.toml": b'actions = ["actions/get-draft", "actions/send-draft"]\n',
    }
    for name in ("get-draft", "send-draft"):
        text = (EXAMPLES / f"actions/{name}.md").read_text()
        text = re.sub("sha256:[0-9a-f]{64}", "sha256:bound-at-release", text)
        files[f"actions/{name}.md"] = text.encode()
    return signed_again(pack(Release(origin="a.tar.gz", files=files), "0.1.0"))


def signed_again(release: Release) -> Release:
    files = {**release.files, SUMS_FILE: release.sums}
    return replace(release, files={**files, SIGNATURE_FILE: sign_sums(files[SUMS_FILE], KEY)})


def with_change(data: bytes, chance: random.Random) -> bytes:
    at, more = chance.randrange(len(data) + 1), chance.choice((1, 1, 4, 60, 600))
    byte = bytes([chance.randrange(256)])
    inserted = chance.choice((b"", byte, chance.choice(TOKENS), data[-more:]))
    return data[:at] + inserted + data[at + chance.choice((0, 1, len(inserted), more)) :]


def _packed(chance: random.Random) -> bytes:
    return with_change(archive_of(good()), chance)


def _unpacked(chance: random.Random) -> bytes:
    inside = gzip.decompress(archive_of(good()))
    for _ in range(chance.choice((1, 2, 8))):
        inside = with_change(inside, chance)
    return gzip.compress(inside, 1)


def _one_file(chance: random.Random) -> bytes:
    """With sums and a signature that fit, or with neither, or without one of the files."""
    release = good()
    name = chance.choice([*release.files])
    files = {**release.files, name: with_change(release.files[name], chance)}
    if chance.random() < 0.1:
        del files[name]
    release = replace(release, files=files)
    return archive_of(signed_again(release) if chance.random() < 0.7 else release)


def _single(chance: random.Random) -> bytes:
    """A connector alone, as the original project publishes it."""
    names = ("connector.wasm", "manifest.toml")
    files = {name: good().files[name] for name in names}
    files["signature.sig"] = KEY.sign(b"".join(files.values()))
    files["publisher.pub"] = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    name = chance.choice([*files])
    return write_archive({**files, name: with_change(files[name], chance)})


def look_at(archive: bytes) -> int:
    """Do all that is done with an archive before something of it is installed; return how many problems it has."""
    release = connector_of_archive(archive, "a.tar.gz")
    manifest = parse_manifest(release.manifest, "manifest.toml")
    problems = [*map(str, file_problems(release, manifest))]
    if (key := publisher_of(release)) is not None:
        problems += unsigned_actions(release, key)
        signatures_of(release)
    return len(problems)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("make", [_packed, _unpacked, _one_file, _single])
def test_a_changed_archive_is_read_whole_or_refused(
    part: int, make: Callable[[random.Random], bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    assert look_at(archive_of(good())) == 0
    chance = random.Random(f"{part} {make.__name__}")
    refused = 0
    for _ in range(EACH):
        try:
            look_at(make(chance))
        except FileProblems as error:
            refused += bool(error.problems)
    assert refused
    assert not [*folder.iterdir()]
