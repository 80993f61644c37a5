"""A secret gives its bytes to `reveal` alone."""

import json
import logging
import pickle
from copy import copy, deepcopy

import pytest

from aileron_core.vault.secret import Secret

CANARY = "canary-9f1c"


def test_no_way_of_printing_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(CANARY)
    logging.getLogger("test").warning("%s %r", secret, [secret])
    shown = [str(secret), repr(secret), f"{secret}", f"{secret:>40}", format(secret, "s")]
    shown.append(caplog.text)
    assert all("Secret(...)" in each and CANARY not in each for each in shown)
    assert CANARY not in repr({"value": (secret,)})


@pytest.mark.parametrize("copier", [pickle.dumps, json.dumps, copy, deepcopy, hash, bytes, list])
def test_it_is_neither_copied_nor_hashed(copier: object) -> None:
    with pytest.raises(TypeError) as refused:
        copier(Secret(CANARY))  # type: ignore[operator]
    assert CANARY not in str(refused.value)


def test_it_is_compared_by_its_bytes() -> None:
    assert Secret(CANARY) == Secret(CANARY.encode())
    assert Secret(CANARY) != Secret(CANARY + "x")
    assert Secret(CANARY) != CANARY


def test_bytes_that_are_no_text_are_not_in_the_error() -> None:
    with pytest.raises(ValueError, match="not text in UTF-8") as refused:
        Secret(b"\xff" + CANARY.encode()).reveal_text()
    assert refused.value.__context__ is None
    assert CANARY not in repr(refused.value)


def test_wiping_overwrites_the_very_bytes() -> None:
    secret = Secret(CANARY)
    value = secret._value
    secret.wipe()
    assert (bytes(value), secret.reveal(), len(secret)) == (b"", b"", 0)
    secret.wipe()
