"""The entries of an unlocked vault: read, stored and deleted."""

import json
from collections.abc import Callable, Mapping

from aileron_core.canonical import JsonObject, canonical
from aileron_core.errors import InvalidRequest, NotFound, VaultDamaged
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault_file import StoredEntry
from aileron_core.vault.vault_store import OpenVault, VaultStore

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
