"""View 3: every record, to the first, and the line above them that says what verifying found.

Only records in view and near it are read, in pages, one reading at a time.

Records are numbered without gaps, so a row is a number: the list has its whole length from the
start. With a filter the rows are the matches so far, and older records are read as the cursor
nears the end of them.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from aileron_core.console_port.events import AuditVerified, RecordRead, RecordsRead
from aileron_core.console_port.intents import ReadRecord, ReadRecords
from aileron_core.console_port.view_models import RecordView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.columns import Column, edge
from aileron_tui.draw.foreign_text import brief, foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.rows import detail_part
from aileron_tui.draw.text import Line, Piece, Role, line, truncate
from aileron_tui.draw.times import clock_seconds, day
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import EVERYTHING, Filter, FilterFields, ParsedFilter
from aileron_tui.state.tables.table import Table

PAGE_SIZE = 250
"""Records asked for at once."""
PAGES_KEPT = 60
PREFETCH_ROWS = 100
"""Rows beyond the cursor that should be there before it comes."""


class RecordPages:
    """What is known of the records. `newest` is the highest number there is."""

    def __init__(self, records: Sequence[RecordView]) -> None:
        self.newest = 0
        self.matches: list[int] = []
        """Numbers of the records that the filter lets through, newest first."""
        self.searched_down_to = 0
        """The filter has looked at every record from this number on."""
        self._query: Filter = EVERYTHING
        self._known: dict[int, RecordView] = {}
        self._read: dict[int, None] = {}
        """Pages that were read whole, the one read longest ago first."""
        self._asked: int | None = None
        """The `before_seq` of the reading that is under way."""
        for record in records:
            self._note(record)

    def _note(self, record: RecordView) -> None:
        self._known[record.seq] = record
        self.newest = max(self.newest, record.seq)

    def get(self, number: int) -> RecordView | None:
        """Return record *number*, if it was read."""
        return self._known.get(number)

    def is_missing(self, number: int) -> bool:
        """Return whether its page was read and held no such record: the chain has a gap there."""
        return number not in self._known and (number - 1) // PAGE_SIZE in self._read

    def add(self, record: RecordView, now: float) -> None:
        self._note(record)
        if self._query and self._query.matches(record_fields(record), now):
            self.matches.insert(0, record.seq)

    # Reading

    def next_read(self, top: int, height: int, index: int) -> ReadRecords | None:
        """Return the one reading that is needed now; None while one is under way or none is.

        Rows *top* to *top + height* stand in view, the cursor on *index*.
        """
        if self._asked is not None:
            return None
        before = self._search_wants(index) if self._query else self._view_wants(top, height)
        if before is None:
            return None
        self._asked = before
        return ReadRecords(before_seq=before, limit=PAGE_SIZE)

    def _view_wants(self, top: int, height: int) -> int | None:
        newest = self.newest - max(0, top - PREFETCH_ROWS)
        oldest = max(1, self.newest - top - height - PREFETCH_ROWS)
        for page in range((newest - 1) // PAGE_SIZE, (oldest - 1) // PAGE_SIZE - 1, -1):
            if page not in self._read and not self._complete(page):
                return (page + 1) * PAGE_SIZE + 1
        return None

    def _complete(self, page: int) -> bool:
        """Return whether every number of *page* that was given out is known already."""
        numbers = range(page * PAGE_SIZE + 1, min((page + 1) * PAGE_SIZE, self.newest) + 1)
        return all(number in self._known for number in numbers)

    def _search_wants(self, index: int) -> int | None:
        enough = len(self.matches) > index + PREFETCH_ROWS
        return None if enough or self.searched_down_to <= 1 else self.searched_down_to

    def add_page(self, event: RecordsRead, now: float) -> None:
        if self._asked == event.before_seq:
            self._asked = None
        for record in event.records:
            self._note(record)
        self.newest = max(self.newest, event.total)
        if event.before_seq is None:
            return
        if event.before_seq % PAGE_SIZE == 1:
            self._note_page((event.before_seq - 2) // PAGE_SIZE)
        if self._query and event.before_seq == self.searched_down_to:
            self._look_through(reversed(event.records), now)
            self.searched_down_to = min((record.seq for record in event.records), default=1)

    def on_refused(self) -> None:
        """The reading could not be done; another may."""
        self._asked = None

    def _note_page(self, page: int) -> None:
        self._read.pop(page, None)
        self._read[page] = None
        while len(self._read) > PAGES_KEPT:
            gone = next(iter(self._read))
            del self._read[gone]
            keep = set(self.matches)
            for number in range(gone * PAGE_SIZE + 1, (gone + 1) * PAGE_SIZE + 1):
                if number not in keep:
                    self._known.pop(number, None)

    # Filtering

    def search(self, query: Filter, now: float) -> None:
        """Look for what *query* lets through, beginning with the newest records at hand."""
        self._query, self.matches, self.searched_down_to = query, [], self.newest + 1
        if query:
            self._look_through(self._at_hand(), now)

    def _at_hand(self) -> Iterator[RecordView]:
        """Yield the newest records for as long as each is known."""
        number = self.newest
        while number in self._known:
            yield self._known[number]
            number -= 1

    def _look_through(self, records: Iterable[RecordView], now: float) -> None:
        """Look at *records*, newest first, which follow the last one looked at without a gap."""
        for record in records:
            self.searched_down_to = record.seq
            if self._query.matches(record_fields(record), now):
                self.matches.append(record.seq)


def record_fields(record: RecordView) -> FilterFields:
    by = words.views.by(record.actor, record.hand)
    named = {
        "agent": record.agent,
        "action": record.action or "",
        "state": record.event,
        "by": f"{by} {record.actor}",
    }
    text = f"{record.seq} {record.event} {record.agent} {record.action or ''} {record.summary}"
    return FilterFields(text=f"{text} {record.run_id or ''}", fields=named, at=record.at)


PROBLEMS_SHOWN = 4

_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,19}")

_ROLES: dict[str, Role] = {
    "completed": "ok",
    "approved": "ok",
    "standing": "ok",
    "denied_by_rule": "danger",
    "denied": "danger",
    "failed": "danger",
    "unknown": "attn",
    "differed": "attn",
    "unavailable": "attn",
    "conflict": "danger",
    "refused": "danger",
    "cut": "danger",
    "unreadable": "danger",
    "expired": "muted",
    "withdrawn": "muted",
}


class AuditTable(Table[RecordView]):
    """The rows of view 3. It follows the newest until the cursor moves."""

    fields: ClassVar[tuple[str, ...]] = ("agent", "action", "state", "by")

    def __init__(self, records: Sequence[RecordView]) -> None:
        super().__init__(
            Column("no.", lambda e, _: line(Piece(str(e.seq), "muted")), 9),
            Column("time", lambda e, _: line(Piece(clock_seconds(e.at), "muted")), 10),
            Column("event", lambda e, _: _event(e), 21, 16),
            Column("by", lambda e, _: line(_by(e)), 9),
            Column("agent", lambda e, _: brief(e.agent, "muted"), 12, 8, 100, outside=True),
            Column("action", lambda e, _: brief(e.action or ""), 22, 12, 100, outside=True),
            Column("what", lambda e, row: brief(e.summary, row.role), 0, 24),
        )
        self.columns.measure(records)
        self._pages = RecordPages(records)
        self._alone: str | None = None
        """The record that is shown itself, in place of its call."""
        self._selected: int | None = None
        self._whole: RecordRead | None = None
        self._asked: int | None = None
        """The record whose whole body was asked for last."""
        self._in_view = (0, 1)
        self.verifying = False
        self.verified: AuditVerified | None = None

    # What comes in

    def add(self, record: RecordView, now: float) -> None:
        self.columns.measure((record,))
        self._pages.add(record, now)

    def add_page(self, event: RecordsRead, now: float) -> None:
        self.columns.measure(event.records)
        self._pages.add_page(event, now)

    def add_body(self, event: RecordRead) -> None:
        self._whole = event

    def next_read(self, now: float, *, beside: bool = False) -> ReadRecords | ReadRecord | None:
        key = self.key
        if (self.opened or beside) and key is not None and self._asked != int(key):
            self._asked = int(key)
            return ReadRecord(seq=int(key))
        return self._pages.next_read(*self._in_view, self.index)

    def on_refused(self) -> None:
        """What was asked for could not be done; it may be asked for again."""
        self._pages.on_refused()
        self.verifying, self._asked = False, None

    def on_verified(self, event: AuditVerified) -> None:
        self.verifying, self.verified = False, event

    # The cursor

    @property
    def following(self) -> bool | None:
        return self._selected is None

    def follow(self, now: float) -> None:
        self._selected = None

    def stop_following(self) -> None:
        if self._selected is None and self._pages.newest:
            self._selected = self._pages.newest

    def __len__(self) -> int:
        return len(self._numbers) if self.filtered else self._pages.newest

    @property
    def _numbers(self) -> Sequence[int]:
        """The numbers of the records that the filter has found."""
        return self._pages.matches

    @property
    def total(self) -> int:
        return self._pages.newest

    @property
    def matching(self) -> int:
        """How many records the filter has found so far."""
        return len(self._pages.matches) if self.filtered else self._pages.newest

    @property
    def index(self) -> int:
        if self._selected is None:
            return 0
        if self.filtered:
            # The selected record, or the first below it that was found.
            at = bisect_left(self._numbers, -self._selected, key=lambda number: -number)
            return max(0, min(at, len(self._numbers) - 1))
        return self._pages.newest - self._selected

    @property
    def key(self) -> str | None:
        number = self._at(self.index)
        return str(number) if number is not None else None

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs: records never change."""
        whole = self._whole is not None and str(self._whole.seq) == self.key
        return (self.key, whole, self.record_shown)

    def _at(self, row_number: int) -> int | None:
        if not 0 <= row_number < len(self):
            return None
        return self._numbers[row_number] if self.filtered else self._pages.newest - row_number

    def select(self, row: int) -> None:
        """Select the record at *row*; going down stops following the newest."""
        if len(self) and (row > 0 or self._selected is not None):
            self._selected = self._at(min(max(row, 0), len(self) - 1))

    def set_viewport(self, top: int, height: int) -> None:
        self._in_view = (top, max(1, height))

    def set_filter(self, parsed: ParsedFilter, now: float) -> None:
        """Show the records that *parsed* lets through, beginning with those at hand, the newest of them selected."""
        if parsed.query and self._pages.newest:
            self._selected = self._pages.newest
        elif self.filtered and (number := self._at(self.index)) is not None:
            self._selected = number
        self.parsed_filter = parsed
        self._pages.search(parsed.query, now)

    @property
    def current(self) -> RecordView | None:
        """The selected record, if it was read."""
        return self.item(self.index)

    def item(self, row: int) -> RecordView | None:
        number = self._at(row)
        return self._pages.get(number) if number is not None else None

    # The record and its call

    @property
    def is_of_call(self) -> bool:
        """The selected record is about a call, which is what is shown once it is opened."""
        record = self.current
        return record is not None and record.run_id is not None

    @property
    def record_shown(self) -> bool:
        """The record itself is shown in place of its call."""
        return self.opened and self._alone == self.key

    def shows_call(self, *, beside: bool) -> bool:
        """Return whether the call of the selected record is shown, opened or *beside* the rows."""
        return (self.opened or beside) and not self.record_shown

    def show_record(self) -> None:
        """Show the selected record itself; from there, its call."""
        shown = self.record_shown
        self.stop_following()
        self.opened = True
        self._alone = None if shown else self.key

    # Drawing

    def summary(self, now: float, width: int) -> Line:
        """Return how many records there are, and what the last verifying said."""
        return line(" ", Piece(words.views.records(self._pages.newest), "strong"), *self._verdict())

    def _verdict(self) -> Line:
        if self.verifying:
            return (Piece(f" · {words.views.VERIFYING}", "muted"),)
        event = self.verified
        if event is None:
            return (Piece(f" · {words.views.NOT_VERIFIED}", "muted"),)
        when = f"{clock_seconds(event.at)}, {event.seconds:.1f} s"
        if event.problems:
            return (Piece(f" · ✗ {words.views.problems(len(event.problems))} ({when})", "danger"),)
        return (Piece(f" · ✓ {words.views.sound(event.records)} ({when})", "ok"),)

    def row(self, number: int, width: int, now: float, *, selected: bool) -> Line:
        """Return row *number*; that of a record which is not read yet has its number."""
        seq = self._at(number)
        if seq is None or self.item(number) is not None:
            return super().row(number, width, now, selected=selected)
        return truncate(
            line(edge(selected), Piece(f" {seq}  ", "muted"), *self._absent(seq)), width - 1
        )

    def _absent(self, number: int) -> Line:
        """Return the text shown instead of a record that is not read yet, or missing."""
        if self._pages.is_missing(number):
            return (Piece(words.views.NO_RECORD, "danger"),)
        return (Piece(words.views.READING, "faint"),)

    def detail(self, width: int, now: float) -> tuple[Line, ...]:
        """Return the result of verifying, else the summary of the selected record."""
        event = self.verified
        if event is not None and event.problems:
            shown = [foreign_text(text, "danger") for text in event.problems[:PROBLEMS_SHOWN]]
            if len(event.problems) > PROBLEMS_SHOWN:
                more = len(event.problems) - PROBLEMS_SHOWN + 1
                shown[-1] = (Piece(words.views.more_problems(more), "danger"),)
            return tuple(truncate(line("  ", *each), width - 1) for each in shown)
        return super().detail(width, now)

    def detail_of(self, record: RecordView, now: float) -> Line:
        return line(
            *foreign_text(record.summary),
            *detail_part("agent", record.agent),
            *detail_part("action", record.action or ""),
            *detail_part("run", record.run_id or ""),
        )

    def head_of(self, record: RecordView, width: int, now: float) -> tuple[Line, ...]:
        number = Piece(words.views.record(record.seq), "strong")
        first = line(" ", number, "  ", *_event(record))
        at = Piece(f"{day(record.at)} {clock_seconds(record.at)}", "muted")
        by = Piece(f"  by {_by(record)}", "muted")
        return (truncate(first, width - 1), line(" ", at, by))

    def blocks_of(self, record: RecordView, *, unfold: bool) -> Iterable[Block]:
        """Return what it says, its place in the chain, its text as stored."""
        made = [heading(words.views.WHAT, (Piece(words.views.WHAT_REMARK, "muted"),))]
        whole = self._whole if self._whole is not None and self._whole.seq == record.seq else None
        if whole is None:
            summary = value("Summary", foreign_text(record.summary), "record")
            return (*made, summary, value("", (Piece(words.views.READING, "muted"),), "record"))
        for name, text in _entries(whole.body) or [("summary", record.summary)]:
            # A name of ours that is too long for its column has a line of its own, unbroken.
            label = name if _FIELD_NAME.fullmatch(name) else foreign_text(name, "muted")
            made.append(value(label, foreign_text(text), "record"))
        made += [
            blank(),
            heading(words.views.CHAIN, (Piece(words.views.CHAIN_REMARK, "muted"),), "muted"),
            value("Hash", foreign_text(whole.hash), "record"),
            value("Before", foreign_text(whole.prev), "record"),
            blank(),
            heading(
                words.views.AS_STORED, (Piece(words.views.AS_STORED_REMARK, "muted"),), "muted"
            ),
        ]
        for pieces in rendered_lines(render_foreign(whole.body, unfold=unfold)):
            made.append(value("", pieces, "record"))
        return made

    def status(self, registry: CommandRegistry) -> Line:
        """Return the order, or how far the filter has looked."""
        if not self._pages.newest:
            return (Piece(words.views.NO_RECORDS, "muted"),)
        if self.filtered and self._pages.searched_down_to > 1:
            looked = self._pages.newest - self._pages.searched_down_to + 1
            return (Piece(words.views.looked_through(looked, self._pages.newest), "muted"),)
        return (Piece(words.views.ACTIVITY_REMARK, "muted"),)

    def filter_status(self) -> Line:
        """Return the number of the filter's matches, and how far it has searched."""
        if self.filtered and self._pages.searched_down_to > 1:
            looked = words.views.looked_through(
                self._pages.newest - self._pages.searched_down_to + 1, self._pages.newest
            )
            matches = Piece(f"{words.views.matches(len(self._pages.matches))} ", "muted")
            return line(
                matches,
                *foreign_text(self.parsed_filter.text, "strong"),
                Piece(f" {looked}", "muted"),
            )
        return super().filter_status()


def _event(record: RecordView) -> Line:
    return foreign_text(record.event, _ROLES.get(record.event.rpartition(".")[2], "text"))


def _by(record: RecordView) -> str:
    return words.views.by(record.actor, escape(record.hand))


def _entries(body: str) -> list[tuple[str, str]]:
    """Return the parts of a record's body; none where it is not a JSON object: it is shown as stored."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(content, dict):
        return []
    parts: list[tuple[str, str]] = []
    for name, part in content.items():  # pyright: ignore[reportUnknownVariableType]
        text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        parts.append((str(name), text))  # pyright: ignore[reportUnknownArgumentType]
    return parts
