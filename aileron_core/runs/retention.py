"""Removing the arguments and outputs of runs that ended long ago (30 days, `GateSettings` in `interfaces.py`)."""

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.runs import ApprovalService, run_table
from aileron_core.storage.database import Database, Tx

_INTERVAL_SECONDS = 3600.0


class Retention:
    """Keeps arguments and outputs for *days* after a run's end, in rows and in memory."""

    def __init__(
        self, database: Database, approvals: ApprovalService, clock: Clock, *, days: int
    ) -> None:
        self._database = database
        self._approvals = approvals
        self._clock = clock
        self._seconds = days * 86400.0
        self._swept_at = float("-inf")

    async def sweep(self) -> None:
        """Forget what is due; does something the first time and then once an hour.

        Raises:
            StorageUnavailable: it could not be written.
        """
        now = self._clock.now()
        if now - self._swept_at <= _INTERVAL_SECONDS:
            return
        before = now - self._seconds
        await self._database.write(lambda tx: self._forget(tx, before))
        self._approvals.forget_arguments(before)
        self._swept_at = now

    def _forget(self, tx: Tx, before: float) -> None:
        if count := run_table.forget_arguments_before(tx, before):
            tx.erases = True
            tx.record(
                AuditRecord(
                    at=rfc3339(self._clock.now()),
                    event=AuditEvent.ARGUMENTS_FORGOTTEN,
                    summary=f"Forgot the arguments and outputs of {count} old runs",
                )
            )
