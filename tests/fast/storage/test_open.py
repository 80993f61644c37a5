"""Whose database it is, and whether anybody put something into it."""

import gc
import sqlite3
from pathlib import Path

import pytest

from aileron_core.errors import HomeError
from aileron_core.storage.open import open_reader, open_writer
from aileron_core.storage.schema import SCHEMA

FORGING = "BEGIN UPDATE runs SET state = 'approved'; END"
PINS = next(statement for statement in SCHEMA if " pins " in statement)


def made_database(path: Path) -> Path:
    connection, _, _ = open_writer(path)
    connection.close()
    return path


def test_a_new_database_is_closed_to_others(tmp_path: Path) -> None:
    assert made_database(tmp_path / "a.db").stat().st_mode & 0o777 == 0o600


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
def test_a_schema_that_is_not_word_for_word_ours_is_refused(tmp_path: Path, planted: str) -> None:
    path = made_database(tmp_path / "a.db")
    other = sqlite3.connect(path)
    other.executescript(planted)
    other.close()
    with pytest.raises(HomeError, match=r"a\.db (contains parts|are missing)"):
        open_writer(path)
    again = sqlite3.connect(path)
    assert again.execute("SELECT value FROM meta WHERE key='owner_epoch'").fetchone() == ("1",)
    again.close()


def test_what_a_row_of_the_schema_says_of_itself_hides_it_not(tmp_path: Path) -> None:
    """It has a name and a type there, which another program may write."""
    path = made_database(tmp_path / "a.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.executescript(f"CREATE TRIGGER t AFTER INSERT ON runs {FORGING}")
    other.execute("PRAGMA writable_schema = ON")
    other.execute("UPDATE sqlite_schema SET name='sqlite_stat1', type='table' WHERE name='t'")
    other.close()
    with pytest.raises(HomeError):
        open_writer(path)


def test_the_statistics_of_analyze_are_no_foreign_part(tmp_path: Path) -> None:
    """A person may run ANALYZE; what SQLite itself adds then is not taken for an attack."""
    path = made_database(tmp_path / "a.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("ANALYZE")
    other.close()
    made_database(path)


def test_the_database_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    other = sqlite3.connect(path)
    with other:
        other.execute("CREATE TABLE theirs(x)")
    other.close()
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
def test_spoilt_rows_are_a_sentence_and_not_a_crash(tmp_path: Path, spoiling: str) -> None:
    path = made_database(tmp_path / "a.db")
    other = sqlite3.connect(path)
    with other:
        other.execute(spoiling)
    other.close()
    with pytest.raises(HomeError, match="changed by another program"):
        open_writer(path)


def test_a_schema_version_that_is_no_number_is_no_crash(tmp_path: Path) -> None:
    path = made_database(tmp_path / "a.db")
    other = sqlite3.connect(path)
    with other:
        other.execute("UPDATE meta SET value='many' WHERE key='schema_version'")
    other.close()
    connection, epoch, _ = open_writer(path)
    connection.close()
    assert epoch == 2


def test_reading_needs_a_database_and_never_makes_one(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="Start `aileron console` first"):
        open_reader(tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()
    connection = open_reader(made_database(tmp_path / "a.db"))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM meta")
    connection.close()
