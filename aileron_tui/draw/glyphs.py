"""Our own signs in ASCII, where a terminal has no others or draws them too wide.

No sign changes its width, so every column stays where it is. Text from outside is not changed, but for
letters that the terminal cannot draw at all, which are replaced by a mark.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.cells import cell_len, split_graphemes

from aileron_tui.draw.text import Line, Piece, cell_width

_ONE_CELL = {
    "●": "*", "◌": "~", "○": "o", "▲": "^", "◇": "v", "▶": ">", "✓": "+", "✗": "x", "–": "-",
    "←": "<", "→": ">", "↑": "^", "↓": "v", "↩": "<", "↳": ">", "▌": ">", "┃": "|", "┊": ":", "│": ".",
    "━": "=", "╸": "-", "─": ".", "█": "#", "▼": "v", "▾": "v", "▴": "^", "·": ".", "−": "-",
    "×": "x", "▀": "'", "‹": "<", "›": ">", "—": "-", "•": "*", "▏": "|",
    "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#",
}  # fmt: skip
ASCII = str.maketrans(_ONE_CELL)
"""Sign by sign, but for `…`, which becomes two dots where there is room (`_dots`)."""
ELLIPSIS = "…"
REPLACEMENT = "?"
"""The mark for each cell of a letter that the terminal cannot draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    """Which signs a terminal can draw."""

    ascii: bool = False
    """Our own signs are drawn in ASCII."""
    charset: str = ""
    """The encoding that all text must fit in; empty where the terminal can draw any letter."""

    def draw(self, pieces: Line, width: int) -> Line:
        """Return *pieces* as this terminal can draw them in *width* cells, none wider than before."""
        if self.ascii:
            pieces = _dots(tuple(_translated(each) for each in pieces), width)
        if self.charset:
            pieces = tuple(part for each in pieces for part in self._drawable(each))
        return pieces

    def _drawable(self, piece: Piece) -> Iterator[Piece]:
        """Yield *piece*, a mark in place of each letter that the charset lacks."""
        if self._fits(piece.text):
            yield piece
            return
        spans, _ = split_graphemes(piece.text)
        begin = 0
        for start, end, size in spans:
            if self._fits(piece.text[start:end]):
                continue
            if start > begin:
                yield replace(piece, text=piece.text[begin:start])
            yield Piece(REPLACEMENT * size, "mark")
            begin = end
        if begin < len(piece.text):
            yield replace(piece, text=piece.text[begin:])

    def _fits(self, text: str) -> bool:
        try:
            text.encode(self.charset)
        except UnicodeEncodeError:
            return False
        return True


def _translated(piece: Piece) -> Piece:
    if piece.foreign or piece.text.isascii():
        return piece
    return replace(piece, text=piece.text.translate(ASCII))


def _dots(pieces: Line, width: int) -> Line:
    """Return *pieces* with `..` for each ellipsis of ours.

    The second dot takes a blank behind it, or the last letter of what was cut off, or a cell that
    is free at the end of the line; where there is none of these, one dot must do.
    """
    if not any(ELLIPSIS in each.text and not each.foreign for each in pieces):
        return pieces
    free = width - cell_width(pieces)
    done: list[Piece] = []
    todo = [each for each in pieces if each.text]
    while todo:
        piece = todo.pop(0)
        before, ellipsis, after = piece.text.partition(ELLIPSIS)
        if piece.foreign or not ellipsis:
            done.append(piece)
            continue
        done.append(replace(piece, text=before))
        rest = replace(piece, text=after)
        following = after or "".join(each.text for each in todo[:2])
        if not following and free > 0:
            free -= 1
            dots = ".."
        elif following.startswith("  ") and (after or not todo[0].foreign):
            dots = ".."
            if after:
                rest = replace(piece, text=after[1:])
            else:
                todo[0] = replace(todo[0], text=todo[0].text[1:])
        else:
            dots = "." * (1 + _taken_off(done))
        done.append(replace(piece, text=dots))
        todo.insert(0, rest)
    return tuple(each for each in done if each.text)


def _taken_off(done: list[Piece]) -> int:
    """Take the last letter of *done* off, where that is the text which was cut; return its cells."""
    for row in range(len(done) - 1, -1, -1):
        text = done[row].text
        if not text:
            continue
        spans, _ = split_graphemes(text)
        start, _, size = spans[-1]
        if text[start:].isspace() or not size or cell_len(text[:start]) + size != cell_len(text):
            return 0
        done[row] = replace(done[row], text=text[:start])
        return size
    return 0
