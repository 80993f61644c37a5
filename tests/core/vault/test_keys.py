"""The system's keyring: what it opens, what it does not, and that a passphrase is always left.

The history's keys under a vault: sealed to it, had while locked, and destroyed for good.
"""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

from aileron_core.errors import KeyringUnavailable, VaultDamaged, WrongPassphrase
from aileron_core.history.sealing import HistoryKeys
from aileron_core.vault.history_keys import VaultHistoryKeys, _info, _suite
from aileron_core.vault.os_keyring import OsKeyring
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from aileron_core.vault.vault_file import encode
from tests.core.vault import test_vault
from tests.core.vault.test_vault import CANARY, METADATA, OTHER, PATH, PHRASE, another, unlocked_in
from tests.support.frozen_clock import FrozenClock
from tests.support.making import program
from tests.support.vaults import CHEAP


class MemoryKeyring(KeyringBackend):
    """A backend of the package `keyring`, in memory; its locked one raises what the real ones raise."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("No such password!")

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked("Failed to unlock the collection!")


@pytest.fixture
def backend() -> MemoryKeyring:
    return MemoryKeyring()


def vault_with(folder: Path, backend: MemoryKeyring, *, use_keyring: bool = True) -> Vault:
    """A vault as a console has it; *use_keyring*: it was started with `--keyring`."""
    keyring = OsKeyring(lambda: backend)
    return Vault(folder, FrozenClock(), kdf=CHEAP, keyring=keyring, use_keyring=use_keyring)


@pytest.fixture
def locked(tmp_path: Path, backend: MemoryKeyring) -> Vault:
    """A locked vault with one entry, whose key the keyring keeps."""
    vault = vault_with(tmp_path, backend)
    vault.create(Secret(PHRASE))
    vault.put(PATH, Secret(CANARY), METADATA)
    vault.allow_keyring(Secret(PHRASE))
    vault.lock()
    return vault


def test_what_the_keyring_keeps_opens_the_vault_and_so_does_the_passphrase(
    tmp_path: Path, backend: MemoryKeyring, locked: Vault
) -> None:
    again = vault_with(tmp_path, backend)
    assert again.keyring_opens
    again.unlock_with_keyring()
    assert again.get(PATH).reveal_text() == CANARY
    again.lock()
    again.unlock(Secret(PHRASE))
    (kept,) = backend.kept.values()
    assert len(base64.b64decode(kept)) == 32
    for file in tmp_path.iterdir():
        assert kept.encode() not in file.read_bytes()


def test_it_is_turned_on_with_the_passphrase_alone(tmp_path: Path, backend: MemoryKeyring) -> None:
    vault = vault_with(tmp_path, backend)
    vault.create(Secret(PHRASE))
    with pytest.raises(WrongPassphrase):
        vault.allow_keyring(Secret(OTHER))
    assert vault.failed_attempts.count == 1
    assert not backend.kept
    vault.lock()
    assert not vault.keyring_opens
    with pytest.raises(KeyringUnavailable, match="Type the passphrase"):
        vault.unlock_with_keyring()


def test_nothing_on_disk_alone_lets_it_open_the_vault(
    tmp_path: Path, backend: MemoryKeyring, locked: Vault
) -> None:
    """Without `--keyring`, only once the passphrase opened this very vault in this process."""
    again = vault_with(tmp_path, backend, use_keyring=False)
    assert not again.keyring_opens
    with pytest.raises(KeyringUnavailable, match="Type the passphrase"):
        again.unlock_with_keyring()
    again.unlock(Secret(PHRASE))
    again.lock()
    again.unlock_with_keyring()
    assert again.get(PATH).reveal_text() == CANARY


def test_another_vault_in_its_place_is_not_opened(
    tmp_path: Path, backend: MemoryKeyring, locked: Vault
) -> None:
    """Another program has the folder and the keyring, and copies even the public key."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted = vault_with(elsewhere, backend)
    planted.create(Secret(OTHER))
    planted._store.write(planted._open, takes_away=True, public_key=locked.public_key)
    planted.allow_keyring(Secret(OTHER))
    for name in ("vault.json", "vault.json.previous"):
        (tmp_path / name).write_bytes((elsewhere / name).read_bytes())
    with pytest.raises(KeyringUnavailable, match="no key of this vault"):
        locked.unlock_with_keyring()
    assert locked.state == "locked"


def test_a_key_that_another_program_put_into_the_file_is_refused(
    tmp_path: Path, backend: MemoryKeyring, locked: Vault
) -> None:
    for name in ("vault.json", "vault.json.previous"):
        test_vault.edit_file(tmp_path / name, lambda content: content.pop("keyring"))
    with pytest.raises(VaultDamaged, match="changed by another program"):
        vault_with(tmp_path, backend).unlock(Secret(PHRASE))


@pytest.mark.parametrize(
    "kept",
    [None, base64.b64encode(bytes(32)).decode(), "no base64 é"],
    ids=["none", "old", "spoilt"],
)
def test_where_it_fails_the_passphrase_is_left(
    locked: Vault, backend: MemoryKeyring, kept: str | None
) -> None:
    backend.kept = {place: kept for place in backend.kept if kept is not None}
    with pytest.raises(KeyringUnavailable, match="no key of this vault, or an old one"):
        locked.unlock_with_keyring()
    assert locked.state == "locked"
    locked.unlock(Secret(PHRASE))
    assert locked.get(PATH).reveal_text() == CANARY


def test_a_locked_keyring_is_not_turned_on_and_opens_nothing(
    tmp_path: Path, backend: MemoryKeyring
) -> None:
    vault = vault_with(tmp_path, backend)
    vault.create(Secret(PHRASE))
    backend.locked = True
    before = (tmp_path / "vault.json").read_bytes()
    with pytest.raises(KeyringUnavailable, match="cannot be written"):
        vault.allow_keyring(Secret(PHRASE))
    assert (tmp_path / "vault.json").read_bytes() == before
    backend.locked = False
    vault.allow_keyring(Secret(PHRASE))
    vault.lock()
    backend.locked = True
    with pytest.raises(KeyringUnavailable, match=r"cannot be read \(KeyringLocked\)"):
        vault.unlock_with_keyring()


def test_turned_off_it_opens_no_file_that_aileron_keeps(
    tmp_path: Path, backend: MemoryKeyring, locked: Vault
) -> None:
    """Not even where the keyring could not be reached to delete its key, or had it copied."""
    copied = dict(backend.kept)
    locked.forget_keyring(Secret(PHRASE))
    assert not backend.kept
    backend.kept.update(copied)
    assert not locked.keyring_opens
    for name in ("vault.json", "vault.json.previous"):
        assert b'"keyring"' not in (tmp_path / name).read_bytes()
    locked.unlock(Secret(PHRASE))


def test_a_change_of_the_passphrase_leaves_it_on_and_it_tells_of_wrong_ones(locked: Vault) -> None:
    locked.change_passphrase(Secret(PHRASE), Secret(OTHER))
    with pytest.raises(WrongPassphrase):
        locked.unlock(Secret("not the passphrase"))
    assert locked.unlock_with_keyring().failed.count == 1
    assert locked.failed_attempts.count == 0
    assert locked.get(PATH).reveal_text() == CANARY


def test_no_file_or_variable_of_the_user_brings_code_into_the_process(tmp_path: Path) -> None:
    """As the package itself would let them: it loads what `keyringrc.cfg` and the environment name."""
    proof = tmp_path / "loaded"
    code = f"open({str(proof)!r}, 'w')\nclass Keyring: viable = True\n"
    program(tmp_path / "planted.py", code)
    config = f"[backend]\ndefault-keyring=planted.Keyring\nkeyring-path={tmp_path}\n"
    program(tmp_path / "python_keyring" / "keyringrc.cfg", config)
    env = {"PYTHON_KEYRING_BACKEND": "planted.Keyring", "XDG_CONFIG_HOME": str(tmp_path)}
    script = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).parents[3])!r}]\n"
        "from aileron_core.errors import KeyringUnavailable\n"
        "from aileron_core.vault.os_keyring import OsKeyring\n"
        "try: print(OsKeyring().load(b'x'))\n"
        "except KeyringUnavailable as error: print(error.message)\n"
    )
    words = [sys.executable, "-I", "-c", script]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert "No keyring" in done.stdout
    assert not proof.exists()


DAY, LATER = "2026-10-08", "2026-10-09"


@pytest.fixture
def new_vault(tmp_path: Path) -> Vault:
    vault = test_vault.vault_in(tmp_path)
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
    keys = VaultHistoryKeys(test_vault.vault_in(tmp_path), tmp_path)
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
