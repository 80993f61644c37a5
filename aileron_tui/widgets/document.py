"""The document of the selected item: one text, one scroll, a track that says what was read."""

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from aileron_tui.messages import DocumentScrolled, Relaid
from aileron_tui.presenters.blocks import Layout
from aileron_tui.presenters.lines import Line, Piece, cells, cut
from aileron_tui.widgets.linework import ROLE_CLASSES, paint

__all__ = ["Document"]


class Document(ScrollView, can_focus=True):
    """Draws a `Layout`. What counts as read is not its business: it says what is in view."""

    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._layout_shown = Layout((), ())
        self._unseen: frozenset[int] = frozenset()

    def show(self, layout: Layout, unseen: frozenset[int]) -> None:
        """Draw *layout*; the track marks the rows *unseen*."""
        if layout is self._layout_shown and unseen == self._unseen:
            return
        self._layout_shown, self._unseen = layout, unseen
        self.virtual_size = Size(self.size.width, len(layout.lines))
        self.refresh()

    def on_resize(self) -> None:
        """Ask for a layout of the new width."""
        self.post_message(Relaid())

    def start_over(self) -> None:
        """Show the first line: other content stands here now."""
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def read(self, rows: int) -> None:
        """Scroll by *rows*, at most to an end."""
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, force=True, immediate=True)

    def read_panes(self, panes: int) -> None:
        """Scroll by *panes*, each less two lines."""
        self.read(panes * max(1, self.size.height - 2))

    @property
    def in_view(self) -> tuple[int, int]:
        """The rows `[first, last)` that stand in view."""
        first = self.scroll_offset.y
        return first, min(first + self.size.height, len(self._layout_shown.lines))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other rows are in view."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(DocumentScrolled())

    def render_line(self, y: int) -> Strip:
        """Paint one line of the text, and its part of the track."""
        width = self.size.width
        row = self.scroll_offset.y + y
        lines = self._layout_shown.lines
        text = cut(lines[row], width - 1) if row < len(lines) else ()
        pad = Piece(" " * max(0, width - 1 - cells(text)))
        return paint(self, (*text, pad, *self._track(y)), width)

    def _track(self, y: int) -> Line:
        """Return the track's cell beside row *y* of the pane."""
        height, total = self.size.height, len(self._layout_shown.lines)
        if total <= height or height == 0:
            return ()
        first, last = y * total // height, max((y + 1) * total // height, y * total // height + 1)
        top, bottom = self.in_view
        if first < bottom and last > top:
            return (Piece("█", "muted"),)
        if any(row in self._unseen for row in range(first, last)):
            return (Piece("┃", "attn"),)
        return (Piece("│", "faint"),)
