"""One SQLite file, one writing thread, group commit.

`write(unit)` runs `unit(tx)` on the writer inside its own SAVEPOINT of the current transaction. A
unit that fails is rolled back alone. A unit that changed rows and recorded nothing is refused:
state and its record are one transaction, and this is where that promise lives. A schema that another
program changed stops everything.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from aileron_core.audit.record import AuditRecord, ChainHead, CommittedRecord, seal
from aileron_core.errors import AileronError, OwnerLost, StorageUnavailable, UnrecordedChange
from aileron_core.storage.open import LOCK_SECONDS, open_reader, open_writer

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_BATCH = 256
_LOG_RETRY_SECONDS = 1.0
SIGNED_HEAD = "signed head"
"""The row of `meta` with the newest head that was signed with the vault's key."""


class HeadSink(Protocol):
    """Where the chain's head goes after each commit, on the writer's thread. Must not raise."""

    def __call__(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        """Store *head* outside the database; *committed* are the records of this commit."""
        ...


HeadSigner: TypeAlias = Callable[[ChainHead], str | None]
"""Returns a head as it is stored once signed; None where it cannot be now. Called on the writer's thread."""

FailureSink: TypeAlias = Callable[[AileronError], None]
"""Told, on the writer's thread, that a commit failed and why. Must not raise."""


class Tx:
    """One unit of work: rows are changed and records written through it."""

    def __init__(self, connection: sqlite3.Connection, head: ChainHead) -> None:
        self._connection = connection
        self.head = head
        self.committed: list[CommittedRecord] = []
        self.erases = False
        """What it deletes must not stay in the write-ahead log either."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def next_seq(self) -> int:
        """Return the number that the next record will get, for the row that names it."""
        return self.head.seq + 1

    def record(self, record: AuditRecord) -> int:
        """Append *record* to the chain and return its number.

        Raises:
            StorageUnavailable: another program put a record of its own into that place.
        """
        seq = self.head.seq + 1
        body, digest = seal(seq, self.head.hash, record)
        try:
            self._connection.execute(
                "INSERT INTO audit(seq, at, event, run, prev, hash, body) VALUES(?,?,?,?,?,?,?)",
                (seq, record.at, record.event, record.run, self.head.hash, digest, body),
            )
        except sqlite3.IntegrityError as error:
            raise StorageUnavailable(
                f"Another program put a record {seq} into the audit. Nothing runs until that record is "
                "removed. Inspect the database."
            ) from error
        self.head = ChainHead(seq=seq, hash=digest, at=record.at)
        self.committed.append(CommittedRecord(seq=seq, hash=digest, record=record))
        return seq


@dataclass(slots=True)
class _Job(Generic[_T]):
    unit: Callable[[Tx], _T]
    future: asyncio.Future[_T]
    loop: asyncio.AbstractEventLoop
    result: _T | None = None
    error: Exception | None = None
    erases: bool = False


class Database:
    """The home's database, owned by this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sinks: list[HeadSink] = []
        self._failure_sinks: list[FailureSink] = []
        self._sign: HeadSigner | None = None
        self._closed = False
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._connection, self._epoch, self._head = open_writer(path)
        query = "SELECT value FROM meta WHERE key = ?"
        signed = self._connection.execute(query, (SIGNED_HEAD,)).fetchone()
        self._signed = "" if signed is None else str(signed[0])
        self._schema = self._schema_cookie()
        self._stopped: AileronError | None = None
        self._log_holds_deleted = False
        self._readers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="aileron-read")
        self._reader: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._work, name="aileron-writer", daemon=True)
        self._thread.start()

    @property
    def head(self) -> ChainHead:
        """The newest committed record's number and hash."""
        return self._head

    def on_commit(self, sink: HeadSink) -> None:
        self._sinks.append(sink)

    def sign_heads(self, signer: HeadSigner) -> None:
        """Store each head that *signer* signs, in the commit that makes it."""
        self._sign = signer

    def on_failure(self, sink: FailureSink) -> None:
        self._failure_sinks.append(sink)

    async def write(self, unit: Callable[[Tx], _T]) -> _T:
        """Run *unit* durably and return what it returned.

        A cancelled caller does not undo the unit.

        Raises:
            StorageUnavailable: it could not be written; nothing of it is on disk.
            OwnerLost: another process has taken the home over.
            UnrecordedChange: the unit changed rows without a record.
        """
        if self._stopped is not None:
            raise self._stopped
        if self._closed:
            raise StorageUnavailable(
                f"{self._path} is closed, because the console is stopping. Nothing ran."
            )
        loop = asyncio.get_running_loop()
        job: _Job[_T] = _Job(unit, loop.create_future(), loop)
        self._jobs.put(job)
        return await job.future

    async def read(self, query: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run *query* on a read-only connection, off the loop."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, lambda: query(self._reading())
        )

    def close(self) -> None:
        """Finish what is queued, close the file, join the threads."""
        self._closed = True
        # The reader first: the last connection to close folds the write-ahead log into the file.
        self._readers.submit(self._close_reader)
        self._readers.shutdown(wait=True)
        self._jobs.put(None)
        self._thread.join()

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = open_reader(self._path)
        return self._reader

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _schema_cookie(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").fetchone()[0])

    def _work(self) -> None:
        while (first := self._next_job()) is not None:
            batch = [first]
            stopping = False
            while len(batch) < _BATCH:
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    stopping = True
                    break
                batch.append(following)
            self._commit(batch)
            if stopping:
                break
        self._connection.close()

    def _next_job(self) -> "_Job[Any] | None":
        while self._log_holds_deleted:
            try:
                return self._jobs.get(timeout=_LOG_RETRY_SECONDS)
            except queue.Empty:
                self._empty_log()
        return self._jobs.get()

    def _commit(self, batch: list[_Job[Any]]) -> None:
        head = self._head
        committed: list[CommittedRecord] = []
        try:
            self._begin()
            for job in batch:
                head = self._run(job, head, committed)
            signed = self._signed
            if committed:
                signed = self._signed_head(head)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, AileronError) as error:
            self._roll_back()
            failure = self._translate(error)
            # By its type: a message of SQLite's may quote a value.
            _log.error("a commit of %d units failed with %s", len(batch), type(error).__name__)
            for job in batch:
                job.error = failure
            for tell in self._failure_sinks:
                tell(failure)
        else:
            if committed:
                self._signed = signed
                self._head = head = replace(head, signed=signed)
                for sink in self._sinks:
                    sink(head, committed)
                _tell_log(committed)
            self._log_holds_deleted |= any(job.erases for job in batch)
            if self._log_holds_deleted:
                self._empty_log()
        self._answer(batch)

    def _signed_head(self, head: ChainHead) -> str:
        """Store *head* signed, if it can be; return the newest that is."""
        text = self._sign(head) if self._sign is not None else None
        if text is None:
            return self._signed
        self._connection.execute(
            "INSERT INTO meta(key, value) VALUES(?, ?) "
            "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (SIGNED_HEAD, text),
        )
        return text

    def _empty_log(self) -> None:
        """Fold the write-ahead log into the file and cut it; a busy reader leaves that for later."""
        try:
            # Writers must not wait for it; `connect` waits so long for other locks.
            self._connection.execute("PRAGMA busy_timeout = 0")
            busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._log_holds_deleted = bool(busy)
            self._connection.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000}")
        except sqlite3.Error as error:
            _log.warning("the log was not emptied: %s", type(error).__name__)

    def _begin(self) -> None:
        if self._stopped is not None:
            raise self._stopped
        self._connection.execute("BEGIN IMMEDIATE")
        row = self._connection.execute("SELECT value FROM meta WHERE key='owner_epoch'").fetchone()
        if row is None or int(row[0]) != self._epoch:
            self._stopped = OwnerLost(
                "Another console has opened this home, so this one has stopped. Quit it."
            )
        elif self._schema_cookie() != self._schema:
            self._stopped = StorageUnavailable(
                "Another program changed the database's schema (for example, it added a trigger). "
                "Nothing can run. Quit, and inspect the database before you start again."
            )
        if self._stopped is not None:
            raise self._stopped

    def _run(self, job: _Job[Any], head: ChainHead, committed: list[CommittedRecord]) -> ChainHead:
        connection = self._connection
        connection.execute("SAVEPOINT unit")
        tx = Tx(connection, head)
        before = connection.total_changes
        try:
            job.result = job.unit(tx)
            job.erases = tx.erases
            changed = connection.total_changes - before
            if changed and not tx.committed:
                raise UnrecordedChange(
                    f"a unit changed {changed} rows and recorded nothing; it was rolled back"
                )
        except sqlite3.IntegrityError as error:
            job.error = error
        except (sqlite3.Error, StorageUnavailable):
            raise  # the file itself: the whole batch failed
        except Exception as error:  # noqa: BLE001 - belongs to the unit's caller
            job.error = error
        if job.error is not None:
            connection.execute("ROLLBACK TO unit")
            connection.execute("RELEASE unit")
            return head
        connection.execute("RELEASE unit")
        committed.extend(tx.committed)
        return tx.head

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                _log.error("rollback failed with %s", type(error).__name__)

    def _translate(self, error: Exception) -> AileronError:
        if isinstance(error, AileronError):
            return error
        return StorageUnavailable(
            f"{self._path} cannot be written ({error}). Nothing can run until it is writable. "
            "Free some space or fix its permissions, then try again."
        )

    def _answer(self, batch: list[_Job[Any]]) -> None:
        loops = {job.loop for job in batch}
        for loop in loops:
            jobs = [job for job in batch if job.loop is loop]
            try:
                loop.call_soon_threadsafe(_resolve, jobs)
            except RuntimeError:
                _log.warning("the loop ended before %d writes were answered", len(jobs))


def _tell_log(committed: Sequence[CommittedRecord]) -> None:
    """Have the log say what was recorded, by its names alone: the rest is the audit's."""
    if not _log.isEnabledFor(logging.INFO):
        return
    for each in committed:
        record = each.record
        named = {"event": record.event, "run": record.run, "session": record.session}
        _log.info("recorded", extra={**named, "seq": each.seq, "action": record.action})


def _resolve(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        if job.future.cancelled():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
