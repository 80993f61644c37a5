"""Painting: a line of roles becomes a strip of exactly the widget's width."""

from typing import cast

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from aileron_tui.presenters.glyphs import Glyphs
from aileron_tui.presenters.lines import ROLES, Line

__all__ = ["ROLE_CLASSES", "Lines", "paint"]

ROLE_CLASSES: set[str] = {f"role-{role}" for role in ROLES} | {"role-sel"}
_ANY_GLYPH = Glyphs()


def paint(widget: Widget, pieces: Line, width: int, *, selected: bool = False) -> Strip:
    """Return *pieces* as a strip of *width* cells, cut and padded, in the signs of its application.

    A short strip would leave old cells on some terminals, a long one paint over the neighbour.
    """
    base = widget.rich_style
    if selected:
        base += widget.get_component_rich_style("role-sel", partial=True)
    application = cast("object", widget.app)  # pyright: ignore[reportUnknownMemberType]
    glyphs = getattr(application, "glyphs", _ANY_GLYPH)
    segments = [
        Segment(
            piece.text,
            base + widget.get_component_rich_style(f"role-{piece.role}", partial=True),
        )
        for piece in glyphs.draw(pieces, width)
    ]
    return Strip(segments).adjust_cell_length(width, base + Style(underline=False))


class Lines(Widget):
    """A few lines; `grows` makes it as high as they are many, else the stylesheet says how high."""

    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(self, *, id: str, grows: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._grows = grows
        self._lines: tuple[Line, ...] = ()

    @property
    def rows(self) -> int:
        """How many lines are drawn."""
        return len(self._lines)

    def show(self, *lines: Line) -> None:
        """Draw *lines* in place of what stands there."""
        if lines == self._lines:
            return
        self._lines = lines
        if self._grows:
            self.styles.height = len(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Paint one line."""
        pieces = self._lines[y] if y < len(self._lines) else ()
        return paint(self, pieces, self.size.width)
