"""What each intent of a person does. Answers are facts; what did nothing raises its reason."""

from aileron_core.app import App
from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.port import (
    Accept,
    AcceptSuite,
    Approve,
    AuditExported,
    AuditVerified,
    Deny,
    EndSession,
    ExportAudit,
    FetchAgain,
    Intent,
    PauseChanged,
    ReadApprovals,
    ReadRecord,
    ReadRecords,
    RecordRead,
    RecordsRead,
    Refresh,
    SetPause,
    StopEverything,
    VerifyAudit,
    WithdrawAcceptance,
)
from aileron_core.errors import NotFound, StorageUnavailable

__all__ = ["carry_out"]


async def carry_out(app: App, intent: Intent) -> None:
    """Do what a person wants, on *app*'s loop.

    Raises:
        AileronError: it did nothing, or not all; the message is the sentence for the person.
    """
    match intent:
        case Approve():
            await app.approvals.approve(
                intent.approval_id, intent.digest, unseen_lines=intent.unseen_lines
            )
        case Deny():
            await app.approvals.deny(intent.approval_id, intent.reason)
        case Refresh() | FetchAgain():
            look = (
                app.approvals.refresh if isinstance(intent, Refresh) else app.approvals.fetch_again
            )
            await look(intent.approval_id)
        case Accept() | AcceptSuite():
            await _take_in(app, intent)
        case WithdrawAcceptance():
            await app.library.withdraw_acceptance(intent.kind, intent.name, intent.digest)
        case SetPause():
            await _pause(app, on=intent.on)
        case StopEverything():
            app.events.publish(await app.emergency_stop.carry_out())
        case EndSession():
            await _end_session(app, intent.session_id)
        case ReadApprovals():
            await app.publisher.tell_approvals_after(intent.requested_at, intent.run_id)
        case ReadRecords() | ReadRecord() | VerifyAudit() | ExportAudit():
            app.events.publish(await _of_the_audit(app, intent))


async def _take_in(app: App, intent: Accept | AcceptSuite) -> None:
    if isinstance(intent, AcceptSuite):
        await app.library.accept_suite(intent.suite_id, intent.files, by="person")
        return
    await app.library.accept(intent.kind, intent.name, intent.digest, by="person")
    if intent.kind == "preview":
        app.look_again_for(intent.name)


async def _of_the_audit(
    app: App, intent: ReadRecords | ReadRecord | VerifyAudit | ExportAudit
) -> RecordsRead | RecordRead | AuditVerified | AuditExported:
    """Return the answer to what only reads."""
    match intent:
        case ReadRecords():
            return await app.audit.page(intent.before_seq, intent.limit)
        case ReadRecord():
            return await app.audit.record(intent.seq)
        case VerifyAudit():
            return await app.audit.verify()
        case ExportAudit():
            return await app.audit.export()


async def _pause(app: App, *, on: bool) -> None:
    """Hold all calls, at once; or let them go on, once that is on record."""
    if on == (app.pause.since is not None):
        return
    if not on:
        await app.note(AuditEvent.CONSOLE_RESUMED, "A person let calls go on")
        app.pause.end()
        app.events.publish(PauseChanged(paused_at=None))
        return
    app.pause.begin(app.clock.now())
    app.events.publish(PauseChanged(paused_at=app.pause.since))
    try:
        await app.note(AuditEvent.CONSOLE_PAUSED, "A person holds all calls")
    except StorageUnavailable as error:
        raise StorageUnavailable(
            f"All calls are held, but that could not be put on record: {error.message}"
        ) from error


async def _end_session(app: App, session_id: str) -> None:
    if not await app.session_service.end(session_id, "a person ended it", by="person"):
        raise NotFound("That session has ended already. Nothing changed.")
