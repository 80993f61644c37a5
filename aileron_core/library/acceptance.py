"""The table of acceptances, by digest: a row counts only if it is what the audit's newest record of its name says."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import rfc3339
from aileron_core.connectors.read_names import unchecked_op

if TYPE_CHECKING:
    from aileron_core.storage.database import Tx

RecordKey: TypeAlias = tuple[str, str]
"""Kind and name."""


SetName: TypeAlias = Literal["accepted files", "accepted projects", "settings", "policy"]
"""Of rows that the vault's key protects as one. Promised once released: keys are derived from it."""


@dataclass(frozen=True, slots=True)
class AcceptedKind:
    """One kind of what a person accepts by a row of its own."""

    noun: str
    """What a record calls it, before its name."""
    of: str = ""
    """The kind of the file that it goes with: it ends with that file's acceptance."""
    set: SetName = "accepted files"


KINDS: Final[Mapping[str, AcceptedKind]] = {
    "action": AcceptedKind("action"),
    "connector": AcceptedKind("connector"),
    "preview": AcceptedKind("preview POST requests of", of="connector"),
    "run_time": AcceptedKind("longer time of the action", of="action"),
    "publisher": AcceptedKind("key of the publisher"),
    "project": AcceptedKind("settings of a project for", set="accepted projects"),
    "settings": AcceptedKind("settings of", set="settings"),
    "policy": AcceptedKind("rules of", set="policy"),
}

# A new vault's key protects a `config.toml` as it is, and that record says so.
_ACCEPTED = {
    AuditEvent.LIBRARY_ACCEPTED,
    AuditEvent.LIBRARY_TAKEN_IN,
    AuditEvent.LIBRARY_AUTHENTICATED,
}
_WITHDRAWN = {AuditEvent.LIBRARY_WITHDRAWN, AuditEvent.LIBRARY_HELD_BACK}
_EVENTS = (*_ACCEPTED, *_WITHDRAWN, AuditEvent.LIBRARY_REMOVED)
_MAC = "hmac of "
"""Begins the keys of `meta` under which HMACs of sets are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRecord:
    """One thing that is accepted, in exactly these bytes."""

    kind: str
    """One of `KINDS`."""
    name: str
    """An action file's name in the folder; a connector's `fqn@version`, for `preview` with what its
    previews may read by POST after it; a publisher's `github://OWNER/REPO`; `<agent> <folder>`;
    `config.toml` or `policy.toml`."""
    digest: str
    """Of bytes; of a publisher's key its fingerprint."""
    accepted_at: float
    """Epoch seconds."""
    accepted_by: str
    """`person`, or `--accept-installed`; empty where a new vault protects what is there."""

    @property
    def key(self) -> RecordKey:
        return self.kind, self.name

    @property
    def owner(self) -> RecordKey:
        """The key of the file that it goes with; its own where that is a file itself."""
        of = KINDS[self.kind].of if self.kind in KINDS else ""
        # A connector's name has no blank, and an action file's name stands alone.
        name = self.name.partition(" ")[0] if of == "connector" else self.name
        return of or self.kind, name

    def to_audit(
        self, event: AuditEvent, at: float, summary: str, extra: Mapping[str, Json] | None = None
    ) -> AuditRecord:
        """Return the record of what happens to this acceptance at *at*, in epoch seconds."""
        by = {"by": self.accepted_by} if event == AuditEvent.LIBRARY_ACCEPTED else {}
        about = {"kind": self.kind, "name": self.name, "digest": self.digest, **by}
        return AuditRecord(
            at=rfc3339(at), event=event, summary=summary, extra={**about, **(extra or {})}
        )


def owned_by(
    records: Iterable[AcceptanceRecord], files: Iterable[AcceptanceRecord]
) -> list[AcceptanceRecord]:
    """Return those of *records* that go with one of *files*, whatever its bytes, without these."""
    keys = {each.key for each in files}
    return [each for each in records if each.owner in keys and each.key not in keys]


def removals(
    files: Collection[AcceptanceRecord], records: Iterable[AcceptanceRecord], at: float
) -> dict[AcceptanceRecord, AuditRecord]:
    """Return *files*, which were removed, and what of *records* goes with them, each with the record of it.

    From that record on no row of the name counts, even if the same bytes come back.
    """
    return {
        each: each.to_audit(
            AuditEvent.LIBRARY_REMOVED, at, f"Removed, and no longer accepted: {each.name}"
        )
        for each in (*files, *owned_by(records, files))
    }


def named(
    records: Iterable[AcceptanceRecord], kind: str, name: str
) -> tuple[AcceptanceRecord, ...]:
    """Return that of *records* which is of a file: an action by its file's name, a connector by its hash."""
    return tuple(
        each
        for each in records
        if each.kind == kind and name == (each.name if kind == "action" else each.digest)
    )


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
    accepted = {(each.key, each.digest) for each in load_recorded(connection)}
    return [each for each in load_rows(connection) if (each.key, each.digest) in accepted]


def load_recorded(connection: sqlite3.Connection) -> list[AcceptanceRecord]:
    """Return what the newest record of each name accepts, whether there is a row of it now or not.

    Who accepted it, and when, is only in the row.
    """
    return [
        AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=0, accepted_by="")
        for (kind, name), (event, digest, _) in _newest(connection).items()
        if event in _ACCEPTED
    ]


def load_rows(connection: sqlite3.Connection) -> list[AcceptanceRecord]:
    """Return the rows as they are, whether they accept something or not."""
    rows = connection.execute("SELECT kind, name, digest, taken_at, taken_by FROM pins")
    return [
        AcceptanceRecord(kind=kind, name=name, digest=digest, accepted_at=at, accepted_by=by)
        for kind, name, digest, at, by in rows
    ]


def delete_others(tx: "Tx", kinds: Collection[str], wanted: Collection[RecordKey]) -> None:
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
    """Return the digest of every row, whether it accepts something or not, and an action's earlier one."""
    rows = load_rows(connection)
    earlier = load_earlier(connection)
    before = {earlier.get(each.key) for each in rows if each.kind == "action"}
    return {each.digest for each in rows} | {each for each in before if each}


def load_earlier(connection: sqlite3.Connection) -> dict[RecordKey, str]:
    """Return the digest that was accepted of each (kind, name) before the one that was accepted last."""
    last: dict[RecordKey, str] = {}
    earlier: dict[RecordKey, str] = {}
    for key, event, digest, _ in _records(connection):
        if event not in _ACCEPTED:
            continue
        if last.get(key, digest) != digest:
            earlier[key] = last[key]
        last[key] = digest
    return earlier


def load_withdrawn(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Return (kind, name, digest) of what a person withdrew and has not accepted again since."""
    return {
        (kind, name, digest)
        for (kind, name), (event, digest, _) in _newest(connection).items()
        if event in _WITHDRAWN
    }


def load_times(connection: sqlite3.Connection) -> Mapping[RecordKey, str]:
    """Return the time of the newest record about each (kind, name)."""
    return {key: at for key, (_, _, at) in _newest(connection).items()}


def _newest(connection: sqlite3.Connection) -> Mapping[RecordKey, tuple[str, str, str]]:
    """Return event, digest and time of the newest record about each (kind, name)."""
    return {key: (event, digest, at) for key, event, digest, at in _records(connection)}


def _records(connection: sqlite3.Connection) -> Iterator[tuple[RecordKey, str, str, str]]:
    """Yield (kind, name), event, digest and time of each record about something that is accepted, in order."""
    places = ", ".join("?" for _ in _EVENTS)
    # `run IS NULL` first: an index finds these few among all the records of runs.
    for event, body in connection.execute(
        f"SELECT event, body FROM audit WHERE run IS NULL AND event IN ({places}) ORDER BY seq",  # noqa: S608
        _EVENTS,
    ):
        record = _parsed(body)
        kind, name, digest = record.get("kind"), record.get("name"), record.get("digest")
        if isinstance(kind, str) and isinstance(name, str) and isinstance(digest, str):
            yield (kind, name), event, digest, str(record.get("at"))


def _parsed(body: object) -> dict[str, Any]:
    try:
        content: Any = json.loads(str(body))
    except (ValueError, RecursionError):  # another program damaged it: it proves nothing
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


READS_KIND: Final = "preview"
"""The kind of such an acceptance."""


def reads_of(records: Iterable[AcceptanceRecord], ref: str) -> list[AcceptanceRecord]:
    """Return those of *records* that are about reads of the connector *ref*, whatever its bytes."""
    return [each for each in records if each.kind == READS_KIND and each.name.startswith(f"{ref} ")]


def accepted_reads(records: Iterable[AcceptanceRecord], ref: str, digest: str) -> dict[str, str]:
    """Return what the connector *ref* with exactly *digest* may read by POST, and who accepted each.

    A connector that is not accepted itself may read nothing.
    """
    found = list(records)
    if not any((each.kind, each.name, each.digest) == ("connector", ref, digest) for each in found):
        return {}
    return {
        each.name.removeprefix(f"{ref} "): each.accepted_by
        for each in reads_of(found, ref)
        if each.digest == digest
    }


def why_not_counted(read: str, identity: ConnectorIdentity, actions: Iterable[Action]) -> str:
    """Return why *read* of a connector does not count, as a sentence; empty where it does.

    Unchecked requests count only of an op that an accepted action declares idempotent of exactly
    these bytes, and that no accepted action gates.

    Args:
        read: as `posted_reads` names it.
        identity: the connector's.
        actions: those that are accepted and have no errors.
    """
    op = unchecked_op(read)
    declared = not op
    for action in actions:
        steps = [each for each in action.steps if (each.connector, each.op) == (identity.fqn, op)]
        if steps and action.gated:
            return f"It does not count: the gated action {action.name} has the op {op}."
        pinned = (identity.fqn, identity.hash) in {
            (each.fqn, each.hash) for each in action.requires
        }
        declared |= pinned and any(each.idempotent is True for each in steps)
    return "" if declared else f"It does not count: no accepted action declares {op} idempotent."


def reads_gated_by(
    records: Iterable[AcceptanceRecord], actions: Iterable[Action]
) -> list[AcceptanceRecord]:
    """Return those of *records* that let an op send unchecked requests which one of *actions* gates."""
    gated = {(step.connector, step.op) for each in actions if each.gated for step in each.steps}
    return [
        each
        for each in records
        if each.kind == READS_KIND and _connector_and_op(each.name) in gated
    ]


def _connector_and_op(name: str) -> tuple[str, str]:
    ref, _, read = name.partition(" ")
    return ref.rpartition("@")[0], unchecked_op(read)
