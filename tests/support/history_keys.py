"""A holder of the history's keys, as a vault is one: outside the home, locked or not."""

import sqlite3

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


class DayKeys:
    """A pair of keys for each day; public ones can be had at any time, private ones while unlocked."""

    def __init__(self) -> None:
        self.locked = False
        self.destroyed: set[str] = set()
        self.refuses_to_destroy = False
        self.ends_the_process = False
        """What destroys a key goes no further."""
        self._keys: dict[str, X25519PrivateKey] = {}

    def public_key(self, day: str) -> bytes | None:
        if day in self.destroyed:
            return None
        key = self._keys.setdefault(day, X25519PrivateKey.generate())
        return key.public_key().public_bytes_raw()

    def private_keys(self, day: str) -> list[bytes]:
        assert len(day) == len("2026-10-08"), "what a row says may be a path"
        key = self._keys.get(day)
        return [] if self.locked or key is None else [key.private_bytes_raw()]

    def days(self) -> list[str]:
        return list(self._keys)

    def destroy(self, day: str) -> None:
        if self.refuses_to_destroy:
            raise PermissionError("the vault is read-only")
        assert len(day) == len("2026-10-08"), "what a row says may be a path"
        self._keys.pop(day, None)
        self.destroyed.add(day)
        if self.ends_the_process:
            raise sqlite3.OperationalError("ended here")
