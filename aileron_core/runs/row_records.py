"""Whether the audit accounts for a row of the table `runs`: a row that another program wrote has no such record."""

import json
import sqlite3
from typing import Any, cast

from aileron_core.audit.events import OUTCOME_CLOSED, AuditEvent
from aileron_core.audit.record import chain_hash
from aileron_core.clock import rfc3339
from aileron_core.runs.model import RunRecord, args_hash


def matches_record(
    connection: sqlite3.Connection, row: RunRecord, *, deletion: bool = True
) -> bool:
    """Return whether the last record of *row* is intact and says what the row says, as far as it is unsealed.

    With *deletion*, also whether a record says that what is missing was deleted: that reads all those after it.
    """
    record = connection.execute(
        "SELECT prev, hash, body FROM audit WHERE seq = ?", (row.last_record,)
    ).fetchone()
    if record is None:
        return False
    try:
        prev, digest, text = bytes(record[0]), bytes(record[1]), str(record[2]).encode()
        body: Any = json.loads(text)
        same = row.args is None or args_hash(row.args, row.content_key) == row.args_sha256
        for moment in (row.requested_at, row.expires_at, row.decided_at, row.ended_at):
            _ = (
                None if moment is None else rfc3339(moment)
            )  # what reads the row writes it as a time
        if not isinstance(body, dict) or not same:
            return False
        if row.content_is_sealed and row.sealed_parts():
            return False  # sealing leaves nothing in plain text
        missing = row.args is None and not row.content_is_sealed
        if missing and deletion and contents_deleted_at(connection, row) is None:
            return False  # nothing could be compared any more
        return chain_hash(prev, text) == digest and _matches_row(cast("dict[str, Any]", body), row)
    except (ValueError, TypeError, RecursionError, OverflowError, OSError):
        return False  # OverflowError, OSError: a time that no calendar has


def _matches_row(body: dict[str, Any], row: RunRecord) -> bool:
    expected: dict[str, object] = {
        "run": row.run_id,
        "approval": row.approval_id,
        "session": row.session_id,
        "action": row.action,
        "action_sha256": row.action_sha256,
        "state": str(row.state),
        "args_sha256": row.args_sha256,
        "asked_sha256": row.asked_sha256,
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
        "progress_sha256": row.progress_sha256,
    }
    if "action_sha256" not in body:
        # A record of an earlier version has neither.
        del expected["action_sha256"], expected["expires_at"]
    if row.result_sha256 is not None and "result_sha256" in body:
        expected["result_sha256"] = row.result_sha256
    if row.args is None and row.progress is None:
        # Removed with the arguments; the record still has them.
        del expected["progress_sha256"], expected["asked_sha256"]
        expected.pop("result_sha256", None)
    return all(body.get(name) == value for name, value in expected.items())


def contents_deleted_at(connection: sqlite3.Connection, row: RunRecord) -> str | None:
    """Return when the arguments of *row* were deleted, as on record; None where no record says so.

    Its other content went with them, unless they went to make room (`ArgumentQuota`).
    """
    if row.args is not None or row.content_is_sealed or row.ended_at is None:
        return None
    ended, closing = rfc3339(row.ended_at), (*OUTCOME_CLOSED, AuditEvent.READ_BACK_SEEN)
    marks = ", ".join("?" * len(closing))
    (settled,) = connection.execute(
        f"SELECT COALESCE(MAX(seq), 0) FROM audit WHERE run = ? AND event IN ({marks})",  # noqa: S608 - marks
        (row.run_id, *closing),
    ).fetchone()
    for at, text in connection.execute(
        "SELECT at, body FROM audit WHERE event = ? AND seq > ? AND at >= ? ORDER BY seq",
        (AuditEvent.ARGUMENTS_FORGOTTEN, settled, ended),
    ):
        try:
            body: Any = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(body, dict) and _deleted(cast("dict[str, Any]", body), row, ended):
            return str(at)
    return None


def _deleted(body: dict[str, Any], row: RunRecord, ended: str) -> bool:
    """Return whether the record of a deletion is of *row*: of its arguments alone, or of everything by its end."""
    runs, before, count = body.get("runs"), body.get("ended_before"), body.get("count")
    if isinstance(runs, list):
        listed = cast("list[object]", runs)
        left_out = isinstance(count, int) and count > len(listed)
        return row.run_id in listed or (left_out and body.get("session") == row.session_id)
    # Times as text have the order of the moments. Records of an earlier version name no moment.
    everything = row.output is None and row.failure is None
    return before is None or (isinstance(before, str) and ended <= before and everything)
