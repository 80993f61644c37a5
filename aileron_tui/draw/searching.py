"""A search in a document: where a text is found, and the drawn lines with it marked."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aileron_tui.draw.blocks import Block, Layout
from aileron_tui.draw.text import Line, Piece, Role, plain_text

MAX_MATCHES = 5_000

Found = Mapping[int, Sequence[tuple[int, int, bool]]]
"""By row: the characters `[start, end)` of matches in the drawn line, and whether it is the present one."""


@dataclass(frozen=True, slots=True)
class Match:
    """The characters `[start, end)` of block *block*, drawn from the row *row* on."""

    block: int
    start: int
    end: int
    row: int


def find_matches(blocks: Sequence[Block], layout: Layout, text: str) -> tuple[Match, ...]:
    """Return where *text* is drawn in the values of *layout*, in their order, whatever its case.

    At most `MAX_MATCHES`. A text that goes on in the next line is found; one over two values is not.
    """
    wanted = text.casefold()
    if not wanted:
        return ()
    rows: dict[int, list[tuple[int, int]]] = {}
    for row, place in enumerate(layout.places):
        if place is not None:
            rows.setdefault(place.block, []).append((place.end, row))
    found: list[Match] = []
    for block, lines in rows.items():
        for start, end in _occurrences(plain_text(blocks[block].pieces), wanted):
            number = bisect_right(lines, start, key=lambda line: line[0])
            found.append(Match(block, start, end, lines[min(number, len(lines) - 1)][1]))
            if len(found) == MAX_MATCHES:
                return tuple(found)
    return tuple(found)


def _occurrences(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    folded = text.casefold()
    if len(folded) != len(text):  # a letter became two: places would differ
        folded = text.lower() if len(text.lower()) == len(text) else text
    at = folded.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = folded.find(wanted, at + len(wanted))


def marked_rows(layout: Layout, matches: Sequence[Match], present: int) -> Found:
    """Return the rows of *layout* with what to mark in them; *present*: the number of the present match."""
    found: dict[int, list[tuple[int, int, bool]]] = {}
    for number, each in enumerate(matches):
        for row in range(each.row, len(layout.places)):
            place = layout.places[row]
            if place is None:
                continue
            if place.block != each.block or place.start >= each.end:
                break
            first = max(each.start, place.start) - place.start + place.before
            last = min(each.end, place.end) - place.start + place.before
            if first < last:
                found.setdefault(row, []).append((first, last, number == present))
    return found


def mark_line(pieces: Line, spans: Sequence[tuple[int, int, bool]]) -> Line:
    """Return *pieces* with the characters of *spans* in the look of what was found."""
    marked: list[Piece] = []
    first = 0
    for piece in pieces:
        text, at = piece.text, 0
        for start, stop, is_present in spans:
            low, high = max(start - first, at), min(stop - first, len(text))
            if low < high:
                role: Role = "found" if is_present else "chip"
                marked.append(replace(piece, text=text[at:low]))
                marked.append(replace(piece, text=text[low:high], role=role))
                at = high
        marked.append(replace(piece, text=text[at:]))
        first += len(text)
    return tuple(piece for piece in marked if piece.text)
