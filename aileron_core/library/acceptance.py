"""The table of acceptances, by digest: a row counts only if it is what the audit's newest record of its name says."""

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from aileron_core.audit.events import AuditEvent

if TYPE_CHECKING:
    from aileron_core.storage.database import Tx

_ACCEPTED = {AuditEvent.LIBRARY_ACCEPTED, AuditEvent.LIBRARY_TAKEN_IN}
_WITHDRAWN = {AuditEvent.LIBRARY_WITHDRAWN, AuditEvent.LIBRARY_HELD_BACK}
_EVENTS = (*_ACCEPTED, *_WITHDRAWN, AuditEvent.LIBRARY_REMOVED)
_MAC = "hmac of "
"""Begins the keys of `meta` under which HMACs of sets are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRecord:
    """One thing that is accepted, in exactly these bytes."""

    kind: str
    """`action`, `connector`, `preview`, `run_time`, or `project`."""
    name: str
    """An action file's name in the folder; a connector's `fqn@version`, for `preview` with what its
    previews may read by POST after it; `<agent> <folder>`."""
    digest: str
    accepted_at: float
    """Epoch seconds."""
    accepted_by: str
    """`person`, or `--accept-installed`."""


def save_record(tx: "Tx", accepted: AcceptanceRecord) -> None:
    """Write *accepted*, in place of an earlier acceptance of that name."""
    tx.execute(
        "INSERT INTO pins(kind, name, digest, taken_at, taken_by, last_record) VALUES(?,?,?,?,?,?) "
        "ON CONFLICT(kind, name) DO UPDATE SET digest = excluded.digest, "
        "taken_at = excluded.taken_at, taken_by = excluded.taken_by, "
        "last_record = excluded.last_record",
        (
            accepted.kind,
            accepted.name,
            accepted.digest,
            accepted.accepted_at,
            accepted.accepted_by,
            tx.next_seq(),
        ),
    )


def delete_record(tx: "Tx", kind: str, name: str) -> None:
    tx.execute("DELETE FROM pins WHERE kind = ? AND name = ?", (kind, name))


def load_records(connection: sqlite3.Connection) -> list[AcceptanceRecord]:
    """Return every acceptance that the newest record of its name accounts for.

    A row that another program inserted, or put back after it was withdrawn or removed, accepts nothing.
    """
    newest = _newest(connection)
    rows = connection.execute("SELECT kind, name, digest, taken_at, taken_by FROM pins")
    return [
        AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=at, accepted_by=by)
        for kind, name, digest, at, by in rows
        if (latest := newest.get((kind, name))) and latest[0] in _ACCEPTED and latest[1] == digest
    ]


def load_rows(connection: sqlite3.Connection, kinds: Collection[str]) -> list[AcceptanceRecord]:
    """Return the rows of *kinds* as they are, whether they accept something or not."""
    rows = connection.execute("SELECT kind, name, digest, taken_at, taken_by FROM pins")
    return [
        AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=at, accepted_by=by)
        for kind, name, digest, at, by in rows
        if kind in kinds
    ]


def delete_others(tx: "Tx", kinds: Collection[str], wanted: Collection[tuple[str, str]]) -> None:
    """Delete the rows of *kinds* whose (kind, name) is not among *wanted*."""
    for kind, name in tx.execute("SELECT kind, name FROM pins").fetchall():
        if kind in kinds and (kind, name) not in wanted:
            delete_record(tx, kind, name)


def load_mac(connection: sqlite3.Connection, name: str) -> str | None:
    """Return the HMAC that is kept of the set *name*; None where there is none."""
    query = "SELECT value FROM meta WHERE key = ?"
    found = connection.execute(query, (f"{_MAC}{name}",)).fetchone()
    return None if found is None else str(found[0])


def save_mac(tx: "Tx", name: str, mac: str | None) -> None:
    """Keep *mac* of the set *name*, or none."""
    tx.execute("DELETE FROM meta WHERE key = ?", (f"{_MAC}{name}",))
    if mac is not None:
        tx.execute("INSERT INTO meta(key, value) VALUES(?, ?)", (f"{_MAC}{name}", mac))


def load_digests(connection: sqlite3.Connection) -> set[str]:
    """Return the digest of every row, whether it accepts something or not."""
    return {digest for (digest,) in connection.execute("SELECT digest FROM pins")}


def load_withdrawn(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Return (kind, name, digest) of what a person withdrew and has not accepted again since."""
    return {
        (kind, name, digest)
        for (kind, name), (event, digest) in _newest(connection).items()
        if event in _WITHDRAWN
    }


def _newest(connection: sqlite3.Connection) -> Mapping[tuple[str, str], tuple[str, str]]:
    """Return event and digest of the newest record about each (kind, name)."""
    newest: dict[tuple[str, str], tuple[str, str]] = {}
    places = ", ".join("?" for _ in _EVENTS)
    # `run IS NULL` first: an index finds these few among all the records of runs.
    for event, body in connection.execute(
        f"SELECT event, body FROM audit WHERE run IS NULL AND event IN ({places}) ORDER BY seq",  # noqa: S608
        _EVENTS,
    ):
        record = _parsed(body)
        kind, name, digest = record.get("kind"), record.get("name"), record.get("digest")
        if isinstance(kind, str) and isinstance(name, str) and isinstance(digest, str):
            newest[kind, name] = (event, digest)
    return newest


def _parsed(body: object) -> dict[str, Any]:
    try:
        content: Any = json.loads(str(body))
    except (ValueError, RecursionError):  # another program damaged it: it proves nothing
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}
