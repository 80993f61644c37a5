"""Whose database it is; state and its record are one transaction, or nothing is."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.errors import (
    AileronError,
    HomeError,
    OwnerLost,
    StorageUnavailable,
    UnrecordedChange,
)
from aileron_core.storage.database import Database, Tx
from aileron_core.storage.open import open_reader, open_writer
from aileron_core.storage.schema import SCHEMA

FORGING = "BEGIN UPDATE runs SET state = 'approved'; END"
PINS = next(statement for statement in SCHEMA if " pins " in statement)


def write_row(key: str) -> AuditRecord:
    at, event = "2026-10-08T14:02:00.000Z", AuditEvent.STORAGE_MENDED
    return AuditRecord(at=at, event=event, summary=f"put {key}")


def put_row(tx: Tx, key: str, value: str = "1") -> None:
    tx.execute("INSERT INTO meta VALUES(?, ?)", (key, value))


def recording_unit(key: str) -> object:
    def unit(tx: Tx) -> int:
        put_row(tx, key)
        return tx.record(write_row(key))

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


async def test_a_change_without_a_record_is_refused_and_undone_and_a_read_cannot_write(
    database: Database,
) -> None:
    with pytest.raises(UnrecordedChange, match="1 rows"):
        await database.write(lambda tx: put_row(tx, "secretly"))
    assert await keys_in(database) == []
    await database.write(recording_unit("openly"))  # type: ignore[arg-type]
    assert await keys_in(database) == ["openly"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await database.read(lambda c: c.execute("DELETE FROM meta"))


async def test_a_failed_unit_takes_its_record_with_it_and_no_other(database: Database) -> None:
    def failing(tx: Tx) -> None:
        put_row(tx, "half")
        tx.record(write_row("half"))
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


async def test_records_are_numbered_in_the_order_of_writes_without_gaps(database: Database) -> None:
    heads: list[int] = []
    groups: list[int] = []

    def sink(head: object, committed: object) -> None:
        heads.append(head.seq)  # type: ignore[attr-defined]
        groups.append(len(committed))  # type: ignore[arg-type]

    database.on_commit(sink)  # type: ignore[arg-type]
    got = await asyncio.gather(
        *(database.write(lambda tx, n=n: tx.record(write_row(str(n)))) for n in range(300))
    )
    assert got == list(range(1, 301))
    assert heads == sorted(heads)
    assert sum(groups) == 300
    assert len(groups) < 300, "never more than one unit in a commit"
    assert database.head.seq == 300


async def test_a_write_is_durable_before_its_caller_goes_on_and_a_trigger_planted_later_stops_each(
    tmp_path: Path, database: Database
) -> None:
    await database.write(recording_unit("seen"))  # type: ignore[arg-type]
    other = sqlite3.connect(tmp_path / "a.db")
    assert other.execute("SELECT value FROM meta WHERE key='seen'").fetchone() == ("1",)
    other.execute(
        "CREATE TRIGGER planted AFTER INSERT ON audit BEGIN "
        "INSERT INTO meta VALUES('planted', 'yes'); END"
    )
    other.close()
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="schema"):
            await database.write(recording_unit("after"))  # type: ignore[arg-type]
    assert await keys_in(database) == ["seen"]


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
        await database.write(
            lambda tx: (put_row(tx, "big", "x" * 200_000), tx.record(write_row("big")))
        )
    assert caught.value.class_ == "unavailable"
    assert failures == [caught.value]
    assert await keys_in(database) == ["before"]
    assert await count(database) == 1
    database._connection.execute("PRAGMA max_page_count=1000000")
    assert await database.write(recording_unit("after")) == 2  # type: ignore[arg-type]


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


async def test_a_log_that_a_reader_held_is_emptied_once_it_has_read(tmp_path: Path) -> None:
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
    tx.record(write_row("erased"))
    tx.erases = True


@pytest.fixture
def made(tmp_path: Path) -> Path:
    open_writer(tmp_path / "a.db")[0].close()
    return tmp_path / "a.db"


def changed_row(path: Path, statements: str) -> Path:
    with closing(sqlite3.connect(path)) as other:
        other.executescript(statements)
    return path


def test_a_new_database_is_closed_to_others_and_reading_never_makes_one(made: Path) -> None:
    assert made.stat().st_mode & 0o777 == 0o600
    with pytest.raises(HomeError, match="Start `aileron console` first"):
        open_reader(made.with_name("b.db"))
    assert not made.with_name("b.db").exists()
    readonly = pytest.raises(sqlite3.OperationalError, match="readonly")
    with closing(open_reader(made)) as connection, readonly:
        connection.execute("DELETE FROM meta")


@pytest.mark.parametrize(
    "planted",
    [
        f"CREATE TRIGGER t AFTER INSERT ON runs {FORGING}",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE grants(shape TEXT)",
        "CREATE INDEX i ON runs(action)",
        "ALTER TABLE runs ADD COLUMN more TEXT",
        "ALTER TABLE audit RENAME COLUMN at TO att",
        "DROP INDEX audit_run",
        "DROP TABLE pins",
        # `_` stands for any character in a LIKE pattern, so this is no `sqlite_stat`.
        f"CREATE TRIGGER sqlite1stat AFTER INSERT ON runs {FORGING}",
        "CREATE VIEW sqliteXstatistics AS SELECT 1",
        # A trigger may bear a table's name; the table made anew after it hides it in a dict.
        f"CREATE TRIGGER pins AFTER INSERT ON runs {FORGING}; DROP TABLE pins; {PINS}",
    ],
)
def test_a_schema_that_is_not_word_for_word_ours_is_refused(made: Path, planted: str) -> None:
    with pytest.raises(HomeError, match=r"a\.db (contains parts|are missing)"):
        open_writer(changed_row(made, planted))
    with closing(sqlite3.connect(made)) as again:
        assert again.execute("SELECT value FROM meta WHERE key='owner_epoch'").fetchone() == ("1",)


def test_what_a_row_of_the_schema_says_of_itself_hides_it_not(made: Path) -> None:
    """It has a name and a type there, which another program may write."""
    trigger = f"CREATE TRIGGER t AFTER INSERT ON runs {FORGING}; PRAGMA writable_schema = ON;"
    named = "UPDATE sqlite_schema SET name='sqlite_stat1', type='table' WHERE name='t'"
    with pytest.raises(HomeError):
        open_writer(changed_row(made, trigger + named))


def test_the_database_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = changed_row(tmp_path / "a.db", "CREATE TABLE theirs(x)")
    before = path.read_bytes()
    with pytest.raises(HomeError):
        open_writer(path)
    gc.collect()
    assert path.read_bytes() == before
    path.write_bytes(b"this is no database at all, just some text" * 100)
    with pytest.raises(HomeError, match="cannot be opened"):
        open_writer(path)


@pytest.mark.parametrize(
    "spoiling",
    [
        "DELETE FROM meta WHERE key='owner_epoch'",
        "INSERT INTO audit VALUES(1, 'x', 'x', NULL, NULL, NULL, '{}')",
        "INSERT INTO audit VALUES(1, 'x', 'x', NULL, NULL, 5000000000, '{}')",
        "INSERT INTO audit VALUES(1, 'x', 'x', NULL, NULL, 'text', '{}')",
    ],
)
def test_spoilt_rows_are_a_sentence_and_not_a_crash(made: Path, spoiling: str) -> None:
    with pytest.raises(HomeError, match="changed by another program"):
        open_writer(changed_row(made, spoiling))


def test_a_schema_version_that_is_no_number_is_no_crash_nor_the_statistics_a_foreign_part(
    made: Path,
) -> None:
    """A person may run ANALYZE; what SQLite itself adds then is not taken for an attack."""
    changed_row(made, "UPDATE meta SET value='many' WHERE key='schema_version'")
    connection, epoch, _ = open_writer(made)
    connection.close()
    assert epoch == 2
    open_writer(changed_row(made, "ANALYZE"))[0].close()
