"""Lists as columns: what stands in each, and how wide each is in a list of some width."""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from aileron_tui.draw.foreign_text import render_foreign, rendered_lines
from aileron_tui.draw.text import (
    Line,
    Piece,
    Role,
    cell_width,
    line,
    truncate,
    truncate_start,
    wrap,
)

T = TypeVar("T")

_GAP = 2
"""Blank cells behind each column."""
_BLANKS = re.compile(r"(  +)")
_EDGE = 3
"""Cells of a row beside its columns: the sign of the selected one, and the blank at its end."""
DETAIL_ROWS = 3
"""Lines below a list for details of its selected row."""


class Row(NamedTuple):
    """What a cell depends on besides what its row is about: epoch seconds, and the role of the row's main text."""

    now: float
    role: Role


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column. Sizes are cells, with the gap behind it."""

    title: str
    cell: Callable[[T, Row], Line]
    """What stands in it of a row."""
    size: int = 0
    """What it has where there is room; more if something in it is longer, less if nothing is."""
    least: int = 0
    """To so much it is cut; 0: to its size. What stands on the right is cut first."""
    min_width: int = 0
    """It is shown in lists from this width on."""
    keeps_end: bool = False
    """It is cut at its start."""
    outside: bool = False
    """Names from outside stand in it: it gets twice its size at most."""

    def draw(self, item: T, row: Row) -> Line:
        """Return what stands in it of *item*. A run of blanks from outside is a mark: it would pass for our gap."""
        pieces: list[Piece] = []
        for piece in self.cell(item, row):
            if not piece.foreign or " " * _GAP not in piece.text:
                pieces.append(piece)
                continue
            for number, part in enumerate(_BLANKS.split(piece.text)):
                if number % 2:
                    pieces += rendered_lines(render_foreign(part, end=True))[0]
                elif part:
                    pieces.append(replace(piece, text=part))
        return tuple(pieces)


class Columns(Generic[T]):
    """Columns, each as wide as what stands in it: none is cut beside blanks of another one."""

    def __init__(self, *columns: Column[T]) -> None:
        self._columns = columns
        self._unmeasured: deque[T] = deque(maxlen=1_000)
        self._needed = [len(each.title) + _GAP for each in columns]

    def measure(self, items: Iterable[T], *, instead: bool = False) -> None:
        """Make room for *items* at the next drawing, *instead* of those that were not drawn yet.

        It is never taken back: rows must not shift while one reads.
        """
        if instead:
            self._unmeasured.clear()
        self._unmeasured.extend(items)

    def titles(self, width: int, now: float) -> Line:
        named = "".join(f"{each.title:<{size}}"[:size] for each, size in self._sizes(width, now))
        return truncate(line(" ", " ", Piece(named.rstrip(), "muted")), width - 1)

    def row(self, item: T, width: int, now: float, *, selected: bool) -> Line:
        drawn = Row(now, "summary" if selected else "text")
        parts: list[Piece] = [edge(selected), Piece(" ")]
        blanks = 0
        for each, size in self._sizes(width, now):
            cut = truncate_start if each.keeps_end else truncate
            shown = cut(each.draw(item, drawn), size - _GAP)
            parts += [Piece(" " * blanks), *shown]
            blanks = size - cell_width(shown)
        return truncate(line(*parts), width - 1)

    def _sizes(self, width: int, now: float) -> list[tuple[Column[T], int]]:
        """Return the columns of a list of *width*, and what each gets."""
        while self._unmeasured:
            item, drawn = self._unmeasured.popleft(), Row(now, "text")
            for at, each in enumerate(self._columns):
                needed = cell_width(each.draw(item, drawn)) + _GAP
                if each.outside:
                    needed = min(needed, 2 * each.size)
                self._needed[at] = max(self._needed[at], needed)
        shown = [at for at, each in enumerate(self._columns) if width >= each.min_width]
        columns = [self._columns[at] for at in shown]
        sizes = fit(
            tuple(self._needed[at] for at in shown),
            tuple(each.size or each.least for each in columns),
            tuple(each.least or each.size for each in columns),
            width - _EDGE + _GAP,
        )
        return list(zip(columns, sizes, strict=True))


@lru_cache(maxsize=64)
def fit(
    needed: tuple[int, ...], usual: tuple[int, ...], least: tuple[int, ...], room: int
) -> tuple[int, ...]:
    """Return the sizes of columns in *room* cells."""
    needed = tuple(min(each, room) for each in needed)  # below, one cell is cut at a time
    sizes = [max(pair) for pair in zip(needed, usual, strict=True)]
    from_right = range(len(sizes) - 1, -1, -1)

    def cut(at: int, to: int, most: int) -> None:
        sizes[at] -= max(0, min(sum(sizes) - room, sizes[at] - to, most))

    for at in from_right:  # blanks
        cut(at, needed[at], room)
    while (
        sum(sizes) > room
    ):  # what is longer than usual, the longest first: no name crowds out the others
        at = max(from_right, key=lambda each: sizes[each] - usual[each])
        if sizes[at] <= usual[at]:
            break
        cut(at, usual[at], 1)
    for at in from_right:
        cut(at, min(needed[at], least[at]), room)
    return tuple(sizes)


def edge(selected: bool) -> Piece:
    """Return how a row begins."""
    return Piece("▌", "fact-bar") if selected else Piece(" ")


def detail_lines(text: Line, width: int) -> tuple[Line, ...]:
    """Return a row's details in `DETAIL_ROWS` lines; a cut ends in `…`."""
    rows = [each.pieces for each in wrap(text, width - 4)]
    if len(rows) > DETAIL_ROWS:
        # The last row takes all the rest, so that the cut is marked.
        rest = tuple(piece for each in rows[DETAIL_ROWS - 1 :] for piece in (*each, Piece(" ")))
        rows = [*rows[: DETAIL_ROWS - 1], truncate(rest, width - 4)]
    return tuple(line("  ", *each) for each in rows)
