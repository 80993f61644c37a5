"""Reading, verifying and exporting the audit for a front end, beside the core's loop."""

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from aileron_core.audit.read import verify_home
from aileron_core.clock import Clock
from aileron_core.console.head_signing import HeadSigning
from aileron_core.console.view_mapping import records_from
from aileron_core.console_port.events import AuditExported, AuditVerified, RecordRead, RecordsRead
from aileron_core.errors import Conflict, NotFound, Unavailable
from aileron_core.home.layout import Home
from aileron_core.storage.database import Database
from aileron_core.storage.open import open_reader

_MOST_RECORDS = 1000
_MOST_PROBLEMS = 200
"""Named one by one; an audit that somebody rewrote has one for each record."""
_STEPS = 1000
"""How many instructions of SQLite go by between two looks at whether the console stops."""


class AuditReader:
    """What a person reads of the record. It changes nothing of it."""

    def __init__(self, home: Home, database: Database, clock: Clock, signing: HeadSigning) -> None:
        self._signing = signing
        self._home = home
        self._database = database
        self._clock = clock
        self._verifying = False
        self._closed = False

    async def page(self, before_seq: int | None, limit: int) -> RecordsRead:
        """Return at most *limit* records (1,000 at most) before *before_seq*, oldest first.

        Raises:
            Unavailable: the database cannot be read.
        """
        most = max(1, min(limit, _MOST_RECORDS))

        def read(connection: sqlite3.Connection) -> RecordsRead:
            # Numbers have no gaps, so the last one is the count; `verify` tells where that is not so.
            (last,) = connection.execute("SELECT MAX(seq) FROM audit").fetchone()
            found = records_from(connection, most, before_seq)
            return RecordsRead(records=found, before_seq=before_seq, total=last or 0)

        try:
            return await self._database.read(read)
        except sqlite3.Error as error:
            raise _unreadable(error) from error

    async def record(self, seq: int) -> RecordRead:
        """Return one record whole, as it is stored.

        Raises:
            NotFound: there is none with that number.
            Unavailable: the database cannot be read.
        """
        query = "SELECT body, hash, prev FROM audit WHERE seq = ?"
        try:
            found = await self._database.read(lambda c: c.execute(query, (seq,)).fetchone())
        except sqlite3.Error as error:
            raise _unreadable(error) from error
        if found is None:
            raise NotFound(f"There is no record {seq}.")
        body, hash_, prev = found
        return RecordRead(seq=seq, body=str(body), hash=_hex(hash_), prev=_hex(prev))

    async def verify(self) -> AuditVerified:
        """Check chain, rows and heads in a thread of its own, over a connection of its own.

        Raises:
            Conflict: it is under way already.
            Unavailable: the database cannot be read, or the console stops.
        """
        if self._verifying:
            raise Conflict("The audit is already being verified. The result will appear here.")
        self._verifying = True
        began, at = self._clock.monotonic(), self._clock.now()
        try:
            records, problems = await asyncio.to_thread(self._verify)
        except sqlite3.Error as error:
            raise _unreadable(error) from error
        finally:
            self._verifying = False
        seconds = self._clock.monotonic() - began
        return AuditVerified(records=records, problems=problems, at=at, seconds=seconds)

    def _verify(self) -> tuple[int, tuple[str, ...]]:
        with closing(open_reader(self._home.database)) as reader:
            reader.set_progress_handler(lambda: self._closed, _STEPS)
            report = verify_home(reader, self._home.path)
            rewritten = self._signing.problem(reader) or self._unlike_memory(reader)
            older_vault = self._signing.vault_problem(reader)
        messages = [each for each in (rewritten, older_vault) if each]
        messages += [problem.message for problem in report.problems]
        if len(messages) > _MOST_PROBLEMS:
            left = len(messages) - _MOST_PROBLEMS
            messages[_MOST_PROBLEMS:] = [f"and {left} more; `aileron audit verify` lists them all"]
        return report.records, tuple(messages)

    def _unlike_memory(self, reader: sqlite3.Connection) -> str:
        """Return how the record differs from the newest that this process committed; '' where it does not."""
        head = self._database.head
        row = reader.execute("SELECT hash FROM audit WHERE seq = ?", (head.seq,)).fetchone()
        if not head.seq or (row is not None and row[0] == head.hash):
            return ""
        return (
            f"Record {head.seq} is not the one that this console wrote: the record was rewritten."
        )

    async def export(self) -> AuditExported:
        """Write every record as stored, one line of JSON each, to a new file that only its owner can read.

        Raises:
            Conflict: a file of this very second is there.
            Unavailable: the database cannot be read, or the file not be written.
        """
        at = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        path = self._home.exports / f"audit-{at}.jsonl"
        try:
            records = await asyncio.to_thread(self._export, path)
        except FileExistsError as error:
            raise Conflict(f"{path} already exists. Export again in a second.") from error
        except sqlite3.Error as error:
            raise _unreadable(error) from error
        except OSError as error:
            raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error
        return AuditExported(records=records, path=str(path))

    def _export(self, path: Path) -> int:
        with suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            try:
                return self._copy(file)
            except BaseException:
                with suppress(OSError):
                    path.unlink()  # half of a record would pass for the whole
                raise

    def _copy(self, file: TextIO) -> int:
        records = 0
        with closing(open_reader(self._home.database)) as reader:
            reader.set_progress_handler(lambda: self._closed, _STEPS)
            for (body,) in reader.execute("SELECT body FROM audit ORDER BY seq"):
                file.write(f"{body}\n")
                records += 1
        file.flush()
        return records

    def close(self) -> None:
        """Give up a verification that is under way: the console stops, and would wait for it."""
        self._closed = True


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ""


def _unreadable(error: sqlite3.Error) -> Unavailable:
    return Unavailable(
        f"The audit cannot be read: {error}. Look at the home's disk, then try again."
    )
