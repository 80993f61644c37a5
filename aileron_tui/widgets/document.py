"""The document of the selected item: one text, one scroll, a track that says what was read."""

from rich.cells import cell_len
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from aileron_tui.draw.blocks import Layout
from aileron_tui.draw.searching import Found, mark_line
from aileron_tui.draw.text import Line, Piece
from aileron_tui.messages import DocumentClicked, DocumentScrolled, SizeChanged
from aileron_tui.widgets.line_view import LinePainter

_NOTHING_FOUND: Found = {}


def _link_at(pieces: Line, column: int) -> str:
    """Return the address of the link at *column*; empty where there is none."""
    end = 0
    for piece in pieces:
        end += cell_len(piece.text)
        if column < end:
            return piece.href
    return ""


class Document(ScrollView, can_focus=True):
    """Draws a `Layout`. What counts as read is not its business: it says what is in view."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._layout_shown = Layout((), ())
        self._unseen: frozenset[int] = frozenset()
        self._wrap_marks = False
        self._found: Found = {}
        self._painter = LinePainter(self)

    def show(
        self,
        layout: Layout,
        unseen: frozenset[int],
        *,
        wrap_marks: bool = False,
        found: Found = _NOTHING_FOUND,
    ) -> None:
        """Draw *layout*, with *wrap_marks* where its lines go on; the track marks the rows *unseen*.

        *found*: what a search found in it.
        """
        if wrap_marks != self._wrap_marks or found != self._found:
            self._wrap_marks, self._found = wrap_marks, found
            self.refresh()
        before, unread = self._layout_shown, self._unseen
        if layout is before and unseen == unread:
            return
        self._layout_shown, self._unseen = layout, unseen
        if len(layout.lines) != len(before.lines) or unseen != unread:
            self.virtual_size = Size(self.size.width, len(layout.lines))
            self.refresh()
            return
        # The heading shows an age: of the whole text that line alone is painted every second.
        top, width = self.scroll_offset.y, self.size.width
        rows = range(*self.rows_in_view)
        changed = [row - top for row in rows if layout.lines[row] != before.lines[row]]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def on_click(self, event: events.Click) -> None:
        """Say which link was clicked, or that the document was."""
        row = self.scroll_offset.y + event.y
        pieces = self._layout_shown.lines[row] if row < len(self._layout_shown.lines) else ()
        self.post_message(DocumentClicked(_link_at(pieces, event.x)))

    def on_resize(self) -> None:
        """Ask for a layout of the new width."""
        self.post_message(SizeChanged())

    def scroll_to_start(self) -> None:
        """Show the first line, after a change of content."""
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def scroll_rows(self, rows: int) -> None:
        """Scroll by *rows*, at most to an end."""
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, force=True, immediate=True)

    def scroll_panes(self, panes: int) -> None:
        """Scroll by *panes*, each less two lines."""
        self.scroll_rows(panes * max(1, self.size.height - 2))

    @property
    def rows_in_view(self) -> tuple[int, int]:
        """The rows `[first, last)` that stand in view."""
        first = self.scroll_offset.y
        return first, min(first + self.size.height, len(self._layout_shown.lines))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other rows are in view."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(DocumentScrolled())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint what was asked for, in the present theme."""
        self._painter.refresh_styles()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row = self.scroll_offset.y + y
        shown = self._layout_shown
        there = row < len(shown.lines)
        pieces = shown.line(row, wrap_marks=self._wrap_marks) if there else ()
        if row in self._found:
            pieces = mark_line(pieces, self._found[row])
        text = self._painter.paint(pieces, max(0, width - 1))
        return Strip.join([text, self._painter.paint(self._track(y), min(1, width))])

    def _track(self, y: int) -> Line:
        """Return the track's cell beside row *y* of the pane."""
        height, total = self.size.height, len(self._layout_shown.lines)
        if total <= height or height == 0:
            return ()
        first, last = y * total // height, max((y + 1) * total // height, y * total // height + 1)
        top, bottom = self.rows_in_view
        if first < bottom and last > top:
            return (Piece("█", "muted"),)
        if any(row in self._unseen for row in range(first, last)):
            return (Piece("┃", "attn"),)
        return (Piece("│", "faint"),)
