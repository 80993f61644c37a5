"""What is accepted now, in memory; each acceptance and each withdrawal of one goes on record here.

Of projects, too: for which agent, and with exactly which bytes of its settings.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import PurePosixPath

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import InvalidRequest
from aileron_core.library import acceptance
from aileron_core.library.acceptance import KINDS, AcceptanceRecord, RecordKey, owned_by
from aileron_core.library.authenticated_records import AuthenticatedRecords
from aileron_core.storage.database import Database


class Acceptances:
    """What is accepted, what a person withdrew, and the reads that previews ask for.

    Args:
        stored: the records, verified with the vault's key where there is a vault.
        connectors_of: gives the exact connectors that accepting the action
            file of that name and digest allows; for the record.
    """

    def __init__(
        self,
        stored: AuthenticatedRecords,
        database: Database,
        clock: Clock,
        connectors_of: Callable[[str, str], Json],
    ) -> None:
        self._stored = stored
        self._database = database
        self._clock = clock
        self._connectors_of = connectors_of
        self._withdrawn: set[tuple[str, str, str]] = set()
        self._offers: dict[str, str] = {}

    async def load(self) -> None:
        """Read what is on record, and verify it; called at the start, and when the vault was unlocked."""
        await self._stored.load()
        self._withdrawn = await self._database.read(acceptance.load_withdrawn)

    @property
    def records(self) -> Mapping[RecordKey, AcceptanceRecord]:
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
        hand: Hand = CONSOLE,
    ) -> None:
        """Record that each (kind, name, digest) is accepted from now on, and that *ended* are not.

        *hand*: with which a person accepts.

        Raises:
            VaultLocked: unlock it first; nothing is accepted.
            StorageUnavailable: it could not be written, and is not accepted.
        """
        now = self._clock.now()
        accepted = [
            AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=now, accepted_by=by)
            for kind, name, digest in found
        ]
        # What went with earlier bytes, and was not accepted anew with these, ends.
        replaced = self._withdrawn_with([*owned_by(self.records.values(), accepted), *ended])
        how = " (--accept-installed)" if by != "person" else ""
        connectors = {
            each: self._connectors_of(each.name, each.digest)
            for each in accepted
            if each.kind == "action"
        }
        await self._stored.change(
            save={
                each: each.to_audit(
                    AuditEvent.LIBRARY_ACCEPTED,
                    now,
                    f"Accepted the {KINDS[each.kind].noun} {each.name}{how}",
                    hand.mark() | ({"connectors": connectors[each]} if each in connectors else {}),
                )
                for each in accepted
            },
            delete=replaced,
        )
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
        withdrawn = self._withdrawn_with([record, *owned_by(self.records.values(), [record])])
        await self._stored.change(delete=withdrawn)
        self._note_withdrawn(withdrawn)
        if record.kind == "preview":  # so that it can be accepted again
            self._offers[record.name] = record.digest

    async def load_recorded(self) -> Collection[AcceptanceRecord]:
        """Return what a removal ends, which counts now or would if its row or the HMAC were put back."""
        return await self._stored.load_recorded()

    async def remove(self, removed: Collection[AcceptanceRecord]) -> None:
        """Record that the files of *removed* were removed: they are not accepted if they come back.

        Raises:
            StorageUnavailable: it could not be written.
        """
        if removed:
            recorded, now = await self.load_recorded(), self._clock.now()
            await self._stored.remove(acceptance.removals(removed, recorded, now))

    def _withdrawn_with(
        self, ended: Iterable[AcceptanceRecord]
    ) -> dict[AcceptanceRecord, AuditRecord]:
        """Return *ended*, each with the record that it is accepted no more."""
        event, now = AuditEvent.LIBRARY_WITHDRAWN, self._clock.now()
        return {
            each: each.to_audit(
                event, now, f"Withdrew the acceptance of the {KINDS[each.kind].noun} {each.name}"
            )
            for each in ended
        }

    def _note_withdrawn(self, ended: Iterable[AcceptanceRecord]) -> None:
        for each in ended:
            self._withdrawn.add((each.kind, each.name, each.digest))


class ProjectTrust:
    """The accepted projects.

    Args:
        stored: the records of this kind, verified with the vault's key where there is a vault.
    """

    def __init__(self, stored: AuthenticatedRecords, clock: Clock) -> None:
        self._stored = stored
        self._clock = clock

    async def load(self) -> None:
        """Read what is on record, and verify it; called at the start, and when the vault was unlocked."""
        await self._stored.load()

    def records(self) -> tuple[AcceptanceRecord, ...]:
        """Return those that count, by name: none before the vault is unlocked."""
        if self._stored.waits_for_vault:
            return ()
        return tuple(each for _, each in sorted(self._stored.records.items()))

    async def accept(
        self, agent: str, path: str, digest: str, *, missing_checks: bool = False
    ) -> AcceptanceRecord:
        """Record that *digest* is accepted for *agent* in the folder *path* from now on.

        Args:
            missing_checks: *path* is the person's home, where no project is, and *digest* that of the
                checks in their own settings which they accept not to run in a sandbox.

        Raises:
            InvalidRequest: *path* is not an absolute path in its shortest form.
            VaultLocked: unlock it first; nothing is accepted.
            StorageUnavailable: it could not be written, and is not accepted.
        """
        folder = PurePosixPath(path)
        if str(folder) != path or folder.root != "/" or ".." in folder.parts:
            raise InvalidRequest("'path' must be the absolute path of a folder, without '..'.")
        accepted = AcceptanceRecord(
            kind="project",
            name=f"{agent} {path}",
            digest=digest,
            accepted_at=self._clock.now(),
            accepted_by="person",
        )

        summary = (
            f"Accepted that checks of {agent} do not run in the sandbox"
            if missing_checks
            else f"Accepted the {KINDS['project'].noun} {agent}"
        )
        record = accepted.to_audit(AuditEvent.LIBRARY_ACCEPTED, accepted.accepted_at, summary)
        await self._stored.change(save={accepted: record})
        return accepted
