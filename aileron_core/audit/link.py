"""The pure parts that making and checking the chain share."""

import hashlib
from dataclasses import dataclass

__all__ = ["StoredHead", "chain_hash"]


def chain_hash(prev: bytes, body: bytes) -> bytes:
    """Return the hash of a record: SHA-256(prev || body)."""
    return hashlib.sha256(prev + body).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHead:
    """A head as it was written down somewhere: number of the newest record, its hash, count, time."""

    seq: int
    hash: str
    count: int
    at: str
    where: str = "audit.head"
