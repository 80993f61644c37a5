"""The history's keys under a vault: sealed to it, had while locked, and destroyed for good."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from aileron_core.history.sealing import HistoryKeys
from aileron_core.vault.history_keys import VaultHistoryKeys, _info, _suite
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from aileron_core.vault.vault_file import encode
from tests.core.vault.test_vault import OTHER, PHRASE, another, unlocked_in, vault_in

DAY, LATER = "2026-10-08", "2026-10-09"


@pytest.fixture
def new_vault(tmp_path: Path) -> Vault:
    vault = vault_in(tmp_path)
    vault.create(Secret(PHRASE))
    return vault


def public_of(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def test_a_locked_vault_seals_and_an_unlocked_one_opens(tmp_path: Path, new_vault: Vault) -> None:
    new_vault.lock()
    keys: HistoryKeys = VaultHistoryKeys(new_vault, tmp_path)
    assert keys.locked
    public = keys.public_key(DAY)
    assert public is not None
    assert keys.public_key(DAY) == public
    assert keys.public_key(LATER) != public
    assert keys.private_keys(DAY) == []
    assert list(keys.days()) == [DAY, LATER]
    new_vault.unlock(Secret(PHRASE))
    (private,) = VaultHistoryKeys(unlocked_in(tmp_path), tmp_path).private_keys(DAY)
    assert public_of(private) == public


def test_without_a_vault_there_are_no_keys(tmp_path: Path) -> None:
    keys = VaultHistoryKeys(vault_in(tmp_path), tmp_path)
    assert (keys.locked, keys.public_key(DAY)) == (False, None)
    assert (keys.private_keys(DAY), list(keys.days())) == ([], [])
    keys.destroy(DAY)
    assert not (tmp_path / "history-keys.json").exists()


def test_a_destroyed_key_is_gone_for_good_locked_too(tmp_path: Path, new_vault: Vault) -> None:
    """The bytes of the file that had it are overwritten: whoever still holds that file reads zeros."""
    keys = VaultHistoryKeys(new_vault, tmp_path)
    keys.public_key(DAY), keys.public_key(LATER)
    new_vault.lock()
    file = tmp_path / "history-keys.json"
    sealed = json.loads(file.read_bytes())["days"][DAY]["sealed_private"]
    with file.open("rb") as held:
        keys.destroy(DAY)
        assert set(held.read()) == {0}
    assert not any(sealed.encode() in each.read_bytes() for each in tmp_path.iterdir())
    keys.destroy(DAY)
    new_vault.unlock(Secret(PHRASE))
    again = VaultHistoryKeys(new_vault, tmp_path)
    assert (again.private_keys(DAY), again.public_key(DAY)) == ([], None)
    assert list(again.days()) == [LATER]
    assert again.private_keys(LATER)


def test_a_key_that_another_program_put_there_is_not_used(tmp_path: Path, new_vault: Vault) -> None:
    keys = VaultHistoryKeys(new_vault, tmp_path)
    keys.public_key(DAY)
    file = tmp_path / "history-keys.json"
    content = json.loads(file.read_bytes())
    theirs = another(tmp_path)
    VaultHistoryKeys(unlocked_in(theirs, OTHER), theirs).public_key(DAY)
    foreign = json.loads((theirs / "history-keys.json").read_bytes())
    content["days"][DAY] = foreign["days"][DAY]
    file.write_text(json.dumps(content))
    with pytest.raises(OSError, match="replaced by another program"):
        keys.public_key(DAY)
    with pytest.raises(OSError, match="not sealed to this vault"):
        VaultHistoryKeys(new_vault, tmp_path).private_keys(DAY)


@pytest.mark.parametrize("while_locked", [False, True])
def test_a_key_that_another_program_sealed_to_the_vault_seals_nothing(
    tmp_path: Path, new_vault: Vault, while_locked: bool
) -> None:
    """Its private half is sealed as it should be, and known to that program: so the vault's HMAC counts."""
    planted, sealed_to = X25519PrivateKey.generate(), new_vault.public_key
    assert sealed_to is not None
    theirs = X25519PublicKey.from_public_bytes(sealed_to)
    sealed = _suite().encrypt(planted.private_bytes_raw(), theirs, info=_info(DAY))
    entry = {"public": encode(planted.public_key().public_bytes_raw()), "mac": "0" * 64}
    entry["sealed_private"] = encode(sealed)
    content = {"version": 1, "days": {DAY: entry}, "destroyed": []}
    (tmp_path / "history-keys.json").write_text(json.dumps(content))
    keys = VaultHistoryKeys(new_vault, tmp_path)
    if while_locked:  # it cannot know; what is sealed then, the database has in clear
        new_vault.lock()
        assert keys.public_key(DAY) == planted.public_key().public_bytes_raw()
        new_vault.unlock(Secret(PHRASE))
    public = keys.public_key(DAY)
    assert public is not None
    assert public != planted.public_key().public_bytes_raw()
    again = VaultHistoryKeys(new_vault, tmp_path)
    assert again.public_key(DAY) == public
    assert public_of(again.private_keys(DAY)[0]) == public


def test_what_was_sealed_while_locked_is_opened_beside_what_was_sealed_after(
    tmp_path: Path, new_vault: Vault
) -> None:
    """A day has two keys then; both go when it is destroyed."""
    new_vault.lock()
    keys = VaultHistoryKeys(new_vault, tmp_path)
    publics = {keys.public_key(DAY)}
    new_vault.unlock(Secret(PHRASE))
    publics |= {keys.public_key(DAY), keys.public_key(DAY)}
    assert len(publics) == 2
    assert {public_of(each) for each in keys.private_keys(DAY)} == publics
    keys.destroy(DAY)
    assert keys.private_keys(DAY) == []
    assert "sealed_private" not in (tmp_path / "history-keys.json").read_text()


def test_a_damaged_file_is_an_error_and_not_overwritten(tmp_path: Path, new_vault: Vault) -> None:
    file = tmp_path / "history-keys.json"
    file.write_text("[]")
    keys = VaultHistoryKeys(new_vault, tmp_path)
    for call in (keys.public_key, keys.private_keys, keys.destroy):
        with pytest.raises(OSError, match="is damaged"):
            call(DAY)
    assert file.read_text() == "[]"
