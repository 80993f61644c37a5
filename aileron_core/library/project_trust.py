"""The project settings that a person accepted: for which agent, and with exactly which bytes."""

from pathlib import PurePosixPath

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import InvalidRequest
from aileron_core.library import acceptance
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.storage.database import Database, Tx

KIND = "project"
"""The kind of such an acceptance; its name is `<agent> <folder>`."""


class ProjectTrust:
    """The accepted projects, in memory; the database keeps them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._records: dict[str, AcceptanceRecord] = {}

    async def load(self) -> None:
        """Read what earlier processes recorded; called once at the start."""
        found = await self._database.read(acceptance.load_records)
        self._records = {each.name: each for each in found if each.kind == KIND}

    def records(self) -> tuple[AcceptanceRecord, ...]:
        return tuple(self._records[name] for name in sorted(self._records))

    async def accept(self, agent: str, path: str, digest: str) -> AcceptanceRecord:
        """Record that *digest* is accepted for *agent* in the folder *path* from now on.

        Raises:
            InvalidRequest: *path* is not an absolute path in its shortest form.
            StorageUnavailable: it could not be written, and is not accepted.
        """
        folder = PurePosixPath(path)
        if str(folder) != path or folder.root != "/" or ".." in folder.parts:
            raise InvalidRequest("'path' must be the absolute path of a folder, without '..'.")
        accepted = AcceptanceRecord(
            kind=KIND,
            name=f"{agent} {path}",
            digest=digest,
            accepted_at=self._clock.now(),
            accepted_by="person",
        )

        def unit(tx: Tx) -> None:
            acceptance.save_record(tx, accepted)
            tx.record(
                AuditRecord(
                    at=rfc3339(self._clock.now()),
                    event=AuditEvent.LIBRARY_ACCEPTED,
                    summary=f"Accepted the settings of a project for {agent}",
                    extra={
                        "kind": KIND,
                        "name": accepted.name,
                        "digest": digest,
                        "by": accepted.accepted_by,
                    },
                )
            )

        await self._database.write(unit)
        self._records[accepted.name] = accepted
        return accepted
