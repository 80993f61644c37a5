"""A page of rows as a state: a cursor that belongs to a row's key, a filter, an opened row."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.intents import Intent
from aileron_tui import words
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.columns import Column, Columns, detail_lines
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, line, truncate
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import FilterFields, ParsedFilter

T = TypeVar("T")


class Table(ABC, Generic[T]):
    """What a page of rows is asked. Nothing but `select`, `set_filter` and `follow` moves the cursor.

    Times are epoch seconds, widths are cells.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """What its filter knows, besides words and `age:`."""
    decides: ClassVar[bool] = False
    """Keys decide about its rows."""

    def __init__(self, *columns: Column[T]) -> None:
        self.columns = Columns(*columns)
        self.parsed_filter = ParsedFilter(text="")
        self.opened = False
        """The selected row is shown whole, in place of the list."""

    @property
    def filtered(self) -> bool:
        """Rows are left out by a filter."""
        return bool(self.parsed_filter.query)

    @property
    def following(self) -> bool | None:
        """Whether the cursor stays on the newest row; None where rows do not come in at the top."""
        return None

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are to move among."""

    @property
    @abstractmethod
    def total(self) -> int:
        """How many rows there are without a filter."""

    @property
    @abstractmethod
    def index(self) -> int:
        """The selected row; 0 where there is none."""

    @property
    @abstractmethod
    def key(self) -> str | None:
        """What the selected row is about."""

    @property
    @abstractmethod
    def version(self) -> tuple[Hashable, ...]:
        """What a person must look at anew when it differs; begins with the key."""

    @abstractmethod
    def select(self, row: int) -> None:
        """Select *row*, or the nearest there is."""

    @abstractmethod
    def set_filter(self, parsed: ParsedFilter, now: float) -> None:
        """Show the rows that *parsed* lets through, and select the first; without a filter the selected one stays."""

    @property
    @abstractmethod
    def current(self) -> T | None:
        """The selected row."""

    @abstractmethod
    def item(self, row: int) -> T | None:
        """Return *row*; None where there is none, or it is not read yet."""

    def summary(self, now: float, width: int) -> Line:
        """Return the line above the rows."""
        return ()

    def header(self, width: int, now: float) -> tuple[Line, ...]:
        """Return the two lines above the rows: what they are, and the names of the columns."""
        return (truncate(self.summary(now, width), width - 1), self.columns.titles(width, now))

    def row(self, number: int, width: int, now: float, *, selected: bool) -> Line:
        item = self.item(number)
        return () if item is None else self.columns.row(item, width, now, selected=selected)

    def detail(self, width: int, now: float) -> tuple[Line, ...]:
        """Return the lines below the rows: what the selected row has no room for."""
        item = self.current
        return () if item is None else detail_lines(self.detail_of(item, now), width)

    def head(self, width: int, now: float) -> tuple[Line, ...]:
        """Return the head of the opened row."""
        item = self.current
        return () if item is None else self.head_of(item, width, now)

    def blocks(self, now: float, *, unfold: bool) -> tuple[Block, ...]:
        """Return the document of the opened row."""
        item = self.current
        return () if item is None else tuple(self.blocks_of(item, unfold=unfold))

    def detail_of(self, item: T, /, now: float) -> Line:
        """Return what the row of *item* has no room for."""
        return ()

    def head_of(self, item: T, /, width: int, now: float) -> tuple[Line, ...]:
        """Return the head of *item* once it is opened."""
        return ()

    def blocks_of(self, item: T, /, *, unfold: bool) -> Iterable[Block]:
        """Return the document of *item* once it is opened."""
        return ()

    @property
    def content(self) -> FileContentView | None:
        """The content of the opened row's file; None where it is about none."""
        return None

    def status(self, registry: CommandRegistry) -> Line:
        """Return the status line's sentence about the list."""
        return ()

    @property
    def keys(self) -> tuple[str, ...]:
        """What the rows are about, in their order; nothing where a row is a record's number."""
        return ()

    def close(self) -> None:
        """Go back from the opened row to the list."""
        self.opened = False

    def filter_again(self, now: float) -> None:
        """A key was handled: leave out rows that are too old by now for an `age:`."""

    def next_read(self, now: float, *, beside: bool = False) -> Intent | None:
        """Return what is to be asked of the core now; *beside*: the selected row is shown beside the list."""
        return None

    def set_viewport(self, top: int, height: int) -> None:
        """Note which rows stand in view: *height* from *top* on."""

    def follow(self, now: float) -> None:
        """Stay on the newest row."""

    def stop_following(self) -> None:
        """Keep the cursor where it is: the person reads this row."""

    def filter_status(self) -> Line:
        """Return the status line's sentence about the filter; nothing without one."""
        given = (self.parsed_filter, self.matching, self.total)
        return filter_problem(*given) or filter_status(*given)

    @property
    def matching(self) -> int:
        """How many rows the filter lets through."""
        return len(self)


AnyTable: TypeAlias = Table[Any]


class KeyedTable(Table[T]):
    """A table of rows that are all in memory."""

    def __init__(self, *columns: Column[T]) -> None:
        super().__init__(*columns)
        self._items: Sequence[T] = ()
        self._shown: list[T] = []
        self._rows: dict[str, int] = {}
        self._matching = 0
        self._selected: str | None = None

    @abstractmethod
    def key_of(self, item: T) -> str:
        """Return the key of a row."""

    @abstractmethod
    def fields_of(self, item: T) -> FilterFields:
        """Return the parts of a row that a filter matches."""

    def set_items(self, items: Sequence[T], now: float) -> None:
        """Take the rows, whole. Where the selected one is gone, its neighbour is selected."""
        row = self.index
        self._items = items
        self.measure(items)
        self._apply_filter(now)
        self._keep_cursor(row)
        if self._selected is None and self.following is None:
            # From the start on: a row that comes in above must not take the cursor.
            self._selected = self._key_at(0)

    def matches(self, item: T, now: float) -> bool:
        """Return whether the filter lets *item* through."""
        return self.parsed_filter.query.matches(self.fields_of(item), now)

    def measure(self, items: Sequence[T]) -> None:
        """Make room for *items*, all that there are."""
        self.columns.measure(items, instead=True)

    def set_filter(self, parsed: ParsedFilter, now: float) -> None:
        if self._selected is None:
            self._selected = self._key_at(0)
        self.parsed_filter = parsed
        self._apply_filter(now)
        if parsed.query:
            self._selected = self._key_at(0)

    def filter_again(self, now: float) -> None:
        """A key was handled: leave out rows that are too old by now for an `age:`."""
        if self.parsed_filter.query.ages:
            row = self.index
            self._apply_filter(now)
            self._keep_cursor(row)

    def _keep_cursor(self, row: int) -> None:
        """Where the selected row is gone, select the one that is at *row* now."""
        if self._selected is not None and self._selected not in self._rows:
            self.opened = False
            self._selected = self._key_at(row)

    def _apply_filter(self, now: float) -> None:
        query = self.parsed_filter.query
        pairs = [(each, self.key_of(each)) for each in self._items]
        if query:
            matching = [(e, k) for e, k in pairs if self.matches(e, now)]
            keys = {key for _, key in matching}
            self._matching = len(matching)
            # An opened row is read, and stays until it is closed.
            opened = self._selected if self.opened else None
            pairs = [(e, k) for e, k in pairs if k in keys or k == opened]
        else:
            self._matching = len(pairs)
        self._shown = [each for each, _ in pairs]
        self._rows = {key: row for row, (_, key) in enumerate(pairs)}

    def _key_at(self, row: int) -> str | None:
        return self.key_of(self._shown[min(row, len(self._shown) - 1)]) if self._shown else None

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def total(self) -> int:
        return len(self._items)

    @property
    def matching(self) -> int:
        return self._matching

    @property
    def index(self) -> int:
        return self._rows.get(self._selected, 0) if self._selected is not None else 0

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._rows)

    @property
    def current(self) -> T | None:
        return self._shown[self.index] if self._shown else None

    @property
    def key(self) -> str | None:
        current = self.current
        return None if current is None else self.key_of(current)

    def select(self, row: int) -> None:
        self._selected = self._key_at(max(row, 0))

    def item(self, row: int) -> T | None:
        return self._shown[row] if 0 <= row < len(self._shown) else None


def filter_problem(parsed: ParsedFilter, matching: int, total: int) -> Line:
    """Return what is wrong with a filter: not understood, or nothing lets through; else nothing."""
    if parsed.problems:
        return line(Piece(parsed.problems[0], "attn"), Piece(words.views.SHOW_ALL, "muted"))
    if not parsed.query or matching:
        return ()
    shown = foreign_text(parsed.text, "strong")
    return line(
        Piece(words.views.NO_MATCH, "attn"), *shown, Piece(words.views.show_all(total), "attn")
    )


def filter_status(parsed: ParsedFilter, matching: int, total: int) -> Line:
    """Return what a filter lets through; nothing without one."""
    if not parsed.text.strip():
        return ()
    counted = Piece(f"{words.views.matching(matching, total)} ", "muted")
    return line(counted, *foreign_text(parsed.text, "strong"), Piece(words.views.SHOW_ALL, "muted"))
