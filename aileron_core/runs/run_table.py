"""The SQL of the table `runs`, called on a transaction or a reading connection."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from aileron_core.audit.events import OUTCOME_CLOSED, AuditEvent
from aileron_core.runs.model import COLUMNS, RunRecord
from aileron_core.runs.transitions import FINAL, OPEN, RunState
from aileron_core.storage.database import Tx
from aileron_core.storage.schema import OF_SCREENS, READABLE

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM runs"  # noqa: S608 - our own column names
_VALUES = f"INTO runs({', '.join(COLUMNS)}) VALUES({', '.join('?' * len(COLUMNS))})"
_UPDATE = f"UPDATE OR REPLACE runs SET {', '.join(f'{name} = ?' for name in COLUMNS[1:])} WHERE run_id = ?"  # noqa: S608


_MOST_LOOKED_AT = 5_000
_RECORDED = "EXISTS (SELECT 1 FROM audit WHERE audit.run = runs.run_id AND audit.event = ?)"
_EMPTY = "UPDATE runs SET args = NULL, asked_args = NULL, progress = NULL, content_key = NULL, output = NULL, failure = NULL, reason = NULL, note = ''"
_CLOSED = f"EXISTS (SELECT 1 FROM audit WHERE audit.run = runs.run_id AND audit.event IN ({', '.join('?' * len(OUTCOME_CLOSED))}))"  # noqa: S608 - marks
"""Whether one of `OUTCOME_CLOSED` is on record."""


def insert(tx: Tx, row: RunRecord) -> None:
    tx.execute(f"INSERT {_VALUES}", row.to_columns())


def update(tx: Tx, row: RunRecord) -> None:
    """Write every column of *row*. Memory is the authority, whatever the row said before.

    A row that another program removed is put back, one that it put in the way of this one goes:
    the end of an effect must not stay unwritten for it. `tampered_columns` detects that beforehand.
    """
    columns = row.to_columns()
    if tx.execute(_UPDATE, (*columns[1:], columns[0])).rowcount != 1:
        tx.execute(f"INSERT OR REPLACE {_VALUES}", columns)


def tampered_columns(tx: Tx, row: RunRecord) -> tuple[str, ...]:
    """Return the columns in which the database differs from *row*, as this process last wrote it."""
    stored = tx.execute(f"{_SELECT} WHERE run_id = ?", (row.run_id,)).fetchone()
    if stored is None:
        return ("the whole row",)
    expected = row.to_columns()
    return tuple(
        name for name, was, now in zip(COLUMNS, expected, stored, strict=True) if was != now
    )


def _read(connection: sqlite3.Connection, where: str, parameters: Sequence[Any]) -> list[RunRecord]:
    return _parsed(_selected(connection, where, parameters))


def _selected(
    connection: sqlite3.Connection, rest: str, parameters: Sequence[Any]
) -> sqlite3.Cursor:
    try:
        return connection.execute(f"{_SELECT} {rest}", parameters)
    except sqlite3.OperationalError:  # a home of before schema 8, which is read as it is
        before = _SELECT.replace("asked_args", "NULL")
        return connection.execute(f"{before} {rest}", parameters)


def _parsed(found: Iterable[Sequence[Any]]) -> list[RunRecord]:
    rows: list[RunRecord] = []
    for values in found:
        try:
            rows.append(RunRecord.from_columns(dict(zip(COLUMNS, values, strict=True))))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # a row that Aileron did not write; `audit verify` names it as an orphan
    return rows


def open_or_undelivered(connection: sqlite3.Connection) -> list[RunRecord]:
    """Return the runs that are not over, and those that waited and are undelivered."""
    marks = ", ".join("?" * len(OPEN))
    states = sorted(str(state) for state in OPEN)
    return _read(
        connection,
        f"WHERE state IN ({marks}) OR (approval_id IS NOT NULL AND delivered = 0) ORDER BY requested_at, run_id",
        states,
    )


def recently_ended(connection: sqlite3.Connection, limit: int) -> list[RunRecord]:
    """Return the newest runs that waited and are over, oldest first."""
    final = sorted(str(state) for state in FINAL)
    marks = ", ".join("?" * len(final))
    rows = _read(
        connection,
        f"WHERE approval_id IS NOT NULL AND state IN ({marks}) ORDER BY ended_at DESC LIMIT ?",
        [*final, limit],
    )
    return rows[::-1]


def unacknowledged(connection: sqlite3.Connection) -> list[RunRecord]:
    """Return the runs whose outcome is unknown and that no record says a person acknowledged or settled.

    In order of arrival, however old they are.
    """
    return _read(
        connection,
        f"WHERE state = ? AND NOT {_CLOSED} ORDER BY requested_at, run_id",
        (str(RunState.UNKNOWN), *OUTCOME_CLOSED),
    )


@dataclass(frozen=True, slots=True)
class LookedAt:
    """How many rows were looked at (5,000 at most), down to which id and time, and whether more may follow."""

    count: int
    down_to: str
    at: float | None
    more: bool


def calls_before(
    connection: sqlite3.Connection,
    before: str,
    first: str,
    wanted: Callable[[Mapping[str, Any]], bool],
    *,
    most: int,
    most_bytes: int,
) -> tuple[list[RunRecord], LookedAt]:
    """Return the newest runs with an id below *before* and not below *first*, newest first, and how far it looked.

    Ids have the order of the moments at which calls were made.

    Args:
        wanted: looks at a row's columns; only what it lets through is read.
        most_bytes: of what the calls contained; the one that passes it is the last.
    """
    found: list[RunRecord] = []
    count, size, at = 0, 0, None
    # As bytes: another program may have written an id that is no text.
    rows = _selected(
        connection,
        "WHERE run_id < CAST(? AS TEXT) AND run_id >= ? ORDER BY run_id DESC LIMIT ?",
        (before.encode("utf-8", "surrogateescape"), first, _MOST_LOOKED_AT),
    )
    for values in rows:
        columns: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
        count, before = count + 1, str(columns["run_id"])
        at = columns["requested_at"] if isfinite(columns["requested_at"]) else at  # else edited
        if wanted(columns):
            found += _parsed([values])
            size += sum(len(columns[name] or "") for name in ("args", "output"))
            if columns["sealed_day"] is not None:
                sealed = "SELECT TOTAL(LENGTH(sealed)) FROM sealed WHERE run_id = CAST(? AS TEXT)"
                size += connection.execute(sealed, (columns["run_id"],)).fetchone()[0]
            if len(found) >= most or size >= most_bytes:
                return found, LookedAt(count, before, at, more=True)
    more = count == _MOST_LOOKED_AT
    return found, LookedAt(count, before if more else first, at, more=more)


def by_run(connection: sqlite3.Connection, run_id: str) -> RunRecord | None:
    rows = _read(connection, "WHERE run_id = ?", (run_id,))
    return rows[0] if rows else None


def unseen_differences(connection: sqlite3.Connection) -> list[RunRecord]:
    """Return the runs that were read back, differed, and of which no record says that a person saw that.

    In order of arrival, however old they are.
    """
    return _read(
        connection,
        f"WHERE gated = 1 AND state = ? AND {_RECORDED} AND NOT {_RECORDED} "
        "ORDER BY requested_at, run_id",
        (str(RunState.COMPLETED), AuditEvent.READ_BACK_DIFFERED, AuditEvent.READ_BACK_SEEN),
    )


def by_approval(connection: sqlite3.Connection, approval_id: str) -> RunRecord | None:
    rows = _read(connection, "WHERE approval_id = ?", (approval_id,))
    return rows[0] if rows else None


def by_key(connection: sqlite3.Connection, session_id: str, key: str) -> RunRecord | None:
    rows = _read(connection, "WHERE session_id = ? AND idempotency_key = ?", (session_id, key))
    return rows[0] if rows else None


def shown_state(connection: sqlite3.Connection, run_id: str, state: str) -> str:
    """Return *state*, or `settled` for an unknown outcome that was settled by looking again."""
    query = "SELECT 1 FROM audit WHERE run = ? AND event = ?"
    if state != RunState.UNKNOWN:
        return state
    settled = connection.execute(query, (run_id, AuditEvent.OUTCOME_SETTLED)).fetchone()
    return state if settled is None else "settled"


def calls_by_action(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how often each action was called, as far as its runs are still known."""
    return dict(connection.execute("SELECT action, count(*) FROM runs GROUP BY action"))


_NOT_FOR_A_PERSON = f"(state != ? OR {_CLOSED}) AND ({_RECORDED} OR NOT {_RECORDED})"
"""Whether nobody has to look at it any more, with `_NOT_FOR_A_PERSON_PARAMETERS`.

Somebody does where its outcome is unknown and neither acknowledged nor settled, or the service differs
from what was approved and nobody has seen how.
"""
_NOT_FOR_A_PERSON_PARAMETERS = (
    str(RunState.UNKNOWN),
    *OUTCOME_CLOSED,
    AuditEvent.READ_BACK_SEEN,
    AuditEvent.READ_BACK_DIFFERED,
)


def forget_contents_before(tx: Tx, moment: float, answered: float = 0.0) -> list[str]:
    """Remove what runs contained that ended before *moment*; return their ids.

    Also of those whose agent has its answer and that ended before *answered*. Not of one that a person
    has to look at.
    """
    due = (
        "(ended_at < ? OR (ended_at < ? AND (delivered = 1 OR gated = 0))) "
        f"AND ({READABLE} OR sealed_day IS NOT NULL) AND {_NOT_FOR_A_PERSON}"
    )
    query = f"SELECT rowid, run_id FROM runs WHERE {due}"  # noqa: S608 - constants of this module
    parameters = (moment, answered, *_NOT_FOR_A_PERSON_PARAMETERS)
    runs = {int(row): str(run_id) for row, run_id in tx.execute(query, parameters)}
    for row in runs:
        # By the row: an id that another program wrote may be no text that can be looked for.
        tx.execute(
            f"DELETE FROM sealed WHERE run_id = (SELECT run_id FROM runs WHERE rowid = ?) AND NOT {OF_SCREENS}",  # noqa: S608 - our own constant
            (row,),
        )
        tx.execute(f"{_EMPTY}, sealed_day = NULL WHERE rowid = ?", (row,))
    return list(runs.values())


def forget_screens_before(tx: Tx, day: str, kept: Collection[str]) -> list[str]:
    """Remove what was shown on days before *day*, but for those *kept*; return these days."""
    due = f"day < ? AND day NOT IN ({', '.join('?' * len(kept))}) AND {OF_SCREENS}"
    found = tx.execute(f"SELECT DISTINCT day FROM sealed WHERE {due}", (day, *kept)).fetchall()  # noqa: S608 - marks and our own constant
    tx.execute(f"DELETE FROM sealed WHERE {due}", (day, *kept))  # noqa: S608 - as above
    return [str(each) for (each,) in found]


def sealable(
    connection: sqlite3.Connection, before: float, max_runs: int, max_bytes: int
) -> list[RunRecord]:
    """Return runs that are over, and whose content is in plain text though nobody awaits it any more.

    That is once they ended before *before*, and their agent has its answer or its session has ended. Not
    one that a person has to look at.
    """
    sizes = connection.execute(
        "SELECT run_id, COALESCE(LENGTH(args), 0) + COALESCE(LENGTH(output), 0) FROM runs "  # noqa: S608 - constants of this module
        f"WHERE ended_at < ? AND ({READABLE}) AND {_NOT_FOR_A_PERSON} AND (delivered = 1 OR gated = 0 OR NOT "
        "EXISTS (SELECT 1 FROM sessions WHERE session_id = runs.session_id AND ended_at IS NULL)) "
        "ORDER BY ended_at LIMIT ?",
        (before, *_NOT_FOR_A_PERSON_PARAMETERS, max_runs),
    )
    found: list[RunRecord] = []
    for run_id, size in sizes:
        if found and size > max_bytes:
            break
        max_bytes -= size
        found += _read(connection, "WHERE run_id = ?", (run_id,))
    return found


def put_sealed(tx: Tx, row: RunRecord, day: str, sealed: Mapping[str, bytes]) -> bool:
    """Put *sealed*, the parts of *row*, in the place of its content; False where that was deleted meanwhile."""
    still = tx.execute("SELECT args IS NULL FROM runs WHERE run_id = ?", (row.run_id,)).fetchone()
    if still is None or bool(still[0]) != (row.args is None):
        return False
    tx.execute(f"{_EMPTY}, sealed_day = ? WHERE run_id = ?", (day, row.run_id))
    for part, data in sealed.items():
        size = row.args_size if part == "arguments" else 0
        tx.execute(
            "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?, ?, ?, NULL)",
            (row.run_id, part, row.ended_at, day, size, data),
        )
    return True


def sealed_parts(connection: sqlite3.Connection, run_id: str) -> dict[str, bytes]:
    """Return what is sealed of the run's contents, by part; its label is the run's id, its end, and the row's day."""
    query = f"SELECT part, sealed FROM sealed WHERE run_id = ? AND NOT {OF_SCREENS}"  # noqa: S608 - our own constant
    return {str(part): bytes(sealed) for part, sealed in connection.execute(query, (run_id,))}


_ARGUMENT_BYTES = (
    "COALESCE(LENGTH(args), (SELECT bytes FROM sealed WHERE run_id = runs.run_id "
    "AND part = 'arguments'))"
)


def stored_argument_bytes(connection: sqlite3.Connection, session_id: str) -> int:
    query = f"SELECT COALESCE(SUM({_ARGUMENT_BYTES}), 0) FROM runs WHERE session_id = ?"  # noqa: S608 - constants of this module
    (kept,) = connection.execute(query, (session_id,)).fetchone()
    return int(kept)


def forgettable_arguments(
    connection: sqlite3.Connection, session_id: str, wanted: int
) -> list[tuple[str, int]]:
    """Return runs whose arguments may be removed early, each with their size in bytes.

    They are of calls that ended and that no person decided: withdrawn and expired ones, then
    ungated ones whose outcome is known; of each the oldest first.

    Args:
        wanted: bytes to be freed; no more runs than that takes are returned.
    """
    rows: list[tuple[str, int]] = []
    cursor = connection.execute(
        f"SELECT run_id, {_ARGUMENT_BYTES} AS bytes FROM runs "  # noqa: S608 - constants of this module
        "WHERE session_id = ? AND bytes IS NOT NULL AND decided_at IS NULL AND "
        "(state IN ('withdrawn', 'expired') OR (gated = 0 AND state IN ('completed', 'failed'))) "
        "ORDER BY state NOT IN ('withdrawn', 'expired'), ended_at, run_id",
        (session_id,),
    )
    for run_id, size in cursor:
        if wanted <= 0:
            break
        rows.append((run_id, size))
        wanted -= size
    return rows


def forget_arguments(tx: Tx, run_ids: Sequence[str]) -> None:
    """Remove the arguments of these runs; their digests stay."""
    for run_id in run_ids:
        tx.execute(
            "UPDATE runs SET args = NULL, asked_args = NULL, progress = NULL, content_key = NULL WHERE run_id = ?",
            (run_id,),
        )
        tx.execute("DELETE FROM sealed WHERE run_id = ? AND part = 'arguments'", (run_id,))
