"""What was shown at each decision, in the home's database: sealed to its day, and erased with the day's key."""

import asyncio
import json
import logging
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aileron_core.audit.chain import chain_hash
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import sha256_hex
from aileron_core.clock import Clock, rfc3339
from aileron_core.console_port.codec import from_json, to_json
from aileron_core.console_port.view_models import ApprovalView, DecidedScreenView
from aileron_core.history.sealing import (
    CannotUnseal,
    DecisionKind,
    HistoryKeys,
    SealLabel,
    TooLarge,
    day_of,
    seal,
    unseal_with_day,
)
from aileron_core.storage.database import Database, Tx

_log = logging.getLogger(__name__)
_INTERVAL_SECONDS = 3600.0
_IS_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NO_DAY = "~"
"""After every day."""
_REPLACED = (
    "What was shown is left out: its sealed record is not the one that the audit names. Another "
    "program changed it."
)
_UNKNOWN_FORM = "What was shown was stored by another version of Aileron and cannot be displayed."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    label: SealLabel
    sealed: bytes
    recorded: bool
    """The audit names exactly these bytes, for this call."""


class SealedScreens:
    """Keeps what was shown for *days* whole days after the day of the decision; 0 keeps nothing."""

    def __init__(self, database: Database, keys: HistoryKeys, clock: Clock, *, days: int) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self._days = days
        self._swept_at = float("-inf")

    async def keep(self, view: ApprovalView, kind: DecisionKind, decided_at: float) -> None:
        """Store *view* sealed, if there is a key for it; it works while the keys are locked.

        Too large a one is not kept, and neither is one whose key cannot be reached: the log says so.

        Raises:
            StorageUnavailable: it could not be written.
        """
        if not self._days:
            return
        label = SealLabel(
            day=day_of(decided_at), subject=view.approval_id, kind=kind, at=decided_at
        )
        try:
            sealed = await asyncio.to_thread(self._seal, view, label)
        except (OSError, ValueError, TooLarge) as error:
            _log.error("what was shown was not kept: %s", type(error).__name__)
            return
        if sealed is not None:
            await self._database.write(lambda tx: self._insert(tx, view, label, sealed))

    def _seal(self, view: ApprovalView, label: SealLabel) -> bytes | None:
        key = self._keys.public_key(label.day)
        return None if key is None else seal(to_json(view), label, key)

    def _insert(self, tx: Tx, view: ApprovalView, label: SealLabel, sealed: bytes) -> None:
        tx.execute(
            "INSERT INTO sealed_screens VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                label.subject,
                label.at,
                view.run_id,
                label.day,
                label.kind,
                sealed,
                tx.next_seq(),
            ),
        )
        tx.record(
            AuditRecord(
                at=rfc3339(self._clock.now()),
                event=AuditEvent.HISTORY_SEALED,
                summary="What was shown was stored, sealed",
                run=view.run_id,
                session=view.session_id,
                action=view.action,
                extra={
                    "approval": label.subject,
                    "day": label.day,
                    "sealed_sha256": sha256_hex(sealed),
                },
            )
        )

    async def read(self, run_id: str) -> tuple[DecidedScreenView, ...]:
        """Return what was shown at each decision on *run_id*, oldest first, or why it cannot be read.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        rows = await self._database.read(lambda connection: _rows(connection, run_id))
        return await asyncio.to_thread(lambda: tuple(map(self._opened, rows))) if rows else ()

    def _opened(self, row: _Row) -> DecidedScreenView:
        at = row.label.at
        try:
            return DecidedScreenView(at=at, approval=self._unsealed(row))
        except CannotUnseal as error:
            return DecidedScreenView(at=at, approval=None, problem=error.message)

    def _unsealed(self, row: _Row) -> ApprovalView:
        shown = unseal_with_day(row.sealed, row.label, self._keys)
        if not row.recorded:  # anybody can seal to a public key
            raise CannotUnseal(_REPLACED)
        try:
            view = from_json(ApprovalView, shown)
        except (ValueError, RecursionError) as error:
            raise CannotUnseal(_UNKNOWN_FORM) from error
        if view.approval_id != row.label.subject:
            raise CannotUnseal(_REPLACED)
        return view

    async def sweep(self) -> None:
        """Erase the days that are over their time; does something the first time and then once an hour.

        Raises:
            StorageUnavailable: it could not be written.
        """
        now = self._clock.now()
        if now - self._swept_at <= _INTERVAL_SECONDS:
            return
        today = datetime.fromtimestamp(now, UTC).date()
        oldest = (today - timedelta(days=self._days)).isoformat() if self._days else _NO_DAY
        due = await self._database.read(lambda connection: _days_before(connection, oldest))
        with_key = await asyncio.to_thread(self._days_with_key)
        due = sorted({*due, *(day for day in with_key if day < oldest)})
        # The key first: if this ends in between, what is left is unreadable, and known by its row.
        destroyed = [day for day in due if await asyncio.to_thread(self._destroy, day)]
        if destroyed:
            await self._database.write(lambda tx: self._delete(tx, destroyed))
        self._swept_at = now

    def _days_with_key(self) -> Sequence[str]:
        """Return them all: rows that another program deleted must not save a key."""
        try:
            return self._keys.days()
        except OSError as error:
            _log.error("the days that have a key are not known: %s", type(error).__name__)
            return ()

    def _destroy(self, day: str) -> bool:
        """Return whether the key of *day* is gone. If not, its rows stay: they have it tried again."""
        if not _IS_DAY.fullmatch(day):
            return True  # another program wrote it: there is no such key
        try:
            self._keys.destroy(day)
        except OSError as error:
            _log.error("the key of %s was not destroyed: %s", day, type(error).__name__)
            return False
        return True

    def _delete(self, tx: Tx, days: Sequence[str]) -> None:
        for day in days:
            tx.execute("DELETE FROM sealed_screens WHERE day = ?", (day,))
        tx.erases = True
        tx.record(
            AuditRecord(
                at=rfc3339(self._clock.now()),
                event=AuditEvent.HISTORY_ERASED,
                summary=f"Destroyed the keys of {len(days)} days and deleted what was shown then",
                extra={"days": list(days)},
            )
        )


def _days_before(connection: sqlite3.Connection, day: str) -> list[str]:
    query = "SELECT DISTINCT day FROM sealed_screens WHERE day < ? ORDER BY day"
    return [str(each) for (each,) in connection.execute(query, (day,))]


def _rows(connection: sqlite3.Connection, run_id: str) -> list[_Row]:
    found = connection.execute(
        "SELECT day, approval_id, kind, decided_at, sealed, last_record FROM sealed_screens "
        "WHERE run_id = ? ORDER BY decided_at",
        (run_id,),
    ).fetchall()
    return [
        _Row(
            label=SealLabel(day=day, subject=approval, kind=kind, at=decided_at),
            sealed=sealed,
            recorded=_is_recorded(connection, int(seq), run_id, approval, sealed),
        )
        for day, approval, kind, decided_at, sealed, seq in found
    ]


def _is_recorded(
    connection: sqlite3.Connection, seq: int, run_id: str, approval_id: str, sealed: bytes
) -> bool:
    """Return whether the record *seq* is intact, and of exactly these bytes."""
    found = connection.execute(
        "SELECT prev, hash, body FROM audit WHERE seq = ?", (seq,)
    ).fetchone()
    try:
        prev, digest, text = bytes(found[0]), bytes(found[1]), str(found[2]).encode()
        body = json.loads(text)
        named = [body[name] for name in ("event", "run", "approval", "sealed_sha256")]
    except (TypeError, ValueError, KeyError, RecursionError):
        return False
    expected = [AuditEvent.HISTORY_SEALED, run_id, approval_id, sha256_hex(sealed)]
    return chain_hash(prev, text) == digest and named == expected
