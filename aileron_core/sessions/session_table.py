"""The SQL of the table `sessions`, called on a transaction or a reading connection."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from aileron_core.audit.events import AuditEvent
from aileron_core.sessions.model import Process, Session
from aileron_core.storage.database import Tx

_COLUMNS = tuple(field.name for field in fields(Session) if field.name != "process")
_SELECT = (
    f"SELECT {', '.join(f's.{name}' for name in _COLUMNS)}, "  # noqa: S608 - our own names
    "CASE WHEN json_valid(a.body) THEN json_extract(a.body, '$.process') END "
    "FROM sessions AS s LEFT JOIN audit AS a ON a.seq = s.last_record "
)


def insert(tx: Tx, session: Session) -> None:
    tx.execute(
        f"INSERT INTO sessions({', '.join(_COLUMNS)}) VALUES({', '.join('?' * len(_COLUMNS))})",
        tuple(getattr(session, name) for name in _COLUMNS),
    )


def mark_held(tx: Tx, session_id: str) -> None:
    tx.execute("UPDATE sessions SET held = 1 WHERE session_id = ?", (session_id,))


def end(tx: Tx, session_id: str, ended_at: float) -> None:
    """Mark a session as ended; its tokens open nothing any more."""
    tx.execute(
        "UPDATE sessions SET ended_at = ?, last_record = ? WHERE session_id = ?",
        (ended_at, tx.next_seq(), session_id),
    )


def has_ended(connection: sqlite3.Connection, session_id: str, token_hash: str) -> bool:
    rows = connection.execute(
        "SELECT 1 FROM sessions WHERE session_id = ? AND token_hash = ? AND ended_at IS NOT NULL",
        (session_id, token_hash),
    )
    return rows.fetchone() is not None


def open_sessions(connection: sqlite3.Connection, now: float) -> list[Session]:
    """Return the sessions that have neither ended nor expired and that a record accounts for.

    A row that another program inserted has no `session.opened` record with its token's hash.
    """
    rows = connection.execute(
        _SELECT + "WHERE s.ended_at IS NULL AND s.expires_at > ? AND a.event = ? "
        "AND CASE WHEN json_valid(a.body) THEN json_extract(a.body, '$.session') = s.session_id "
        "AND json_extract(a.body, '$.opened_by') = s.opened_by "
        "AND json_extract(a.body, '$.token_hash') = s.token_hash "
        # Records of before the gateway do not say it.
        "AND coalesce(json_extract(a.body, '$.gateway_hash'), s.gateway_hash) = s.gateway_hash END",
        (now, AuditEvent.SESSION_OPENED),
    )
    return [_session(values) for values in rows]


def seen_uncontained(connection: sqlite3.Connection, sessions: Iterable[Session]) -> set[str]:
    """Return the ids of those *sessions* of whom a record says that they were seen uncontained."""
    first = {
        session.session_id: session.last_record for session in sessions if session.claims_contained
    }
    if not first:
        return set()
    rows = connection.execute(
        "SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.session') END FROM audit "
        "WHERE seq > ? AND event = ?",
        (min(first.values()), AuditEvent.SESSION_SEEN_OUTSIDE),
    )
    return {session_id for (session_id,) in rows if session_id in first}


def _session(values: tuple[Any, ...]) -> Session:
    *columns, process = values
    session = Session(**dict(zip(_COLUMNS, columns, strict=True)))
    return replace(session, held=bool(session.held), process=_process(process))


def _process(stored: object) -> Process | None:
    try:
        return Process.from_json(json.loads(stored)) if isinstance(stored, str) else None
    except (ValueError, RecursionError):
        return None


def by_id(connection: sqlite3.Connection, session_id: str) -> Session | None:
    values = connection.execute(_SELECT + "WHERE s.session_id = ?", (session_id,)).fetchone()
    return None if values is None else _session(values)


def all_sessions(connection: sqlite3.Connection) -> list[Session]:
    """Return every session ever opened, to name the requester of an old run."""
    return [_session(values) for values in connection.execute(_SELECT)]
