"""What a device signs, byte for byte."""

import json
from typing import Any

import pytest

from aileron_core.devices.signed import Decision, is_key, is_signed
from tests.support.paired_devices import new_key, point_of, sign

DECISION: dict[str, Any] = {
    "home": "/home/ana/.aileron", "approval": "act-20261129T120000-0123456789abcdef",
    "digest": "ab" * 32, "shown": "cd" * 32, "verdict": "deny", "reason": "ef" * 32, "unseen": 3,
    "device": "dev-0123456789abcdef", "at": 1_796_000_000_000,
}  # fmt: skip


def test_the_text_that_is_signed_is_the_canonical_one_behind_its_prefix() -> None:
    decision = Decision.from_json(dict(DECISION))
    prefix, _, rest = decision.text().partition(b"\0")
    assert prefix == b"aileron decision v1"
    assert json.loads(rest) == DECISION
    assert rest == json.dumps(DECISION, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [0, 1, 63, 65, 72, 128])
def test_a_signature_of_another_size_is_none(size: int) -> None:
    key = new_key()
    assert not is_signed(point_of(key), bytes(size), b"text")
    assert is_signed(point_of(key), sign(key, b"text"), b"text")


def test_a_key_is_an_uncompressed_point() -> None:
    point = point_of(new_key())
    assert is_key(point)
    for wrong in (b"", point[:64], point + b"\0", b"\4" + bytes(64), b"\2" + point[1:33]):
        assert not is_key(wrong)
