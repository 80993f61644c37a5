"""What calls contained: sealed in the database once they are over, to the key of the day, and deleted in its time.

With it goes what was shown at decisions. The time is `[history] days` (`aileron_core/settings.py`).
"""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.history.sealing import (
    IS_DAY,
    CannotUnseal,
    HistoryKeys,
    SealLabel,
    TooLarge,
    day_of,
    seal,
    unseal_with_day,
)
from aileron_core.runs import run_table
from aileron_core.runs.model import SEALED_PARTS, RunRecord, args_hash
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.store import RunStore
from aileron_core.storage.database import Database, Tx
from aileron_core.storage.migrations import KEEP_COPIES_DAYS, forget_copies, forget_plain_copies

_log = logging.getLogger(__name__)
_SEAL_INTERVAL_SECONDS = 60.0
_FORGET_INTERVAL_SECONDS = 3600.0
_ANSWERED_SECONDS = 60.0
"""How long a call that is over stays as it is: longer than an answer is on its way."""
_LEAST_SECONDS = 3600.0
"""How long even 0 days keep an answer that its agent does not have yet."""
_NO_DAY = "~"
"""After every day."""
_MAX_RUNS, _MAX_BYTES = 32, 4 * 1024 * 1024
"""Of one write: others wait meanwhile."""
_GONE = "What the call contained is gone: another program removed its sealed record."
_REPLACED = (
    "What the call contained is left out: its sealed record is not the one of this call. Another "
    "program changed it."
)


@dataclass(eq=False)
class SealedContents:
    """Seals what ended calls contain, where there is a key for their day, opens it while unlocked, and deletes it.

    Args:
        days: how long it is kept after their ends, and what was shown after the day of the decision; with 0
            it is deleted before it would be sealed.
        backups: the folder of copies from before a migration, some of which have it in plain text.
    """

    database: Database
    registry: RunRegistry
    store: RunStore
    keys: HistoryKeys
    clock: Clock
    days: int
    backups: Path
    _swept_at: float = float("-inf")
    _forgot_at: float = float("-inf")

    async def sweep(self) -> None:
        """Seal what is due, some of it at a time; works while locked. Looks once a minute.

        Raises:
            StorageUnavailable: it could not be written.
        """
        now = self.clock.now()
        if not self.days or now - self._swept_at <= _SEAL_INTERVAL_SECONDS:
            return
        if not await self._seal_some(now - _ANSWERED_SECONDS):
            self._swept_at = now

    async def _seal_some(self, before: float) -> bool:
        """Return whether something was sealed, so that more may be due."""
        found = await self.database.read(
            lambda connection: run_table.sealable(connection, before, _MAX_RUNS, _MAX_BYTES)
        )
        async with self.registry.locked(row.run_id for row in found) as live:
            kept = {run.row.run_id for run in live if run.is_kept}  # a person has to look at it
            rows = [row for row in found if row.run_id not in kept]
            sealed = await asyncio.to_thread(lambda: [*filter(None, map(self._sealed, rows))])
            written = (
                await self.database.write(lambda tx: self._write(tx, sealed)) if sealed else {}
            )
            for run in live:
                if (day := written.get(run.row.run_id)) is not None:
                    run.row = run.row.sealed_to(day)
        if not found and await asyncio.to_thread(self._has_key):
            await asyncio.to_thread(forget_plain_copies, self.backups)
        return bool(written)

    def _write(self, tx: Tx, sealed: "list[_Sealed]") -> dict[str, str]:
        """Return by run the day of what was written."""
        put = {
            row.run_id: day
            for row, day, parts in sealed
            if run_table.put_sealed(tx, row, day, parts)
        }
        tx.erases = bool(put)
        if put:
            tx.record(
                AuditRecord(
                    at=rfc3339(self.clock.now()),
                    event=AuditEvent.CONTENTS_SEALED,
                    summary=f"Encrypted what {len(put)} ended {'call' if len(put) == 1 else 'calls'} contained",
                    extra={"count": len(put)},
                )
            )
        return put

    def _has_key(self) -> bool:
        try:
            return self.keys.public_key(day_of(self.clock.now())) is not None
        except OSError:
            return False  # said where something is to be sealed

    def _sealed(self, row: RunRecord) -> "_Sealed | None":
        """Return *row* sealed; None without a vault, and where it cannot be, which the log says."""
        assert row.ended_at is not None
        try:
            # Its own day has no key any more where it is over its time, and it waited for a person.
            for day in dict.fromkeys((day_of(row.ended_at), day_of(self.clock.now()))):
                if (key := self.keys.public_key(day)) is not None:
                    parts = {
                        part: seal(texts, _label(row, part, day), key)
                        for part, texts in row.sealed_parts().items()
                    }
                    return row, day, parts
        except (OSError, ValueError, TooLarge) as error:
            _log.error("what %s contained was not encrypted: %s", row.run_id, type(error).__name__)
        return None

    async def opened(self, row: RunRecord) -> tuple[RunRecord, str]:
        """Return *row* with what it contained, and why it has not, as a sentence; '' where it has.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        if not row.content_is_sealed:
            return row, ""
        try:
            parts = await self.database.read(lambda c: run_table.sealed_parts(c, row.run_id))
            return await asyncio.to_thread(unsealed, row, parts, self.keys), ""
        except CannotUnseal as error:
            return row, error.message

    async def reveal(self) -> None:
        """Have the calls in memory contain again what is sealed of them: the vault was unlocked."""
        for run in self.registry:
            if run.row.content_is_sealed:
                async with run.lock:
                    run.row, _ = await self.opened(run.row)
                self.store.notify(run, rearm=False)

    async def forget_due(self) -> None:
        """Delete what is over its time; does something the first time and then once an hour (0 days: a minute).

        Raises:
            StorageUnavailable: it could not be written.
        """
        now, seconds = self.clock.now(), self.days * 86400.0
        interval = _FORGET_INTERVAL_SECONDS if self.days else _ANSWERED_SECONDS
        if now - self._forgot_at <= interval:
            return
        await self._forget_screens(day_of(now - seconds) if self.days else _NO_DAY)
        kept_seconds = max(seconds, _LEAST_SECONDS)
        await self._forget_contents(now - kept_seconds, now - (seconds or _ANSWERED_SECONDS))
        copied_before = now - min(kept_seconds, KEEP_COPIES_DAYS * 86400.0)
        await asyncio.to_thread(forget_copies, self.backups, copied_before)
        self._forgot_at = now

    async def _forget_contents(self, before: float, answered: float) -> None:
        ended = [run.row for run in self.registry if (run.row.ended_at or answered) < answered]
        async with self.registry.locked(row.run_id for row in ended) as held:
            removed = set(await self.database.write(lambda tx: self._forget(tx, before, answered)))
            live = [run for run in held if run.row.run_id in removed]
            for run in live:
                run.row = run.row.without_contents()
                run.outcome_text = ""
                run.claims = ()
        for run in live:
            self.store.notify(run, rearm=False)

    def _forget(self, tx: Tx, before: float, answered: float) -> list[str]:
        removed = run_table.forget_contents_before(tx, before, answered)
        if count := len(removed):
            tx.erases = True
            tx.record(
                AuditRecord(
                    at=rfc3339(self.clock.now()),
                    event=AuditEvent.ARGUMENTS_FORGOTTEN,
                    summary=f"Deleted the arguments, results and reasons of {count} old runs",
                    extra={"count": count, "ended_before": rfc3339(answered)},
                )
            )
        return removed

    async def _forget_screens(self, before: str) -> None:
        """Destroy the keys of the days before *before*, then remove what was shown then.

        The key first: if this ends in between, what is left is unreadable, and known by its row.
        """
        destroyed: set[str] = set()
        failed: set[str] = set()
        try:
            # By the keys: rows that another program deleted must not save one.
            due = [day for day in await asyncio.to_thread(self.keys.days) if day < before]
        except OSError as error:
            _log.error("the days that have a key are not known: %s", type(error).__name__)
            return
        for day in due:
            try:
                await asyncio.to_thread(self.keys.destroy, day)
                destroyed.add(day)
            except OSError as error:  # its rows stay: they have it tried again
                _log.error("the key of %a was not destroyed: %s", day, type(error).__name__)
                failed.add(day)
        await self.database.write(lambda tx: self._erase(tx, before, destroyed, failed))

    def _erase(self, tx: Tx, before: str, destroyed: set[str], kept: set[str]) -> None:
        kept = {*filter(IS_DAY.fullmatch, kept)}
        if found := destroyed.union(run_table.forget_screens_before(tx, before, kept)):
            # What is no day, another program wrote: it may be any bytes.
            days = sorted(filter(IS_DAY.fullmatch, found))
            tx.erases = True
            tx.record(
                AuditRecord(
                    at=rfc3339(self.clock.now()),
                    event=AuditEvent.HISTORY_ERASED,
                    summary=f"Destroyed the keys of {len(days)} days and deleted what was shown then",
                    extra={"days": list(days)},
                )
            )


_Sealed = tuple[RunRecord, str, dict[str, bytes]]
"""A run, the day to whose key it is sealed, and its parts."""


def unsealed(row: RunRecord, parts: dict[str, bytes], keys: HistoryKeys) -> RunRecord:
    """Return *row* with what it contained, as *parts* have it sealed.

    Raises:
        CannotUnseal: those are gone, of another call, or cannot be read.
    """
    day = row.sealed_day or ""
    if not parts.keys() & SEALED_PARTS.keys():
        raise CannotUnseal(_GONE)
    try:
        opened = row.with_parts(
            {
                part: unseal_with_day(parts[part], _label(row, part, day), keys)
                for part in SEALED_PARTS
                if part in parts
            }
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CannotUnseal(_REPLACED) from error
    # Anybody can seal to a public key; nobody can find other arguments with this hash.
    if opened.args is not None and args_hash(opened.args, opened.content_key) != row.args_sha256:
        raise CannotUnseal(_REPLACED)
    return opened


def _label(row: RunRecord, part: str, day: str) -> SealLabel:
    kind = "arguments" if part == "arguments" else "result"
    return SealLabel(day=day, subject=row.run_id, kind=kind, at=row.ended_at or 0.0)
