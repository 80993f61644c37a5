"""What of a document or a list is in view: where it is scrolled to, in a pane of some size."""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from aileron_tui.draw.blocks import Layout
from aileron_tui.draw.searching import Found
from aileron_tui.draw.text import Line, Piece

DrawRow: TypeAlias = Callable[[int, int, bool], tuple[Line, ...]]
"""Row number, width, selected: its lines."""
NOTHING_FOUND: Found = {}


def _nothing() -> None:
    pass


class Pane:
    """A pane of `width` by `height` cells, whose first line is `top` of `total`."""

    def __init__(self) -> None:
        self.width = self.height = 0
        self.top = 0
        self.changed: Callable[[], None] = _nothing
        """Called when it is to be drawn again."""

    @property
    def total(self) -> int:
        """How many lines there are to scroll through."""
        raise NotImplementedError

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.scroll_to(self.top)

    def scroll_to(self, top: int) -> None:
        """Show the lines from *top* on, as far as there are that many."""
        self.top = max(0, min(top, self.total - self.height))
        self.changed()

    def scroll_rows(self, rows: int) -> None:
        """Scroll by *rows*, at most to an end."""
        self.scroll_to(self.top + rows)

    def scroll_panes(self, panes: int) -> None:
        """Scroll by *panes*, each less two lines."""
        self.scroll_rows(panes * max(1, self.height - 2))

    def scroll_to_start(self) -> None:
        self.scroll_to(0)


class DocumentPane(Pane):
    """A document: one text, one scroll, and what of it was not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.layout = Layout((), ())
        self.unseen: frozenset[int] = frozenset()
        self.wrap_marks = False
        self.found: Found = NOTHING_FOUND

    @property
    def total(self) -> int:
        return len(self.layout.lines)

    def show(
        self,
        layout: Layout,
        unseen: frozenset[int],
        *,
        wrap_marks: bool = False,
        found: Found = NOTHING_FOUND,
    ) -> None:
        """Show *layout*, with *wrap_marks* where its lines go on; the track marks the rows *unseen*.

        *found*: what a search found in it.
        """
        self.layout, self.unseen, self.wrap_marks, self.found = layout, unseen, wrap_marks, found
        self.scroll_to(self.top)

    @property
    def rows_in_view(self) -> tuple[int, int]:
        """The rows `[first, last)` that stand in view."""
        return self.top, min(self.top + self.height, self.total)

    def track(self, y: int) -> Line:
        """Return the track's cell beside row *y* of the pane: what is in view, and what was not seen."""
        height, total = self.height, self.total
        if total <= height or height == 0:
            return ()
        first, last = y * total // height, max((y + 1) * total // height, y * total // height + 1)
        top, bottom = self.rows_in_view
        if first < bottom and last > top:
            return (Piece("█", "muted"),)
        if any(row in self.unseen for row in range(first, last)):
            return (Piece("┃", "attn"),)
        return (Piece("│", "faint"),)


class RowsPane(Pane):
    """Rows of equal height, one of them selected. It scrolls to keep a newly selected one in view, and by the wheel.

    Rows that come or go scroll nothing: where they do so above the selected one, it stays at its place.
    """

    def __init__(self, draw: DrawRow) -> None:
        super().__init__()
        self.draw_row = draw
        self.count = 0
        self.row_height = 1
        self.selected = 0
        self.has_cursor = True
        self._key: Hashable = None

    @property
    def total(self) -> int:
        """Room to scroll the last row up to where it stands whole, with a whole row on top."""
        rest = self.height % self.row_height if self.count > self.page_rows else 0
        return self.count * self.row_height + rest

    def show(
        self,
        count: int,
        row_height: int,
        selected: int,
        key: Hashable = None,
        *,
        has_cursor: bool = True,
    ) -> None:
        """Take the number of rows and which is selected.

        *key* names what the selected row is about: while it stays the same, nobody moved the cursor.
        Without *has_cursor* another list has it, and no row is drawn as selected.
        """
        shift = (selected - self.selected) * row_height
        before = (self._key, self.row_height)
        moved = before != (key, row_height) or (key is None and bool(shift))
        self.count, self.row_height, self.selected = count, row_height, selected
        self._key, self.has_cursor = key, has_cursor
        if moved:
            self._keep_in_view()
        else:
            self.scroll_to(self.top + shift)

    def _keep_in_view(self) -> None:
        first, height = self.top // self.row_height, self.row_height
        first = max(min(first, self.selected), self.selected - self.page_rows + 1)
        self.scroll_to(first * height)

    def resize(self, width: int, height: int) -> None:
        """Keep the selected row in view."""
        self.width, self.height = width, height
        self._keep_in_view()

    @property
    def rows_in_view(self) -> range:
        """The rows of which something is in view."""
        first = self.top // self.row_height
        return range(first, min(self.count, -(-(self.top + self.height) // self.row_height)))

    @property
    def hidden_rows(self) -> tuple[int, int]:
        """How many rows are out of sight above and below."""
        above = self.top // self.row_height
        return above, max(0, self.count - above - self.page_rows)

    @property
    def page_rows(self) -> int:
        return max(1, self.height // self.row_height)

    def lines(self, row: int) -> tuple[Line, ...]:
        """Return the lines of *row*; nothing behind the last."""
        if row >= self.count:
            return ()
        return self.draw_row(row, self.width, row == self.selected and self.has_cursor)
