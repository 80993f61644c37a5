"""A document before and after it is laid out: blocks, and the drawn lines of one width.

The columns are CONSOLE 4's: label from 1, the gutter where no outside text can reach it, the value
to the last column but two. The read track in the last column is the widget's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aileron_tui.presenters.lines import Line, Piece, Role, cells, cut, wrap
from aileron_tui.presenters.reading import Place

__all__ = ["COMPACT_GUTTER", "GUTTER", "Block", "Layout", "blank", "heading", "lay_out", "value"]

GUTTER = 13
COMPACT_GUTTER = 11
VALUE_LIMIT = 100
"""Values stop here however wide the terminal is: longer lines are hard to read."""

Gutter = Literal["fact", "claim", "record"]
_BARS: dict[Gutter, Piece] = {
    "fact": Piece("┃", "factbar"),
    "claim": Piece("┊", "claimbar"),
    "record": Piece("│", "faint"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One logical line. `must`: a person must have seen it before a yes that needs one press."""

    kind: Literal["heading", "value", "blank"]
    label: Line = ()
    label_outside: bool = False
    """The label comes from outside: when it does not fit, it stands behind the bar."""
    gutter: Gutter = "fact"
    pieces: Line = ()
    fill: Role | None = None
    """The ground of the whole value column (a line of a difference)."""
    must: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The drawn lines of one width, without the read track, and the place of each in the text."""

    lines: tuple[Line, ...] = ()
    places: tuple[Place | None, ...] = ()
    blocks: tuple[int, ...] = ()
    """The block of each line."""

    def joined(self, tail: "Layout", first: int) -> "Layout":
        """Return this layout with *tail* behind it, whose blocks are numbered from *first*."""
        return Layout(
            (*self.lines, *tail.lines),
            (*self.places, *tail.places),
            (*self.blocks, *(first + number for number in tail.blocks)),
        )


def heading(name: str, remark: Line = (), role: Role = "fact") -> Block:
    """Return a section's first line: capitals of ours, then one remark."""
    return Block(kind="heading", label=(Piece(name, role),), pieces=remark)


def value(
    label: str | Line,
    pieces: Line,
    gutter: Gutter = "fact",
    *,
    fill: Role | None = None,
    label_outside: bool = False,
    must: bool = True,
) -> Block:
    """Return one labelled line; those of the record need not be seen, nor those that say so.

    A label that is a text is ours; one that is a line was made of text from outside.
    """
    named = (Piece(label, "muted"),) if isinstance(label, str) and label else label
    return Block(
        kind="value",
        label=() if isinstance(named, str) else named,
        label_outside=label_outside or not isinstance(label, str),
        gutter=gutter,
        pieces=pieces,
        fill=fill,
        must=must and gutter != "record",
    )


def blank() -> Block:
    """Return the line before a section."""
    return Block(kind="blank")


def lay_out(blocks: Sequence[Block], width: int, gutter: int) -> Layout:
    """Return *blocks* in *width* cells (the track included), the bar at column *gutter*."""
    lines: list[Line] = []
    places: list[Place | None] = []
    of: list[int] = []
    for index, block in enumerate(blocks):
        if block.kind == "blank":
            lines.append(())
            places.append(None)
        elif block.kind == "heading":
            drawn = _heading_lines(block, width - 2)
            lines.extend(drawn)
            places.extend([None] * len(drawn))
        else:
            _value_lines(block, index, width, gutter, lines, places)
        of.extend([index] * (len(lines) - len(of)))
    return Layout(tuple(lines), tuple(places), tuple(of))


def _heading_lines(block: Block, width: int) -> list[Line]:
    indent = 1 + cells(block.label)
    first: Line = (Piece(" "), *block.label)
    if not block.pieces:
        return [first]
    wrapped = wrap(block.pieces, max(8, width - indent - 2))
    pad = Piece(" " * (indent + 2))
    return [
        (*(first if row == 0 else ()), *((Piece("  "),) if row == 0 else (pad,)), *each.pieces)
        for row, each in enumerate(wrapped)
    ]


def _value_lines(
    block: Block,
    index: int,
    width: int,
    gutter: int,
    lines: list[Line],
    places: list[Place | None],
) -> None:
    room = min(VALUE_LIMIT, width - gutter - 4)
    bar = _BARS[block.gutter]
    label = block.label
    if label and cells(label) > gutter - 2:
        lines.append(_own_line(block, bar, width, gutter, room))
        places.append(None)
        label = ()
    for row, each in enumerate(wrap(block.pieces, room)):
        named = label if row == 0 else ()
        body: Line = (Piece(" "), *each.pieces)
        if block.fill is not None:
            body = (Piece(" ", block.fill), *each.pieces)
            body = (*body, Piece(" " * (room - cells(each.pieces)), block.fill))
        head: Line = (Piece(" "), *named, Piece(" " * (gutter - 1 - cells(named))))
        lines.append((*head, bar, *body))
        places.append(Place(index, each.start, each.end) if block.must else None)


def _own_line(block: Block, bar: Piece, width: int, gutter: int, room: int) -> Line:
    """Return the line of a label that is longer than its column."""
    if block.label_outside:
        return (Piece(" " * gutter), bar, Piece(" "), *cut(block.label, room))
    return (Piece(" "), *cut(block.label, width - 3))
