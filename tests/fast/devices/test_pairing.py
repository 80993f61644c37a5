"""How a device is paired: links, the committed key, words, what it signs, ends. In memory, with a frozen clock."""

import hashlib
import json
import secrets
from functools import partial
from typing import Any

import pytest

from aileron_core.devices.pairing import (
    CONFIRM_SECONDS,
    GONE_SECONDS,
    IDLE_SECONDS,
    LINK_SECONDS,
    Device,
    Pairings,
    Program,
)
from aileron_core.devices.signed import Decision, is_signed, request_text
from aileron_core.errors import AileronError, Conflict, Forbidden, NotFound, Unauthorized
from tests.support.frozen_clock import FrozenClock
from tests.support.paired_devices import new_key, point_of, sign

PATH, BODY = "/review/api/item", b"{}"
DECISION: dict[str, Any] = {
    "home": "/home/ana/.aileron", "approval": "act-20261129T120000-0123456789abcdef",
    "digest": "ab" * 32, "shown": "cd" * 32, "verdict": "deny", "reason": "ef" * 32, "unseen": 3,
    "device": "dev-0123456789abcdef", "at": 1_796_000_000_000,
}  # fmt: skip


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def pairings(clock: FrozenClock) -> Pairings:
    return Pairings(clock=clock, changed=lambda: None)


def redeemed(pairings: Pairings, point: bytes, random: bytes = bytes(32)) -> Device:
    commitment = hashlib.sha256(point + random).digest()
    return pairings.redeem(pairings.make_link(), commitment, Program())


def paired(pairings: Pairings, key: Any) -> Device:
    device = redeemed(pairings, point_of(key))
    pairings.reveal(device.device_id, point_of(key), bytes(32))
    pairings.confirm(pairings.require_words(device.device_id, device.words))
    return device


def test_a_link_works_once_and_for_a_minute(pairings: Pairings, clock: FrozenClock) -> None:
    link, late = pairings.make_link(), pairings.make_link()
    assert len(bytes.fromhex(link)) == 16
    for wrong in ("", "x", link.upper(), link[:-1], secrets.token_hex(16), "\ud800"):
        with pytest.raises(Forbidden):
            pairings.redeem(wrong, bytes(32), Program())
    pairings.redeem(link, bytes(32), Program())
    with pytest.raises(Forbidden):
        pairings.redeem(link, bytes(32), Program())
    clock.advance(LINK_SECONDS)
    with pytest.raises(Forbidden):
        pairings.redeem(late, bytes(32), Program())


def test_words_are_known_only_once_the_key_is_fixed_and_differ_for_every_link_key_and_start(
    pairings: Pairings, clock: FrozenClock
) -> None:
    """One that redeems first and then looks for a key with the words of another has no second try."""
    key, other = new_key(), new_key()
    device = redeemed(pairings, point_of(key))
    assert device.words == ()
    with pytest.raises(Conflict):
        pairings.require_words(device.device_id, ())
    with pytest.raises(Unauthorized):
        pairings.reveal(device.device_id, point_of(other), bytes(32))
    assert device.ended.is_set()
    with pytest.raises(Unauthorized):
        pairings.reveal(device.device_id, point_of(key), bytes(32))
    words = {
        pairing.reveal(
            redeemed(pairing, point_of(key), random).device_id, point_of(key), random
        ).words
        for pairing in (pairings, Pairings(clock=clock, changed=lambda: None))
        for random in (bytes(32), bytes(31) + b"\1")
    }
    assert len(words) == 4


def test_what_is_no_point_of_the_curve_ends_the_pairing(pairings: Pairings) -> None:
    point = point_of(new_key())
    for wrong in (b"", bytes(65), b"\4" + bytes(64), point[:64] + bytes([point[64] ^ 1]), point[:33],
                  b"\2" + point[1:33], point + b"\0"):  # fmt: skip
        device = redeemed(pairings, wrong)
        with pytest.raises(Unauthorized):
            pairings.reveal(device.device_id, wrong, bytes(32))
        assert device.ended.is_set()


def test_only_the_words_that_it_shows_confirm_a_device(pairings: Pairings) -> None:
    device = redeemed(pairings, point_of(key := new_key()))
    pairings.reveal(device.device_id, point_of(key), bytes(32))
    with pytest.raises(Unauthorized):
        pairings.require_confirmed(device)
    with pytest.raises(Conflict):
        pairings.require_words(device.device_id, ("abacus", "acorn", "agate"))
    with pytest.raises(NotFound):
        pairings.require_words("dev-0", device.words)
    pairings.confirm(pairings.require_words(device.device_id, device.words))
    pairings.require_confirmed(device)
    pairings.end(device.device_id)
    with pytest.raises(Unauthorized):
        pairings.require_confirmed(device)


def test_a_request_counts_once_for_what_it_is_and_in_its_order(pairings: Pairings) -> None:
    device = paired(pairings, key := new_key())

    def signed(number: int, *, start: str = pairings.start, path: str = PATH) -> bytes:
        return sign(key, request_text(start, "POST", path, number, BODY))

    def send(number: int, signature: bytes, path: str = PATH, body: bytes = BODY) -> Device:
        return pairings.authenticate(device.device_id, number, signature, path, body)

    assert send(5, signed(5)) is device
    strange = sign(new_key(), request_text(pairings.start, "POST", PATH, 9, BODY))
    refused: set[str] = set()
    spoilt = (bytes(64), signed(9)[:63], signed(9, start="0" * 32), strange)
    wrong = [partial(send, 9, each) for each in spoilt]
    wrong += [partial(send, number, signed(number)) for number in (5, 4)]
    wrong += [partial(send, 10, signed(9)), partial(send, -1, b"")]
    wrong += [partial(send, 9, signed(9), body=b"{} "), partial(send, 9, signed(9), "/review/o")]
    wrong.append(partial(send, 2**53, sign(key, b"")))
    wrong.append(partial(pairings.authenticate, "dev-0", 9, signed(9), PATH, BODY))
    for each in wrong:
        with pytest.raises(Unauthorized) as refusal:
            each()
        refused.add(str(refusal.value))
    assert len(refused) == 1
    assert send(9, signed(9)) is device


def test_a_device_nobody_confirms_or_uses_ends_and_the_end_of_all_ends_links_too(
    pairings: Pairings, clock: FrozenClock
) -> None:
    strange = redeemed(pairings, b"")
    closed, open_ = paired(pairings, new_key()), paired(pairings, new_key())
    open_.streams = 1
    clock.advance(GONE_SECONDS + 1)
    assert pairings.sweep() == (closed,)
    clock.advance(CONFIRM_SECONDS - GONE_SECONDS)
    assert pairings.sweep() == (strange,)
    clock.advance(IDLE_SECONDS - CONFIRM_SECONDS)
    assert pairings.sweep() == (open_,)
    assert all(each.ended.is_set() for each in (closed, strange, open_))
    link, device = pairings.make_link(), paired(pairings, new_key())
    assert pairings.end_all() == (device,)
    assert device.ended.is_set()
    with pytest.raises(AileronError):
        pairings.require_link(link)


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
