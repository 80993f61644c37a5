"""View 2: what agents did, one row for each call, newest first; what else happened stands between, if asked for.

What came while this console runs is at hand, older calls are read as the cursor nears the end. A row keeps its
place: nothing is sorted anew while one reads. Words are looked for by the core, in what is kept of each call.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.events import CallsCounted, HistoryRead
from aileron_core.console_port.intents import CountCalls, ReadHistory
from aileron_core.console_port.view_models import (
    ApprovalView,
    HistoryCursor,
    HistoryQuery,
    RecordView,
)
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.call_page import record_blocks
from aileron_tui.draw.columns import Column, Row
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.rows import HOURS, call_summary, detail_part, join_fitting, outcome_plot
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text, truncate
from aileron_tui.draw.times import age, clock_minutes, clock_seconds, day, time_running
from aileron_tui.input.commands import CommandRegistry, RunningCall
from aileron_tui.state.filter import Filter, FilterFields, ParsedFilter
from aileron_tui.state.tables.table import KeyedTable

ROWS_KEPT = 1_000
"""Rows kept while the newest is followed; the rest is read again."""
PAGE_SIZE = 100
"""Rows asked for at once."""
PREFETCH_ROWS = 50
"""Rows beyond the cursor that should be there before it comes."""
COUNT_SECONDS = 5.0
"""After a count so long passes before the next one."""

_STATES: Mapping[str, str] = {
    AuditEvent.RUN_REQUESTED: "pending",
    AuditEvent.RUN_ASKED_AGAIN: "pending",
    AuditEvent.RUN_HALTED: "pending",
    AuditEvent.RUN_RECOVERED: "pending",
    AuditEvent.RECHECK_UNDONE: "pending",
    AuditEvent.RECHECK_DIFFERED: "changed",
    AuditEvent.RECHECK_CONFLICT: "failed",
    AuditEvent.APPROVAL_APPROVED: "approved",
    AuditEvent.APPROVAL_STANDING: "approved",
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

_WAITING = ("new", "awaiting_vault", "pending", "checking")
_SHOWN: Mapping[str, str] = dict.fromkeys(_WAITING, "pending")
"""States of a call that are one for the list."""

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
    at: float
    agent: str
    action: str
    """Of what is no call: its event."""
    actor: str = "agent"
    records: list[RecordView] = field(default_factory=list[RecordView])
    state: str = ""
    """A state of `words.GLYPHS`; empty for what is not a call."""
    state_record: RecordView | None = None
    """The record that says the state."""
    view: ApprovalView | None = None
    """The call, without what it contained."""
    what: Line = ()
    edited: bool = False

    def add(self, record: RecordView) -> None:
        self.records.append(record)
        if record.event in _STATES:
            self.state, self.state_record = _STATES[record.event], record

    def show(self, view: ApprovalView) -> None:
        """Take what is known of the call."""
        self.what = call_summary(view)
        # Thousands are kept: without their texts.
        no_preview = replace(view.preview, fields=())
        self.view = replace(
            view, arguments=(), new_values=(), other_arguments=(), steps=(), preview=no_preview
        )

    @property
    def is_gated(self) -> bool:
        if self.view is not None:
            return bool(self.view.approval_id)
        asked = (AuditEvent.RUN_REQUESTED, AuditEvent.APPROVAL_APPROVED)
        return any(each.event in asked for each in self.records)

    @property
    def hand(self) -> str:
        """With which a person answered, as far as that is known."""
        recorded = next((e.hand for e in reversed(self.records) if e.hand), "")
        return recorded or (self.view.hand if self.view is not None else "")

    @property
    def waited(self) -> float | None:
        """How long the person took, where a person answered."""
        answers = (AuditEvent.APPROVAL_APPROVED, AuditEvent.APPROVAL_DENIED)
        if self.records and self.records[0].event == AuditEvent.RUN_REQUESTED:
            return next((e.at - self.at for e in self.records if e.event in answers), None)
        decided = self.view.decided_at if self.view is not None else None
        return None if decided is None else decided - self.at


class ActivityTable(KeyedTable[ActivityEntry]):
    """The rows of view 2. It follows the newest until the cursor moves."""

    fields: ClassVar[tuple[str, ...]] = ("agent", "action", "state")

    def __init__(self, records: Iterable[RecordView], now: float) -> None:
        super().__init__(
            Column("time", lambda e, row: line(Piece(_time(e.at, row.now), "muted")), 10),
            Column("state", lambda e, _: _state(e), 12),
            Column("agent", lambda e, _: brief(e.agent, "muted"), 11, 8, 82, outside=True),
            Column("action", _action, 22, 17, outside=True),
            Column("what", lambda e, _: e.what, 34, 18, 78),
            Column("why", lambda e, row: self._why(e, row.now), 0, 20),
        )
        self._entries: dict[str, ActivityEntry] = {}
        self._approvals: dict[str, ApprovalView] = {}
        """Of calls that no record was read of yet, too."""
        self._follows = True
        self._seen = (0.0, 0)
        """The place of the newest row when the person stopped following."""
        self.lifecycle = False
        """What is no call is shown: sessions, files, the console."""
        self._query: HistoryQuery | None = HistoryQuery()
        """What is looked for; None where no call can match the filter."""
        self._found: dict[str, str] = {}
        """What the core found for the filter, and its state then."""
        self._asked: ReadHistory | None = None
        self._asked_at = 0.0
        self._drops_answer = False
        """What was asked is not wanted any more; the next reading waits for its answer all the same."""
        self._known_at = inf
        """When the newest was read last: what is older was read, or is read on the way down."""
        self._then: HistoryCursor | None = None
        """Where to read on."""
        self.history_read = False
        """Everything there is was read, as far as the filter lets it through."""
        self._waits_for_key = False
        self._newest_unread = self._reads_newest = False
        """Of a call that came meanwhile the records alone are known; the newest rows are to be read for that."""
        self._reached = inf
        """When the oldest call was made of those that were read."""
        self._pruned = False
        """Rows that were read went, since the newest was followed."""
        self._looked: HistoryRead | None = None
        """How far the core has looked for the filter, and what it could not read."""
        self.counts: CallsCounted | None = None
        self._count_from: float | None = 0.0
        """When to count calls again, epoch seconds; None while they are counted."""
        for record in records:
            self._take(record)
        self._reorder(now)

    # What comes in

    def add(self, record: RecordView, now: float) -> None:
        self._take(record)
        self._reorder(now)
        if self.counts is not None and self._count_from is not None:
            self._count_from = min(self._count_from, self.counts.until + COUNT_SECONDS)

    def add_approval(self, view: ApprovalView) -> None:
        """Add what is known of a call: its summary is Aileron's own."""
        self._approvals[view.run_id] = view
        if (entry := self._entries.get(view.run_id)) is not None:
            self._show(entry, view)
        if len(self._approvals) > ROWS_KEPT:
            del self._approvals[next(iter(self._approvals))]

    @property
    def approval(self) -> ApprovalView | None:
        current = self.current
        return current.view if current is not None else None

    def _take(self, record: RecordView) -> None:
        key = record.run_id or f"record {record.seq}"
        entry = self._entries.get(key)
        if entry is None:
            name = record.action or record.event
            entry = ActivityEntry(key, record.at, record.agent, name, record.actor)
            self._entries[key] = entry
            if (view := self._approvals.get(key)) is not None:
                entry.show(view)
            if self._follows and len(self._entries) > ROWS_KEPT:
                del self._entries[min(self._entries, key=lambda each: self._entries[each].at)]
                self._pruned = True
        self._newest_unread |= record.run_id is not None and entry.view is None
        if record not in entry.records:
            entry.add(record)
        self.columns.measure((entry,))

    def _show(self, entry: ActivityEntry, view: ApprovalView) -> None:
        entry.show(view)
        self.columns.measure((entry,))

    def measure(self, items: Sequence[ActivityEntry]) -> None:
        """Only what came in was not measured yet."""

    def _reorder(self, now: float) -> None:
        if self._follows:
            self._selected = None
        shown = [each for each in self._entries.values() if each.state or self.lifecycle]
        self.set_items(sorted(shown, key=_place)[::-1], now)

    # Reading

    def next_read(self, now: float, *, beside: bool = False) -> ReadHistory | CountCalls | None:
        """Return what is to be asked of the core now: one reading at a time."""
        if self._waits_for_key:
            return None
        if self._count_from is not None and now >= self._count_from:
            self._count_from = None
            self._reads_newest, self._newest_unread = self._newest_unread, False
            return CountCalls(hours=HOURS)
        read = bisect_right(self._shown, -self._reached, key=lambda each: -each.at)
        enough = read > self.index + PREFETCH_ROWS
        idle = not self._reads_newest and (self.history_read or enough)
        if self._query is None or self._asked is not None or idle:
            return None
        start, self._reads_newest = None if self._reads_newest else self._then, False
        self._asked = ReadHistory(query=self._query, start=start, limit=PAGE_SIZE)
        self._asked_at, self._drops_answer = now, False
        return self._asked

    def on_counted(self, event: CallsCounted) -> None:
        self.counts, self._count_from = event, event.until + 60.0

    def on_refused(self) -> None:
        """What was asked for could perhaps not be done: the next key asks again, unless the answer comes before."""
        if self._asked is not None or self._count_from is None:
            self._count_from, self._waits_for_key = self._count_from or 0.0, True

    def filter_again(self, now: float) -> None:
        super().filter_again(now)
        if self._waits_for_key:
            self._asked, self._waits_for_key = None, False

    def add_page(self, event: HistoryRead, now: float) -> None:
        """Take what was read, if it is what is still wanted."""
        asked = self._asked
        if asked is None or (asked.query, asked.start) != (event.query, event.start):
            return  # asked again meanwhile
        self._asked, self._waits_for_key = None, False
        if self._drops_answer:
            return
        if event.start is None:
            reached = event.then is None or (event.searched_to or inf) <= self._known_at
            if not reached:  # more came meanwhile than one reading has
                self.read_again()
            self._known_at = self._asked_at
        for call in event.calls:
            view = call.approval
            entry = self._entries.get(view.run_id)
            if entry is None:
                entry = ActivityEntry(view.run_id, view.requested_at, view.agent, view.action)
                self._entries[view.run_id] = entry
            # Of a call whose first records were not read, its own row knows more.
            entry.at, entry.agent, entry.action = view.requested_at, view.agent, view.action
            entry.edited = call.edited
            state = _SHOWN.get(view.shown_state, view.shown_state)
            entry.state = "changed" if view.drift is not None and state == "pending" else state
            self._show(entry, view)
        for record in event.records:
            self._take(record)
        found = [each.approval.run_id for each in event.calls]
        found += [f"record {each.seq}" for each in event.records]
        self._found.update((e, self._entries[e].state) for e in found if e in self._entries)
        if event.start == self._then and not self.history_read:
            self._looked = _further(self._looked, event)
            self._reached = min(self._reached, event.searched_to or inf)
            self._then, self.history_read = event.then, event.then is None
        self._reorder(now)

    def read_again(self) -> None:
        """Read from the newest on again."""
        self._drops_answer = self._asked is not None
        self._then, self.history_read = None, False
        self._reached, self._pruned = inf, False
        self._looked = None

    def _ask_for(self, query: HistoryQuery | None) -> None:
        if query != self._query:
            self._query = query
            self._found.clear()
            self.read_again()

    def toggle_lifecycle(self, now: float) -> None:
        """Show what is no call, or again calls alone."""
        self.lifecycle = not self.lifecycle
        self._ask_for(_history_query(self.parsed_filter.query, now, lifecycle=self.lifecycle))
        self._reorder(now)

    def set_filter(self, parsed: ParsedFilter, now: float) -> None:
        self._ask_for(_history_query(parsed.query, now, lifecycle=self.lifecycle))
        super().set_filter(parsed, now)

    def matches(self, item: ActivityEntry, now: float) -> bool:
        query = self.parsed_filter.query
        if (state := self._found.get(item.key)) is not None:
            # The core knows more words, and names of states; what became of the call since then it did not.
            changed = [each for each in query.fields if each[0] == "state" and item.state != state]
            query = replace(query, words=(), fields=tuple(changed))
        return query.matches(self.fields_of(item), now)

    # The cursor

    @property
    def following(self) -> bool | None:
        return self._follows

    def follow(self, now: float) -> None:
        self._follows = True
        for each in sorted(self._entries.values(), key=_place)[:-ROWS_KEPT]:
            del self._entries[each.key]
            self._pruned = True
        self._reorder(now)

    def select(self, row: int) -> None:
        """Select *row*, and stop following unless it is the newest."""
        if row > 0:
            self.stop_following()
        if not self._follows:
            super().select(row)

    def stop_following(self) -> None:
        if self._follows:
            self._follows = False
            if self._pruned:
                self.read_again()
            self._seen = max(map(_place, self._items), default=(0.0, 0))
            super().select(0)

    # Drawing

    def key_of(self, item: ActivityEntry) -> str:
        return item.key

    def fields_of(self, item: ActivityEntry) -> FilterFields:
        state = f"{item.state} {_state_word(item)}"
        said = [each.summary for each in item.records] + [item.view.reason if item.view else ""]
        text = f"{item.agent} {item.action} {state} {' '.join(said)} {plain_text(item.what)}"
        named = {"agent": item.agent, "action": item.action, "state": state}
        return FilterFields(text=text, fields=named, at=item.at)

    @property
    def version(self) -> tuple[object, ...]:
        current = self.current
        return (current.key,) if current is not None else ()

    def summary(self, now: float, width: int) -> Line:
        """Return what the last hour was like."""
        if self.counts is None or not self.counts.hours:
            return ()
        last = self.counts.hours[-1]
        parts = words.views.last_hour(
            calls=last.calls,
            free=last.not_gated,
            approved=last.approved,
            denied=dict(last.outcomes).get("denied", 0),
            median=age(last.median_wait) if last.median_wait is not None else "",
        )
        return line(" ", Piece(join_fitting(parts, width - 2), "muted"))

    def header(self, width: int, now: float) -> tuple[Line, ...]:
        summary, titles = super().header(width, now)
        plot = outcome_plot(self.counts.hours, width) if self.counts is not None else ()
        return (summary, plot, titles) if plot else (summary, titles)

    def _why(self, item: ActivityEntry, now: float) -> Line:
        view, telling = item.view, item.state_record
        if item.edited:
            return (Piece(words.views.EDITED_ROW, "danger"),)
        if item.state == "completed" and not item.is_gated:
            ended = telling.at if telling is not None else view.ended_at if view else None
            return (Piece(words.views.not_gated(ended - item.at if ended else 0.0), "muted"),)
        by = words.views.by(view.decided_by) if view is not None else ""
        if view is not None and item.state in _DECIDED and by == view.decided_by:
            return (Piece(by, "muted"),)
        if item.state == "denied" and view is not None and view.reason:
            who = words.views.by("person", escape(item.hand))
            return line(Piece(f"{who}: ", "muted"), '"', *brief(view.reason), '"')
        if item.state in _DECIDED and item.waited is not None:
            waited = words.views.waited("", escape(item.hand), age(item.waited))
            return (Piece(waited, "muted"),)
        if item.state == "executing" and telling is not None:
            time = time_running(now - telling.at, telling.seconds_allowed)
            return (Piece(words.item.running(time), "ok"),)
        if item.state == "pending":
            is_of_server = view is not None and view.is_of_server
            asks = words.views.ITS_WORD_IS_ASK if is_of_server else words.views.ITS_FILE_ASKS
            return (Piece(asks, "muted"),)
        return brief(_last_word(item), "muted")

    def detail_of(self, item: ActivityEntry, now: float) -> Line:
        """Return the last record of its call."""
        is_call = bool(item.state) or item.records[0].action is not None
        return line(
            *foreign_text(_last_word(item)),
            *detail_part("agent", item.agent),
            *detail_part("action", item.action if is_call else ""),
        )

    def head_of(self, item: ActivityEntry, width: int, now: float) -> tuple[Line, ...]:
        first = line(" ", *_state(item), "  ", *foreign_text(item.action, "strong"))
        who = item.agent or words.views.ACTORS.get(item.actor, words.views.NAME)
        by = line(" ", Piece("by ", "muted"), *foreign_text(who, "strong"))
        since = Piece(f", {age(now - item.at)} ago", "muted")
        return (truncate(first, width - 1), truncate(line(*by, since), width - 1))

    @property
    def running(self) -> RunningCall | None:
        """The call of the selected row, while its steps run."""
        item = self.current
        if item is None or item.state != "executing" or item.state_record is None:
            return None
        return RunningCall(run_id=item.key, name=item.action, started_at=item.state_record.at)

    @property
    def run_id(self) -> str:
        """The run of the selected row; empty where it is no call."""
        current = self.current
        return "" if current is None or current.key.startswith("record ") else current.key

    def blocks_of(self, item: ActivityEntry, *, unfold: bool) -> Iterable[Block]:
        """Return its records, oldest first; of a call there is a page of its own."""
        return record_blocks(item.records)

    def status(self, registry: CommandRegistry) -> Line:
        """Return the order, or what came in above while the person reads."""
        if not self._entries:
            return (Piece(words.views.NO_RECORDS, "muted"),)
        if self._follows:
            return (Piece(words.views.ACTIVITY_REMARK, "muted"),)
        above = sum(_place(each) > self._seen for each in self._items)
        text = (
            words.views.new_above(above, registry.key_label("follow"))
            if above
            else words.views.ACTIVITY_REMARK
        )
        return (Piece(text, "muted"),)

    def filter_status(self) -> Line:
        """Return how many rows were found, how far was looked for them, and what could not be read."""
        looked = self._looked
        if not self.filtered or looked is None or not looked.searched:
            unread = self._query is not None and not (self.history_read or self._waits_for_key)
            if self.filtered and unread and not (self.matching or self.parsed_filter.problems):
                return (Piece(words.views.SEARCHING, "muted"),)
            return super().filter_status()
        if self.history_read and not (self.matching or looked.sealed or looked.not_kept):
            return super().filter_status()
        told = words.views.searched_calls(looked.searched, looked.total, more=not self.history_read)
        return line(
            Piece(f"{words.views.matches(self.matching)} ", "muted"),
            *foreign_text(self.parsed_filter.text, "strong"),
            Piece(f" {told}", "muted"),
            Piece(words.views.unread_contents(looked.sealed, looked.not_kept), "attn"),
        )


def _further(before: HistoryRead | None, event: HistoryRead) -> HistoryRead:
    """Return the counts of *event* and of what was read before it."""
    return replace(
        event,
        calls=(),
        records=(),
        searched=event.searched + (before.searched if before else 0),
        sealed=event.sealed + (before.sealed if before else 0),
        not_kept=event.not_kept + (before.not_kept if before else 0),
    )


def _history_query(query: Filter, now: float, *, lifecycle: bool) -> HistoryQuery | None:
    """Return what the core is to look for; None where no call can match."""
    named = dict(query.fields)
    outcomes: tuple[str, ...] = ()
    if states := named.get("state"):
        known = {**{each: each for each in words.item.OUTCOMES}, **_SHOWN, "refused": "refused"}
        outcomes = tuple(
            each
            for each, state in known.items()
            if any(part in f"{each} {_word_of(state)}" for part in states)
        )
        if not outcomes:
            return None
    older = [now - each.seconds for each in query.ages if each.older]
    younger = [now - each.seconds for each in query.ages if not each.older]
    return HistoryQuery(
        words=query.words,
        agents=named.get("agent", ()),
        actions=named.get("action", ()),
        outcomes=outcomes,
        since=max(younger, default=None),
        until=min(older, default=None),
        lifecycle=lifecycle,
    )


def _place(item: ActivityEntry) -> tuple[float, int]:
    """Return by what its row has its place."""
    return item.at, item.records[0].seq if item.records else 0


def _last_word(item: ActivityEntry) -> str:
    if item.records:
        return (item.state_record or item.records[-1]).summary
    view = item.view
    return view.outcome or view.rule or view.note if view is not None else ""


def _time(at: float, now: float) -> str:
    """Return the time of what was today, else day and minute."""
    on_day = day(at)
    if on_day == day(now):
        return clock_seconds(at)
    return f"{on_day.rpartition(' ')[0]} {clock_minutes(at)}"


def _action(item: ActivityEntry, row: Row) -> Line:
    return foreign_text(item.action, row.role if item.state else "muted")


def _state(item: ActivityEntry) -> Line:
    if not item.state:
        return (Piece(words.views.OTHER, "muted"),)
    role = _ROLES.get(item.state, "muted")
    glyph = words.views.GLYPHS.get(item.state) or words.item.GLYPHS[item.state]
    return (Piece(glyph, role), Piece(f" {_state_word(item)}", role))


def _state_word(item: ActivityEntry) -> str:
    return _word_of(item.state) if item.state else ""


def _word_of(state: str) -> str:
    return words.views.STATES.get(state) or words.item.OUTCOMES[state]
