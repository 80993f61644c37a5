"""Whose database it is, and whether anybody put something into it."""

import gc
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.errors import HomeError
from aileron_core.storage.open import open_reader, open_writer
from aileron_core.storage.schema import SCHEMA

FORGING = "BEGIN UPDATE runs SET state = 'approved'; END"
PINS = next(statement for statement in SCHEMA if " pins " in statement)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A new database."""
    open_writer(tmp_path / "a.db")[0].close()
    return tmp_path / "a.db"


def changed(path: Path, statements: str) -> Path:
    """Change the database as another program would."""
    with closing(sqlite3.connect(path)) as other:
        other.executescript(statements)
    return path


def test_a_new_database_is_closed_to_others(made: Path) -> None:
    assert made.stat().st_mode & 0o777 == 0o600


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
        open_writer(changed(made, planted))
    with closing(sqlite3.connect(made)) as again:
        assert again.execute("SELECT value FROM meta WHERE key='owner_epoch'").fetchone() == ("1",)


def test_what_a_row_of_the_schema_says_of_itself_hides_it_not(made: Path) -> None:
    """It has a name and a type there, which another program may write."""
    trigger = f"CREATE TRIGGER t AFTER INSERT ON runs {FORGING}; PRAGMA writable_schema = ON;"
    named = "UPDATE sqlite_schema SET name='sqlite_stat1', type='table' WHERE name='t'"
    with pytest.raises(HomeError):
        open_writer(changed(made, trigger + named))


def test_the_statistics_of_analyze_are_no_foreign_part(made: Path) -> None:
    """A person may run ANALYZE; what SQLite itself adds then is not taken for an attack."""
    open_writer(changed(made, "ANALYZE"))[0].close()


def test_the_database_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = changed(tmp_path / "a.db", "CREATE TABLE theirs(x)")
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
        open_writer(changed(made, spoiling))


def test_a_schema_version_that_is_no_number_is_no_crash(made: Path) -> None:
    changed(made, "UPDATE meta SET value='many' WHERE key='schema_version'")
    connection, epoch, _ = open_writer(made)
    connection.close()
    assert epoch == 2


def test_reading_needs_a_database_and_never_makes_one(made: Path) -> None:
    with pytest.raises(HomeError, match="Start `aileron console` first"):
        open_reader(made.with_name("b.db"))
    assert not made.with_name("b.db").exists()
    readonly = pytest.raises(sqlite3.OperationalError, match="readonly")
    with closing(open_reader(made)) as connection, readonly:
        connection.execute("DELETE FROM meta")
