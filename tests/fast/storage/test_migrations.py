"""A home of an older Aileron: carried over whole, after a copy, on record; a newer one is refused.

`homes/schema-1.sql` is a real home's database (calls that ended in every way, one that waits), as
Aileron's first version wrote it.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.read import list_records, verify_home
from aileron_core.errors import HomeError
from aileron_core.runs import run_table
from aileron_core.storage import migrations
from aileron_core.storage.database import Database
from aileron_core.storage.migrations import (
    KEEP_COPIES_DAYS,
    MIGRATIONS,
    SCHEMA_1,
    migrate,
    schema_of,
)
from aileron_core.storage.open import open_reader, open_writer, schema_objects
from aileron_core.storage.schema import SCHEMA, SCHEMA_VERSION
from tests.support.frozen_clock import FrozenClock

HOMES = Path(__file__).parent / "homes"
TABLES = ("meta", "audit", "sessions", "runs", "pins")
NOW = 1_795_500_000.0
NEWER = {
    "in meta": "UPDATE meta SET value = '99' WHERE key = 'schema_version'",
    "in the header": "PRAGMA user_version = 99",
    "without our tables": "".join(f"DROP TABLE {table};" for table in TABLES)
    + "CREATE TABLE everything(is_different); PRAGMA user_version = 99",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "aileron.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((HOMES / "schema-1.sql").read_text(encoding="utf-8"))
        database.execute("PRAGMA journal_mode=WAL")
    (tmp_path / "audit.head").write_bytes((HOMES / "schema-1.audit.head").read_bytes())
    return path


def migrated(path: Path) -> Path:
    migrate(path, FrozenClock(NOW))
    return path


def content(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        for table in TABLES:
            found[table] = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]
    return found


def schema(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {sql for _, sql in schema_objects(database)}


def backups(path: Path) -> list[Path]:
    return sorted((path.parent / "backups").glob("*"))


def test_the_steps_lead_word_for_word_to_todays_schema() -> None:
    """A change of the schema without its step, or the other way round, is found here."""
    assert schema_of(SCHEMA_VERSION) == frozenset(SCHEMA)
    assert len(MIGRATIONS) == SCHEMA_VERSION - 1
    assert schema_of(1) == frozenset(SCHEMA_1)


def test_every_row_of_an_older_home_is_kept_and_read(old: Path) -> None:
    before = content(old)
    assert [len(before[table]) for table in TABLES] == [3, 30, 2, 7, 4]
    after = content(migrated(old))
    for table in ("audit", "sessions", "runs", "pins"):
        pairs = zip(after[table], before[table], strict=False)
        kept = [{column: row[column] for column in was} for row, was in pairs]
        assert kept == before[table], table
    assert len(after["runs"]) == 7
    stated = {row["key"]: row["value"] for row in after["meta"]}
    was = {row["key"]: row["value"] for row in before["meta"]}
    assert stated == was | {"schema_version": str(SCHEMA_VERSION)}
    assert schema(old) == set(SCHEMA)
    connection, _, head = open_writer(old)
    with closing(connection):
        waits = [r for r in run_table.open_or_undelivered(connection) if str(r.state) == "pending"]
        assert [row.args for row in waits] == [{"draft_id": "r-8842188204"}]
        ended = {str(row.state) for row in run_table.recently_ended(connection, 100)}
        assert ended == {"completed", "denied", "withdrawn"}
    assert head.seq == 31


def test_the_audit_of_a_carried_home_tells_of_it_and_of_the_copy_of_what_was(old: Path) -> None:
    before = content(old)
    old.parent.chmod(0o755)
    migrated(old)
    (copy,) = backups(old)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    assert content(copy) == before
    assert schema(copy) == set(SCHEMA_1)
    # No write-ahead log belongs to it (SQLite's file format, 1.3.3): it is whole by itself.
    assert copy.read_bytes()[18:20] == b"\x01\x01"
    assert backups(old) == [copy]
    with closing(open_reader(old)) as connection:
        report = verify_home(connection, old.parent)
        assert (report.problems, report.records) == ((), 31)
        (listed,) = list_records(connection, limit=1)
        body = json.loads(connection.execute("SELECT body FROM audit WHERE seq=31").fetchone()[0])
    assert (listed["event"], listed["actor"]) == ("storage.migrated", "aileron")
    assert listed["seq"] == 31
    assert listed["at"] == "2026-11-24T06:00:00.000Z"
    said = f"The database was upgraded from schema 1 to {SCHEMA_VERSION}: "
    assert listed["summary"].startswith(said)
    assert MIGRATIONS[0].summary in listed["summary"]
    assert (body["from"], body["to"]) == (1, SCHEMA_VERSION)
    assert old.parent / body["copy"] == copy


def test_nobody_writes_between_copy_and_steps(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = migrations._copied
    refused: list[str] = []

    def copied_while_another_writes(*arguments: Any) -> Path:
        with closing(sqlite3.connect(old, timeout=0)) as other:
            try:
                other.execute("DELETE FROM runs")
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return copied(*arguments)

    monkeypatch.setattr(migrations, "_copied", copied_while_another_writes)
    migrated(old)
    assert refused == ["database is locked"]


def test_an_older_home_is_read_without_being_carried_and_one_of_today_left_alone(old: Path) -> None:
    before = old.read_bytes()
    with closing(open_reader(old)) as connection:
        assert verify_home(connection, old.parent).ok
        assert len(list_records(connection)) == 30
    assert old.read_bytes() == before
    assert backups(old) == []
    migrated(old)
    records = len(content(old)["audit"])
    migrated(old)
    assert len(content(old)["audit"]) == records
    assert len(backups(old)) == 1
    nowhere = old.parent / "none" / "aileron.db"
    migrate(nowhere)
    assert not nowhere.parent.exists()


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE runs SET state='approved'; END",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE runs ADD COLUMN progress TEXT",
        "DROP INDEX audit_run",
    ],
)
def test_what_another_program_put_into_an_older_home_is_refused(old: Path, planted: str) -> None:
    with closing(sqlite3.connect(old)) as database:
        database.execute(planted)
    before = content(old)
    said = r"(contains parts that Aileron did not create|are missing)"
    with pytest.raises(HomeError, match=said):
        migrated(old)
    assert content(old) == before
    assert backups(old) == []


def test_without_a_copy_nothing_is_changed(old: Path) -> None:
    before = content(old)
    (old.parent / "backups").write_text("in the way")
    with pytest.raises(HomeError, match=r"no backup could be made .* Nothing was changed"):
        migrated(old)
    assert (content(old), schema(old)) == (before, set(SCHEMA_1))


def test_a_copy_that_is_cut_short_is_removed(old: Path) -> None:
    before = content(old)
    child = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from aileron_core.errors import HomeError\n"
        "from aileron_core.storage.migrations import migrate\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40960, 40960))\n"
        "try:\n    migrate(Path(sys.argv[1]))\n"
        "except HomeError as error:\n    print(error.message)\n"
    )
    command = [sys.executable, "-c", child, str(old)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "no backup could be made" in done.stdout
    assert backups(old) == []
    assert (content(old), schema(old)) == (before, set(SCHEMA_1))


def test_steps_that_lead_elsewhere_or_fail_leave_a_home_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = "ALTER TABLE runs ADD COLUMN other TEXT"
    other = migrations.Migration(summary="Never.", statements=(statement,))
    monkeypatch.setattr(migrations, "MIGRATIONS", (other, *MIGRATIONS[1:]))
    with pytest.raises(HomeError, match="contains parts that Aileron did not create: runs"):
        migrated(old)
    assert schema(old) == set(SCHEMA_1)
    bad = migrations.Migration(summary="Never.", statements=("ALTER TABLE nothing ADD COLUMN x",))
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, bad))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    before = content(old)
    with pytest.raises(HomeError, match="cannot be opened"):
        migrated(old)
    assert (content(old), schema(old)) == (before, set(SCHEMA_1))
    assert backups(old) == []


def test_a_death_in_the_middle_leaves_a_home_that_the_next_start_carries(old: Path) -> None:
    child = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from aileron_core.storage import migrations\n"
        "migrations.seal = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "migrations.migrate(Path(sys.argv[1]))\n"
    )
    before = content(old)
    done = subprocess.run([sys.executable, "-c", child, str(old)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (content(old), schema(old)) == (before, set(SCHEMA_1))
    migrated(old)
    assert schema(old) == set(SCHEMA)
    with closing(open_reader(old)) as connection:
        assert verify_home(connection, old.parent).ok


def test_copies_go_when_the_arguments_in_them_would(old: Path) -> None:
    """Arguments are kept 30 days; a copy is no way round that."""
    migrated(old)
    (copy,) = backups(old)
    for days, there in ((KEEP_COPIES_DAYS - 1, True), (KEEP_COPIES_DAYS + 1, False)):
        moment = NOW - days * 86400
        os.utime(copy, (moment, moment))
        migrated(old)
        assert copy.exists() is there


@pytest.mark.parametrize("made", NEWER.values(), ids=NEWER)
def test_a_newer_home_is_refused_and_not_changed(old: Path, made: str) -> None:
    with closing(sqlite3.connect(migrated(old))) as database:
        database.executescript(made)
    before = old.read_bytes()
    for opening in (lambda: Database(old), lambda: open_reader(old)):
        with pytest.raises(HomeError, match=r"newer Aileron \(schema 99; .* Update Aileron"):
            opening()
    assert old.read_bytes() == before
    assert len(backups(old)) == 1


@pytest.mark.parametrize("version", ["0", "-1", "many", ""])
def test_a_version_that_somebody_wrote_by_hand_permits_nothing(old: Path, version: str) -> None:
    """An older home that no longer says which one it is gets no steps by guess."""
    with closing(sqlite3.connect(old)) as database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
        database.commit()
    migrated(old)
    assert schema(old) == set(SCHEMA_1)
    with pytest.raises(HomeError, match="contains parts that Aileron did not create"):
        open_writer(old)


def test_a_damaged_home_is_not_carried(old: Path) -> None:
    """The copy is checked: steps on a broken file would only spread what is wrong."""
    with closing(sqlite3.connect(old)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        root = "SELECT rootpage FROM sqlite_schema WHERE name = 'runs_state'"
        (page,) = database.execute(root).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(old.read_bytes())
    start = (page - 1) * size
    data[start + 3 : start + 5] = b"\x00\x01"  # the index says that it has one entry
    old.write_bytes(data)
    with pytest.raises(HomeError, match=r"is damaged .*Nothing was changed\. Restore it"):
        migrated(old)
    assert backups(old) == []
    assert old.read_bytes() == data
