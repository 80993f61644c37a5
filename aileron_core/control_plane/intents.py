"""What each intent of a person does. Answers are facts; what did nothing raises its reason."""

from aileron_core.control_plane.plane import ControlPlane
from aileron_core.control_plane.port import (
    Approve,
    AuditExported,
    AuditVerified,
    Deny,
    EndSession,
    ExportAudit,
    HoldBack,
    Intent,
    LookAgain,
    Pause,
    PauseChanged,
    ReadApprovals,
    ReadRecord,
    ReadRecords,
    RecordRead,
    RecordsRead,
    Refresh,
    StopEverything,
    TakeIn,
    TakeInSuite,
    VerifyAudit,
)
from aileron_core.errors import NotFound, StorageUnavailable

__all__ = ["carry_out"]


async def carry_out(plane: ControlPlane, intent: Intent) -> None:
    """Do what a person wants, on *plane*'s loop.

    Raises:
        AileronError: it did nothing, or not all; the message is the sentence for the person.
    """
    match intent:
        case Approve():
            await plane.desk.approve(
                intent.approval_id, intent.digest, unseen_lines=intent.unseen_lines
            )
        case Deny():
            await plane.desk.deny(intent.approval_id, intent.reason)
        case Refresh() | LookAgain():
            look = plane.desk.refresh if isinstance(intent, Refresh) else plane.desk.look_again
            await look(intent.approval_id)
        case TakeIn() | TakeInSuite():
            await _take_in(plane, intent)
        case HoldBack():
            await plane.library.hold_back(intent.kind, intent.name, intent.digest)
        case Pause():
            await _pause(plane, on=intent.on)
        case StopEverything():
            plane.facts.publish(await plane.everything_stop.carry_out())
        case EndSession():
            await _end_session(plane, intent.session_id)
        case ReadApprovals():
            await plane.news.tell_approvals_after(intent.requested_at, intent.run_id)
        case ReadRecords() | ReadRecord() | VerifyAudit() | ExportAudit():
            plane.facts.publish(await _of_the_audit(plane, intent))


async def _take_in(plane: ControlPlane, intent: TakeIn | TakeInSuite) -> None:
    if isinstance(intent, TakeInSuite):
        await plane.library.take_in_suite(intent.suite_id, intent.files, by="person")
        return
    await plane.library.take_in(intent.kind, intent.name, intent.digest, by="person")
    if intent.kind == "preview":
        plane.look_again_for(intent.name)


async def _of_the_audit(
    plane: ControlPlane, intent: ReadRecords | ReadRecord | VerifyAudit | ExportAudit
) -> RecordsRead | RecordRead | AuditVerified | AuditExported:
    """Return the answer to what only reads."""
    match intent:
        case ReadRecords():
            return await plane.audit.page(intent.before_seq, intent.limit)
        case ReadRecord():
            return await plane.audit.record(intent.seq)
        case VerifyAudit():
            return await plane.audit.verify()
        case ExportAudit():
            return await plane.audit.export()


async def _pause(plane: ControlPlane, *, on: bool) -> None:
    """Hold all calls, at once; or let them go on, once that is on record."""
    if on == (plane.pause.since is not None):
        return
    if not on:
        await plane.note("console.resumed", "A person let calls go on")
        plane.pause.end()
        plane.facts.publish(PauseChanged(paused_at=None))
        return
    plane.pause.begin(plane.clock.now())
    plane.facts.publish(PauseChanged(paused_at=plane.pause.since))
    try:
        await plane.note("console.paused", "A person holds all calls")
    except StorageUnavailable as error:
        raise StorageUnavailable(
            f"All calls are held, but that could not be put on record: {error.message}"
        ) from error


async def _end_session(plane: ControlPlane, session_id: str) -> None:
    if not await plane.session_desk.end(session_id, "a person ended it", by="person"):
        raise NotFound("That session has ended already. Nothing changed.")
