"""The parts of the waiting list, its rows that are no calls, and what becomes of those; the list of decisions beside it."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import IntEnum

from aileron_core.console_port.view_models import ApprovalView, NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui.draw.rows import decided_header, decided_row
from aileron_tui.draw.text import Line
from aileron_tui.items import FileOutcome, Item, group_files
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.pending_intents import ACCEPTED_STATES, file_key, suite_key
from aileron_tui.state.tables.table import KeyedTable


class Part(IntEnum):
    """The parts of the list from top to bottom."""

    UNACKNOWLEDGED = -1
    """Calls of unknown outcome that no person has acknowledged."""
    CALLS = 0
    CONNECTORS = 1
    """And publishers' keys: they stand before the actions that use them."""
    SUITES = 2
    FILES = 3
    PROBLEMS = 4
    ARRIVED = 5
    """What belongs above the row under the cursor and would move it: until the next key it stands at the end."""


def part_of(item: Item) -> Part:
    """Return the part into which *item* belongs."""
    if item.approval is not None:
        return Part.UNACKNOWLEDGED if item.is_unacknowledged else Part.CALLS
    if item.file is not None:
        is_first = item.file.kind in ("connector", "publisher")
        return Part.CONNECTORS if is_first else Part.FILES
    return Part.SUITES if item.suite is not None else Part.PROBLEMS


def file_rows(
    not_accepted: Iterable[NotAcceptedView], problems: Iterable[Problem]
) -> tuple[Item, ...]:
    """Return the rows of what is not accepted, and of the problems, by their parts."""
    connectors, suites, alone = group_files(not_accepted)
    return (
        *(Item(key=file_key(each.kind, each.name), file=each) for each in connectors),
        *(Item(key=suite_key(each.suite.suite_id), suite=each) for each in suites),
        *(Item(key=file_key(each.kind, each.name), file=each) for each in alone),
        *(Item(key=f"problem:{each}", problem=each) for each in problems),
    )


def file_outcome(item: Item, not_accepted: Set[str], states: Mapping[str, str]) -> FileOutcome:
    """Return what became of *item*, which is no row of its own any more.

    *not_accepted*: the keys of the files that wait. *states*: of all files of the home, by key.
    """
    if item.problem is not None:
        return "solved"
    keys = [file_key(each.kind, each.name) for each in item.files]
    if any(key in not_accepted for key in keys):
        return "changed"
    if any(states.get(key) in ACCEPTED_STATES for key in keys):
        return "accepted"
    return "changed" if any(key in states for key in keys) else "removed"


class OrderedKeys:
    """Keys by growing numbers. Looking takes O(log n), adding at the end O(1) however many there are.

    Taking one out moves the numbers behind it, which is one `memmove`: 80 kB of 10,000.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._keys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._keys

    def add(self, number: int, key: str) -> None:
        """Put *key* where *number* belongs; one that is there already stays."""
        if number not in self._keys:
            self._keys[number] = key
            insort(self._numbers, number)

    def discard(self, number: int) -> None:
        if self._keys.pop(number, None) is not None:
            del self._numbers[bisect_left(self._numbers, number)]

    def key(self, row: int) -> str:
        """Return the key at *row*, from 0.

        Raises:
            IndexError: there is no such row.
        """
        return self._keys[self._numbers[row]]

    def row(self, number: int) -> int:
        """Return the row of *number*, or the one it would have."""
        return bisect_left(self._numbers, number)

    def after(self, number: int) -> str | None:
        """Return the nearest key behind *number*."""
        row = bisect_right(self._numbers, number)
        return self.key(row) if row < len(self._numbers) else None

    def before(self, number: int) -> str | None:
        """Return the nearest key ahead of *number*."""
        row = bisect_left(self._numbers, number)
        return self.key(row - 1) if row else None


class DecidedTable(KeyedTable[ApprovalView]):
    """The calls that were decided or ended. The cursor belongs to a call: later ones come in above it."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        """It has the cursor; else the list of what waits has it."""

    def enter(self) -> None:
        """Put the cursor on the first row."""
        self.select(0)
        self.active = self.opened = bool(len(self))

    def leave(self) -> None:
        self.active = self.opened = False

    def update(self, calls: Sequence[ApprovalView], now: float) -> None:
        """Take the decisions, newest first; without any the cursor leaves."""
        self.set_items(calls, now)
        self.opened = self.active = self.active and bool(calls)

    def key_of(self, item: ApprovalView) -> str:
        return item.call_id

    def fields_of(self, item: ApprovalView) -> FilterFields:
        return FilterFields(text=item.title, fields={}, at=item.requested_at)

    @property
    def version(self) -> tuple[object, ...]:
        return (self.key,)

    def header(self, width: int, now: float) -> tuple[Line, ...]:
        return (decided_header(len(self)),)

    def row(self, number: int, width: int, now: float, *, selected: bool) -> Line:
        item = self.item(number)
        return () if item is None else decided_row(item, width, now, selected=selected)

    @property
    def current_item(self) -> Item | None:
        """The selected call as the waiting list would show it: its page until it was read whole."""
        view = self.current
        return None if view is None else Item(key=view.call_id, approval=view)
