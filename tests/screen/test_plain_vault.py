"""The vault and the accounts of calls, in a console without a screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.screen.plain_reading import Reader

UNSEEN = "(not shown) > "
PASSPHRASE = b"correct horse battery"


@pytest.fixture
def vault_reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, "0", "vault")
    yield reader
    reader.close()


def test_the_vault_is_unlocked_unseen_and_the_account_picked(vault_reader: Reader) -> None:
    """The passphrase is not echoed; nothing is picked without a number that was printed."""
    first = vault_reader.asked()
    assert "WAITS FOR THE VAULT" in first
    assert "U unlock the vault" in first
    vault_reader.pty.type(b"U\n")
    asked = vault_reader.read_until(UNSEEN)
    assert "Passphrase of the vault:" in asked
    assert "ana@example.com (api_key/mail/work)" in asked
    vault_reader.pty.type(b"wrong one\n")
    assert "That is not the vault's passphrase." in vault_reader.asked()
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(PASSPHRASE + b"\n")
    assert "✓ The vault is unlocked." in vault_reader.asked()
    assert PASSPHRASE.decode() not in vault_reader.output
    assert "wrong one" not in vault_reader.output
    assert PASSPHRASE.decode() not in vault_reader.intents

    choice = vault_reader.answers("n")
    assert "WAITS FOR YOUR CHOICE" in choice
    assert "C NUMBER pick the account" in choice
    for wrong in ("C", "C 3", "C x", "C 2 always"):
        said = " ".join(vault_reader.answers(wrong).split())
        assert "1 to 2;" in said
        assert "Nothing was picked." in said
    assert "ChooseAccount" not in vault_reader.intents
    picked = vault_reader.answers("C 2 remember")
    assert "remember=True" in vault_reader.intents
    assert "binding='api_key/mail/home'" in vault_reader.intents
    assert "as ana@home.example (api_key/mail/home)" in picked


def test_an_empty_passphrase_cancels_and_the_vault_is_locked_by_a_key(vault_reader: Reader) -> None:
    vault_reader.asked()
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(b"\n")
    assert "Cancelled. The vault is as it was." in vault_reader.asked()
    assert "UnlockVault" not in vault_reader.intents
    assert "Z does nothing here now." in vault_reader.answers("Z")
    vault_reader.pty.type(b"U\n")
    vault_reader.read_until(UNSEEN)
    vault_reader.pty.type(PASSPHRASE + b"\n")
    vault_reader.asked()
    assert "The vault is locked." in vault_reader.answers("Z")
