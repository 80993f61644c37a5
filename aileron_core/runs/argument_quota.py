"""A quota on the stored arguments of each session. `run_table.forgettable_arguments` chooses what makes room."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import RateLimited
from aileron_core.runs import run_table
from aileron_core.runs.model import RunRecord
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.store import RunStore
from aileron_core.storage.database import Database, Tx

_FREED_SHARE = 0.25
"""Share of the quota that is freed at once, so that not every later call has to free some."""
_MAX_NAMED_RUNS = 64
"""Runs that one record names; the rest is counted."""


@dataclass(eq=False)
class ArgumentQuota:
    """Keeps the arguments of each session within *max_bytes* bytes, in rows and in memory.

    Where a new call's do not fit, those of calls that no person decided go, the oldest first:
    withdrawn and expired ones, then ungated ones that completed or failed. Their digests stay.

    Args:
        store: notifies listeners of a run whose arguments were removed.
        max_bytes: of one session, as stored.
    """

    database: Database
    registry: RunRegistry
    store: RunStore
    clock: Clock
    max_bytes: int
    _stored_bytes: dict[str, int] = field(default_factory=dict[str, int])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reserve(self, row: RunRecord) -> None:
        """Make room for a new run's arguments, and count them.

        Raises:
            RateLimited: what is left of the session's are of calls that wait, or that a person decided.
            StorageUnavailable: nothing can be forgotten now.
        """
        session, size = row.session_id, row.args_size
        async with self._lock:
            if session not in self._stored_bytes:
                self._stored_bytes[session] = await self.database.read(
                    lambda connection: run_table.stored_argument_bytes(connection, session)
                )
            over = self._stored_bytes[session] + size - self.max_bytes
            if over > 0:
                await self._make_room(session, over)
            if self._stored_bytes[session] + size > self.max_bytes:
                raise RateLimited(
                    f"The calls of this session have {self.max_bytes // 2**20} MiB of arguments, the "
                    "most that is kept for one session. Wait for answers, withdraw a call, or send less. "
                    "The arguments of decided calls are kept, so you may need a new session."
                )
            self._stored_bytes[session] += size

    def release(self, row: RunRecord) -> None:
        """Count a run's arguments no more: it was not written."""
        self._stored_bytes[row.session_id] -= row.args_size

    async def _make_room(self, session: str, over: int) -> None:
        wanted = over + int(self.max_bytes * _FREED_SHARE)
        candidates = await self.database.read(
            lambda connection: run_table.forgettable_arguments(connection, session, wanted)
        )
        if not candidates:
            return
        runs = [run_id for run_id, _ in candidates]
        async with self.registry.locked(runs) as live:
            await self.database.write(lambda tx: self._forget(tx, session, runs))
            for run in live:
                run.row = run.row.without_arguments()
        self._stored_bytes[session] -= sum(size for _, size in candidates)
        for run in live:
            self.store.notify(run, rearm=False)

    def _forget(self, tx: Tx, session: str, runs: Sequence[str]) -> None:
        run_table.forget_arguments(tx, runs)
        named: list[Json] = list(runs[:_MAX_NAMED_RUNS])
        tx.record(
            AuditRecord(
                at=rfc3339(self.clock.now()),
                event=AuditEvent.ARGUMENTS_FORGOTTEN,
                summary=(
                    f"Deleted the arguments of {len(runs)} ended calls that nobody decided: their "
                    f"session holds more than {self.max_bytes // 2**20} MiB"
                ),
                session=session,
                extra={"runs": named, "count": len(runs)},
            )
        )
