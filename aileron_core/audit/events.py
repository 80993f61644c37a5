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
    RUN_STOPPED = "run.stopped"
    """A person stopped it while it ran; how it ended is the record after it."""
    RUN_HALTED = "run.halted"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_UNKNOWN = "run.unknown"
    RUN_DENIED_BY_RULE = "run.denied_by_rule"
    """A rule or a grant denied a call; no person was asked."""
    RUN_UNDONE = "run.undone"
    """A person took back what a call of a built-in tool had written."""
    RUN_ACKNOWLEDGED = "run.acknowledged"
    """A person took note that nobody knows how it ended; until then it waits for one (`OUTCOME_CLOSED`)."""
    RUN_NEEDS_ACCOUNT = "run.needs_account"
    RUN_HAS_ACCOUNT = "run.has_account"
    RUN_RECOVERED = "run.recovered"
    RUN_DELIVERED = "run.delivered"
    CALL_REFUSED = "call.refused"
    ARGUMENTS_FORGOTTEN = "arguments.forgotten"
    CONTENTS_SEALED = "contents.sealed"
    HISTORY_SEALED = "history.sealed"
    HISTORY_ERASED = "history.erased"

    PREVIEW_FETCHED = "preview.fetched"
    PREVIEW_UNAVAILABLE = "preview.unavailable"
    APPROVAL_EDITED = "approval.edited"
    """A person changed the arguments of a call that waits; the record has the hashes of the new and of the agent's."""
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_STANDING = "approval.standing"
    """A rule or a grant of the person's approved in their place; the record names it, and the fields that it looked at."""
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_WITHDRAWN = "approval.withdrawn"
    GRANT_ENDED = "grant.ended"
    """A grant, which the record of an approval or a denial names, answers no more calls."""
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

    BINDING_CREATED = "binding.created"
    BINDING_REBOUND = "binding.rebound"
    """A person let a changed connector go on using the account."""
    BINDING_REVOKED = "binding.revoked"
    BINDING_REAUTHORIZED = "binding.reauthorized"
    BINDING_REMEMBERED = "binding.remembered"
    """A person had later calls of an action use the account."""
    BINDING_FORGOTTEN = "binding.forgotten"
    BINDING_REFRESHED = "binding.refreshed"
    """Its access token was renewed, as it ended."""
    BINDING_STALE = "binding.stale"
    """Its service did not renew it: somebody ended it there, or it was too old."""

    SESSION_OPENED = "session.opened"
    SESSION_HELD = "session.held"
    SESSION_ENDED = "session.ended"
    SESSION_COMMIT_RECOVERED = "session.commit_recovered"
    """It ended while what a person approved was being written; that was taken back or finished."""
    SESSION_SEEN_OUTSIDE = "session.seen_outside"
    """Its launcher claimed that it is contained, and it was observed not to be."""
    SESSION_HOST_REFUSED = "session.host_refused"
    SESSION_HOST_ALLOWED = "session.host_allowed"
    SESSION_WENT_AROUND = "session.went_around"
    """Its model called a tool of the agent's own that does not go through the gate; once for each tool."""
    SESSION_CALLS_COUNTED = "session.calls_counted"
    SESSION_TOOLS_RENAMED = "session.tools_renamed"
    """In augment mode: its model knows tools of the agent's by other names."""
    SESSION_NOT_AUGMENTED = "session.not_augmented"
    """In augment mode: a request to its model passed without Aileron's tools; once for each reason."""
    GATEWAY_PASSED = "gateway.passed"
    GATEWAY_KEY_SET = "gateway.key_set"
    """A person stored a model provider's API key in the vault."""
    GATEWAY_KEY_REMOVED = "gateway.key_removed"

    LIBRARY_ACCEPTED = "library.accepted"
    LIBRARY_WITHDRAWN = "library.withdrawn"
    LIBRARY_TAKEN_IN = "library.taken_in"
    """Not written any more: older records name an acceptance so."""
    LIBRARY_HELD_BACK = "library.held_back"
    """Not written any more: older records name a withdrawn acceptance so."""
    LIBRARY_REMOVED = "library.removed"
    """A file went: what comes in its place waits for a person, whatever its bytes."""
    LIBRARY_AUTHENTICATED = "library.authenticated"
    """From here on the vault's key protects what is accepted."""
    LIBRARY_UNVERIFIED = "library.unverified"
    """What was accepted is not what the vault's key signed: nothing of it counts."""

    VAULT_CREATED = "vault.created"
    VAULT_UNLOCKED = "vault.unlocked"
    VAULT_UNLOCK_FAILED = "vault.unlock_failed"
    VAULT_LOCKED = "vault.locked"
    VAULT_PASSPHRASE_CHANGED = "vault.passphrase_changed"  # noqa: S105 - a name
    VAULT_KEYRING_ALLOWED = "vault.keyring_allowed"
    """The system's keyring keeps a key that opens it."""
    VAULT_KEYRING_FORGOTTEN = "vault.keyring_forgotten"
    VAULT_REPLACED = "vault.replaced"
    """What was unlocked is an older copy of the vault than the record knows."""

    DEVICE_PAIRED = "device.paired"
    """A person compared its words and confirmed it: it may show what waits, and decide."""
    DEVICE_REFUSED = "device.refused"
    """It came with a right link, and was not confirmed."""
    DEVICE_ENDED = "device.ended"
    DEVICE_ASKED = "device.asked"
    """A person asked with one that is the owner's for something else than an answer; what came of it follows."""

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
    AUDIT_REWRITTEN = "audit.rewritten"
    """When the vault was unlocked, the record was not what had been signed with its key."""
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
        AuditEvent.SESSION_HOST_REFUSED,
        AuditEvent.SESSION_WENT_AROUND,
        AuditEvent.SESSION_CALLS_COUNTED,
        AuditEvent.SESSION_TOOLS_RENAMED,
        AuditEvent.SESSION_NOT_AUGMENTED,
        AuditEvent.GATEWAY_PASSED,
    }
)
_OF_PEOPLE = frozenset(
    {
        AuditEvent.APPROVAL_EDITED,
        AuditEvent.APPROVAL_APPROVED,
        AuditEvent.APPROVAL_DENIED,
        AuditEvent.OUTCOME_LOOKED_AT,
        AuditEvent.OUTCOME_SETTLED,
        AuditEvent.READ_BACK_SEEN,
        AuditEvent.RUN_ACKNOWLEDGED,
        AuditEvent.RUN_STOPPED,
        AuditEvent.RUN_UNDONE,
        AuditEvent.BINDING_CREATED,
        AuditEvent.BINDING_REBOUND,
        AuditEvent.BINDING_REVOKED,
        AuditEvent.BINDING_REAUTHORIZED,
        AuditEvent.BINDING_REMEMBERED,
        AuditEvent.BINDING_FORGOTTEN,
        AuditEvent.SESSION_HOST_ALLOWED,
        AuditEvent.GATEWAY_KEY_SET,
        AuditEvent.GATEWAY_KEY_REMOVED,
        AuditEvent.LIBRARY_ACCEPTED,
        AuditEvent.LIBRARY_WITHDRAWN,
        AuditEvent.LIBRARY_TAKEN_IN,
        AuditEvent.LIBRARY_HELD_BACK,
        AuditEvent.VAULT_CREATED,
        AuditEvent.VAULT_UNLOCKED,
        AuditEvent.VAULT_UNLOCK_FAILED,
        AuditEvent.VAULT_LOCKED,
        AuditEvent.VAULT_PASSPHRASE_CHANGED,
        AuditEvent.VAULT_KEYRING_ALLOWED,
        AuditEvent.VAULT_KEYRING_FORGOTTEN,
        AuditEvent.DEVICE_PAIRED,
        AuditEvent.DEVICE_ASKED,
        AuditEvent.CONSOLE_PAUSED,
        AuditEvent.CONSOLE_RESUMED,
        AuditEvent.CONSOLE_EVERYTHING_STOPPED,
    }
)
