"""What was shown at each decision, in the home's database: sealed to its day, and erased with the day's key."""

import asyncio
import json
import logging
import sqlite3
from dataclasses import dataclass

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord, chain_hash
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
from aileron_core.storage.schema import OF_SCREENS

_log = logging.getLogger(__name__)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PastScreen:
    """A decision whose screen is kept."""

    run_id: str
    action: str
    reason: str
    """What the person wrote on denying it, as far as it can still be read."""
    row: _Row

    @property
    def approved(self) -> bool:
        return self.row.label.kind == "approved"

    @property
    def at(self) -> float:
        return self.row.label.at


@dataclass(frozen=True, slots=True)
class SealedScreens:
    """Keeps what was shown at each decision; with 0 *days* nothing. `SealedContents` erases it."""

    database: Database
    keys: HistoryKeys
    clock: Clock
    days: int

    async def keep(self, view: ApprovalView, kind: DecisionKind, decided_at: float) -> None:
        """Store *view* sealed, if there is a key for it; it works while the keys are locked.

        Too large a one is not kept, and neither is one whose key cannot be reached: the log says so.

        Raises:
            StorageUnavailable: it could not be written.
        """
        if not self.days:
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
            await self.database.write(lambda tx: self._insert(tx, view, label, sealed))

    def _seal(self, view: ApprovalView, label: SealLabel) -> bytes | None:
        key = self.keys.public_key(label.day)
        return None if key is None else seal(to_json(view), label, key)

    def _insert(self, tx: Tx, view: ApprovalView, label: SealLabel, sealed: bytes) -> None:
        tx.execute(
            "INSERT INTO sealed VALUES (?, ?, ?, ?, 0, ?, ?)",
            (view.run_id, label.kind, label.at, label.day, sealed, tx.next_seq()),
        )
        tx.record(
            AuditRecord(
                at=rfc3339(self.clock.now()),
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
        rows = await self.database.read(lambda connection: _rows(connection, run_id))
        return await asyncio.to_thread(lambda: tuple(map(self._opened, rows))) if rows else ()

    async def newest(self, most: int) -> tuple[PastScreen, ...]:
        """Return the newest *most* decisions whose screens are kept, newest first.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        return await self.database.read(lambda connection: _newest(connection, most))

    def open(self, screen: PastScreen) -> ApprovalView:
        """Return what was shown at a decision. It takes a moment: not on a loop.

        Raises:
            CannotUnseal: it cannot be read; the message says why.
        """
        return self._unsealed(screen.row)

    def _opened(self, row: _Row) -> DecidedScreenView:
        at = row.label.at
        try:
            return DecidedScreenView(at=at, approval=self._unsealed(row))
        except CannotUnseal as error:
            return DecidedScreenView(at=at, approval=None, problem=error.message)

    def _unsealed(self, row: _Row) -> ApprovalView:
        shown = unseal_with_day(row.sealed, row.label, self.keys)
        if not row.recorded:  # anybody can seal to a public key
            raise CannotUnseal(_REPLACED)
        try:
            view = from_json(ApprovalView, shown)
        except (ValueError, RecursionError) as error:
            raise CannotUnseal(_UNKNOWN_FORM) from error
        if view.approval_id != row.label.subject:
            raise CannotUnseal(_REPLACED)
        return view


def _rows(connection: sqlite3.Connection, run_id: str) -> list[_Row]:
    found = connection.execute(
        "SELECT day, (SELECT approval_id FROM runs WHERE run_id = sealed.run_id), part, at, sealed, last_record "  # noqa: S608 - our own constant
        f"FROM sealed WHERE run_id = ? AND {OF_SCREENS} ORDER BY at",
        (run_id,),
    ).fetchall()
    return [
        _Row(
            label=SealLabel(day=day, subject=str(approval), kind=kind, at=at),
            sealed=sealed,
            recorded=_is_recorded(connection, seq, run_id, str(approval), sealed),
        )
        for day, approval, kind, at, sealed, seq in found
    ]


def _newest(connection: sqlite3.Connection, most: int) -> tuple[PastScreen, ...]:
    found = connection.execute(
        "SELECT s.run_id, action, COALESCE(reason, ''), day, approval_id, part, at, s.sealed, s.last_record "  # noqa: S608 - our own constant
        f"FROM sealed AS s JOIN runs USING (run_id) WHERE {OF_SCREENS} ORDER BY at DESC LIMIT ?",
        (most,),
    )
    return tuple(
        PastScreen(
            run_id=run_id,
            action=action,
            reason=reason,
            row=_Row(
                label=SealLabel(day=day, subject=str(approval), kind=kind, at=at),
                sealed=sealed,
                recorded=_is_recorded(connection, seq, run_id, str(approval), sealed),
            ),
        )
        for run_id, action, reason, day, approval, kind, at, sealed, seq in found
    )


def _is_recorded(
    connection: sqlite3.Connection, seq: int | None, run_id: str, approval_id: str, sealed: bytes
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
