"""An audit record before it is numbered, once it is committed, and as the head of the chain."""

from dataclasses import dataclass, field

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One thing that happened. Never arguments, a preview or a secret."""

    at: str
    """RFC 3339 UTC."""
    event: AuditEvent
    summary: str
    """One sentence for a person, in Aileron's own words."""
    by: Actor | None = None
    """Who acted, where it is not whom the event names."""
    run: str | None = None
    session: str | None = None
    action: str | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])
    """Further members of the body: digest, words, approval, state, hashes."""

    @property
    def actor(self) -> Actor:
        return self.by or self.event.actor


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRecord:
    """A record that is on disk, with its number and place in the chain."""

    seq: int
    hash: bytes
    record: AuditRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The newest record: its number (which is also the count), hash and time."""

    seq: int
    hash: bytes
    at: str
    signed: str = ""
    """This head, or the newest earlier one that was, signed with the vault's key; empty where none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHead:
    """A head as it was written down outside the database."""

    seq: int
    hash: str
    """Hexadecimal."""
    count: int
    at: str
    source: str = "audit.head"
