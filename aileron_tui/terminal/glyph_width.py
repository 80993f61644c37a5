"""Keeps every cell in its column, whatever width the terminal gives a glyph.

Programs and terminals disagree on how wide an emoji with a modifier, a flag, a vowel sign or a
conjoining letter is; zero-width for one is two cells for the other. What stands right of such a
glyph would move, and text from outside would reach a reserved column. So each such
glyph is put on blanks of its own, and the cursor is set by number behind it.
"""

import re

from rich.cells import cell_len, split_graphemes

_UNSURE = re.compile(
    "[^\x00-~"
    "\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f"  # Latin, Greek, Cyrillic
    "\u05d0-\u05ea\u0620-\u064a"  # Hebrew and Arabic letters
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u22ff"  # punctuation, currencies, arrows, mathematics
    "\u2500-\u25f7\u2713\u2717"  # boxes, blocks, shapes, our two ticks
    "\u3001-\u3029\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"  # East Asia
    "]"
)
"""Every character but those of one known width; a list of sure ones ages better than one of doubts."""

_CONTROL = re.compile(r"(\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|\n)")
_MOVE = re.compile(r"\x1b\[\d+;(\d+)H")


def pin_glyphs(sequence: str) -> str:
    """Return *sequence*, a frame as Textual writes it, with every glyph of unsure width held in its cells.

    A frame sets the cursor by row and column before each run of text; text before the first such
    place is left as it is.
    """
    if _UNSURE.search(sequence) is None:
        return sequence
    parts: list[str] = []
    column: int | None = None
    for index, part in enumerate(_CONTROL.split(sequence)):
        if index % 2:
            parts.append(part)
            if placed := _MOVE.fullmatch(part):
                column = int(placed[1])
        elif column is None or not part:
            parts.append(part)
        else:
            parts.append(part if _UNSURE.search(part) is None else _held(part, column))
            column += cell_len(part)
    return "".join(parts)


def _held(text: str, column: int) -> str:
    """Return *text*, which begins in *column* (from 1), with its unsure glyphs held."""
    parts: list[str] = []
    spans, _ = split_graphemes(text)
    for start, end, cells in spans:
        glyph = text[start:end]
        if _UNSURE.search(glyph) is None:
            parts.append(glyph)
        else:
            # The blanks: a terminal that draws it narrower must not leave an old cell in sight.
            parts.append(f"{' ' * cells}\x1b[{column}G{glyph}\x1b[{column + cells}G")
        column += cells
    return "".join(parts)
