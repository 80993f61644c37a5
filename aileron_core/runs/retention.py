"""Removing the content of calls that ended long ago (`[history] days`, `aileron_core/settings.py`)."""

import asyncio
from pathlib import Path

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.runs import run_table
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.store import RunStore
from aileron_core.storage.database import Database, Tx
from aileron_core.storage.migrations import KEEP_COPIES_DAYS, forget_copies

_INTERVAL_SECONDS = 3600.0
_SHORT_INTERVAL_SECONDS = 60.0
_LEAST_SECONDS = 3600.0
"""How long even 0 days keep an answer that its agent does not have yet."""
_ANSWERED_SECONDS = 60.0
"""How long 0 days keep a call whose agent has its answer: longer than an answer is on its way."""


class Retention:
    """Keeps what a call contained for *days* after its end, in rows, in memory and in *backups*."""

    def __init__(
        self,
        database: Database,
        registry: RunRegistry,
        store: RunStore,
        clock: Clock,
        *,
        days: int,
        backups: Path,
    ) -> None:
        self._database = database
        self._registry = registry
        self._store = store
        self._clock = clock
        self._backups = backups
        self._seconds = max(days * 86400.0, _LEAST_SECONDS)
        self._copy_seconds = min(self._seconds, KEEP_COPIES_DAYS * 86400.0)
        self._answered_seconds = self._seconds if days else _ANSWERED_SECONDS
        self._interval = _INTERVAL_SECONDS if days else _SHORT_INTERVAL_SECONDS
        self._swept_at = float("-inf")

    async def sweep(self) -> None:
        """Forget what is due; does something the first time and then once an hour (0 days: a minute).

        Raises:
            StorageUnavailable: it could not be written.
        """
        now = self._clock.now()
        if now - self._swept_at <= self._interval:
            return
        await self._forget_contents(now - self._seconds, now - self._answered_seconds)
        await asyncio.to_thread(forget_copies, self._backups, now - self._copy_seconds)
        self._swept_at = now

    async def _forget_contents(self, before: float, answered: float) -> None:
        ended = [run.row for run in self._registry if (run.row.ended_at or answered) < answered]
        async with self._registry.locked(row.run_id for row in ended) as held:
            removed = set(await self._database.write(lambda tx: self._forget(tx, before, answered)))
            live = [run for run in held if run.row.run_id in removed]
            for run in live:
                run.row = run.row.without_contents()
                run.outcome_text = ""
                run.claims = ()
        for run in live:
            self._store.notify(run, rearm=False)

    def _forget(self, tx: Tx, before: float, answered: float) -> list[str]:
        removed = run_table.forget_contents_before(tx, before, answered)
        if count := len(removed):
            tx.erases = True
            tx.record(
                AuditRecord(
                    at=rfc3339(self._clock.now()),
                    event=AuditEvent.ARGUMENTS_FORGOTTEN,
                    summary=f"Deleted the arguments, results and reasons of {count} old runs",
                    extra={"count": count, "ended_before": rfc3339(answered)},
                )
            )
        return removed
