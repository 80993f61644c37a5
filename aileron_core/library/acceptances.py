"""What is accepted now, in memory; each acceptance and each withdrawal of one goes on record here."""

from collections.abc import Callable, Mapping, Sequence, Set

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.library import acceptance, preview_reads
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.library.preview_reads import reads_of
from aileron_core.storage.database import Database, Tx

_NOUNS = {
    "action": "action",
    "connector": "connector",
    preview_reads.KIND: "preview POST requests of",
}
"""What a record calls the accepted thing, before its name."""


class Acceptances:
    """What is accepted, what a person withdrew, and the reads that previews ask for.

    Args:
        connectors_of: gives the exact connectors that accepting the action
            file of that name allows; for the record.
    """

    def __init__(
        self, database: Database, clock: Clock, connectors_of: Callable[[str], Json]
    ) -> None:
        self._database = database
        self._clock = clock
        self._connectors_of = connectors_of
        self._records: dict[tuple[str, str], AcceptanceRecord] = {}
        self._withdrawn: set[tuple[str, str, str]] = set()
        self._offers: dict[str, str] = {}

    async def load(self) -> None:
        """Read what earlier processes recorded; called once at the start."""
        found = await self._database.read(acceptance.load_records)
        self._records = {(each.kind, each.name): each for each in found}
        self._withdrawn = await self._database.read(acceptance.load_withdrawn)

    @property
    def records(self) -> Mapping[tuple[str, str], AcceptanceRecord]:
        """By kind and name."""
        return self._records

    @property
    def withdrawn(self) -> Set[tuple[str, str, str]]:
        """(kind, name, digest) of what a person withdrew."""
        return self._withdrawn

    @property
    def offers(self) -> Mapping[str, str]:
        """What previews tried to read by POST: the name it would be accepted by, the connector's hash."""
        return self._offers

    def digest(self, kind: str, name: str) -> str | None:
        found = self._records.get((kind, name))
        return found.digest if found else None

    def digests(self, kind: str) -> dict[str, str]:
        return {name: each.digest for (of, name), each in self._records.items() if of == kind}

    def end_reason(self, kind: str, name: str) -> str:
        """Return why an acceptance is no longer valid, as the end of a sentence."""
        if (kind, name) in self._records:
            return "was replaced by one with different bytes"
        withdrawn = any((kind, name) == each[:2] for each in self._withdrawn)
        return "had its acceptance withdrawn" if withdrawn else "was removed and put back"

    def offer(self, name: str, digest: str) -> bool:
        """Offer a person to accept *name*; return whether that is new."""
        if self._offers.get(name) == digest:
            return False
        self._offers[name] = digest
        return True

    async def accept(self, found: Sequence[tuple[str, str, str]], by: str) -> None:
        """Record that each (kind, name, digest) is accepted from now on.

        Raises:
            StorageUnavailable: it could not be written, and is not accepted.
        """
        now = self._clock.now()
        accepted = [
            AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=now, accepted_by=by)
            for kind, name, digest in found
        ]
        replaced = self._reads_of_other_bytes(accepted)
        how = " (--accept-installed)" if by != "person" else ""

        def unit(tx: Tx) -> None:
            self._write_withdrawn(tx, replaced)
            for each in accepted:
                acceptance.save_record(tx, each)
                summary = f"Accepted the {_NOUNS[each.kind]} {each.name}{how}"
                tx.record(self._record(AuditEvent.LIBRARY_ACCEPTED, each, summary))

        await self._database.write(unit)
        self._forget_withdrawn(replaced)
        for each in accepted:
            self._offers.pop(each.name, None)
            self._records[each.kind, each.name] = each
            self._withdrawn.discard((each.kind, each.name, each.digest))

    async def withdraw(self, record: AcceptanceRecord) -> None:
        """Record that *record* is no longer accepted, nor what a connector's previews may read.

        Raises:
            StorageUnavailable: it could not be written, and is still accepted.
        """
        withdrawn = [record]
        if record.kind == "connector":
            withdrawn += reads_of(self._records.values(), record.name)
        await self._database.write(lambda tx: self._write_withdrawn(tx, withdrawn))
        self._forget_withdrawn(withdrawn)
        if record.kind == preview_reads.KIND:  # so that it can be accepted again
            self._offers[record.name] = record.digest

    async def remove(self, removed: Sequence[AcceptanceRecord]) -> None:
        """Record that the files of *removed* were removed: they are not accepted if they come back.

        Raises:
            StorageUnavailable: it could not be written.
        """

        def unit(tx: Tx) -> None:
            for each in removed:
                acceptance.delete_record(tx, each.kind, each.name)
                summary = f"Removed, and no longer accepted: {each.name}"
                tx.record(self._record(AuditEvent.LIBRARY_REMOVED, each, summary))

        await self._database.write(unit)
        for each in removed:
            self._records.pop((each.kind, each.name), None)

    def _reads_of_other_bytes(self, accepted: Sequence[AcceptanceRecord]) -> list[AcceptanceRecord]:
        return [
            read
            for each in accepted
            if each.kind == "connector"
            for read in reads_of(self._records.values(), each.name)
            if read.digest != each.digest
        ]

    def _write_withdrawn(self, tx: Tx, ended: Sequence[AcceptanceRecord]) -> None:
        for each in ended:
            acceptance.delete_record(tx, each.kind, each.name)
            summary = f"Withdrew the acceptance of the {_NOUNS[each.kind]} {each.name}"
            tx.record(self._record(AuditEvent.LIBRARY_WITHDRAWN, each, summary))

    def _forget_withdrawn(self, ended: Sequence[AcceptanceRecord]) -> None:
        for each in ended:
            self._records.pop((each.kind, each.name), None)
            self._withdrawn.add((each.kind, each.name, each.digest))

    def _record(self, event: AuditEvent, about: AcceptanceRecord, summary: str) -> AuditRecord:
        extra: dict[str, Json] = {"kind": about.kind, "name": about.name, "digest": about.digest}
        if event == AuditEvent.LIBRARY_ACCEPTED:
            extra["by"] = about.accepted_by
            if about.kind == "action":
                extra["connectors"] = self._connectors_of(about.name)
        return AuditRecord(at=rfc3339(self._clock.now()), event=event, summary=summary, extra=extra)
