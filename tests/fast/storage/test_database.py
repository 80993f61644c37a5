"""State and its record are one transaction, or nothing is."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.errors import AileronError, OwnerLost, StorageUnavailable, UnrecordedChange
from aileron_core.storage.database import Database, Tx


def put(key: str) -> AuditRecord:
    at, event = "2026-10-08T14:02:00.000Z", AuditEvent.STORAGE_MENDED
    return AuditRecord(at=at, event=event, summary=f"put {key}")


def put_row(tx: Tx, key: str, value: str = "1") -> None:
    tx.execute("INSERT INTO meta VALUES(?, ?)", (key, value))


def recording_unit(key: str) -> object:
    def unit(tx: Tx) -> int:
        put_row(tx, key)
        return tx.record(put(key))

    return unit


@asynccontextmanager
async def open_database(path: Path) -> AsyncGenerator[Database, None]:
    database = Database(path)
    try:
        yield database
    finally:
        await asyncio.to_thread(database.close)


async def keys_in(database: Database) -> list[str]:
    own = "'schema_version', 'owner_epoch', 'deleted_is_overwritten'"
    query = f"SELECT key FROM meta WHERE key NOT IN ({own}) ORDER BY key"
    found = await database.read(lambda c: c.execute(query).fetchall())
    return [key for (key,) in found]


async def count(database: Database) -> int:
    row = await database.read(lambda c: c.execute("SELECT COUNT(*) FROM audit").fetchone())
    return row[0]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "a.db") as opened:
        yield opened


async def test_a_change_without_a_record_is_refused_and_undone(database: Database) -> None:
    with pytest.raises(UnrecordedChange, match="1 rows"):
        await database.write(lambda tx: put_row(tx, "secretly"))
    assert await keys_in(database) == []
    await database.write(recording_unit("openly"))  # type: ignore[arg-type]
    assert await keys_in(database) == ["openly"]


async def test_a_unit_that_fails_takes_its_record_with_it_and_no_other_unit(
    database: Database,
) -> None:
    def failing(tx: Tx) -> None:
        put_row(tx, "half")
        tx.record(put("half"))
        raise LookupError("in the middle")

    gate = threading.Event()
    # The writer is busy, so what follows is one group.
    first = asyncio.ensure_future(database.write(lambda _tx: gate.wait(5)))
    rest = [
        asyncio.ensure_future(database.write(unit))  # type: ignore[arg-type]
        for unit in (recording_unit("a"), failing, recording_unit("b"), recording_unit("a"))
    ]
    await asyncio.sleep(0)
    gate.set()
    await first
    ends = await asyncio.gather(*rest, return_exceptions=True)
    assert [type(end) for end in ends] == [int, LookupError, int, sqlite3.IntegrityError]
    assert await keys_in(database) == ["a", "b"]
    assert await count(database) == 2
    assert (ends[0], ends[2]) == (1, 2)


async def test_records_are_numbered_in_the_order_of_the_writes_without_gaps(
    database: Database,
) -> None:
    heads: list[int] = []
    groups: list[int] = []

    def sink(head: object, committed: object) -> None:
        heads.append(head.seq)  # type: ignore[attr-defined]
        groups.append(len(committed))  # type: ignore[arg-type]

    database.on_commit(sink)  # type: ignore[arg-type]
    got = await asyncio.gather(
        *(database.write(lambda tx, n=n: tx.record(put(str(n)))) for n in range(300))
    )
    assert got == list(range(1, 301))
    assert heads == sorted(heads)
    assert sum(groups) == 300
    assert len(groups) < 300, "never more than one unit in a commit"
    assert database.head.seq == 300


async def test_a_write_is_durable_before_its_caller_goes_on(
    tmp_path: Path, database: Database
) -> None:
    await database.write(recording_unit("seen"))  # type: ignore[arg-type]
    other = sqlite3.connect(tmp_path / "a.db")
    assert other.execute("SELECT value FROM meta WHERE key='seen'").fetchone() == ("1",)
    other.close()


async def test_a_cancelled_caller_does_not_undo_its_unit(database: Database) -> None:
    """The promise of `Database.write`: what was handed over is written, or told as not written."""
    gate = threading.Event()
    first = asyncio.ensure_future(database.write(lambda _tx: gate.wait(5)))
    second = asyncio.ensure_future(database.write(recording_unit("kept")))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await first
    await asyncio.gather(second, return_exceptions=True)
    assert await keys_in(database) == ["kept"]


async def test_a_full_database_stops_writes_as_unavailable_and_mends(database: Database) -> None:
    failures: list[AileronError] = []
    database.on_failure(failures.append)
    await database.write(recording_unit("before"))  # type: ignore[arg-type]
    database._connection.execute("PRAGMA max_page_count=1")  # or what it has, if that is more
    with pytest.raises(StorageUnavailable, match="until it is writable") as caught:
        await database.write(lambda tx: (put_row(tx, "big", "x" * 200_000), tx.record(put("big"))))
    assert caught.value.class_ == "unavailable"
    assert failures == [caught.value]
    assert await keys_in(database) == ["before"]
    assert await count(database) == 1
    database._connection.execute("PRAGMA max_page_count=1000000")
    assert await database.write(recording_unit("after")) == 2  # type: ignore[arg-type]


async def test_a_trigger_planted_while_running_stops_every_write(
    tmp_path: Path, database: Database
) -> None:
    await database.write(recording_unit("before"))  # type: ignore[arg-type]
    other = sqlite3.connect(tmp_path / "a.db")
    other.execute(
        "CREATE TRIGGER planted AFTER INSERT ON audit BEGIN "
        "INSERT INTO meta VALUES('planted', 'yes'); END"
    )
    other.close()
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="schema"):
            await database.write(recording_unit("after"))  # type: ignore[arg-type]
    assert await keys_in(database) == ["before"]


async def test_the_older_of_two_owners_stops(tmp_path: Path) -> None:
    async with open_database(tmp_path / "a.db") as older:
        await older.write(recording_unit("one"))  # type: ignore[arg-type]
        async with open_database(tmp_path / "a.db") as newer:
            with pytest.raises(OwnerLost, match="Another console"):
                await older.write(recording_unit("two"))  # type: ignore[arg-type]
            await newer.write(recording_unit("three"))  # type: ignore[arg-type]
            assert await keys_in(newer) == ["one", "three"]
            assert await count(newer) == 2


async def test_after_closing_a_write_is_refused_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    """Regression: a unit put behind the writer's end was never answered."""
    database = Database(tmp_path / "a.db")
    await asyncio.to_thread(database.close)
    async with asyncio.timeout(5):
        with pytest.raises(StorageUnavailable, match="closed"):
            await database.write(recording_unit("late"))  # type: ignore[arg-type]


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await database.read(lambda c: c.execute("DELETE FROM meta"))


async def test_a_log_that_a_reader_kept_from_being_emptied_is_emptied_once_it_has_read(
    tmp_path: Path,
) -> None:
    """No commit may follow for hours: what was erased must not stay in a file meanwhile."""
    path = tmp_path / "a.db"
    async with open_database(path) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT COUNT(*) FROM audit").fetchone() == (0,)
            await database.write(erase)
            assert database._log_holds_deleted
        while path.with_name("a.db-wal").stat().st_size:
            await asyncio.sleep(0.01)


def erase(tx: Tx) -> None:
    put_row(tx, "erased")
    tx.record(put("erased"))
    tx.erases = True
