"""A list of rows of equal height that draws only what is in view."""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from aileron_tui.draw.text import Line
from aileron_tui.messages import RowClicked, SizeChanged
from aileron_tui.widgets.line_view import LinePainter

DrawRow: TypeAlias = Callable[[int, int, bool], tuple[Line, ...]]
"""Row number, width, selected: its lines."""


class RowList(ScrollView, can_focus=False):
    """Rows, one of them selected. It scrolls to keep a newly selected one in view, and by the wheel.

    Rows that come or go scroll nothing: where they do so above the selected one, it stays at its place.
    """

    def __init__(self, *, id: str, draw: DrawRow) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._draw = draw
        self._count = 0
        self._row_height = 1
        self._selected = 0
        self._key: Hashable = None
        self._has_cursor = True
        self._painter = LinePainter(self)
        self._lines: dict[int, tuple[Line, ...]] = {}
        """Of the rows in view, as they were drawn for `_drawn_for`."""
        self._drawn_for: tuple[int, ...] = ()
        self._showing = False
        """It scrolls by itself: whoever calls `show` looks at `hidden_rows` afterwards."""

    def show(
        self,
        count: int,
        row_height: int,
        selected: int,
        key: Hashable = None,
        *,
        has_cursor: bool = True,
    ) -> None:
        """Take the number of rows and which is selected, and draw what is in view.

        *key* names what the selected row is about: while it stays the same, nobody moved the cursor.
        Without *has_cursor* another list has it, and no row is drawn as selected.
        """
        self._has_cursor = has_cursor
        before = (self._key, self._row_height)
        shift = (selected - self._selected) * row_height
        cursor_moved = before != (key, row_height) or (key is None and bool(shift))
        self._count, self._row_height = count, row_height
        self._selected, self._key = selected, key
        self._fit()
        self._showing = True
        if cursor_moved:
            self._keep_in_view()
        elif shift:
            y = self.scroll_offset.y + shift
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._showing = False
        self._draw_view()

    def _draw_view(self) -> None:
        """Draw the rows in view; only what differs from before is painted."""
        height = self._row_height
        first = self.scroll_offset.y // height
        rows = range(first, first + -(-self.size.height // height) + 1)
        drawn_for = (self.size.width, self.size.height, self.scroll_offset.y, height)
        before, same = self._lines, drawn_for == self._drawn_for
        self._lines = {row: self._row(row) for row in rows}
        self._drawn_for = drawn_for
        if not same:
            self.refresh()
            return
        changed = [row for row in rows if self._lines[row] != before.get(row)]
        regions = (
            Region(0, row * height - self.scroll_offset.y, self.size.width, height)
            for row in changed
        )
        if changed:
            self.refresh(*regions)

    def _row(self, row: int) -> tuple[Line, ...]:
        if row >= self._count:
            return ()
        return self._draw(row, self.size.width, row == self._selected and self._has_cursor)

    def _fit(self) -> None:
        """Make room to scroll the last row up to where it stands whole, with a whole row on top."""
        height = self._row_height
        rest = self.size.height % height if self._count > self.page_rows else 0
        self.virtual_size = Size(self.size.width, self._count * height + rest)

    def _keep_in_view(self) -> None:
        first, height = self.scroll_offset.y // self._row_height, self._row_height
        first = max(min(first, self._selected), self._selected - self.page_rows + 1)
        self.scroll_to(y=first * height, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Keep the selected row in view, and say so: what is out of sight differs."""
        self._fit()
        self._keep_in_view()
        self.post_message(SizeChanged())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other rows are out of sight."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value) and not self._showing:
            self.post_message(SizeChanged())

    @property
    def hidden_rows(self) -> tuple[int, int]:
        """How many rows are out of sight above and below."""
        height = self._row_height
        above = round(self.scroll_offset.y) // height
        shown = max(1, self.size.height // height)
        return above, max(0, self._count - above - shown)

    @property
    def page_rows(self) -> int:
        return max(1, self.size.height // self._row_height)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint what was asked for, in the present theme."""
        self._painter.refresh_styles()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row, part = divmod(self.scroll_offset.y + y, self._row_height)
        if (width, self._row_height) != (self._drawn_for[:1] + self._drawn_for[3:]):
            self._lines = {}
            self._drawn_for = (width, self.size.height, self.scroll_offset.y, self._row_height)
        lines = self._lines.get(row)
        if lines is None:
            lines = self._lines[row] = self._row(row)
        selected = row == self._selected and row < self._count and self._has_cursor
        return self._painter.paint(
            lines[part] if part < len(lines) else (), width, selected=selected
        )

    def on_click(self, event: events.Click) -> None:
        """Say which row was clicked; a click never decides."""
        row = (self.scroll_offset.y + event.y) // self._row_height
        if row < self._count:
            self.post_message(RowClicked(row, self.id))
