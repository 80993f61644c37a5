"""A home whose decided and ended calls are sealed, and what its files hold."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.support.core_harness import Core, Mailbox
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0


class DayKeys:
    """A holder of the keys, as a vault is one: a pair for each day; public ones can be had at any time, private ones while unlocked."""

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


class Kept:
    """The home, its keys and its time; the fixture `kept`."""

    def __init__(self, home: Path, mailbox: Mailbox) -> None:
        self.home, self.mailbox = home, mailbox
        self.keys, self.clock = DayKeys(), FrozenClock()

    def open(self, **options: Any) -> AbstractAsyncContextManager[Core]:
        given: dict[str, Any] = {"clock": self.clock, "history_keys": self.keys, **options}
        return Core.open(given.pop("home", self.home), self.mailbox, **given)

    def holds(self, text: str | bytes) -> bool:
        return (text.encode() if isinstance(text, str) else text) in bytes_of(self.home)

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "aileron.db")) as other:
            return other.execute(query).fetchall()

    def count(self, table: str) -> int:
        ((count,),) = self.rows(f"SELECT COUNT(*) FROM {table}")
        return int(count)

    def edit(self, statement: str, *values: object) -> None:
        """Change the database as another program would."""
        with closing(sqlite3.connect(self.home / "aileron.db")) as other, other:
            assert other.execute(statement, values).rowcount


def bytes_of(home: Path) -> bytes:
    """Return what every file of the home holds: database, log of writes, log, exports, copies."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


async def log_emptied(core: Core) -> None:
    """Wait until what was deleted has left the log too: who reads just then holds it up."""
    while core.app.database._log_holds_deleted:
        await asyncio.sleep(0.01)
