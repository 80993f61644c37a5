"""The cells of a drawn screen, each with the widget that it belongs to."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import split_graphemes
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tests.screen.driving import Console


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what stands in it, where in its widget, and what stands left of it there."""

    text: str
    widget: str
    x: int
    y: int
    before: str


class Grid:
    """The screen as it was drawn last."""

    def __init__(self, shown: Console) -> None:
        self._screen = shown.app.screen
        self._strips = self._screen._compositor.render_strips()

    @property
    def widths(self) -> set[int]:
        """How many cells the rows have."""
        return {strip.cell_length for strip in self._strips}

    @property
    def characters(self) -> set[str]:
        """Every character that stands anywhere."""
        return {char for strip in self._strips for segment in strip for char in segment.text}

    def holding(self, marker: str) -> Iterator[Cell]:
        """Yield the cells that hold *marker*."""
        every = self._widgets()
        for y, strip in enumerate(self._strips):
            if not any(marker in segment.text for segment in strip):
                continue
            row = _cells(strip)
            widgets = [(w, r) for w, r in every if r.y <= y < r.bottom]
            for x, text in enumerate(row):
                if marker in text:
                    owner, region = next(
                        ((w, r) for w, r in widgets if r.x <= x < r.right),
                        (self._screen, Region(0, 0)),
                    )
                    name = owner.id or type(owner).__name__
                    before = "".join(row[region.x : x])
                    yield Cell(text, name, x - region.x, y - region.y, before)

    def _widgets(self) -> list[tuple[Widget, Region]]:
        """Return the widgets that draw: those of the topmost screen first, and there the innermost."""
        found: list[tuple[Widget, Region]] = []
        for screen in reversed(self._screen.app.screen_stack):
            drawing = [
                (widget, widget.region)
                for widget in screen.walk_children(Widget)
                if widget.region and widget.display and not widget.children
            ]
            found += sorted(drawing, key=lambda pair: pair[1].area)
        return found


def _cells(strip: Strip) -> list[str]:
    """Return the cells of a row; the second cell of a wide glyph holds nothing."""
    row: list[str] = []
    for segment in strip:
        if segment.text.isascii() and segment.text.isprintable():
            row += segment.text
            continue
        spans, _ = split_graphemes(segment.text)
        for start, end, size in spans:
            glyph = segment.text[start:end]
            if size == 0 and row:
                row[-1] += glyph
            else:
                row += [glyph, *[""] * (size - 1)]
    return row
