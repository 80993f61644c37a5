"""The project settings that a person accepted: for which agent, and with exactly which bytes."""

from pathlib import PurePosixPath

from aileron_core.audit.events import AuditEvent
from aileron_core.clock import Clock
from aileron_core.errors import InvalidRequest
from aileron_core.library.acceptance import KINDS, AcceptanceRecord
from aileron_core.library.authenticated_records import AuthenticatedRecords


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
