"""Lines of text with roles: what every presenter returns and every widget paints.

A role names a meaning, never a colour; `aileron_tui.styles.tokens` gives each its look.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from rich.cells import cell_len, set_cell_size, split_graphemes

Role = Literal[
    "text",
    "strong",
    "muted",
    "faint",
    "fact",
    "fact-bar",
    "claim",
    "claim-bar",
    "claim-heading",
    "attn",
    "danger",
    "ok",
    "mark",
    "chip",
    "key",
    "key-danger",
    "badge",
    "view",
    "summary",
    "add",
    "del",
    "add-word",
    "del-word",
    "add-name",
    "add-value",
    "del-name",
    "del-value",
    "alarm",
    "link",
    "found",
    "form",
    "syntax-name",
    "syntax-value",
    "qr",
]
"""What a text means, and so how it is coloured: `fact` is Aileron's own knowledge, `claim` what an agent
says, `fact-bar` and `claim-bar` the bars beside them, `summary` the one line that sums up a preview,
`form` what a value is written in, `syntax-name` and `syntax-value` the names and values of JSON and of code,
`add-name` and so on those of a line that comes or goes, `qr` the squares of a QR code."""
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text and what it means. The text holds no control character: it was rendered before."""

    text: str
    role: Role = "text"
    foreign: bool = False
    """It comes from outside: no sign in it is ours."""
    action: str = ""
    """The id of the action that a click on it means."""
    href: str = ""
    """The address that it links to, as it was written outside."""


Line: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class WrappedLine:
    """One drawn line of a wrapped text: its pieces, and the characters `[start, end)` it covers.

    The end counts the blank at which it was broken, so that the lines of a text cover it whole.
    """

    pieces: Line
    start: int
    end: int


def line(*parts: Piece | str) -> Line:
    """Return a line of *parts*; a bare string has the role `text`. Empty parts are left out."""
    pieces = (Piece(p) if isinstance(p, str) else p for p in parts)
    return tuple(p for p in pieces if p.text)


def plain_text(pieces: Iterable[Piece]) -> str:
    return "".join(p.text for p in pieces)


def cell_width(pieces: Iterable[Piece]) -> int:
    return sum(cell_len(p.text) for p in pieces)


def truncate(pieces: Line, width: int, *, mark: str = "…") -> Line:
    """Return *pieces* in at most *width* cells; what was cut off is shown by *mark*."""
    if cell_width(pieces) <= width:
        return pieces
    kept = _leading(pieces, max(0, width - cell_len(mark)), _fit)
    last: Role = kept[-1].role if kept else "text"
    return tuple(p for p in (*kept, Piece(mark[:width], last)) if p.text)


def truncate_start(pieces: Line, width: int, *, mark: str = "…") -> Line:
    """Return the end of *pieces* in at most *width* cells; what was cut off is shown by *mark*."""
    if cell_width(pieces) <= width:
        return pieces
    kept = _leading(reversed(pieces), max(0, width - cell_len(mark)), _fit_end)
    first: Role = kept[-1].role if kept else "text"
    return tuple(p for p in (Piece(mark[:width], first), *reversed(kept)) if p.text)


def _leading(pieces: Iterable[Piece], room: int, fit: Callable[[str, int], str]) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        size = cell_len(piece.text)
        if size > room:
            return [*kept, replace(piece, text=fit(piece.text, room))]
        kept.append(piece)
        room -= size
    return kept


def justify(left: Line, right: Line, width: int) -> Line:
    """Return *left* and *right* at the two ends of *width* cells; *left* is cut to make room."""
    room = width - cell_width(right)
    if right and room < 1:
        return justify(left, (), width)
    kept = truncate(left, room - 1 if right else room)
    gap = room - cell_width(kept)
    return (*kept, Piece(" " * gap), *right) if gap > 0 else (*kept, *right)


def wrap(pieces: Line, width: int) -> tuple[WrappedLine, ...]:
    """Break *pieces* at blanks into lines of at most *width* cells; a long word is broken inside.

    No character is lost but the one blank at a break, and a line never holds more than *width*.
    """
    width = max(2, width)
    text = plain_text(pieces)
    if len(text) <= width and text.isascii():
        return (WrappedLine(pieces, 0, len(text)),)
    lines: list[WrappedLine] = []
    breaks = _ascii_breaks(text, width) if text.isascii() else _breaks(text, width)
    slices = _Slices(pieces)
    for start, end, covered in breaks:
        lines.append(WrappedLine(tuple(slices.take(start, end)), start, covered))
    return tuple(lines)


_WORD = re.compile(r" +|[^ ]+")


def _ascii_breaks(text: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield what `_breaks` does where every character is one cell: several times as fast."""
    start = 0
    while len(text) - start > width:
        end = text.rfind(" ", start, start + width + 1)
        if end < 0 or not text[start:end].strip(" "):
            end = covered = start + width
        else:
            covered = end + 1
            while covered < len(text) and text[covered] == " ":
                covered += 1
        yield start, end, covered
        start = covered
    if start < len(text) or not text:
        yield start, len(text), len(text)


def _breaks(text: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, covered) of every line; `covered` includes the blanks at the break."""
    start = used = 0
    for match in _WORD.finditer(text):
        word, at = match.group(), match.start()
        size = cell_len(word)
        if used + size <= width:
            used += size
            continue
        if word[0] == " ":
            # A run of blanks that does not fit ends the line; it is covered, and not drawn.
            yield start, at, match.end()
            start, used = match.end(), 0
            continue
        for chunk in _chunks(word, width):
            if used:
                yield start, at, at
                start = at
            used = cell_len(chunk)
            at += len(chunk)
    if start < len(text) or not text:
        yield start, len(text), len(text)


def _chunks(word: str, width: int) -> Iterator[str]:
    """Break one word into parts of at most *width* cells."""
    begin = used = 0
    glyphs, _ = split_graphemes(word)
    for start, _, size in glyphs:
        if used + size > width and start > begin:
            yield word[begin:start]
            begin, used = start, 0
        used += size
    if begin < len(word):
        yield word[begin:]


class _Slices:
    """Cuts stretches out of pieces, one behind the other: each piece is walked over once."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._index = 0
        self._at = 0

    def take(self, start: int, end: int) -> Iterator[Piece]:
        """Yield the characters `[start, end)`, each with its role; *start* never goes back."""
        index, at = self._index, self._at
        while index < len(self._pieces) and at < end:
            piece = self._pieces[index]
            size = len(piece.text)
            if at + size <= start:
                self._index, self._at = index + 1, at + size
            else:
                low, high = max(start - at, 0), min(end - at, size)
                if low < high:
                    yield Piece(piece.text[low:high], piece.role, piece.foreign, href=piece.href)
            index, at = index + 1, at + size


def _fit(text: str, width: int) -> str:
    """Return the longest start of *text* in at most *width* cells."""
    return set_cell_size(text, width).rstrip(" ") if width > 0 else ""


def _fit_end(text: str, width: int) -> str:
    """Return the longest end of *text* in at most *width* cells, no glyph of it torn apart."""
    glyphs, _ = split_graphemes(text)
    begin, used = len(text), 0
    for start, _, size in reversed(glyphs):
        if used + size > width:
            break
        begin, used = start, used + size
    return text[begin:]
