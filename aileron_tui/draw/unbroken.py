"""Lines that no terminal breaks, for what is printed and not painted: `console --plain`, and commands that show a file.

Text from outside never begins a line: there it could imitate a question or an answer of ours.
"""

import unicodedata
from collections.abc import Callable, Sequence

from aileron_tui.draw.blocks import GUTTER, Block, lay_out
from aileron_tui.draw.text import Line, line, plain_text, wrap

_OWN_COLUMNS = GUTTER + 4
_NARROWEST = 6
"""Into how many parts the columns for outside text are divided at most, of which it gets one."""

Page = tuple[Line, ...]


def unbroken(make: Callable[[int], Page], columns: int) -> Page:
    """Return the lines of *make* for a width at which even wide letters stay within *columns*.

    Terminals differ in how wide they draw a letter; a line that they break would let the rest of it
    begin the next one.
    """
    made = make(columns)
    for parts in range(2, _NARROWEST + 1):
        if all(_widest(each) <= columns for each in made):
            break
        made = make(_OWN_COLUMNS + (columns - _OWN_COLUMNS) // parts)
    return made


def _widest(pieces: Line) -> int:
    """Return how many cells *pieces* may take: two for each letter that is not ASCII.

    A mark that combines with the letter before it takes none anywhere.
    """
    return sum(
        (2 if piece.foreign and not piece.text.isascii() else 1)
        * sum(unicodedata.category(char) not in ("Mn", "Me") for char in piece.text)
        for piece in pieces
    )


def blocks_page(blocks: Sequence[Block], columns: int) -> Page:
    return unbroken(lambda width: lay_out(blocks, width, GUTTER).lines, columns)


def sentence_lines(pieces: Line, columns: int) -> Page:
    """Return a sentence of the console, which may quote outside text, in lines; continuation lines are indented."""

    def make(width: int) -> Page:
        rows = wrap(pieces, width - 3)  # the indent, and one to spare
        return tuple(
            each.pieces if row == 0 else line("  ", *each.pieces) for row, each in enumerate(rows)
        )

    return unbroken(make, columns)


def text_of(pieces: Line) -> str:
    """Return the line as it is written, without blanks at its end."""
    return plain_text(pieces).rstrip(" ")
