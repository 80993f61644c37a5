"""Whether the database can be written: nothing can run or be decided while it cannot."""

import asyncio
from contextlib import suppress

from aileron_core.console.records import ConsoleRecords
from aileron_core.console_port.events import CoreEvent, StorageHealth
from aileron_core.errors import AileronError
from aileron_core.events import EventBus


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
