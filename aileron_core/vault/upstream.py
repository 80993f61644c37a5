"""The vault file of upstream Aileron, `secrets.json`, version 1: read, never written.

Its key is the passphrase's own (Argon2id with fixed parameters); a known text encrypted with it says
whether the passphrase is right. Values have no associated data.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from aileron_core.canonical import JsonObject
from aileron_core.errors import NotFound, VaultDamaged
from aileron_core.vault.atomic_file import read_private_file
from aileron_core.vault.encryption import decrypt, passphrase_key
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault_file import KdfParameters, StoredEntry, decode

_MAX_BYTES = 16 * 1024 * 1024
_VERIFICATION = b"aileron-vault-v1"


@dataclass(frozen=True, slots=True)
class UpstreamVault:
    """What such a file says."""

    path: Path
    kdf: KdfParameters
    verification: bytes = field(repr=False)
    entries: Mapping[str, StoredEntry] = field(repr=False)

    def decrypt(self, passphrase: Secret) -> dict[str, tuple[Secret, JsonObject]] | None:
        """Return every value with its metadata; None where *passphrase* is wrong.

        Raises:
            VaultDamaged: the passphrase is right, and a value cannot be decrypted.
        """
        with passphrase_key(passphrase, self.kdf) as key:
            if decrypt(key, self.verification, None) != _VERIFICATION:
                return None
            found: dict[str, tuple[Secret, JsonObject]] = {}
            for path, entry in self.entries.items():
                plain = decrypt(key, entry.value, None)
                if plain is None:
                    raise VaultDamaged(
                        f"{self.path} cannot be imported: one of its values is damaged. "
                        "Nothing was changed."
                    )
                found[path] = (Secret(plain), entry.metadata)
            return found


def read_upstream(path: Path) -> UpstreamVault:
    """Return what the file *path* says.

    Raises:
        NotFound: there is no such file.
        VaultDamaged: it is no vault of version 1.
    """
    try:
        data = read_private_file(path, _MAX_BYTES)
        if data is None:
            raise NotFound(f"There is no file {path}. Nothing was changed.")
        content: Any = json.loads(data)
        if content["version"] != 1:
            raise ValueError("another version")
        salt = decode(content["salt"])
        if len(salt) < 16:
            raise ValueError("a short salt")
        return UpstreamVault(
            path,
            KdfParameters(salt=salt),
            decode(content["verification"]),
            _entries(content["secrets"] or {}),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # what was read does not belong into an exception
    raise VaultDamaged(
        f"{path} cannot be read as a vault of version 1. Nothing was changed. Name another file."
    )


def _entries(secrets: Mapping[str, Any]) -> dict[str, StoredEntry]:
    return {
        str(path): StoredEntry(decode(each["value"]), _lower(each.get("metadata")))
        for path, each in secrets.items()
    }


def _lower(metadata: object) -> JsonObject:
    """Return `Type` and `Labels` of *metadata*, which upstream writes, with their keys in lower case.

    Nothing else: no passphrase verifies it, and it must not say which connector an account belongs to.
    """
    if not isinstance(metadata, Mapping):
        return {}
    found = {key.lower(): value for key, value in cast("Mapping[str, Any]", metadata).items()}
    return {key: value for key, value in found.items() if key in ("type", "labels")}
