"""The document of the selected item: one text, one scroll, a track that says what was read."""

from rich.cells import cell_len
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from aileron_tui.draw.searching import mark_line
from aileron_tui.draw.text import Line
from aileron_tui.messages import DocumentClicked, RowClicked, SizeChanged
from aileron_tui.pages.panes import DocumentPane, Pane, RowsPane
from aileron_tui.widgets.line_view import LinePainter


def _link_at(pieces: Line, column: int) -> str:
    """Return the address of the link at *column*; empty where there is none."""
    end = 0
    for piece in pieces:
        end += cell_len(piece.text)
        if column < end:
            return piece.href
    return ""


class PaneView(ScrollView):
    """Shows a pane, which says what is in view; tells it its size, and where the wheel scrolled it."""

    def __init__(self, pane: Pane, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._pane = pane
        self._painter = LinePainter(self)
        self._follows = False
        """It scrolls to where the pane is; whoever moved that knows."""
        pane.changed = self.draw

    def draw(self) -> None:
        """Draw what differs from before."""
        if not self.is_attached:
            return
        self._follows = True
        self.virtual_size = Size(self.size.width, self._pane.total)
        if round(self.scroll_y) != self._pane.top:
            self.scroll_to(y=self._pane.top, animate=False, force=True, immediate=True)
        self._follows = False

    def on_resize(self) -> None:
        """Tell the pane, and ask for what the new size has room for."""
        self._pane.resize(self.size.width, self.size.height)
        self.post_message(SizeChanged())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell the pane where the wheel scrolled it."""
        super().watch_scroll_y(old_value, new_value)
        if not self._follows and round(new_value) != self._pane.top:
            self._pane.scroll_to(round(new_value))
            self.post_message(SizeChanged())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint what was asked for, in the present theme."""
        self._painter.refresh_styles()
        return super().render_lines(crop)


class Document(PaneView, can_focus=True):
    """Draws a document's pane. What counts as read is not its business."""

    def __init__(self, pane: DocumentPane, *, id: str) -> None:  # noqa: A002 - Textual's name
        self.pane = pane
        self._drawn: tuple[object, ...] = ()
        self._drawn_lines: dict[int, Line] = {}
        super().__init__(pane, id=id)

    def draw(self) -> None:
        """Draw what differs from before."""
        super().draw()
        pane = self.pane
        now = (pane.total, pane.top, self.size, pane.unseen, pane.wrap_marks, pane.found)
        before, known = self._drawn_lines, now == self._drawn
        self._drawn = now
        self._drawn_lines = {row: pane.layout.lines[row] for row in range(*pane.rows_in_view)}
        if not known:
            self.refresh()
            return
        # The heading shows an age: of the whole text that line alone is painted every second.
        changed = [row for row, line in self._drawn_lines.items() if before.get(row) != line]
        if changed:
            regions = (Region(0, row - pane.top, self.size.width, 1) for row in changed)
            self.refresh(*regions)

    def on_click(self, event: events.Click) -> None:
        """Say which link was clicked, or that the document was."""
        lines, row = self.pane.layout.lines, self.pane.top + event.y
        self.post_message(
            DocumentClicked(_link_at(lines[row], event.x) if row < len(lines) else "")
        )

    def render_line(self, y: int) -> Strip:
        pane, width = self.pane, self.size.width
        row = pane.top + y
        there = row < pane.total
        pieces = pane.layout.line(row, wrap_marks=pane.wrap_marks) if there else ()
        if row in pane.found:
            pieces = mark_line(pieces, pane.found[row])
        text = self._painter.paint(pieces, max(0, width - 1))
        return Strip.join([text, self._painter.paint(pane.track(y), min(1, width))])


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
