"""Records of the audit as they are read: pages near the rows in view, and a filter's matches.

Records are numbered without gaps, from 1. One reading is under way at a time.
"""

from collections.abc import Iterable, Iterator, Sequence

from aileron_core.console_port.events import RecordsRead
from aileron_core.console_port.intents import ReadRecords
from aileron_core.console_port.view_models import RecordView
from aileron_tui import words
from aileron_tui.state.filter import EVERYTHING, Filter, FilterFields

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
