"""View 2: what agents did, one row for each call, newest first; what else happened stands between.

A row keeps its place from its first record on: nothing is sorted anew while one reads.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.view_models import ApprovalView, RecordView
from aileron_tui import words
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.call_page import record_blocks
from aileron_tui.draw.columns import Column, Row
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.rows import detail_part, join_fitting
from aileron_tui.draw.text import Line, Piece, Role, line, truncate
from aileron_tui.draw.times import age, clock_seconds, time_running
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.input.situation import RunningCall
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.tables.table import KeyedTable

ROWS_KEPT = 1_000
"""Rows kept; the audit has the rest."""
HOUR_SECONDS = 3600.0

_STATES: Mapping[str, str] = {
    AuditEvent.RUN_REQUESTED: "pending",
    AuditEvent.RUN_ASKED_AGAIN: "pending",
    AuditEvent.RUN_HALTED: "pending",
    AuditEvent.RUN_RECOVERED: "pending",
    AuditEvent.RECHECK_UNDONE: "pending",
    AuditEvent.RECHECK_DIFFERED: "changed",
    AuditEvent.RECHECK_CONFLICT: "failed",
    AuditEvent.APPROVAL_APPROVED: "approved",
    AuditEvent.RUN_STARTED: "executing",
    AuditEvent.RUN_COMPLETED: "completed",
    AuditEvent.RUN_FAILED: "failed",
    AuditEvent.RUN_UNKNOWN: "unknown",
    AuditEvent.OUTCOME_SETTLED: "settled",
    AuditEvent.APPROVAL_DENIED: "denied",
    AuditEvent.APPROVAL_EXPIRED: "expired",
    AuditEvent.APPROVAL_WITHDRAWN: "withdrawn",
    AuditEvent.CALL_REFUSED: "refused",
    AuditEvent.RUN_DENIED_BY_RULE: "denied",
}
"""How far a run came, by the record that says so; other records change nothing about it."""

_ROLES: Mapping[str, Role] = {
    "pending": "fact",
    "changed": "attn",
    "approved": "ok",
    "executing": "ok",
    "completed": "ok",
    "failed": "danger",
    "unknown": "attn",
    "settled": "ok",
    "denied": "danger",
    "refused": "danger",
}
_DECIDED = frozenset({"approved", "completed", "denied"})


@dataclass(slots=True)
class ActivityEntry:
    """One call, or one other thing that happened. `key` stays the same for its life."""

    key: str
    first: RecordView
    records: list[RecordView] = field(default_factory=list[RecordView])
    state: str = ""
    """A state of `words.GLYPHS`; empty for what is not a call."""
    state_record: RecordView | None = None
    """The record that says the state."""
    gated: bool = False

    def add(self, record: RecordView) -> None:
        self.records.append(record)
        self.gated = self.gated or record.event in (
            AuditEvent.RUN_REQUESTED,
            AuditEvent.APPROVAL_APPROVED,
        )
        if record.event in _STATES:
            self.state, self.state_record = _STATES[record.event], record


class ActivityTable(KeyedTable[ActivityEntry]):
    """The rows of view 2. It follows the newest until the cursor moves."""

    fields: ClassVar[tuple[str, ...]] = ("agent", "action", "state")

    def __init__(self, records: Iterable[RecordView], now: float) -> None:
        super().__init__(
            Column("time", lambda e, _: line(Piece(clock_seconds(e.first.at), "muted")), 10),
            Column("state", lambda e, _: _state(e), 12),
            Column("agent", lambda e, _: foreign_text(e.first.agent, "muted"), 11, 8, 100),
            Column("action", _action, 22, 14),
            Column("what", lambda e, _: foreign_text(self._gist(e)), 34, 20, 100),
            Column("why", lambda e, row: self._why(e, row.now), 0, 26),
        )
        self._entries: dict[str, ActivityEntry] = {}
        self._approvals: dict[str, ApprovalView] = {}
        self._follows = True
        self._seen = 0
        """The number of the newest record when the person stopped following."""
        for record in records:
            self._take(record)
        self._reorder(now)

    # What comes in

    def add(self, record: RecordView, now: float) -> None:
        self._take(record)
        self._reorder(now)

    def add_approval(self, view: ApprovalView) -> None:
        """Add what is known of a call: its summary is Aileron's own."""
        self._approvals[view.run_id] = view
        if (entry := self._entries.get(view.run_id)) is not None:
            self.columns.measure((entry,), entry.first.at)
        if len(self._approvals) > ROWS_KEPT:
            del self._approvals[next(iter(self._approvals))]

    @property
    def approval(self) -> ApprovalView | None:
        current = self.current
        return self._approvals.get(current.key) if current is not None else None

    def _take(self, record: RecordView) -> None:
        key = record.run_id or f"record {record.seq}"
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = ActivityEntry(key=key, first=record)
            if len(self._entries) > ROWS_KEPT:
                del self._entries[next(iter(self._entries))]
        entry.add(record)
        self.columns.measure((entry,), record.at)

    def measure(self, items: Sequence[ActivityEntry], now: float) -> None:
        """Only what came in was not measured yet."""

    def _reorder(self, now: float) -> None:
        if self._follows:
            self._selected = None
        self.set_items(tuple(reversed(self._entries.values())), now)

    # The cursor

    @property
    def following(self) -> bool | None:
        return self._follows

    def follow(self) -> None:
        self._follows, self._selected = True, None

    def select(self, row: int) -> None:
        """Select *row*, and stop following unless it is the newest."""
        if row > 0:
            self.stop_following()
        if not self._follows:
            super().select(row)

    def stop_following(self) -> None:
        if self._follows:
            self._follows = False
            self._seen = max((e.first.seq for e in self._entries.values()), default=0)
            super().select(0)

    # Drawing

    def key_of(self, item: ActivityEntry) -> str:
        return item.key

    def fields_of(self, item: ActivityEntry) -> FilterFields:
        record = item.first
        state = f"{item.state} {_state_word(item)}"
        summaries = " ".join(each.summary for each in item.records)
        what = self._gist(item)
        text = f"{record.agent} {record.action or ''} {record.event} {state} {summaries} {what}"
        named = {"agent": record.agent, "action": record.action or "", "state": state}
        return FilterFields(text=text, fields=named, at=record.at)

    @property
    def version(self) -> tuple[object, ...]:
        current = self.current
        return (current.key,) if current is not None else ()

    def _gist(self, item: ActivityEntry) -> str:
        known = self._approvals.get(item.key)
        return known.preview.gist if known is not None else ""

    def summary(self, now: float, width: int) -> Line:
        """Return what the last hour was like."""
        recent = [e for e in self._entries.values() if e.state and now - e.first.at <= HOUR_SECONDS]
        decided = [self._waited(e) for e in recent if e.state != "expired"]
        waits = [seconds for seconds in decided if seconds is not None]
        parts = words.views.last_hour(
            calls=len(recent),
            free=sum(not each.gated and each.state != "refused" for each in recent),
            approved=sum(
                each.gated and any(r.event == AuditEvent.APPROVAL_APPROVED for r in each.records)
                for each in recent
            ),
            denied=sum(each.state == "denied" for each in recent),
            median=age(median(waits)) if waits else "",
        )
        return line(" ", Piece(join_fitting(parts, width - 2), "muted"))

    def _waited(self, entry: ActivityEntry) -> float | None:
        """Return how long the person took, where a person answered."""
        if entry.first.event != AuditEvent.RUN_REQUESTED:
            return None
        for each in entry.records:
            if each.event in (AuditEvent.APPROVAL_APPROVED, AuditEvent.APPROVAL_DENIED):
                return each.at - entry.first.at
        return None

    def _why(self, item: ActivityEntry, now: float) -> Line:
        telling = item.state_record or item.records[-1]
        if item.state == "completed" and not item.gated:
            took = telling.at - item.first.at
            return (Piece(words.views.not_gated(took), "muted"),)
        waited, known = self._waited(item), self._approvals.get(item.key)
        if item.state == "denied" and known is not None and known.reason:
            return line(Piece(words.views.YOU_SAID, "muted"), '"', *foreign_text(known.reason), '"')
        if item.state in _DECIDED and waited is not None:
            return (Piece(words.views.you(age(waited)), "muted"),)
        if item.state == "executing" and item.state_record is not None:
            start = item.state_record
            time = time_running(now - start.at, start.seconds_allowed)
            return (Piece(words.item.running(time), "ok"),)
        if item.state == "pending":
            return (Piece(words.views.ITS_FILE_ASKS, "muted"),)
        return foreign_text(telling.summary, "muted")

    def detail_of(self, item: ActivityEntry, now: float) -> Line:
        """Return the last record of its call."""
        last = item.state_record or item.records[-1]
        return line(
            *foreign_text(last.summary),
            *detail_part("agent", last.agent),
            *detail_part("action", last.action or ""),
        )

    def head_of(self, item: ActivityEntry, width: int, now: float) -> tuple[Line, ...]:
        title = foreign_text(item.first.action or item.first.event, "strong")
        first = line(" ", *_state(item), "  ", *title)
        who = item.first.agent or words.views.ACTORS.get(item.first.actor, words.views.NAME)
        by = line(" ", Piece("by ", "muted"), *foreign_text(who, "strong"))
        since = Piece(f", {age(now - item.first.at)} ago", "muted")
        return (truncate(first, width - 1), truncate(line(*by, since), width - 1))

    @property
    def running(self) -> RunningCall | None:
        """The call of the selected row, while its steps run."""
        item = self.current
        if item is None or item.state != "executing" or item.state_record is None:
            return None
        start = item.state_record
        return RunningCall(run_id=item.key, name=start.action or "", started_at=start.at)

    @property
    def run_id(self) -> str:
        """The run of the selected row; empty where it is no call."""
        current = self.current
        return (current.first.run_id or "") if current is not None else ""

    def blocks_of(self, item: ActivityEntry, *, unfold: bool) -> Iterable[Block]:
        """Return its records, oldest first; of a call there is a page of its own."""
        return record_blocks(item.records)

    def status(self, registry: CommandRegistry) -> Line:
        """Return the order, or what came in above while the person reads."""
        if not self._entries:
            return (Piece(words.views.NO_RECORDS, "muted"),)
        if self._follows:
            return (Piece(words.views.ACTIVITY_REMARK, "muted"),)
        above = sum(entry.first.seq > self._seen for entry in self._entries.values())
        text = (
            words.views.new_above(above, registry.key_label("follow"))
            if above
            else words.views.ACTIVITY_REMARK
        )
        return (Piece(text, "muted"),)


def _action(item: ActivityEntry, row: Row) -> Line:
    if item.first.action is None:
        return foreign_text(item.first.event, "muted")
    return foreign_text(item.first.action, row.role)


def _state(item: ActivityEntry) -> Line:
    if not item.state:
        return (Piece(words.views.OTHER, "muted"),)
    role = _ROLES.get(item.state, "muted")
    glyph = words.views.GLYPHS.get(item.state) or words.item.GLYPHS[item.state]
    return (Piece(glyph, role), Piece(f" {_state_word(item)}", role))


def _state_word(item: ActivityEntry) -> str:
    if not item.state:
        return ""
    return words.views.STATES.get(item.state) or words.item.OUTCOMES[item.state]
