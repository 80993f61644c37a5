"""A program that copies the conversations in a database that an agent could write, without what it takes as settings.

    python -I copy_conversations.py keep DATABASE < REQUEST     # prints a database
    python -I copy_conversations.py newest DATABASE < REQUEST   # prints the JSON of one conversation

It runs in a sandbox of its own and imports the standard library alone: what a file made for the
purpose could do to SQLite stays there. Only a launch of that agent, or a person, gets what it prints.
"""

import contextlib
import json
import resource
import shutil
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

_MEMORY_BYTES = 2 << 30
_NO_DEFAULTS = (None, "NULL", "''", "'{}'", "'[]'")
"""What a new row may have in a column that is a setting, beside the value that the column is given here."""


def main() -> None:
    """Print what is asked for."""
    for limit, value in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    what, path = sys.argv[1], Path(sys.argv[2])
    asked: Any = json.load(sys.stdin)
    if what == "newest":
        with contextlib.closing(sqlite3.connect(_read_only(path), uri=True)) as database:
            _harden(database)
            sys.stdout.write(json.dumps(_newest(database, asked), default=lambda _: None))
        return
    new = path.with_name("kept.db")
    with contextlib.closing(_opened(path)) as database:
        for name in (
            "kept",
            "given",
        ):  # what another launch kept since this one began, and from what
            if asked[name]:
                database.execute(f"ATTACH ? AS {name}", (_read_only(Path(asked[name])),))
        database.execute("BEGIN IMMEDIATE")
        _take_out(database, asked)
        if asked["kept"]:
            _merge(database, asked)
        database.execute("COMMIT")
        new.unlink(missing_ok=True)
        database.execute("VACUUM INTO ?", (str(new),))
    with new.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


def _read_only(path: Path) -> str:
    return f"{path.as_uri()}?mode=ro&immutable=1"


def _opened(path: Path) -> sqlite3.Connection:
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):
                sys.exit(f"{part.name} is no file")
            part.chmod(0o600)
    database = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)
    _harden(database)
    if (said := database.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
        sys.exit(f"it is damaged: {said}")
    return database


def _harden(database: sqlite3.Connection) -> None:
    database.text_factory = _text
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        database.execute(f"PRAGMA {pragma}").fetchall()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _take_out(database: sqlite3.Connection, asked: Any) -> None:
    """Empty all that is none of a conversation, and what the agent would carry out."""
    found = database.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    for kind in ("trigger", "view"):
        for name in [name for each, name, _ in found if each == kind]:
            database.execute(f"DROP {kind} IF EXISTS {_quoted(name)}")
    tables = {name: sql for kind, name, sql in found if kind == "table"}
    for name, sql in tables.items():
        if not sql.startswith("CREATE TABLE"):
            sys.exit(f"its table {name} is none with rows of its own")
        if name not in asked["tables"] and name not in asked["versions"]:
            database.execute(f"DELETE FROM {_quoted(name)}")
    for name, settings in asked["tables"].items():
        if name in tables:
            _take_out_settings(database, name, settings, asked)
        elif name == asked["first"] or any(each == name for _, each, _ in found):
            sys.exit(f"it has no table {name}")
    for name in _of_conversations(database, asked):
        database.execute(
            f"DELETE FROM {_quoted(name)} WHERE session_id NOT IN "
            f"(SELECT id FROM {_quoted(asked['first'])})"
        )


def _take_out_settings(
    database: sqlite3.Connection, table: str, settings: dict[str, str], asked: Any
) -> None:
    """Leave of *table* the rows that are kept, with *settings* as the values of the columns that are named."""
    if (condition := asked["only"].get(table)) is not None:
        database.execute(f"DELETE FROM {_quoted(table)} WHERE ({condition}) IS NOT TRUE")
    for column, _type, _required, default, _key, hidden in _columns(database, table):
        if hidden:
            sys.exit(f"the column {column} of its table {table} is computed")
        if (value := settings.get(column)) is None:
            continue
        if default not in (*_NO_DEFAULTS, value):
            sys.exit(f"the column {column} of its table {table} has another default")
        change = f"UPDATE {_quoted(table)} SET {_quoted(column)} = {value}"
        database.execute(change, {"project": asked["project"]})


def _merge(database: sqlite3.Connection, asked: Any) -> None:
    """Add what another launch kept meanwhile; print conversations that both continued on standard error."""
    first, modified = _quoted(asked["first"]), _quoted(asked["modified"])
    before = f" EXCEPT SELECT id, {modified} FROM given.{first}" if asked["given"] else ""
    stamp = f"SELECT {modified} FROM {{}}.{first} WHERE id = ?"
    for conversation, _ in database.execute(
        f"SELECT id, {modified} FROM kept.{first}{before}"
    ).fetchall():
        here = database.execute(stamp.format("main"), (conversation,)).fetchone()
        given = (
            asked["given"] and database.execute(stamp.format("given"), (conversation,)).fetchone()
        )
        under = conversation
        if here is not None and here != given:
            if not asked["numbered"]:
                sys.stderr.write(f"{conversation}\n")
                continue
            while database.execute(stamp.format("main"), (under,)).fetchone():
                under += "_"
        for name in asked["tables"]:
            column = "id" if name == asked["first"] else "session_id"
            _add(database, name, column, conversation, under)


def _add(
    database: sqlite3.Connection, name: str, column: str, conversation: str, under: str
) -> None:
    """Put the other launch's rows of *conversation* in the place of those of *under*.

    A table that has no such *column* is common to all: rows that are not there are added.
    """
    table, here = _quoted(name), _columns(database, name)
    there = {each[0] for each in _columns(database, name, "kept")}
    numbers = {each[0] for each in here if each[4] and each[1] == "INTEGER"} - {column}
    others = [each[0] for each in here if each[0] in there - numbers - {column}]
    columns = ", ".join(_quoted(each) for each in others)
    if column not in there:
        copied = f"({columns}) SELECT {columns} FROM kept.{table}"
        database.execute(f"INSERT OR IGNORE INTO main.{table} {copied}")
        return
    database.execute(f"DELETE FROM main.{table} WHERE {column} = ?", (under,))
    copied = f"({column}, {columns}) SELECT ?, {columns} FROM kept.{table} WHERE {column} = ?"
    database.execute(f"INSERT OR IGNORE INTO main.{table} {copied}", (under, conversation))


def _newest(database: sqlite3.Connection, asked: Any) -> dict[str, Any] | None:
    """Return the newest conversation whose id has `wanted` in it, with its rows by table."""
    first, modified = _quoted(asked["first"]), _quoted(asked["modified"])
    found = database.execute(
        f"SELECT id, {modified} FROM {first} WHERE instr(id, ?) ORDER BY {modified} DESC",
        (asked["wanted"],),
    ).fetchall()
    if not found:
        return None
    (conversation, at), rows = found[0], dict[str, Any]()
    for name, column in [
        (asked["first"], "id"),
        *((each, "session_id") for each in _of_conversations(database, asked)),
    ]:
        cursor = database.execute(
            f"SELECT * FROM {_quoted(name)} WHERE {column} = ? ORDER BY rowid", (conversation,)
        )
        names = [each[0] for each in cursor.description]
        rows[name] = [dict(zip(names, values, strict=True)) for values in cursor]
    return {"id": conversation, "modified": at, "count": len(found), "rows": rows}


def _of_conversations(database: sqlite3.Connection, asked: Any) -> list[str]:
    """Return the tables whose rows name a conversation."""
    return [
        name
        for name in asked["tables"]
        if any(each[0] == "session_id" for each in _columns(database, name))
    ]


def _columns(database: sqlite3.Connection, table: str, schema: str = "main") -> list[Any]:
    """Return name, type, whether it is required, default, place in the key and whether it is hidden."""
    return [row[1:] for row in database.execute(f"PRAGMA {schema}.table_xinfo({_quoted(table)})")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
