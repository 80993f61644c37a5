"""The names of the events that the audit records, and whose doing each is.

A name is part of every record, which is hashed: it never changes once a release has written it,
however the words in the code do.
"""

from enum import StrEnum
from typing import Final, Literal, TypeAlias

Actor: TypeAlias = Literal["agent", "aileron", "person"]


class AuditEvent(StrEnum):
    """The kind of event that a record is about."""

    RUN_REQUESTED = "run.requested"
    RUN_ASKED_AGAIN = "run.asked_again"
    RUN_STARTED = "run.started"
    RUN_HALTED = "run.halted"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_UNKNOWN = "run.unknown"
    RUN_ACKNOWLEDGED = "run.acknowledged"
    """A person took note that nobody knows how it ended; until then it waits for one (`OUTCOME_CLOSED`)."""
    RUN_RECOVERED = "run.recovered"
    RUN_DELIVERED = "run.delivered"
    CALL_REFUSED = "call.refused"
    ARGUMENTS_FORGOTTEN = "arguments.forgotten"
    HISTORY_SEALED = "history.sealed"
    HISTORY_ERASED = "history.erased"

    PREVIEW_FETCHED = "preview.fetched"
    PREVIEW_UNAVAILABLE = "preview.unavailable"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_WITHDRAWN = "approval.withdrawn"
    RECHECK_HELD = "recheck.held"
    RECHECK_DIFFERED = "recheck.differed"
    RECHECK_UNDONE = "recheck.undone"
    RECHECK_CONFLICT = "recheck.conflict"
    OUTCOME_LOOKED_AT = "outcome.looked_at"
    OUTCOME_SETTLED = "outcome.settled"
    """A person looked again at a run whose outcome is unknown: the service holds what was approved."""
    READ_BACK_HELD = "read_back.held"
    READ_BACK_DIFFERED = "read_back.differed"
    READ_BACK_UNAVAILABLE = "read_back.unavailable"
    READ_BACK_SEEN = "read_back.seen"
    """A person saw how the service differs from what they approved; until then it waits for one."""

    SESSION_OPENED = "session.opened"
    SESSION_HELD = "session.held"
    SESSION_ENDED = "session.ended"
    SESSION_SEEN_OUTSIDE = "session.seen_outside"
    """Its launcher claimed that it is contained, and it was observed not to be."""
    GATEWAY_PASSED = "gateway.passed"

    LIBRARY_ACCEPTED = "library.accepted"
    LIBRARY_WITHDRAWN = "library.withdrawn"
    LIBRARY_TAKEN_IN = "library.taken_in"
    """Not written any more: older records name an acceptance so."""
    LIBRARY_HELD_BACK = "library.held_back"
    """Not written any more: older records name a withdrawn acceptance so."""
    LIBRARY_REMOVED = "library.removed"
    """A file went: what comes in its place waits for a person, whatever its bytes."""

    CONSOLE_STARTED = "console.started"
    CONSOLE_STOPPED = "console.stopped"
    CONSOLE_PORT = "console.port"
    CONSOLE_PAUSED = "console.paused"
    CONSOLE_RESUMED = "console.resumed"
    CONSOLE_EVERYTHING_STOPPED = "console.everything_stopped"
    STORAGE_MIGRATED = "storage.migrated"
    STORAGE_MENDED = "storage.mended"
    AUDIT_CUT = "audit.cut"
    """`audit.head` knew records that the table did not have when a console started."""
    AUDIT_UNREADABLE = "audit.unreadable"
    """Never written: shown in the place of a record that another program spoilt."""

    @property
    def actor(self) -> Actor:
        """Who acts in it, unless the record itself says otherwise."""
        if self in _OF_AGENTS:
            return "agent"
        return "person" if self in _OF_PEOPLE else "aileron"


OUTCOME_CLOSED: Final = (AuditEvent.RUN_ACKNOWLEDGED, AuditEvent.OUTCOME_SETTLED)
"""Each ends that a run whose outcome is unknown waits for a person."""

_OF_AGENTS = frozenset(
    {
        AuditEvent.RUN_REQUESTED,
        AuditEvent.RUN_ASKED_AGAIN,
        AuditEvent.RUN_DELIVERED,
        AuditEvent.CALL_REFUSED,
        AuditEvent.APPROVAL_WITHDRAWN,
        AuditEvent.SESSION_OPENED,
        AuditEvent.SESSION_HELD,
        AuditEvent.GATEWAY_PASSED,
    }
)
_OF_PEOPLE = frozenset(
    {
        AuditEvent.APPROVAL_APPROVED,
        AuditEvent.APPROVAL_DENIED,
        AuditEvent.OUTCOME_LOOKED_AT,
        AuditEvent.OUTCOME_SETTLED,
        AuditEvent.READ_BACK_SEEN,
        AuditEvent.RUN_ACKNOWLEDGED,
        AuditEvent.LIBRARY_ACCEPTED,
        AuditEvent.LIBRARY_WITHDRAWN,
        AuditEvent.LIBRARY_TAKEN_IN,
        AuditEvent.LIBRARY_HELD_BACK,
        AuditEvent.CONSOLE_PAUSED,
        AuditEvent.CONSOLE_RESUMED,
        AuditEvent.CONSOLE_EVERYTHING_STOPPED,
    }
)
