"""Carrying a home's database from an older Aileron to today's schema.

Once, under the home's lock, in one transaction, and only after a copy in `backups/` (kept for 30 days):
either all steps and the record of them are on disk, or the file is as it was. A home of a newer
Aileron is left alone here; `aileron_core/storage/open.py` refuses it.

A change of `schema.py` is a step here: pure SQL that leaves, word for word, what `SCHEMA` says. A
column is added at the end of its table's statement (that is where SQLite writes it). A table that
has to change otherwise is renamed away, made anew, filled by INSERT ... SELECT, and dropped:
renaming the new one into place would leave its name quoted in the schema.
"""

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import GENESIS, AuditRecord, ChainHead, seal
from aileron_core.clock import Clock, SystemClock, rfc3339
from aileron_core.errors import HomeError
from aileron_core.home.layout import Home
from aileron_core.storage.open import (
    check_schema,
    connect,
    newest_head,
    open_error,
    open_reader,
    schema_objects,
    schema_version,
    set_version,
)
from aileron_core.storage.schema import READABLE, SCHEMA, SCHEMA_VERSION

KEEP_COPIES_DAYS = 30
"""How long the copy stays: it holds arguments, and those are kept so long."""

SCHEMA_1: tuple[str, ...] = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    (
        "CREATE TABLE audit(seq INTEGER PRIMARY KEY, at TEXT, event TEXT, run TEXT, "
        "prev BLOB, hash BLOB, body TEXT)"
    ),
    "CREATE INDEX audit_run ON audit(run)",
    (
        "CREATE TABLE sessions ("
        "session_id TEXT PRIMARY KEY, agent TEXT NOT NULL, label TEXT NOT NULL, cwd TEXT NOT NULL, "
        "pid INTEGER, executable TEXT NOT NULL, opened_by TEXT NOT NULL, "
        "token_hash TEXT NOT NULL UNIQUE, gateway_hash TEXT NOT NULL UNIQUE, "
        "opened_at REAL NOT NULL, expires_at REAL NOT NULL, ended_at REAL, "
        "held INTEGER NOT NULL, last_record INTEGER NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE runs ("
        "run_id TEXT PRIMARY KEY, approval_id TEXT UNIQUE, session_id TEXT NOT NULL, "
        "action TEXT NOT NULL, action_sha256 TEXT NOT NULL, args TEXT, args_sha256 TEXT NOT NULL, "
        "idempotency_key TEXT, gated INTEGER NOT NULL, state TEXT NOT NULL, "
        "requested_at REAL NOT NULL, expires_at REAL, times_asked INTEGER NOT NULL, "
        "digest TEXT, words TEXT, decided_at REAL, decided_by TEXT, reason TEXT, "
        "note TEXT NOT NULL, ended_at REAL, output TEXT, failure TEXT, delivered INTEGER NOT NULL, "
        "last_record INTEGER NOT NULL) STRICT"
    ),
    "CREATE INDEX runs_state ON runs(state)",
    (
        "CREATE UNIQUE INDEX runs_key ON runs(session_id, idempotency_key) "
        "WHERE idempotency_key IS NOT NULL"
    ),
    (
        "CREATE TABLE pins ("
        "kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, taken_at REAL NOT NULL, "
        "taken_by TEXT NOT NULL, last_record INTEGER NOT NULL, PRIMARY KEY (kind, name)) STRICT"
    ),
)
"""Schema 1, word for word. Frozen: homes in the world hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from a schema to the next. Frozen once it was released."""

    summary: str
    """A sentence for the audit: what a run, session or file has from now on."""
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        summary="A run that halted half-way keeps the steps it has finished.",
        statements=("ALTER TABLE runs ADD COLUMN progress TEXT",),
    ),
    Migration(
        summary="There is a place for what was shown when a call was decided, sealed.",
        statements=(
            (
                "CREATE TABLE sealed_screens ("
                "approval_id TEXT NOT NULL, decided_at REAL NOT NULL, run_id TEXT NOT NULL, "
                "day TEXT NOT NULL, kind TEXT NOT NULL, sealed BLOB NOT NULL, "
                "last_record INTEGER NOT NULL, PRIMARY KEY (approval_id, decided_at)) STRICT"
            ),
            "CREATE INDEX sealed_screens_run ON sealed_screens(run_id)",
        ),
    ),
    Migration(
        summary="The audit's hashes of what a call contains have a key, which is deleted with it.",
        statements=("ALTER TABLE runs ADD COLUMN content_key TEXT",),
    ),
    Migration(
        summary="There is a place for what calls contained, sealed.",
        statements=(
            "ALTER TABLE runs ADD COLUMN sealed_day TEXT",
            (
                "CREATE INDEX runs_readable ON runs(ended_at) WHERE args IS NOT NULL OR output IS NOT NULL "
                "OR failure IS NOT NULL OR reason IS NOT NULL OR note != ''"
            ),
            (
                "CREATE TABLE sealed_contents ("
                "run_id TEXT NOT NULL, part TEXT NOT NULL, bytes INTEGER NOT NULL, sealed BLOB NOT NULL, "
                "PRIMARY KEY (run_id, part)) STRICT"
            ),
        ),
    ),
    Migration(
        summary="What was shown and what calls contained, sealed, is in one place.",
        statements=(
            (
                "CREATE TABLE sealed ("
                "run_id TEXT NOT NULL, part TEXT NOT NULL, at REAL NOT NULL, day TEXT NOT NULL, "
                "bytes INTEGER NOT NULL, sealed BLOB NOT NULL, last_record INTEGER, "
                "PRIMARY KEY (run_id, part, at)) STRICT"
            ),
            "CREATE INDEX sealed_day ON sealed(day)",
            # OR IGNORE: rows that another program edited must not keep a home from being opened.
            (
                "INSERT OR IGNORE INTO sealed "
                "SELECT run_id, kind, decided_at, day, 0, sealed, last_record FROM sealed_screens"
            ),
            (
                "INSERT OR IGNORE INTO sealed SELECT run_id, part, COALESCE(ended_at, 0), "
                "COALESCE(sealed_day, ''), bytes, sealed, NULL FROM sealed_contents LEFT JOIN runs USING (run_id)"
            ),
            "DROP TABLE sealed_screens",
            "DROP TABLE sealed_contents",
        ),
    ),
    Migration(
        summary="What was accepted of config.toml and policy.toml has rows, as of other files.",
        # As the newest record has it. The vault's HMAC is over the digest alone until it is unlocked.
        statements=(
            (
                "INSERT OR IGNORE INTO pins(kind, name, digest, taken_at, taken_by, last_record) "  # noqa: S608
                "SELECT part, IIF(part = 'policy', 'policy.toml', 'config.toml'), digest, "
                "COALESCE(ROUND((julianday(at) - 2440587.5) * 86400.0, 3), 0.0), 'person', MAX(seq) FROM ("
                "SELECT seq, at, json_extract(body, '$.kind') part, json_extract(body, '$.digest') digest "
                "FROM audit WHERE run IS NULL "
                f"AND event IN ('{AuditEvent.LIBRARY_ACCEPTED}', '{AuditEvent.LIBRARY_AUTHENTICATED}') "
                "AND CASE WHEN json_valid(body) THEN json_type(body, '$.digest') = 'text' END) "
                "WHERE part IN ('settings', 'policy') GROUP BY part"
            ),
        ),
    ),
    Migration(
        summary="A run whose arguments a person changed keeps those that its agent sent.",
        statements=("ALTER TABLE runs ADD COLUMN asked_args TEXT",),
    ),
)
"""In order: the first goes from schema 1 to 2. As many as `SCHEMA_VERSION` is above 1."""


def schema_of(version: int) -> frozenset[str]:
    """Return the statements of schema *version*, as SQLite itself has them after the steps to it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as scratch:
        for statement in SCHEMA_1:
            scratch.execute(statement)
        for step in MIGRATIONS[: version - 1]:
            for statement in step.statements:
                scratch.execute(statement)
        return frozenset(sql for _, sql in schema_objects(scratch))


def migrate(path: Path, clock: Clock | None = None) -> None:
    """Bring the database at *path* to today's schema; does nothing if it has it already, or is missing.

    The caller holds the home's lock. Copies of earlier migrations that are over `KEPT_DAYS` old go.

    Raises:
        HomeError: it is damaged, holds what Aileron did not put there, or no copy could be made.
            The database is then as it was.
    """
    now = (clock or SystemClock()).now()
    folder = Home(path.parent).backups
    forget_copies(folder, now - KEEP_COPIES_DAYS * 86400)
    if not path.exists():
        return
    try:
        with closing(connect(path)) as connection:
            _migrate(connection, path, folder, now)
    except sqlite3.Error as error:
        raise open_error(path, error) from error


def _migrate(connection: sqlite3.Connection, path: Path, folder: Path, now: float) -> None:
    # No other writer from here on: the copy is what the steps begin with.
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = schema_version(connection)
        if version is None or not 1 <= version < SCHEMA_VERSION:
            return
        check_schema(schema_objects(connection), schema_of(version), path)
        copy = _copied(path, folder, version, now)
        try:
            _carry(connection, path, version, copy, now)
            connection.execute("COMMIT")
        except BaseException:
            copy.unlink()  # of a database that is as it was; the next try makes its own
            raise
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _carry(
    connection: sqlite3.Connection, path: Path, version: int, copy: Path, now: float
) -> None:
    """Take the steps and record them, in the transaction that is open."""
    steps = MIGRATIONS[version - 1 : SCHEMA_VERSION - 1]
    for step in steps:
        for statement in step.statements:
            connection.execute(statement)
    check_schema(schema_objects(connection), frozenset(SCHEMA), path)
    set_version(connection, SCHEMA_VERSION)
    head = newest_head(connection, path) or ChainHead(seq=0, hash=GENESIS, at="")
    record = AuditRecord(
        at=rfc3339(now),
        event=AuditEvent.STORAGE_MIGRATED,
        summary=(
            f"The database was upgraded from schema {version} to {SCHEMA_VERSION}: "
            f"{' '.join(step.summary for step in steps)} The backup is kept for {KEEP_COPIES_DAYS} days at most"
        ),
        extra={"from": version, "to": SCHEMA_VERSION, "copy": f"{copy.parent.name}/{copy.name}"},
    )
    body, digest = seal(head.seq + 1, head.hash, record)
    connection.execute(
        "INSERT INTO audit(seq, at, event, run, prev, hash, body) VALUES(?,?,?,?,?,?,?)",
        (head.seq + 1, record.at, record.event, record.run, head.hash, digest, body),
    )


def _copied(path: Path, folder: Path, version: int, now: float) -> Path:
    """Return a checked copy of the database as it was last committed, for the owner's eyes alone.

    Raises:
        HomeError: it could not be made, or what it was made of is damaged.
    """
    stamp = rfc3339(now).translate(str.maketrans("", "", "-:.TZ"))
    copy = folder / f"schema-{version}-{stamp}.db"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(open_reader(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            # One file, not three: the log of a copy that nobody writes would only get lost.
            target.execute("PRAGMA journal_mode=DELETE")
            found = " ".join(str(target.execute("PRAGMA quick_check(1)").fetchone()[0]).split())
        _sync(copy)
        _sync(folder)
    except (sqlite3.Error, OSError) as error:
        with suppress(OSError):
            copy.unlink()
        raise HomeError(
            f"{path} needs an upgrade to a newer schema, but no backup could be made first "
            f"({error}). Nothing was changed. Free some disk space and start again."
        ) from error
    if found != "ok":
        copy.unlink()
        raise HomeError(
            f"{path} is damaged ({found}). Nothing was changed. Restore it from a backup."
        )
    return copy


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget_copies(folder: Path, before: float) -> None:
    """Remove the copies that were made before *before*; one that cannot go now goes another time."""
    for copy in folder.glob("schema-*.db"):
        with suppress(OSError):
            if copy.stat().st_mtime < before:
                copy.unlink()


def forget_plain_copies(folder: Path) -> None:
    """Remove the copies that have what calls contained in plain text, and those that are damaged."""
    for copy in folder.glob("schema-*.db"):
        with suppress(OSError):
            if not copy.is_file() or _is_plain(copy):
                copy.unlink()


def _is_plain(copy: Path) -> bool:
    # Schemas without the index sealed nothing. A view that another program wrote, to keep us busy, has none.
    query = f"SELECT 1 FROM runs INDEXED BY runs_readable WHERE {READABLE} LIMIT 1"  # noqa: S608 - our own constant
    try:
        with closing(open_reader(copy, immutable=True)) as connection:
            return connection.execute(query).fetchone() is not None
    except (sqlite3.Error, HomeError) as error:
        # Too many open files, say, do not cost a backup.
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_CANTOPEN
