"""What one audit record says, before it has a number."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aileron_core.canonical import Json

__all__ = ["AuditRecord", "CommittedRecord", "Seal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One thing that happened (WIRE.md, Audit). Never arguments, a preview or a secret."""

    at: str
    """RFC 3339 UTC."""
    event: str
    """Dotted, past tense: `run.completed`."""
    actor: str
    """`person`, `agent` or `aileron`."""
    summary: str
    """One sentence of ours for a person."""
    run: str | None = None
    session: str | None = None
    action: str | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])
    """Further members of the body: digest, words, approval, state, hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRecord:
    """A record that is on disk, with its number and place in the chain."""

    seq: int
    hash: bytes
    record: AuditRecord


Seal: TypeAlias = Callable[[int, bytes, AuditRecord], tuple[str, bytes]]
"""`(seq, previous hash, record) -> (body text, hash)`; given by the audit room at composition."""
