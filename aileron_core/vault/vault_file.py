"""`vault.json`: its form, and how it is read and replaced so that no crash or damage loses it.

Every change writes a whole new file. The one before it is kept as `vault.json.previous`, which is
used where `vault.json` is damaged. What takes something away (a deleted entry, an old passphrase)
writes the new text to both, so that the copy opens nothing that was taken away.
"""

import base64
import contextlib
import fcntl
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from aileron_core.canonical import JsonObject, canonical
from aileron_core.errors import VaultDamaged
from aileron_core.vault.atomic_file import read_private_file, replace_file, unfinished_path

VERSION = 2
NAME = "vault.json"
_MAX_BYTES = 16 * 1024 * 1024
_SALT, _MAC, _PUBLIC = 16, 32, 32
_MAX_KDF = {"iterations": 16, "memory_kib": 1024 * 1024, "lanes": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class KdfParameters:
    """How the passphrase becomes the key that the master key is encrypted with: Argon2id."""

    salt: bytes
    iterations: int = 3
    memory_kib: int = 64 * 1024
    lanes: int = 4

    def to_json(self) -> dict[str, Any]:
        return {
            "name": "argon2id",
            "iterations": self.iterations,
            "memory_kib": self.memory_kib,
            "lanes": self.lanes,
            "salt": encode(self.salt),
        }


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One encrypted value and what is said of it in clear."""

    value: bytes = field(repr=False)
    """Nonce and ciphertext."""
    metadata: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultDocument:
    """What a vault's file says. Nothing of it is verified before the vault is unlocked."""

    kdf: KdfParameters
    key: bytes = field(repr=False)
    """The master key, encrypted: nonce and ciphertext."""
    keyring: bytes = field(default=b"", repr=False)
    """The same, encrypted with a key that the system's keyring keeps; empty where it keeps none."""
    public_key: bytes
    """X25519, for what a locked vault seals."""
    generation: int
    """One higher with each change."""
    entries: Mapping[str, StoredEntry] = field(repr=False)
    mac: bytes = b""

    def _body(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "kdf": self.kdf.to_json(),
            "key": encode(self.key),
            **({"keyring": encode(self.keyring)} if self.keyring else {}),
            "public_key": encode(self.public_key),
            "generation": self.generation,
            "entries": {
                path: {"value": encode(each.value), "metadata": each.metadata}
                for path, each in self.entries.items()
            },
        }

    def authenticated_text(self) -> bytes:
        """Return what the MAC is over: everything but the MAC itself."""
        return canonical(self._body())

    def to_bytes(self) -> bytes:
        return json.dumps(self._body() | {"mac": encode(self.mac)}, indent=1).encode() + b"\n"


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decode(text: object) -> bytes:
    """Return the bytes that *text* is the base64 form of.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(text, str):
        raise ValueError("no base64")
    return base64.b64decode(text, validate=True)


def parse_document(data: bytes) -> VaultDocument:
    """Return what *data*, the bytes of a vault's file, says.

    Raises:
        VaultDamaged: a newer version of Aileron wrote it, or upstream Aileron.
        ValueError: it is cut off or damaged.
    """
    try:
        content = _table(json.loads(data))
        version = content["version"]
        if version == 1 and "secrets" in content:
            raise VaultDamaged(
                f"{NAME} is a vault of upstream Aileron. Move it out of this folder, and make a vault of it with "
                "`aileron vault init --import FILE`. Nothing was changed."
            )
        if isinstance(version, int) and version > VERSION:
            raise VaultDamaged(
                f"The vault has format {version}; this version of Aileron reads formats up to {VERSION}. "
                "Use the newer Aileron that wrote it. Nothing was changed."
            )
        if version != VERSION:
            raise ValueError("another version")
        entries = {
            str(path): StoredEntry(decode(_table(each)["value"]), _table(_table(each)["metadata"]))
            for path, each in _table(content["entries"]).items()
        }
        document = VaultDocument(
            kdf=_parse_kdf(_table(content["kdf"])),
            key=decode(content["key"]),
            keyring=decode(content.get("keyring", "")),
            public_key=_sized(content["public_key"], _PUBLIC),
            generation=_number(content["generation"], 2**53),
            entries=MappingProxyType(entries),
            mac=_sized(content["mac"], _MAC),
        )
        document.authenticated_text()
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a vault: {type(error).__name__}") from None
    return document


def _parse_kdf(table: Mapping[str, Any]) -> KdfParameters:
    if table["name"] != "argon2id":
        raise ValueError("unknown key derivation")
    costs = {name: _number(table[name], most) for name, most in _MAX_KDF.items()}
    if costs["memory_kib"] < 8 * costs["lanes"]:
        raise ValueError("too little memory")
    return KdfParameters(salt=_sized(table["salt"], _SALT), **costs)


def _number(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError("a number is out of bounds")
    return value


def _sized(text: object, size: int) -> bytes:
    data = decode(text)
    if len(data) != size:
        raise ValueError("of a wrong length")
    return data


def _table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("not an object")
    return cast("Mapping[str, Any]", value)


@dataclass(frozen=True, slots=True)
class StoredVault:
    """One of the two files, as it was read."""

    name: str
    data: bytes = field(repr=False)
    document: VaultDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVault:
    """What there is on disk."""

    copies: tuple[StoredVault, ...] = ()
    """Those that can be read: `vault.json` before `vault.json.previous`."""
    unreadable: tuple[str, ...] = ()
    """The names of those that cannot."""
    unfinished: bool = False
    """A change was cut short before its file took the place of `vault.json`."""

    @property
    def exists(self) -> bool:
        return bool(self.copies or self.unreadable)

    def problem(self) -> str:
        """Return which file is used and why, where that is not simply `vault.json`."""
        if not self.copies:
            return f"{' and '.join(self.unreadable)} cannot be read." if self.unreadable else ""
        used = self.copies[0].name
        if used != NAME:
            reason = "is damaged" if NAME in self.unreadable else "is missing"
            return f"{NAME} {reason}. {used}, the vault from before its last change, is used."
        if self.unfinished:
            return f"The last change of the vault was not finished. {NAME} from before it is used."
        return ""


class VaultFile:
    """The vault's files in the folder of a home."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.previous = folder / f"{NAME}.previous"
        self.damaged = folder / f"{NAME}.damaged"
        self._unfinished = unfinished_path(self.path)
        self._lock = folder / "vault.lock"

    @contextlib.contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep other vaults on this folder, in this process or another, from writing meanwhile."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def fingerprint(self) -> tuple[object, ...]:
        """Return what differs once one of the files was written."""
        return tuple(map(_stamp, (self.path, self.previous, self._unfinished)))

    def read(self) -> FoundVault:
        """Return what is on disk.

        Raises:
            VaultDamaged: a newer version of Aileron wrote it.
        """
        copies: list[StoredVault] = []
        unreadable: list[str] = []
        for path in (self.path, self.previous):
            try:
                data = read_private_file(path, _MAX_BYTES)
                if data is not None:
                    copies.append(StoredVault(path.name, data, parse_document(data)))
            except (OSError, ValueError):
                unreadable.append(path.name)
        return FoundVault(
            copies=tuple(copies),
            unreadable=tuple(unreadable),
            unfinished=self._unfinished.exists(),
        )

    def write(self, document: VaultDocument, *, before: bytes, takes_away: bool) -> None:
        """Replace the vault by *document*; call it within `exclusive`.

        Args:
            before: the bytes of the last good file, kept as the previous one; empty for a new vault.
            takes_away: keep no file with what was there before.

        Raises:
            OSError: it could not be written. What was there before is still there.
        """
        data = document.to_bytes()
        kept = data if takes_away or not before else before
        if self.previous.exists() or before:
            replace_file(self.previous, kept)
        if takes_away:
            self.damaged.unlink(missing_ok=True)
        elif self._holds_another(before):
            self.path.replace(self.damaged)
        replace_file(self.path, data)

    def _holds_another(self, before: bytes) -> bool:
        """Return whether `vault.json` is neither absent nor the file that is kept: it is set aside."""
        try:
            return read_private_file(self.path, _MAX_BYTES) not in (None, before)
        except OSError:
            return True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)
