"""Opens the database: takes ownership, checks the schema, and reads the chain's head."""

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from aileron_core.audit.record import GENESIS, ChainHead
from aileron_core.errors import HomeError
from aileron_core.storage.schema import SCHEMA, SCHEMA_VERSION

_log = logging.getLogger(__name__)

LOCK_SECONDS = 5
"""How long a writer waits for another program's lock."""

_CLEAN = "deleted_is_overwritten"
"""The row of `meta` that says so of the whole file."""

_STATISTICS = frozenset(
    {
        "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
        "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    }
)
"""What ANALYZE puts into a schema, word for word as SQLite writes it."""


def open_reader(path: Path, *, timeout: float = 5.0, immutable: bool = False) -> sqlite3.Connection:
    """Open *path* for reading only; works beside a running console and without one.

    Args:
        path: the database, of this schema or an older one.
        timeout: seconds to wait for another program's lock.
        immutable: nobody writes it; locks and logs beside it are not looked at.

    Raises:
        HomeError: there is no database, or a newer Aileron wrote it.
        sqlite3.Error: it is none, or damaged.
    """
    if not path.exists():
        raise HomeError(f"There is no database at {path}. Start `aileron console` first.")
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro{'&immutable=1' if immutable else ''}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=timeout,
    )
    try:
        _harden(connection)
        _refuse_newer(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """Open *path* for reading and writing, hardened against hostile contents."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=LOCK_SECONDS
    )
    _harden(connection)
    return connection


def open_writer(path: Path) -> tuple[sqlite3.Connection, int, ChainHead]:
    """Open *path* as its owner; return the connection, this owner's epoch and the chain's head.

    Raises:
        HomeError: the file is damaged, newer than this program, or holds a schema that is not ours.
    """
    try:
        if not path.exists():
            path.touch(mode=0o600)
        connection = connect(path)
    except (sqlite3.Error, OSError) as error:
        raise open_error(path, error) from error
    try:
        epoch, head = _take(connection, path)
        _clean_free_pages(connection)
    except sqlite3.Error as error:
        connection.close()
        raise open_error(path, error) from error
    except HomeError:
        connection.close()
        raise
    return connection, epoch, head


def open_error(path: Path, error: Exception) -> HomeError:
    """Return the error for a database that SQLite or the system refused to open."""
    return HomeError(
        f"{path} cannot be opened: {error}. Restore it from a backup, or move it away to start afresh."
    )


def _take(connection: sqlite3.Connection, path: Path) -> tuple[int, ChainHead]:
    """Make the database this owner's: check what is in it, then count the epoch up."""
    connection.execute("BEGIN IMMEDIATE")
    if not schema_objects(connection):
        _create(connection)
    _refuse_newer(connection, path)
    check_schema(schema_objects(connection), frozenset(SCHEMA), path)
    connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key='owner_epoch'")
    found = connection.execute("SELECT value FROM meta WHERE key='owner_epoch'").fetchone()
    if found is None:
        raise _spoilt(path)
    head = newest_head(connection, path)
    connection.execute("COMMIT")
    # Only now that it is ours: these change the file.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return int(found[0]), head or ChainHead(seq=0, hash=GENESIS, at="")


def _clean_free_pages(connection: sqlite3.Connection) -> None:
    """Rewrite, once, a file that was begun when what is deleted was not overwritten yet.

    Its free pages may hold it still. Where there is no room for that now, the next start tries again.
    """
    marked = connection.execute("SELECT 1 FROM meta WHERE key = ?", (_CLEAN,)).fetchone()
    if marked is not None:
        return
    try:
        connection.execute("VACUUM")
        connection.execute("INSERT INTO meta VALUES(?, '1')", (_CLEAN,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        _log.warning("free pages could not be cleaned: %s", type(error).__name__)


def newest_head(connection: sqlite3.Connection, path: Path) -> ChainHead | None:
    """Return the chain's newest record, None before the first.

    Raises:
        HomeError: the file is not a database.
    """
    last = connection.execute(
        "SELECT seq, hash, at FROM audit ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    if last is None:
        return None
    if not isinstance(last[1], bytes) or len(last[1]) != len(GENESIS):
        raise _spoilt(path)
    return ChainHead(seq=last[0], hash=last[1], at=str(last[2]))


def _spoilt(path: Path) -> HomeError:
    return HomeError(
        f"{path} was changed by another program: its owner or its newest record is no longer "
        "readable. Nothing was started. Restore the file from a backup."
    )


def _create(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES('schema_version', '0')")
    connection.execute("INSERT INTO meta VALUES('owner_epoch', '0')")
    connection.execute("INSERT INTO meta VALUES(?, '1')", (_CLEAN,))
    set_version(connection, SCHEMA_VERSION)


def set_version(connection: sqlite3.Connection, version: int) -> None:
    """State the schema's version: in `meta`, and where every SQLite program looks for it."""
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
    connection.execute(f"PRAGMA user_version = {version}")


def schema_version(connection: sqlite3.Connection) -> int | None:
    """Return the schema's version, None where none is stated (an empty file, or not ours).

    The higher of the two places counts: a later schema may have no table `meta`.
    """
    stated = int(connection.execute("PRAGMA user_version").fetchone()[0])
    found = None
    if any(name == "meta" for name, _ in schema_objects(connection)):
        query = "SELECT value FROM meta WHERE key = 'schema_version'"
        found = connection.execute(query).fetchone()
    if found is not None and str(found[0]).isdecimal():
        stated = max(stated, int(found[0]))
    return stated or None


def _harden(connection: sqlite3.Connection) -> None:
    connection.text_factory = _tolerant
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    # What is deleted is overwritten, whatever this SQLite was built with.
    connection.execute("PRAGMA secure_delete=ON")
    # Python 3.12 and newer can switch SQLite's defensive mode on; 3.11's sqlite3 has no call for it.
    if hasattr(connection, "setconfig"):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined,unused-ignore]


def _tolerant(data: bytes) -> str:
    """Read text that another program may have spoilt; it then differs from what was recorded."""
    return data.decode("utf-8", "surrogateescape")


def schema_objects(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return (name, statement) of everything in the schema but what ANALYZE adds.

    By statement, never by name: names match patterns, and a trigger may bear a table's.
    """
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return [(str(name), str(sql)) for name, sql in rows if sql not in _STATISTICS]


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    version = schema_version(connection)
    if version is not None and version > SCHEMA_VERSION:
        raise HomeError(
            f"{path} was written by a newer Aileron (schema {version}; this version supports "
            f"{SCHEMA_VERSION}). Nothing was changed. Update Aileron."
        )


def check_schema(found: Sequence[tuple[str, str]], expected: frozenset[str], path: Path) -> None:
    """Compare a schema word for word.

    Raises:
        HomeError: it holds more, less or something else than *expected*.
    """
    if strange := sorted(name for name, sql in found if sql not in expected):
        raise HomeError(
            f"{path} contains parts that Aileron did not create: {', '.join(strange[:5])}. "
            "Another program changed it. Nothing was started. Inspect the file before you continue."
        )
    if len(found) != len(expected):
        raise HomeError(
            f"Parts of the schema of {path} are missing. Restore the file from a backup."
        )
