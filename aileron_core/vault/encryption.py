"""The vault's cryptography: Argon2id from the passphrase, AES-256-GCM of values, HKDF and HMAC of one master key."""

import hmac
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from aileron_core.canonical import JsonObject, canonical
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault_file import VERSION, KdfParameters, StoredEntry, VaultDocument

KEY_BYTES = 32
_NONCE = 12
PRIVATE_KEY = ".private-key"
"""The entry with the private half of the vault's public key."""


@contextmanager
def passphrase_key(passphrase: Secret, kdf: KdfParameters) -> Generator[bytearray]:
    """Yield the key that *passphrase* gives (0.4 s and 64 MiB as the parameters are); then overwrite it."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    key = bytearray(KEY_BYTES)
    with passphrase.view() as view:
        Argon2id(
            salt=kdf.salt,
            length=KEY_BYTES,
            iterations=kdf.iterations,
            lanes=kdf.lanes,
            memory_cost=kdf.memory_kib,
        ).derive_into(view, key)  # type: ignore[arg-type]  # any buffer will do
    try:
        yield key
    finally:
        key[:] = bytes(KEY_BYTES)


def encrypt(key: bytes | bytearray, plain: bytes | bytearray, associated: bytes | None) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, plain, associated)


def decrypt(key: bytes | bytearray, data: bytes, associated: bytes | None) -> bytes | None:
    """Return what `encrypt` was given; None where key, data or associated data is another."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], associated)
    except (InvalidTag, ValueError):
        return None


def unwrap_master_key(passphrase: Secret, document: VaultDocument) -> bytearray | None:
    """Return the master key of *document*; None where *passphrase* does not open it."""
    with passphrase_key(passphrase, document.kdf) as key:
        plain = decrypt(key, document.key, _key_data(document.kdf))
    return None if plain is None or len(plain) != KEY_BYTES else bytearray(plain)


def unwrap_with_keyring(key: Secret, document: VaultDocument) -> bytearray | None:
    """Return the master key of *document*; None where *key*, from the keyring, does not open it."""
    with key.view() as view:
        plain = decrypt(bytearray(view), document.keyring, _KEYRING_DATA)
    return None if plain is None or len(plain) != KEY_BYTES else bytearray(plain)


_KEYRING_DATA = canonical({"version": VERSION, "is": "master key", "for": "keyring"})


def _key_data(kdf: KdfParameters) -> bytes:
    return canonical({"version": VERSION, "is": "master key", "kdf": kdf.to_json()})


class VaultKeys:
    """What the master key of an unlocked vault is used for."""

    def __init__(self, master: bytearray) -> None:
        self._master = master
        self._of_entries = bytearray(self._hkdf("own: entries"))
        self._of_mac = bytearray(self._hkdf("own: mac"))

    def derive(self, label: str) -> bytes:
        """Return 32 bytes that belong to *label*, and say nothing of the other keys."""
        return self._hkdf(f"derived: {label}")

    def _hkdf(self, info: str) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        text = f"aileron vault {VERSION}, {info}"
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=text.encode()).derive(self._master)

    def encrypt_entry(self, path: str, secret: Secret, metadata: JsonObject) -> StoredEntry:
        """Encrypt *secret* for *path* and *metadata* alone.

        Raises:
            ValueError: *metadata* has no canonical text.
        """
        with secret.view() as view:
            plain = bytearray(view)
        try:
            return StoredEntry(
                encrypt(self._of_entries, plain, _entry_data(path, metadata)), metadata
            )
        finally:
            plain[:] = bytes(len(plain))

    def decrypt_entry(self, path: str, entry: StoredEntry) -> Secret | None:
        """Return the value; None where it, its path or its metadata was changed."""
        plain = decrypt(self._of_entries, entry.value, _entry_data(path, entry.metadata))
        return None if plain is None else Secret(plain)

    def wrap(self, passphrase: Secret, kdf: KdfParameters) -> bytes:
        """Return the master key, encrypted with *passphrase*."""
        with passphrase_key(passphrase, kdf) as key:
            return encrypt(key, self._master, _key_data(kdf))

    def wrap_for_keyring(self, key: Secret) -> bytes:
        with key.view() as view:
            return encrypt(bytearray(view), self._master, _KEYRING_DATA)

    def sign(self, document: VaultDocument) -> VaultDocument:
        return replace(document, mac=self._mac(document))

    def is_signed(self, document: VaultDocument) -> bool:
        return hmac.compare_digest(self._mac(document), document.mac)

    def _mac(self, document: VaultDocument) -> bytes:
        return hmac.digest(self._of_mac, document.authenticated_text(), "sha256")

    def wipe(self) -> None:
        for key in (self._master, self._of_entries, self._of_mac):
            key[:] = bytes(len(key))


def _entry_data(path: str, metadata: JsonObject) -> bytes:
    return canonical({"version": VERSION, "path": path, "metadata": metadata})


def new_vault(
    passphrase: Secret, kdf: KdfParameters, values: Mapping[str, tuple[Secret, JsonObject]]
) -> tuple[VaultKeys, VaultDocument]:
    """Return a new vault with *values*, each with its metadata, under a random master key."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    keys = VaultKeys(bytearray(os.urandom(KEY_BYTES)))
    private = X25519PrivateKey.generate()
    entries = {path: keys.encrypt_entry(path, *value) for path, value in values.items()}
    sealing = Secret(private.private_bytes_raw())
    entries[PRIVATE_KEY] = keys.encrypt_entry(PRIVATE_KEY, sealing, {})
    document = VaultDocument(
        kdf=kdf,
        key=keys.wrap(passphrase, kdf),
        public_key=private.public_key().public_bytes_raw(),
        generation=1,
        entries=entries,
    )
    return keys, keys.sign(document)
