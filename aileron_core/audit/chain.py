"""Hashing a record into the chain: SHA-256(hash of the record before, JCS text of this one).

What a call contained is hashed with a key of the call, since records are kept for ever: once the key was
deleted with the content, nobody can test a guess of it against them.
"""

import hashlib
import hmac

from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import JsonObject, canonical

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
