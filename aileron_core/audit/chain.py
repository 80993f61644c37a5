"""How a record becomes a link of the chain (WIRE.md, Audit)."""

from aileron_core.audit.link import chain_hash
from aileron_core.canonical import JsonObject, canonical
from aileron_core.storage.record import AuditRecord

__all__ = ["record_body", "seal"]


def record_body(seq: int, record: AuditRecord) -> JsonObject:
    """Return the JSON object whose JCS text is hashed."""
    return {
        **record.extra,
        "seq": seq,
        "at": record.at,
        "event": record.event,
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
