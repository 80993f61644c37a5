"""What is accepted now, in memory; each acceptance and each withdrawal of one goes on record here."""

from collections.abc import Callable, Mapping, Sequence, Set

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.library import acceptance, preview_reads, run_time
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.library.authenticated_records import AuthenticatedRecords
from aileron_core.library.preview_reads import reads_of
from aileron_core.library.run_time import run_times_of
from aileron_core.storage.database import Database, Tx

_NOUNS = {
    "action": "action",
    "connector": "connector",
    preview_reads.KIND: "preview POST requests of",
    run_time.KIND: "longer time of the action",
}
"""What a record calls the accepted thing, before its name."""


class Acceptances:
    """What is accepted, what a person withdrew, and the reads that previews ask for.

    Args:
        stored: the records, verified with the vault's key where there is a vault.
        connectors_of: gives the exact connectors that accepting the action
            file of that name allows; for the record.
    """

    def __init__(
        self,
        stored: AuthenticatedRecords,
        database: Database,
        clock: Clock,
        connectors_of: Callable[[str], Json],
    ) -> None:
        self._stored = stored
        self._database = database
        self._clock = clock
        self._connectors_of = connectors_of
        self._removed_while_locked: list[AcceptanceRecord] = []
        self._withdrawn: set[tuple[str, str, str]] = set()
        self._offers: dict[str, str] = {}

    async def load(self) -> None:
        """Read what is on record, and verify it; called at the start, and when the vault was unlocked."""
        await self._stored.load()
        if not self.waits_for_vault:
            removed, self._removed_while_locked = self._removed_while_locked, []
            await self.remove(
                [each for each in removed if self.records.get((each.kind, each.name)) == each]
            )
        self._withdrawn = await self._database.read(acceptance.load_withdrawn)

    @property
    def records(self) -> Mapping[tuple[str, str], AcceptanceRecord]:
        """By kind and name."""
        return self._stored.records

    @property
    def waits_for_vault(self) -> bool:
        """Whether nothing can be relied upon, accepted or withdrawn before the vault is unlocked."""
        return self._stored.waits_for_vault

    @property
    def withdrawn(self) -> Set[tuple[str, str, str]]:
        """(kind, name, digest) of what a person withdrew."""
        return self._withdrawn

    @property
    def offers(self) -> Mapping[str, str]:
        """What previews tried to read by POST: the name it would be accepted by, the connector's hash."""
        return self._offers

    def digest(self, kind: str, name: str) -> str | None:
        found = self.records.get((kind, name))
        return found.digest if found else None

    def digests(self, kind: str) -> dict[str, str]:
        return {name: each.digest for (of, name), each in self.records.items() if of == kind}

    def end_reason(self, kind: str, name: str) -> str:
        """Return why an acceptance is no longer valid, as the end of a sentence."""
        if (kind, name) in self.records:
            return "was replaced by one with different bytes"
        withdrawn = any((kind, name) == each[:2] for each in self._withdrawn)
        return "had its acceptance withdrawn" if withdrawn else "was removed and put back"

    def offer(self, name: str, digest: str) -> bool:
        """Offer a person to accept *name*; return whether that is new."""
        if self._offers.get(name) == digest:
            return False
        self._offers[name] = digest
        return True

    async def accept(
        self,
        found: Sequence[tuple[str, str, str]],
        by: str,
        *,
        ended: Sequence[AcceptanceRecord] = (),
    ) -> None:
        """Record that each (kind, name, digest) is accepted from now on, and that *ended* are not.

        Raises:
            VaultLocked: unlock it first; nothing is accepted.
            StorageUnavailable: it could not be written, and is not accepted.
        """
        now = self._clock.now()
        accepted = [
            AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=now, accepted_by=by)
            for kind, name, digest in found
        ]
        replaced = [
            *self._reads_of_other_bytes(accepted),
            *self._ended_run_times(accepted),
            *ended,
        ]
        how = " (--accept-installed)" if by != "person" else ""

        def unit(tx: Tx) -> None:
            self._write_withdrawn(tx, replaced)
            for each in accepted:
                acceptance.save_record(tx, each)
                summary = f"Accepted the {_NOUNS[each.kind]} {each.name}{how}"
                tx.record(self._record(AuditEvent.LIBRARY_ACCEPTED, each, summary))

        await self._stored.change(unit, save=accepted, delete=replaced)
        self._note_withdrawn(replaced)
        for each in accepted:
            self._offers.pop(each.name, None)
            self._withdrawn.discard((each.kind, each.name, each.digest))

    async def withdraw(self, record: AcceptanceRecord) -> None:
        """Record that *record* is no longer accepted, nor what a connector's previews may read.

        Raises:
            VaultLocked: unlock it first; nothing changed.
            StorageUnavailable: it could not be written, and is still accepted.
        """
        withdrawn = [record]
        if record.kind == "connector":
            withdrawn += reads_of(self.records.values(), record.name)
        withdrawn += run_times_of(self.records.values(), withdrawn)
        await self._stored.change(lambda tx: self._write_withdrawn(tx, withdrawn), delete=withdrawn)
        self._note_withdrawn(withdrawn)
        if record.kind == preview_reads.KIND:  # so that it can be accepted again
            self._offers[record.name] = record.digest

    async def remove(self, removed: Sequence[AcceptanceRecord]) -> None:
        """Record that the files of *removed* were removed: they are not accepted if they come back.

        While the vault is locked that is remembered, and recorded once it is unlocked.

        Raises:
            StorageUnavailable: it could not be written.
        """
        if not removed:
            return
        times = run_times_of(self.records.values(), removed)
        removed = [*removed, *(each for each in times if each not in removed)]
        if self.waits_for_vault:
            self._removed_while_locked += removed
            self._stored.forget((each.kind, each.name) for each in removed)
            return

        def unit(tx: Tx) -> None:
            for each in removed:
                acceptance.delete_record(tx, each.kind, each.name)
                summary = f"Removed, and no longer accepted: {each.name}"
                tx.record(self._record(AuditEvent.LIBRARY_REMOVED, each, summary))

        await self._stored.change(unit, delete=removed)

    def _reads_of_other_bytes(self, accepted: Sequence[AcceptanceRecord]) -> list[AcceptanceRecord]:
        return [
            read
            for each in accepted
            if each.kind == "connector"
            for read in reads_of(self.records.values(), each.name)
            if read.digest != each.digest
        ]

    def _ended_run_times(self, accepted: Sequence[AcceptanceRecord]) -> list[AcceptanceRecord]:
        """Return the times of earlier bytes that the accepted ones do not name."""
        kept = {each.name for each in accepted if each.kind == run_time.KIND}
        ended = run_times_of(self.records.values(), accepted)
        return [each for each in ended if each.name not in kept]

    def _write_withdrawn(self, tx: Tx, ended: Sequence[AcceptanceRecord]) -> None:
        for each in ended:
            acceptance.delete_record(tx, each.kind, each.name)
            summary = f"Withdrew the acceptance of the {_NOUNS[each.kind]} {each.name}"
            tx.record(self._record(AuditEvent.LIBRARY_WITHDRAWN, each, summary))

    def _note_withdrawn(self, ended: Sequence[AcceptanceRecord]) -> None:
        for each in ended:
            self._withdrawn.add((each.kind, each.name, each.digest))

    def _record(self, event: AuditEvent, about: AcceptanceRecord, summary: str) -> AuditRecord:
        extra: dict[str, Json] = {"kind": about.kind, "name": about.name, "digest": about.digest}
        if event == AuditEvent.LIBRARY_ACCEPTED:
            extra["by"] = about.accepted_by
            if about.kind == "action":
                extra["connectors"] = self._connectors_of(about.name)
        return AuditRecord(at=rfc3339(self._clock.now()), event=event, summary=summary, extra=extra)
