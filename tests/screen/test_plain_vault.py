"""The vault and the accounts of calls, in a console without a screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.screen.plain_reading import Reader

UNSEEN = "(not shown) > "
PASSPHRASE = b"correct horse battery"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, "0", "vault")
    yield reader
    reader.close()


def test_the_vault_is_unlocked_unseen_and_the_account_picked(person: Reader) -> None:
    """The passphrase is not echoed; nothing is picked without a number that was printed."""
    first = person.asked()
    assert "WAITS FOR THE VAULT" in first
    assert "U unlock the vault" in first
    person.pty.type(b"U\n")
    asked = person.read_until(UNSEEN)
    assert "Passphrase of the vault:" in asked
    assert "ana@example.com (api_key/mail/work)" in asked
    person.pty.type(b"wrong one\n")
    assert "That is not the vault's passphrase." in person.asked()
    person.pty.type(b"U\n")
    person.read_until(UNSEEN)
    person.pty.type(PASSPHRASE + b"\n")
    assert "✓ The vault is unlocked." in person.asked()
    assert PASSPHRASE.decode() not in person.output
    assert "wrong one" not in person.output
    assert PASSPHRASE.decode() not in person.intents

    choice = person.answers("n")
    assert "WAITS FOR YOUR CHOICE" in choice
    assert "C NUMBER pick the account" in choice
    for wrong in ("C", "C 3", "C x", "C 2 always"):
        said = " ".join(person.answers(wrong).split())
        assert "1 to 2;" in said
        assert "Nothing was picked." in said
    assert "ChooseAccount" not in person.intents
    picked = person.answers("C 2 remember")
    assert "remember=True" in person.intents
    assert "binding='api_key/mail/home'" in person.intents
    assert "as ana@home.example (api_key/mail/home)" in picked


def test_an_empty_passphrase_cancels_and_the_vault_is_locked_by_a_key(person: Reader) -> None:
    person.asked()
    person.pty.type(b"U\n")
    person.read_until(UNSEEN)
    person.pty.type(b"\n")
    assert "Cancelled. The vault is as it was." in person.asked()
    assert "UnlockVault" not in person.intents
    assert "Z does nothing here now." in person.answers("Z")
    person.pty.type(b"U\n")
    person.read_until(UNSEEN)
    person.pty.type(PASSPHRASE + b"\n")
    person.asked()
    assert "The vault is locked." in person.answers("Z")
