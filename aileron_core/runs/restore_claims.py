"""What an agent's client said of a call, from the records: it outlives a restart there."""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.runs.live_run import RunRegistry
from aileron_core.storage.database import Database

__all__ = ["restore_claims"]


async def restore_claims(book: RunRegistry, database: Database) -> None:
    """Give every call that waits what its client said of it in an earlier life of the console."""
    waiting = [held for held in book if held.row.gated and not held.is_final]
    ids = [held.row.run_id for held in waiting]
    found = await database.read(lambda connection: _recorded(connection, ids))
    for held in waiting:
        held.claims = found.get(held.row.run_id, ())


def _recorded(
    connection: sqlite3.Connection, run_ids: Iterable[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return by run what its newest record with claims says, as (our label, its text)."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for run_id in run_ids:
        rows = connection.execute(
            "SELECT body FROM audit WHERE run = ? AND event IN (?, ?) ORDER BY seq DESC",
            (run_id, AuditEvent.RUN_REQUESTED, AuditEvent.RUN_ASKED_AGAIN),
        )
        claims = next((said for (body,) in rows if (said := _claims(body))), ())
        if claims:
            found[run_id] = claims
    return found


def _claims(body: object) -> tuple[tuple[str, str], ...]:
    try:
        content: Any = json.loads(str(body))
    except (ValueError, RecursionError):  # another program spoilt it
        return ()
    said = cast("dict[str, Any]", content).get("claims") if isinstance(content, dict) else None
    try:
        return tuple((str(label), str(text)) for label, text in said or ())
    except (ValueError, TypeError):
        return ()
