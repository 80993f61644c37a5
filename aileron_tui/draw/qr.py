"""A text as a QR code, two of its squares in a cell."""

from functools import lru_cache

from aileron_tui.draw.text import Line, Piece

_BORDER = 2
"""Blank squares around it: the ground beyond is dark, or the paper's own."""
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


@lru_cache(maxsize=1)
def qr_code(text: str) -> tuple[Line, ...]:
    """Return the rows of the smallest QR code of *text*."""
    import segno  # takes a while, and is needed only for a link

    made = segno.make(text, error="l", micro=False)
    rows = [bytes(row) for row in made.matrix_iter(border=_BORDER)]
    rows += [bytes(len(rows[0]))] * (len(rows) % 2)
    drawn = (
        "".join(_HALVES[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    )
    # No sign of it is ours: none has a form in ASCII.
    return tuple((Piece(each, "qr", foreign=True),) for each in drawn)
