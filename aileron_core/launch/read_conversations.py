"""A program that prints the rows of conversations in a database that an agent could write, one JSON line for each.

    python -I read_conversations.py DATABASE < tables

It runs in a sandbox of its own, with nothing but that database, and imports the standard library
alone: what a file made for the purpose could do to SQLite stays there. Only tables are read, with no
view, trigger, generated column or function of theirs. Nothing that it prints is believed.
"""

import contextlib
import json
import resource
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

_MEMORY_BYTES = 2 << 30
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)


def main() -> None:
    """Print whether the tables are as expected, then the conversations."""
    for limit, value in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    path = Path(sys.argv[1])
    wanted: Any = json.load(sys.stdin)
    with contextlib.closing(_opened(path, wanted["max_bytes"])) as database:
        tables: dict[str, Any] = wanted["tables"]
        known = all(_columns(database, name) == set(each["all"]) for name, each in tables.items())
        _print({"known": known})
        if not known:
            return
        (first, of_first), *others = tables.items()
        for values in database.execute(_select(first, of_first["columns"])):
            name = values[list(of_first["columns"]).index(of_first["conversation"])]
            rows = {first: [values]}
            size = _size(values)
            for table, each in others:
                where = f' WHERE "{each["conversation"]}" = ?'
                rows[table] = []
                for row in database.execute(_select(table, each["columns"]) + where, (name,)):
                    size += _size(row)
                    if size > wanted["max_bytes"]:
                        break
                    rows[table].append(row)
            big = size > wanted["max_bytes"]
            _print({"id": name, "rows": None if big else rows})


def _opened(path: Path, max_bytes: int) -> sqlite3.Connection:
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):
                sys.exit(f"{part.name} is no file")
            part.chmod(0o600)
    # Writable, or what is still in the write-ahead log would be left out.
    database = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_bytes)
    database.text_factory = _text
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
        database.execute(f"PRAGMA {pragma}").fetchall()
    if (said := database.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
        sys.exit(f"it is damaged: {said}")
    database.set_authorizer(_authorized)
    return database


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _authorized(action: int, *_: str | None) -> int:
    """Allow to read tables, and nothing else: no other file, no function."""
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _columns(database: sqlite3.Connection, table: str) -> set[str] | None:
    """Return the columns of *table*; None if it is no plain table with plain columns."""
    query = "SELECT type, sql FROM sqlite_master WHERE name = ?"
    found = database.execute(query, (table,)).fetchall()
    if len(found) != 1 or found[0][0] != "table" or not found[0][1].startswith("CREATE TABLE"):
        return None
    columns = database.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    return None if any(each[6] for each in columns) else {each[1] for each in columns}


def _select(table: str, columns: list[str]) -> str:
    # A quoted name that is no column would be read as text, so it has the table's name with it.
    return f'SELECT {", ".join(f"{table}.{each}" for each in columns)} FROM main."{table}"'  # noqa: S608 - names of ours


def _size(row: tuple[object, ...]) -> int:
    return sum(len(each) if isinstance(each, str | bytes) else 8 for each in row)


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, default=lambda _: {}) + "\n")


if __name__ == "__main__":
    main()
