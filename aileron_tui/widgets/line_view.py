"""Painting: a line of roles becomes a strip of exactly the widget's width."""

from typing import cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.text import ROLES, Line, Role
from aileron_tui.messages import PieceClicked

ROLE_CLASSES: set[str] = {f"role-{role}" for role in ROLES} | {"role-sel"}
"""Every screen with lines on it has these as its `COMPONENT_CLASSES`; its widgets paint with them."""
_ANY_GLYPH = Glyphs()


def glyphs_of(node: Widget) -> Glyphs:
    # Textual does not say what its App is.
    application = cast("object", node.app)  # pyright: ignore[reportUnknownMemberType]
    return getattr(application, "glyphs", _ANY_GLYPH)


class LinePainter:
    """Paints a widget's lines in the looks and signs of its application.

    The styles are looked up once for a drawing and kept while background and theme are the same: walking
    up to the root for each line was a sixth of the time of a key.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._base_look: tuple[Style, str] | None = None
        self._styles: dict[tuple[Role, bool], Style] = {}
        self._blank: dict[bool, Style] = {}
        self._glyphs = _ANY_GLYPH

    def refresh_styles(self) -> None:
        """Learn background and theme anew. Call it before the lines of a drawing."""
        # Textual does not say what its App returns.
        application = cast("object", self._widget.app)  # pyright: ignore[reportUnknownMemberType]
        ground = (self._widget.rich_style, str(getattr(application, "theme", "")))
        if ground != self._base_look:
            self._base_look = ground
            self._styles.clear()
            self._blank.clear()
        self._glyphs = glyphs_of(self._widget)

    def paint(self, pieces: Line, width: int, *, selected: bool = False) -> Strip:
        """Return *pieces* as a strip of *width* cells, cut and padded.

        A short strip would leave old cells on some terminals, a long one paint over the neighbour.
        """
        if self._base_look is None:
            self.refresh_styles()
        segments = [
            Segment(piece.text, self._style(piece.role, selected=selected))
            for piece in self._glyphs.draw(pieces, width)
        ]
        return Strip(segments).adjust_cell_length(width, self._padding(selected=selected))

    def _style(self, role: Role, *, selected: bool) -> Style:
        style = self._styles.get((role, selected))
        if style is None:
            own = self._widget.screen.get_component_rich_style(f"role-{role}", partial=True)
            style = self._styles[role, selected] = self._base(selected=selected) + own
        return style

    def _padding(self, *, selected: bool) -> Style:
        style = self._blank.get(selected)
        if style is None:
            # A line under what is empty would be seen.
            style = self._blank[selected] = self._base(selected=selected) + Style(underline=False)
        return style

    def _base(self, *, selected: bool) -> Style:
        base = self._base_look[0] if self._base_look is not None else Style.null()
        if selected:
            base += self._widget.screen.get_component_rich_style("role-sel", partial=True)
        return base


class Lines(Widget):
    """A few lines; `grows` makes it as high as they are many, else the stylesheet says how high."""

    def __init__(self, *, id: str, grows: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._grows = grows
        self._lines: tuple[Line, ...] = ()
        self._painter = LinePainter(self)

    @property
    def rows(self) -> int:
        return len(self._lines)

    def show(self, *lines: Line) -> None:
        if lines == self._lines:
            return
        before, self._lines = self._lines, lines
        if self._grows and len(lines) != len(before):
            self.styles.height = len(lines)
        if len(lines) == len(before):
            changed = (
                y for y, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new
            )
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))
        else:
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Say which action's name was clicked; what becomes of that is not decided here."""
        column = 0
        for piece in self._lines[event.y] if event.y < len(self._lines) else ():
            column += cell_len(piece.text)
            if event.x < column:
                if piece.action:
                    self.post_message(PieceClicked(piece.action))
                return

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint what was asked for, in the present theme."""
        self._painter.refresh_styles()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        pieces = self._lines[y] if y < len(self._lines) else ()
        return self._painter.paint(pieces, self.size.width)
