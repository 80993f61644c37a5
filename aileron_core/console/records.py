"""Audit records about the console itself: that it started, listens, was paused, and stopped; and whether any can be written."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.console_port.events import CoreEvent, StorageHealth
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import AileronError
from aileron_core.events import EventBus
from aileron_core.storage.database import Database, Tx


class ConsoleRecords:
    """Records about the console itself; each method writes one, durably.

    Raises:
        StorageUnavailable: it could not be written.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record_start(self, extra: dict[str, Any], *, contradiction: str) -> None:
        """Record the start; before it *contradiction*, where head and table disagree (or '')."""

        def unit(tx: Tx) -> None:
            if contradiction:
                tx.record(self._record(AuditEvent.AUDIT_CUT, contradiction))
            tx.record(self._record(AuditEvent.CONSOLE_STARTED, "The console started", extra))

        await self._database.write(unit)

    async def record_stop(self) -> None:
        await self._write(self._record(AuditEvent.CONSOLE_STOPPED, "The console stopped"))

    async def record_writable_again(self) -> None:
        await self._write(self._record(AuditEvent.STORAGE_MENDED, "The audit can be written again"))

    async def record_port(self, port: int, remember: Callable[[Tx], object]) -> None:
        """Record the port together with what *remember* writes."""

        def unit(tx: Tx) -> None:
            remember(tx)
            tx.record(self._record(AuditEvent.CONSOLE_PORT, f"Listening on port {port}"))

        await self._database.write(unit)

    async def record(
        self,
        event: AuditEvent,
        summary: str,
        *,
        by: Actor | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Record *event*; *by*: who acted, where it is not whom the event names."""
        await self._write(replace(self._record(event, summary, extra), by=by))

    async def record_by_person(self, event: AuditEvent, summary: str, hand: Hand = CONSOLE) -> None:
        await self._write(self._record(event, summary, hand.mark()))

    async def record_binding(
        self, event: AuditEvent, summary: str, extra: Mapping[str, Json]
    ) -> None:
        """Record what a person did with an account; *extra* never holds its secret."""
        await self._write(self._record(event, summary, dict(extra)))

    async def _write(self, record: AuditRecord) -> None:
        await self._database.write(lambda tx: tx.record(record))

    def _record(
        self, event: AuditEvent, summary: str, extra: dict[str, Any] | None = None
    ) -> AuditRecord:
        at = rfc3339(self._clock.now())
        return AuditRecord(at=at, event=event, summary=summary, extra=extra or {})


class StorageMonitor:
    """Tells front ends when writing begins to fail, and when it works again."""

    def __init__(self, events: EventBus[CoreEvent], records: ConsoleRecords) -> None:
        self._events = events
        self._records = records
        self._loop = asyncio.get_running_loop()
        self.health = StorageHealth(writable=True)

    def commit_failed(self, error: AileronError) -> None:
        """Record that a write failed. Called on the writer's thread."""
        with suppress(RuntimeError):  # the loop has ended, and no front end is left
            self._loop.call_soon_threadsafe(self.report_failure, error.message)

    def report_failure(self, message: str) -> None:
        """Note that a write failed; *message* is written for the person."""
        if self.health.writable:
            self._set(StorageHealth(writable=False, message=message))

    async def probe(self) -> None:
        """After a failure, try to write a record, which says that the failure is over.

        Raises:
            StorageUnavailable: it still cannot.
        """
        if not self.health.writable:
            await self._records.record_writable_again()
            self._set(StorageHealth(writable=True))

    def _set(self, health: StorageHealth) -> None:
        self.health = health
        self._events.publish(health)
