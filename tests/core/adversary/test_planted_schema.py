"""What another program may plant into the database's schema, under which name, and what comes of it."""

import sqlite3
from pathlib import Path

import pytest

from aileron_core.errors import HomeError
from aileron_core.storage.open import open_writer
from aileron_core.storage.schema import SCHEMA

_FORGING = "BEGIN UPDATE runs SET state = 'approved'; END"
_PINS = next(statement for statement in SCHEMA if " pins " in statement)


def _planted(path: Path, *statements: str) -> Path:
    connection, _, _ = open_writer(path)
    connection.close()
    other = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        other.execute(statement)
    other.close()
    return path


@pytest.mark.parametrize(
    "statements",
    [
        # `_` stands for any character in a LIKE pattern, so this is no `sqlite_stat`.
        (f"CREATE TRIGGER sqlite1stat AFTER INSERT ON runs {_FORGING}",),
        ("CREATE VIEW sqliteXstatistics AS SELECT 1",),
        # A trigger may bear a table's name; the table made anew after it hides it in a dict.
        (f"CREATE TRIGGER pins AFTER INSERT ON runs {_FORGING}", "DROP TABLE pins", _PINS),
        # A row of the schema says of itself what it is called and which type it has.
        (
            f"CREATE TRIGGER t AFTER INSERT ON runs {_FORGING}",
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_schema SET name = 'sqlite_stat1', type = 'table' WHERE name = 't'",
        ),
    ],
    ids=["wildcard", "wildcard-view", "a-tables-name", "writable-schema"],
)
def test_no_name_hides_a_planted_part_of_the_schema(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    """A trigger planted in the database changes nothing, whatever it is called."""
    path = _planted(tmp_path / "a.db", *statements)
    with pytest.raises(HomeError):
        open_writer(path)


def test_the_statistics_of_analyze_are_no_foreign_part(tmp_path: Path) -> None:
    """A person may run ANALYZE; what SQLite itself adds then is not taken for an attack."""
    path = _planted(tmp_path / "a.db", "ANALYZE")
    connection, epoch, _ = open_writer(path)
    connection.close()
    assert epoch == 2
