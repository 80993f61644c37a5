"""An audit record before it is numbered, once it is committed, and as the head of the chain; how it is hashed.

A record's hash is SHA-256(hash of the record before, JCS text of this one). What a call contained is hashed
with a key of the call, since records are kept for ever: once the key was deleted with the content, nobody
can test a guess of it against them.
"""

import hashlib
import hmac
from dataclasses import dataclass, field

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.canonical import Json, JsonObject, canonical


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


GENESIS = bytes(32)
"""The hash before the first record."""


def chain_hash(prev: bytes, body: bytes) -> bytes:
    """Return the hash of the record whose text is *body*, after the one whose hash is *prev*."""
    return hashlib.sha256(prev + body).digest()


def content_hash(content: bytes, key: str | None) -> str:
    """Return what a record says of *content*: HMAC-SHA256 under *key*, hexadecimal.

    Args:
        key: of the call, hexadecimal; None for one of before schema 4, whose records have SHA-256.
    """
    if key is None:
        return hashlib.sha256(content).hexdigest()
    # Not `hmac.digest`, which holds the interpreter lock: 15 MiB for 14 ms.
    return hmac.new(bytes.fromhex(key), content, "sha256").hexdigest()


def record_body(seq: int, record: AuditRecord) -> JsonObject:
    """Return the JSON object whose JCS text is hashed."""
    return {
        **record.extra,
        "seq": seq,
        "at": record.at,
        "event": str(record.event),
        "run": record.run,
        "session": record.session,
        "action": record.action,
        "actor": record.actor,
        "summary": record.summary,
    }


def seal(seq: int, prev: bytes, record: AuditRecord) -> tuple[str, bytes]:
    """Return the body text and hash of *record* as number *seq* after *prev*."""
    body = canonical(record_body(seq, record))
    return body.decode(), chain_hash(prev, body)
