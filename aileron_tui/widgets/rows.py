"""A list of rows of equal height that draws only what is in view."""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from aileron_tui.messages import Relaid, RowClicked
from aileron_tui.presenters.lines import Line
from aileron_tui.widgets.linework import ROLE_CLASSES, paint

__all__ = ["DrawRow", "RowList"]

DrawRow: TypeAlias = Callable[[int, int, bool], tuple[Line, ...]]
"""Row number, width, selected: its lines."""


class RowList(ScrollView, can_focus=False):
    """Rows, one of them selected. It scrolls to keep a newly selected one in view, and by the wheel.

    Rows that come or go scroll nothing: where they do so above the selected one, it stays at its place.
    """

    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(self, *, id: str, draw: DrawRow) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._draw = draw
        self._count = 0
        self._row_height = 1
        self._selected = 0
        self._key: Hashable = None

    def show(self, count: int, row_height: int, selected: int, key: Hashable = None) -> None:
        """Take the number of rows and which is selected, and draw what is in view.

        *key* names what the selected row is about: while it stays the same, nobody moved the cursor.
        """
        before = (self._key, self._row_height)
        shift = (selected - self._selected) * row_height
        moved = before != (key, row_height) or (key is None and bool(shift))
        self._count, self._row_height = count, row_height
        self._selected, self._key = selected, key
        self.virtual_size = Size(self.size.width, count * row_height)
        if moved:
            self._keep_in_view()
        elif shift:
            y = self.scroll_offset.y + shift
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self.refresh()

    def _keep_in_view(self) -> None:
        region = Region(0, self._selected * self._row_height, 1, self._row_height)
        self.scroll_to_region(region, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Keep the selected row in view, and say so: what is out of sight differs."""
        self._keep_in_view()
        self.post_message(Relaid())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other rows are out of sight."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(Relaid())

    @property
    def hidden_rows(self) -> tuple[int, int]:
        """How many rows are out of sight above and below."""
        height = self._row_height
        above = round(self.scroll_offset.y) // height
        shown = max(1, self.size.height // height)
        return above, max(0, self._count - above - shown)

    @property
    def page(self) -> int:
        """How many rows stand in view."""
        return max(1, self.size.height // self._row_height)

    def render_line(self, y: int) -> Strip:
        """Paint one line of the row that stands there."""
        width = self.size.width
        row, part = divmod(self.scroll_offset.y + y, self._row_height)
        if row >= self._count:
            return paint(self, (), width)
        selected = row == self._selected
        lines = self._draw(row, width, selected)
        return paint(self, lines[part] if part < len(lines) else (), width, selected=selected)

    def on_click(self, event: events.Click) -> None:
        """Say which row was clicked; a click never decides."""
        row = (self.scroll_offset.y + event.y) // self._row_height
        if row < self._count:
            self.post_message(RowClicked(row))
