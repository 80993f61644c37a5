"""What of a vault is on disk: read again when it was changed, opened, written for one that is open; and its entries."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aileron_core.canonical import JsonObject, canonical
from aileron_core.errors import Conflict, InvalidRequest, NotFound, VaultDamaged
from aileron_core.vault.encryption import VaultKeys
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault_file import NAME, FoundVault, StoredEntry, VaultDocument, VaultFile

EXISTS = "There is a vault already. `aileron vault unlock` unlocks it."


@dataclass(slots=True)
class OpenVault:
    """What an unlocked vault has in memory."""

    keys: VaultKeys
    document: VaultDocument
    data: bytes
    """The bytes of the file that `document` was read from or written to."""
    problem: str = ""
    """What was wrong with the files that it was opened from, and which was used."""
    users: int = 0
    """How many keep it open although the vault is locked; its keys are overwritten after the last of them."""


class VaultStore:
    """The files of a vault in *folder*. It may be used on any thread.

    Args:
        lock: taken by every method; the vault's own, so that both see the same state.
    """

    def __init__(self, folder: Path, lock: "threading.RLock") -> None:
        self.file = VaultFile(folder)
        self.foreign = ""
        """A sentence where another Aileron wrote the file: a newer version, or upstream's."""
        self.lock = lock
        self._found = FoundVault()
        self._fingerprint: tuple[object, ...] | None = None
        self._conflict = ""
        """Why what is open is not what `vault.json` has."""

    @property
    def problem(self) -> str:
        """A sentence on what is wrong with the files, and which is used; empty where nothing is."""
        with self.lock:
            found = self._read()
            return self._conflict or self.foreign or found.problem()

    def read(self) -> FoundVault:
        """Return what is on disk, read again where a file was written."""
        with self.lock:
            return self._read()

    def _read(self) -> FoundVault:
        fingerprint = self.file.fingerprint()
        if fingerprint != self._fingerprint:
            self.foreign = ""
            try:
                self._found = self.file.read()
            except VaultDamaged as error:
                self._found, self.foreign = FoundVault(), error.message
            self._fingerprint = fingerprint
        return self._found

    def read_usable(self) -> FoundVault:
        """Return what is on disk.

        Raises:
            VaultDamaged: there is something, and nothing of it can be used.
        """
        with self.lock:
            found = self._read()
            if self.foreign:
                raise VaultDamaged(self.foreign)
            if found.exists and not found.copies:
                raise VaultDamaged(
                    f"{found.problem()} Restore one of them from a backup. Nothing was changed."
                )
            return found

    def open(
        self, found: FoundVault, unwrap: Callable[[VaultDocument], bytearray | None]
    ) -> OpenVault | None:
        """Return the newest whole copy, if *unwrap* gives the key of one; finish a change that was cut short.

        Raises:
            VaultDamaged: those whose key it gives were changed.
        """
        wrong: set[tuple[bytes, bytes]] = set()
        changed: list[str] = []
        for copy in found.copies:
            wrapped = (copy.document.key, copy.document.keyring)
            if wrapped in wrong:
                continue
            master = unwrap(copy.document)
            if master is None:
                wrong.add(wrapped)
                continue
            keys = VaultKeys(master)
            if keys.is_signed(copy.document):
                return self._newest(keys, found, changed)
            keys.wipe()
            changed.append(copy.name)
        if changed:
            raise VaultDamaged(
                f"{' and '.join(changed)} was changed by another program and is not used. "
                "Restore it from a backup. Nothing was changed."
            )
        return None

    def _newest(self, keys: VaultKeys, found: FoundVault, changed: list[str]) -> OpenVault:
        """Use the newest of the copies that are signed; finish a change that was cut short."""
        first = found.copies[0]
        used = max(
            (each for each in found.copies if keys.is_signed(each.document)),
            key=lambda each: each.document.generation,
        )
        if used is first:
            self._conflict = ""
        elif keys.is_signed(first.document):
            with self.lock, self.file.exclusive():
                self.file.write(used.document, before=used.data, takes_away=True)
            changed_too = used.document.key != first.document.key
            self._conflict = "The last change of the vault was not finished; it is now." + (
                " The vault has the new passphrase." if changed_too else ""
            )
        else:
            what = "was changed by another program" if changed else "does not open"
            self._conflict = (
                f"{first.name} {what}. {used.name}, the vault from before its last change, is used."
            )
        problem = self._conflict or found.problem()
        return OpenVault(keys, used.document, used.data, problem)

    def refresh(self, opened: OpenVault) -> None:
        """Use what another vault on this folder has written since; refuse what is older or not signed."""
        found = self.read()
        newest = found.copies[0] if found.copies else None
        if newest is None or newest.data == opened.data:
            return
        document = newest.document
        if opened.keys.is_signed(document) and document.generation > opened.document.generation:
            opened.document, opened.data = document, newest.data
            self._conflict = ""
            return
        self._conflict = (
            f"{NAME} was replaced by another program. What was unlocked is used, and the next change "
            "writes it back."
        )

    def create(self, keys: VaultKeys, document: VaultDocument) -> OpenVault:
        """Write a new vault.

        Raises:
            Conflict: there is one.
            OSError: it cannot be written.
        """
        with self.lock, self.file.exclusive():
            if self.file.read().exists:
                raise Conflict(EXISTS)
            self.file.write(document, before=b"", takes_away=False)
            self._fingerprint = None
            return OpenVault(keys, document, document.to_bytes())

    def write(self, opened: OpenVault, *, takes_away: bool, **changes: Any) -> None:
        """Write *opened* with *changes* of its document; call it within `file.exclusive`, refreshed.

        Args:
            takes_away: leave no file with what was there before.

        Raises:
            OSError: it could not be written.
        """
        document = opened.keys.sign(
            replace(opened.document, generation=opened.document.generation + 1, **changes)
        )
        self.file.write(document, before=opened.data, takes_away=takes_away)
        opened.document, opened.data = document, document.to_bytes()
        self._conflict = ""
        self._read()


_MAX_PATH = 512
_COUNTERS = ".counters"
"""The entry with the counters of authenticated sets."""


class VaultEntries:
    """The entries of *opened*. Every method may be called on any thread; those that write wait for the disk."""

    def __init__(self, store: VaultStore, opened: OpenVault) -> None:
        self._store = store
        self._opened = opened

    def get(self, path: str) -> Secret:
        """Return the value of *path*.

        Raises:
            NotFound: there is no such entry.
            VaultDamaged: the entry was changed by another program.
        """
        with self._store.lock:
            secret = self._opened.keys.decrypt_entry(path, self._entry(path))
        if secret is None:
            raise VaultDamaged(f"The vault's entry {path} cannot be decrypted. Store it again.")
        return secret

    def metadata(self, path: str) -> JsonObject:
        """Return what is said of *path*.

        Raises:
            NotFound: there is no such entry.
        """
        return self._entry(path).metadata

    def put(self, path: str, secret: Secret, metadata: JsonObject) -> None:
        """Store *secret*, which stays as it is, with *metadata* under *path*.

        Raises:
            InvalidRequest: path or metadata cannot be stored.
            OSError: it could not be written; nothing changed.
        """
        _check_path(path)
        self._put(path, secret, _checked(metadata))

    def delete(self, path: str) -> None:
        """Delete *path*, from the file that is kept besides as well.

        Raises:
            NotFound: there is no such entry.
            OSError: it could not be written.
        """
        with self._store.lock:
            self._entry(path)
            if path.startswith("."):
                raise _no_entry(path)
            self._change(
                lambda entries: {name: each for name, each in entries.items() if name != path},
                takes_away=True,
            )

    def counters(self) -> dict[str, int]:
        """Return the counters by name.

        Raises:
            VaultDamaged: they were changed by another program.
        """
        with self._store.lock:
            self._store.refresh(self._opened)
            if _COUNTERS not in self._opened.document.entries:
                return {}
            return json.loads(self.get(_COUNTERS).reveal_text())

    def set_counter(self, name: str, value: int) -> None:
        """Store *value* as the counter *name*.

        Raises:
            VaultDamaged, OSError: as for `counters` and `put`.
        """
        with self._store.lock:
            self._put(_COUNTERS, Secret(json.dumps({**self.counters(), name: value})), {})

    def _entry(self, path: str) -> StoredEntry:
        with self._store.lock:
            self._store.refresh(self._opened)
            entry = self._opened.document.entries.get(path)
        if entry is None:
            raise _no_entry(path)
        return entry

    def _put(self, path: str, secret: Secret, metadata: JsonObject) -> None:
        with self._store.lock:
            entry = self._opened.keys.encrypt_entry(path, secret, metadata)
            self._change(lambda entries: {**entries, path: entry})

    def _change(
        self,
        change: Callable[[Mapping[str, StoredEntry]], Mapping[str, StoredEntry]],
        *,
        takes_away: bool = False,
    ) -> None:
        with self._store.file.exclusive():
            self._store.refresh(self._opened)
            entries = change(self._opened.document.entries)
            self._store.write(self._opened, takes_away=takes_away, entries=entries)


def _no_entry(path: str) -> NotFound:
    return NotFound(f"The vault has no entry {path[:_MAX_PATH]!r}.")


def _check_path(path: str) -> None:
    if not path or path.startswith(".") or len(path) > _MAX_PATH or not path.isprintable():
        raise InvalidRequest(
            f"An entry's path has 1 to {_MAX_PATH} printable characters and begins with no dot."
        )


def _checked(metadata: JsonObject) -> JsonObject:
    """Return *metadata* as the file will have it: nobody can change what was stored."""
    try:
        return json.loads(canonical(metadata))
    except ValueError as error:
        raise InvalidRequest(f"The entry's metadata cannot be stored: {error}.") from None
