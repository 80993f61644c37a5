"""A list of rows of equal height that draws only what is in view."""

from textual import events
from textual.geometry import Region
from textual.strip import Strip

from aileron_tui.draw.text import Line
from aileron_tui.messages import RowClicked
from aileron_tui.pages.panes import RowsPane
from aileron_tui.widgets.document import PaneView


class RowList(PaneView, can_focus=False):
    """Draws a pane of rows."""

    def __init__(self, pane: RowsPane, *, id: str) -> None:  # noqa: A002 - Textual's name
        self.pane = pane
        self._lines: dict[int, tuple[Line, ...]] = {}
        """Of the rows in view, as they were drawn for `_drawn_for`."""
        self._drawn_for: tuple[object, ...] = ()
        super().__init__(pane, id=id)

    def draw(self) -> None:
        """Draw the rows in view; only what differs from before is painted."""
        super().draw()
        pane, height = self.pane, self.pane.row_height
        before, known = self._lines, self._learn_place()
        # One more than is in view: what is behind the last row may have been one.
        rows = range(pane.top // height, -(-(pane.top + self.size.height) // height) + 1)
        self._lines = {row: pane.lines(row) for row in rows}
        if not known:
            self.refresh()
            return
        changed = [row for row in rows if self._lines[row] != before.get(row)]
        if changed:
            width = self.size.width
            regions = (Region(0, row * height - pane.top, width, height) for row in changed)
            self.refresh(*regions)

    def _learn_place(self) -> bool:
        """Note which rows are drawn, and how; return whether that is as before."""
        place = (self.size, self.pane.top, self.pane.row_height)
        known, self._drawn_for = place == self._drawn_for, place
        return known

    def render_line(self, y: int) -> Strip:
        pane = self.pane
        row, part = divmod(pane.top + y, pane.row_height)
        if not self._learn_place():
            self._lines = {}
        lines = self._lines.get(row)
        if lines is None:
            lines = self._lines[row] = pane.lines(row)
        selected = row == pane.selected and row < pane.count and pane.has_cursor
        pieces = lines[part] if part < len(lines) else ()
        return self._painter.paint(pieces, self.size.width, selected=selected)

    def on_click(self, event: events.Click) -> None:
        """Say which row was clicked; a click never decides."""
        row = (self.pane.top + event.y) // self.pane.row_height
        if row < self.pane.count:
            self.post_message(RowClicked(row, self.id))
