"""The SQL of the table `sessions`, called on a transaction or a reading connection."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.session_terms import ProcessView, SessionTerms
from aileron_core.sessions.model import Session
from aileron_core.storage.database import Tx

_TEXTS = ("placeholder_hash", "containment")
_IN_RECORD = ("process", "terms", *_TEXTS)
"""What the record of the opening keeps of a session, and its row does not."""
_COLUMNS = tuple(field.name for field in fields(Session) if field.name not in _IN_RECORD)
_SELECT = (
    f"SELECT {', '.join(f's.{name}' for name in _COLUMNS)}, a.body "  # noqa: S608 - our own names
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


def host_records(
    connection: sqlite3.Connection, sessions: Iterable[Session]
) -> tuple[tuple[str, str, str, str], ...]:
    """Return the records of hosts that *sessions* were refused or allowed: event, session, host, problem."""
    first = {
        session.session_id: session.last_record for session in sessions if session.claims_contained
    }
    if not first:
        return ()
    rows = connection.execute(
        "SELECT event, json_extract(body, '$.session'), json_extract(body, '$.host'), "
        "json_extract(body, '$.problem') FROM audit "
        "WHERE seq > ? AND event IN (?, ?) AND json_valid(body) ORDER BY seq",
        (
            min(first.values()),
            AuditEvent.SESSION_HOST_REFUSED,
            AuditEvent.SESSION_HOST_ALLOWED,
        ),
    )
    return tuple(
        (str(event), session_id, str(host), str(problem or ""))
        for event, session_id, host, problem in rows
        if session_id in first and host
    )


def _session(values: tuple[Any, ...]) -> Session:
    *row, body = values
    session = Session(**dict(zip(_COLUMNS, row, strict=True)))
    recorded = _parsed(body)
    texts = {name: value for name in _TEXTS if isinstance(value := recorded.get(name), str)}
    return replace(
        session,
        held=bool(session.held),
        process=ProcessView.from_json(recorded.get("process")),
        terms=SessionTerms.from_json(recorded),
        **texts,
    )


def _parsed(stored: object) -> dict[str, Any]:
    try:
        found: object = json.loads(stored) if isinstance(stored, str) else None
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def by_id(connection: sqlite3.Connection, session_id: str) -> Session | None:
    values = connection.execute(_SELECT + "WHERE s.session_id = ?", (session_id,)).fetchone()
    return None if values is None else _session(values)


def all_sessions(connection: sqlite3.Connection) -> list[Session]:
    """Return every session ever opened, to name the requester of an old run."""
    return [_session(values) for values in connection.execute(_SELECT)]
