"""The sealed record: opened by its day's key alone, for the decision that it is of, and for no other."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from subprocess import run
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aileron_core.history.sealing import (
    MAX_BYTES,
    VERSION,
    CannotUnseal,
    SealLabel,
    TooLarge,
    seal,
    unseal,
)

KEY = X25519PrivateKey.generate()
LABEL = SealLabel(day="2026-11-23", subject="appr-1", kind="approved", at=1_795_400_000.125)
SHOWN = {"to": "anna@northwind.example", "half": "\ud800", "count": 3, "empty": None}
OTHER = {"day": "2026-11-24", "subject": "appr-2", "kind": "denied", "at": LABEL.at + 0.001}


def sealed(shown: dict[str, object] = SHOWN) -> bytes:
    return seal(shown, LABEL, KEY.public_key().public_bytes_raw())


def unsealed(record: bytes, label: SealLabel = LABEL) -> dict[str, object]:
    return unseal(record, label, KEY.private_bytes_raw())


def test_it_opens_to_what_it_was_made_of_and_looks_and_size_say_little() -> None:
    first, second = sealed(), sealed()
    assert unsealed(first) == unsealed(second) == SHOWN
    assert first[1:] != second[1:]
    assert first[0] == VERSION
    assert b"northwind" not in first
    sizes = {len(sealed({"text": letter * count})) for letter in "xé" for count in (1, 100)}
    assert sizes | {len(sealed({"text": "x" * 900}))} == {1 + 32 + 1024 + 16}
    assert len(sealed({"text": "x" * 1100})) == 1 + 32 + 2048 + 16


@pytest.mark.parametrize("part", OTHER)
def test_it_is_of_one_decision(part: str) -> None:
    other: Any = {part: OTHER[part]}
    with pytest.raises(CannotUnseal, match="changed, cut or moved here"):
        unsealed(sealed(), replace(LABEL, **other))


def test_a_changed_cut_lengthened_or_newer_record_is_refused_and_another_key_opens_none() -> None:
    record = sealed()
    for at in (0, 1, 20, 32, 33, 40, 600, len(record) - 17, len(record) - 1):
        changed = bytearray(record)
        changed[at] ^= 1
        with pytest.raises(CannotUnseal):
            unsealed(bytes(changed))
    for cut in (b"", record[:1], record[:33], record[:49], record[:-1], record + b"x", b"\1" * 60):
        with pytest.raises(CannotUnseal, match="changed, cut or moved here"):
            unsealed(cut)
    # A public key of zeros gives no secret: whoever made it would know the secret.
    with pytest.raises(CannotUnseal):
        unsealed(record[:1] + bytes(32) + record[33:])
    with pytest.raises(CannotUnseal, match=r"newer Aileron \(version 2, this one reads 1\)"):
        unsealed(b"\2" + sealed()[1:])
    with pytest.raises(CannotUnseal):
        unseal(sealed(), LABEL, X25519PrivateKey.generate().private_bytes_raw())


@pytest.mark.parametrize(
    "make", [lambda: {"text": "x" * MAX_BYTES}, lambda: {"t": ["é"] * MAX_BYTES}]
)
def test_what_is_too_large_is_refused(make: Callable[[], dict[str, object]]) -> None:
    with pytest.raises(TooLarge):
        sealed(make())


def test_the_core_starts_without_the_library() -> None:
    """It is loaded when there is a key: the start is measured."""
    code = "import sys, aileron_core.app; print('cryptography' in sys.modules)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert done.stdout.strip() == b"False"
