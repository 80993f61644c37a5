"""What each fact of the core changes in the console's state, and what the voice reports of it."""

from aileron_core.console_port import (
    WAITING_STATES,
    ApprovalsRead,
    ApprovalUpdated,
    ApprovalView,
    AuditExported,
    AuditVerified,
    CoreEvent,
    CoreLost,
    EverythingStopped,
    IntentRefused,
    LibraryUpdated,
    PauseChanged,
    Recorded,
    RecordRead,
    RecordsRead,
    SessionsUpdated,
    StorageHealth,
)
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.state import outcomes
from aileron_tui.state.model import Model


def apply_event(model: Model, fact: CoreEvent, now: float, at: float) -> bool:
    """Take *fact* into *model*; return whether a call came to wait that was not there before.

    *now* is epoch seconds, *at* monotonic seconds.
    """
    match fact:
        case ApprovalUpdated():
            return _approval(model, fact.view, now, at)
        case ApprovalsRead():
            model.calls_read(fact)
        case Recorded():
            model.records.append(fact.record)
            model.head_words = fact.head_words
            model.activity.add(fact.record, now)
            model.audit.add(fact.record, now)
        case LibraryUpdated():
            _library(model, fact, now, at)
        case SessionsUpdated():
            _sessions(model, fact, now, at)
        case RecordsRead():
            model.audit.take(fact, now)
        case RecordRead():
            model.audit.read_whole(fact)
        case AuditVerified():
            model.audit.verify_ended(fact)
        case _:
            _whole(model, fact, at)
    return False


def _whole(model: Model, fact: CoreEvent, at: float) -> None:
    """Take a fact about the core as a whole."""
    match fact:
        case StorageHealth():
            model.health = fact
        case PauseChanged():
            model.paused_at = fact.paused_at
        case AuditExported():
            model.say(outcomes.audit_exported(fact), at)
        case EverythingStopped():
            model.say(outcomes.everything_stopped(fact), at)
        case IntentRefused():
            model.sent.refused(fact.approval_id)
            model.audit.refused()
            model.say(foreign_text(fact.message, "attn"), at)
        case CoreLost():
            model.lost = fact.message
            model.sent.clear()
        case _:
            pass  # the others are taken one by one


def _approval(model: Model, view: ApprovalView, now: float, at: float) -> bool:
    key, queue = view.approval_id, model.queue
    known = queue.get(key)
    if known is None and queue.to_come:
        model.set_aside(view)  # it is read in its turn, as it stands then
        return False
    before = known.approval if known is not None else None
    arrived = queue.apply(view, now)
    model.activity.know(view)
    model.denying.calls.take(view)
    item = queue.get(key)
    model.sent.approval(view, item.version if item is not None else ())
    if before is None or before.state == view.state:
        return arrived
    if before.state in WAITING_STATES and view.state not in WAITING_STATES:
        _ended(model, view, at)
    elif queue.was_mine(key) and (told := outcomes.outcome_of_mine(view)) is not None:
        model.say(told, at)
    return arrived


def _ended(model: Model, view: ApprovalView, at: float) -> None:
    """Report an end, and let the cursor go on where the person decided."""
    selected = view.approval_id == model.queue.selected
    if model.queue.was_mine(view.approval_id):
        calls = model.denying.ended(view.approval_id) if view.state == "denied" else 1
        model.say(outcomes.ended_here(view, calls), at)
        if selected:
            model.queue.advance()
    elif selected:
        model.say(outcomes.ended_elsewhere(view), at)


def _library(model: Model, fact: LibraryUpdated, now: float, at: float) -> None:
    for done in model.sent.library(fact):
        model.say(outcomes.file_changed(done), at)
    model.actions_ready = fact.actions_ready
    model.queue.set_files(fact.not_accepted, fact.problems)
    model.library.renew(fact.library, fact.problems, now)


def _sessions(model: Model, fact: SessionsUpdated, now: float, at: float) -> None:
    model.sessions = fact.sessions
    model.people.renew(fact.sessions, now)
    for session_id in model.sent.sessions(fact.sessions):
        model.say(outcomes.session_ended(model.ending.pop(session_id, "")), at)
