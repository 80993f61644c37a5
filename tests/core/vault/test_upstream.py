"""A vault of upstream Aileron: read with its passphrase, written anew, and left as it was."""

import base64
import functools
import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from aileron_core.errors import Conflict, NotFound, VaultAbsent, VaultDamaged, WrongPassphrase
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.core.vault.test_vault import OTHER, vault_in

PHRASE = "short"
"""Upstream has no least length."""
SALT = os.urandom(16)


@functools.cache
def _cipher() -> AESGCM:
    kdf = Argon2id(salt=SALT, length=32, iterations=3, lanes=4, memory_cost=64 * 1024)
    return AESGCM(kdf.derive(PHRASE.encode()))


def write_upstream(file: Path) -> bytes:
    """Write such a file as upstream does, with the parameters that it has; return its bytes."""
    cipher = _cipher()

    def encrypted(plain: bytes) -> str:
        nonce = os.urandom(12)
        return base64.b64encode(nonce + cipher.encrypt(nonce, plain, None)).decode()

    content = {
        "version": 1,
        "salt": base64.b64encode(SALT).decode(),
        "verification": encrypted(b"aileron-vault-v1"),
        "secrets": {
            "oauth2/google/ana": {
                "value": encrypted(b'{"access_token": "canary"}'),
                "metadata": {"Type": "oauth2", "Labels": {"account": "ana@example.com"}},
            },
            "api_key/linear/ana": {"value": encrypted(b"lin"), "metadata": {"type": "api_key"}},
        },
    }
    file.write_text(json.dumps(content))
    return file.read_bytes()


def assert_imported(vault: Vault) -> None:
    assert vault.get("oauth2/google/ana").reveal() == b'{"access_token": "canary"}'
    assert vault.get("api_key/linear/ana").reveal() == b"lin"
    metadata = vault.entries()["oauth2/google/ana"]
    assert metadata == {"type": "oauth2", "labels": {"account": "ana@example.com"}}


def test_one_that_is_only_there_is_not_read(tmp_path: Path) -> None:
    """Any program can put it there: no call waits for it, and it opens nothing."""
    write_upstream(tmp_path / "secrets.json")
    vault = vault_in(tmp_path)
    assert vault.state == "absent"
    with pytest.raises(VaultAbsent):
        vault.unlock(Secret(PHRASE))
    vault.create(Secret(OTHER))
    assert not vault.entries()


def test_in_the_place_of_a_vault_it_is_named_and_left(tmp_path: Path) -> None:
    before = write_upstream(tmp_path / "vault.json")
    vault = vault_in(tmp_path)
    assert vault.state == "locked"
    for attempt in (vault.unlock, vault.create):
        with pytest.raises(VaultDamaged, match=r"upstream Aileron.*init --import"):
            attempt(Secret(PHRASE))
    assert (tmp_path / "vault.json").read_bytes() == before


def test_it_is_imported_from_a_file_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.json"
    before = write_upstream(file)
    (tmp_path / "home").mkdir()
    vault = vault_in(tmp_path / "home")
    with pytest.raises(NotFound):
        vault.create(Secret(PHRASE), tmp_path / "no-such-file")
    with pytest.raises(WrongPassphrase):
        vault.create(Secret("wrong one"), file)
    assert vault.state == "absent"
    assert vault.create(Secret(PHRASE), file).imported == 2
    assert_imported(vault)
    assert file.read_bytes() == before
    again = vault_in(tmp_path / "home")
    assert again.unlock(Secret(PHRASE)).imported is None
    assert_imported(again)
    with pytest.raises(Conflict):
        again.create(Secret(PHRASE), file)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2}', '{"version": 1, "salt": "!"}', "[]"])
def test_what_is_no_vault_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "secrets.json").write_text(text)
    with pytest.raises(VaultDamaged, match="cannot be read as a vault of version 1") as refused:
        vault_in(tmp_path).create(Secret(PHRASE), tmp_path / "secrets.json")
    assert refused.value.__context__ is None


def test_a_damaged_value_imports_nothing(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    write_upstream(file)
    content = json.loads(file.read_bytes())
    entry = content["secrets"]["api_key/linear/ana"]
    value = bytearray(base64.b64decode(entry["value"]))
    value[-1] ^= 1
    entry["value"] = base64.b64encode(value).decode()
    file.write_text(json.dumps(content))
    with pytest.raises(VaultDamaged, match="one of its values is damaged"):
        vault_in(tmp_path).create(Secret(PHRASE), file)
    assert not (tmp_path / "vault.json").exists()
