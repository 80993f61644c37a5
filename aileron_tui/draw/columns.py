"""Rows of named columns on one line each; text that does not fit is visibly cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, cell_width, line, truncate, wrap

COLUMN_GAP = 2
"""Blank cells behind each column."""
DETAIL_ROWS = 3
"""Lines below a list for details of its selected row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its name, its cells with the gap, and from which width of the list on it is shown."""

    name: str
    size: int
    min_width: int = 0


def column_titles(columns: Sequence[Column], last: str, width: int) -> Line:
    """Return the names of *columns*, and of the one that takes the rest."""
    named = [Piece(f"{each.name:<{each.size}}", "muted") for each in shown_columns(columns, width)]
    return line(" ", " ", *named, Piece(last, "muted"))


def column_row(
    columns: Sequence[Column],
    values: Mapping[str, Line],
    last: Line,
    width: int,
    *,
    selected: bool,
) -> Line:
    """Return one row: *values* by the names of *columns*, then *last* in what is left."""
    parts: list[Piece] = [Piece("▌", "fact-bar") if selected else Piece(" "), Piece(" ")]
    for each in shown_columns(columns, width):
        shown = truncate(values.get(each.name, ()), each.size - COLUMN_GAP)
        parts += [*shown, Piece(" " * (each.size - cell_width(shown)))]
    return truncate(line(*parts, *last), width - 1)


def join_fitting(parts: Sequence[str], width: int) -> str:
    """Return as many of *parts* as fit in *width* cells with dots between them, at least the first."""
    joined = parts[0]
    for each in parts[1:]:
        if cell_len(f"{joined} · {each}") > width:
            break
        joined = f"{joined} · {each}"
    return joined


def detail_lines(text: Line, width: int) -> tuple[Line, ...]:
    """Return a row's details in `DETAIL_ROWS` lines; a cut ends in `…`."""
    rows = [each.pieces for each in wrap(text, width - 4)]
    if len(rows) > DETAIL_ROWS:
        # The last row takes all the rest, so that the cut is marked.
        rest = tuple(piece for each in rows[DETAIL_ROWS - 1 :] for piece in (*each, Piece(" ")))
        rows = [*rows[: DETAIL_ROWS - 1], truncate(rest, width - 4)]
    return tuple(line("  ", *each) for each in rows)


def detail_part(name: str, text: str) -> Line:
    """Return a named part of the details; nothing where *text* is empty."""
    return (Piece(f"  · {name} ", "muted"), *foreign_text(text, "muted")) if text else ()


def shown_columns(columns: Sequence[Column], width: int) -> list[Column]:
    return [each for each in columns if width >= each.min_width]
