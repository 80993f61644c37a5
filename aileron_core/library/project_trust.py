"""Which project's settings a person took in, for which agent and in exactly which bytes."""

from pathlib import PurePosixPath

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import InvalidRequest
from aileron_core.library import acceptance as pins
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.storage.database import Database, Tx

__all__ = ["KIND", "ProjectTrust"]

KIND = "project"
"""The kind of a pin that says so; its name is `<agent> <folder>`."""


class ProjectTrust:
    """What was taken in, in the memory of this console; the database is its record.

    Args:
        database: where it is written down.
        clock: the time.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._pins: dict[str, AcceptanceRecord] = {}

    async def load(self) -> None:
        """Read what the last life took in; called once at start."""
        found = await self._database.read(pins.all_records)
        self._pins = {pin.name: pin for pin in found if pin.kind == KIND}

    def all(self) -> tuple[AcceptanceRecord, ...]:
        """Return every project that counts, by name."""
        return tuple(self._pins[name] for name in sorted(self._pins))

    async def accept(self, agent: str, path: str, digest: str) -> AcceptanceRecord:
        """Record that *digest* counts for *agent* in the folder *path* from now on.

        Raises:
            InvalidRequest: *path* is no absolute path in its shortest form.
            StorageUnavailable: it could not be written, and so does not count.
        """
        folder = PurePosixPath(path)
        if str(folder) != path or folder.root != "/" or ".." in folder.parts:
            raise InvalidRequest("'path' must be the absolute path of a folder, without '..'.")
        pin = AcceptanceRecord(
            kind=KIND,
            name=f"{agent} {path}",
            digest=digest,
            taken_at=self._clock.now(),
            taken_by="person",
        )

        def unit(tx: Tx) -> None:
            pins.put(tx, pin)
            tx.record(
                AuditRecord(
                    at=rfc3339(self._clock.now()),
                    event=AuditEvent.LIBRARY_ACCEPTED,
                    summary=f"Took in the settings of a project for {agent}",
                    extra={"kind": KIND, "name": pin.name, "digest": digest, "by": pin.taken_by},
                )
            )

        await self._database.write(unit)
        self._pins[pin.name] = pin
        return pin
