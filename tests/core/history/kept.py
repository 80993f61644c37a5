"""A home whose decided and ended calls are sealed, and what its files hold."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

from tests.support.core_harness import Core, Mailbox
from tests.support.frozen_clock import FrozenClock
from tests.support.history_keys import DayKeys

DAY = 86400.0


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
