"""No colour at all: not even the codes that ask for the terminal's own."""

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter


@lru_cache(1024)
def _without(style: Style) -> Style:
    return style.without_color


class Colourless(LineFilter):
    """Leaves attributes alone. Textual's own filter for `NO_COLOR` writes `39;49` with each word."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return *segments* without their colours; *background* is the base class's."""
        return [
            Segment(text, style if style is None else _without(style), control)
            for text, style, control in segments
        ]
