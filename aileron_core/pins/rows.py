"""What a person took in, by digest (DESIGN 3, "Taken in, not just lying there")."""

import sqlite3
from dataclasses import dataclass

from aileron_core.storage.database import Tx

__all__ = ["Pin", "all_pins", "put"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One thing that counts, in exactly these bytes."""

    kind: str
    """`action` or `connector`."""
    name: str
    """An action file's name in the folder; a connector's `fqn@version`."""
    digest: str
    taken_at: float
    taken_by: str
    """`person`, or `--accept-installed`."""


def put(tx: Tx, pin: Pin) -> None:
    """Record that *pin* counts from now on, in place of an earlier one of that name."""
    tx.execute(
        "INSERT INTO pins(kind, name, digest, taken_at, taken_by, last_record) VALUES(?,?,?,?,?,?) "
        "ON CONFLICT(kind, name) DO UPDATE SET digest = excluded.digest, "
        "taken_at = excluded.taken_at, taken_by = excluded.taken_by, "
        "last_record = excluded.last_record",
        (pin.kind, pin.name, pin.digest, pin.taken_at, pin.taken_by, tx.next_seq()),
    )


def all_pins(connection: sqlite3.Connection) -> list[Pin]:
    """Return every pin that a record accounts for; an inserted row takes nothing in."""
    found = connection.execute(
        "SELECT kind, name, digest, taken_at, taken_by FROM pins AS p WHERE EXISTS ("
        "SELECT 1 FROM audit WHERE seq = p.last_record AND event = 'library.taken_in' "
        "AND CASE WHEN json_valid(body) THEN json_extract(body, '$.kind') = p.kind "
        "AND json_extract(body, '$.name') = p.name AND json_extract(body, '$.digest') = p.digest END)"
    )
    return [
        Pin(kind=kind, name=name, digest=digest, taken_at=at, taken_by=by)
        for kind, name, digest, at, by in found
    ]
