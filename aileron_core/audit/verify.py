"""Verifies the chain, and the rows of runs, sessions and acceptances against it. Pure.

It has no key: by itself this finds accidents and carelessness, not a program of the same user
that rewrites everything.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from aileron_core.audit.device_answers import DeviceAnswers
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import GENESIS, StoredHead, chain_hash
from aileron_core.canonical import canonical

ChainProblemKind = Literal["edited", "missing", "reordered", "cut", "orphan"]
_NAMED_BY = {"run": "run", "session": "session"}
"""Which member of a record names the row of each kind; an acceptance record's is its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainRow:
    """One row of the table `audit`, as read."""

    seq: int
    at: str
    event: str
    run: str | None
    prev: bytes
    hash: bytes
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRecord:
    """A row elsewhere (a run, a session, an acceptance record) that names its last record."""

    kind: str
    key: str
    last_record: int
    state: str | None = None
    """For a run: the state that its last record must state too."""
    args_sha256: str | None = None
    """For a run: the SHA-256 of its arguments, which that record must state too."""
    digest: str | None = None
    """For an acceptance record: the digest that was accepted, which that record must state too."""
    deleted: Literal["", "arguments", "everything"] = ""
    """For a run: what of its content is gone, of which a record has to say that it was deleted."""
    ended_at: str = ""
    """For a run: when it ended; empty while it has not."""
    expected_fields: Mapping[str, object] = field(default_factory=dict[str, object])
    """Further members of the record that the row determines, with their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProblem:
    """One thing wrong, at the record's number."""

    seq: int
    kind: ChainProblemKind
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the object of `audit verify --json`."""
        return {"seq": self.seq, "kind": self.kind, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """What `audit verify` found."""

    records: int
    head: str
    """Hex hash of the newest record."""
    problems: tuple[ChainProblem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    rows: Iterable[ChainRow],
    last_records: Iterable[LastRecord] = (),
    heads: Sequence[StoredHead] = (),
) -> ChainReport:
    """Check every link, the columns against the bodies, devices' answers, who names which record, and outside heads."""
    problems: list[ChainProblem] = []
    hashes: dict[int, bytes] = {}
    bodies: dict[int, dict[str, Any]] = {}
    broken: list[ChainRow] = []
    answers = DeviceAnswers()
    prev, expected = GENESIS, 1
    for row in rows:
        if row.seq != expected:
            problems.append(_gap(row.seq, expected))
        elif row.prev != prev:
            broken.append(row)
        body = _body(row, problems)
        if body is not None:
            bodies[row.seq] = body
            problems += _startup_findings(row.seq, body)
            if wrong := answers.problem(body):
                message = f"the answer in record {row.seq}: {wrong}"
                problems.append(ChainProblem(seq=row.seq, kind="edited", message=message))
        hashes[row.seq] = row.hash
        prev, expected = row.hash, row.seq + 1
    known = set(hashes.values())
    problems += (_broken(row, known) for row in broken)
    problems += _orphans(last_records, bodies)
    problems += _cuts(heads, hashes, expected - 1)
    return ChainReport(
        records=len(hashes),
        head=prev.hex(),
        problems=tuple(sorted(problems, key=lambda problem: problem.seq)),
    )


def _gap(seq: int, expected: int) -> ChainProblem:
    gone = (
        f"record {expected} is" if seq == expected + 1 else f"records {expected} to {seq - 1} are"
    )
    return ChainProblem(seq=expected, kind="missing", message=f"{gone} missing before {seq}")


def _startup_findings(seq: int, body: dict[str, Any]) -> list[ChainProblem]:
    """Return what a console found of earlier records when it started, before it wrote a new head."""
    found = {
        AuditEvent.AUDIT_CUT: "at its start",
        AuditEvent.AUDIT_REWRITTEN: "when the vault was unlocked",
        AuditEvent.VAULT_REPLACED: "when the vault was unlocked",
    }.get(cast("AuditEvent", body.get("event")))
    if found is None:
        return []
    message = f"found {found}: {body.get('summary')}"
    return [ChainProblem(seq=seq, kind="cut", message=message)]


def _broken(row: ChainRow, known: set[bytes]) -> ChainProblem:
    """Say why a record does not name the hash of the one before it."""
    if chain_hash(row.prev, _bytes(row)) == row.hash:
        if row.prev in known or row.prev == GENESIS:
            message = f"record {row.seq} does not follow record {row.seq - 1}: it was moved here"
            return ChainProblem(seq=row.seq, kind="reordered", message=message)
        message = f"record {row.seq - 1} is not the one that record {row.seq} followed when it was written"
        return ChainProblem(seq=row.seq - 1, kind="edited", message=message)
    return ChainProblem(
        seq=row.seq,
        kind="edited",
        message=f"record {row.seq} and its link to the record before it were changed",
    )


def _bytes(row: ChainRow) -> bytes:
    # Text that is not UTF-8 comes with surrogates in it and must not stop the checking.
    return row.body.encode("utf-8", "surrogateescape")


def _body(row: ChainRow, problems: list[ChainProblem]) -> dict[str, Any] | None:
    def edited(message: str) -> None:
        problems.append(ChainProblem(seq=row.seq, kind="edited", message=message))

    if chain_hash(row.prev, _bytes(row)) != row.hash:
        edited(f"record {row.seq} does not match its hash")
        return None
    try:
        parsed: Any = json.loads(row.body)
        if not isinstance(parsed, dict):
            raise ValueError
        body = cast("dict[str, Any]", parsed)
        if canonical(body).decode() != row.body:
            raise ValueError
    except (ValueError, RecursionError):
        edited(f"record {row.seq} is not canonical JSON")
        return None
    if body.get("seq") != row.seq:
        problems.append(
            ChainProblem(
                seq=row.seq,
                kind="reordered",
                message=f"the content of record {row.seq} says that it is record {body.get('seq')}",
            )
        )
    for column in ("at", "event", "run"):
        if body.get(column) != getattr(row, column):
            edited(f"record {row.seq}: the column {column} differs from the record")
    return body


def _orphans(
    last_records: Iterable[LastRecord], bodies: dict[int, dict[str, Any]]
) -> list[ChainProblem]:
    problems: list[ChainProblem] = []
    deletions = [b for b in bodies.values() if b.get("event") == AuditEvent.ARGUMENTS_FORGOTTEN]
    for named in last_records:
        body = bodies.get(named.last_record)
        if body is None or named.key != body.get(_NAMED_BY.get(named.kind, "name")):
            message = f"{named.kind} {named.key} has no audit record"
        elif named.state is not None and body.get("state") != named.state:
            message = (
                f"{named.kind} {named.key} is {named.state}, but its last record "
                f"({named.last_record}) says {body.get('state')}"
            )
        elif named.args_sha256 is not None and body.get("args_sha256") != named.args_sha256:
            message = f"{named.kind} {named.key}: its arguments differ from its record"
        elif named.digest is not None and body.get("digest") != named.digest:
            message = f"{named.kind} {named.key}: its digest differs from its record"
        elif other := sorted(
            k for k, value in named.expected_fields.items() if body.get(k) != value
        ):
            message = f"{named.kind} {named.key}: its {other[0]} differs from its record"
        elif named.deleted and not any(_accounts_for(each, named) for each in deletions):
            message = f"{named.kind} {named.key}: its arguments are gone, and no record says why"
        else:
            continue
        problems.append(ChainProblem(seq=named.last_record, kind="orphan", message=message))
    return problems


def _accounts_for(deletion: dict[str, Any], named: LastRecord) -> bool:
    """Return whether the record *deletion* is of what is gone of the run *named*."""
    runs, count = deletion.get("runs"), deletion.get("count")
    if isinstance(runs, list):  # to make room: their arguments alone
        listed = cast("list[object]", runs)
        left_out = isinstance(count, int) and count > len(listed)
        session = named.expected_fields.get("session")
        return named.key in listed or (left_out and deletion.get("session") == session)
    before = deletion.get("ended_before")
    if before is None:
        return True  # a record of an earlier version
    in_time = isinstance(before, str) and "" < named.ended_at <= before
    return in_time and named.deleted == "everything"


def _cuts(heads: Sequence[StoredHead], hashes: dict[int, bytes], last: int) -> list[ChainProblem]:
    problems: list[ChainProblem] = []
    for head in heads:
        if head.seq > last:
            message = (
                f"{head.source} ends at record {head.seq}, the table at record {last}: "
                f"{head.seq - last} were cut off"
            )
            problems.append(ChainProblem(seq=last + 1, kind="cut", message=message))
        elif head.seq > 0 and head.seq in hashes and hashes[head.seq].hex() != head.hash:
            message = f"record {head.seq} is not the one that {head.source} names"
            problems.append(ChainProblem(seq=head.seq, kind="edited", message=message))
    return problems
