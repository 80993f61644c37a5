"""A document before and after it is laid out: blocks, and the drawn lines of one width.

The columns: label from 1, the gutter where no foreign text can reach it, the value
to the last column but two. The read track in the last column is the widget's.

For what is printed and not painted (`console --plain`, and commands that show a file), no terminal breaks a line:
text from outside never begins one, where it could imitate a question or an answer of ours.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from rich.cells import cell_len

from aileron_tui.draw.columns import fit
from aileron_tui.draw.text import Line, Piece, Role, cell_width, line, plain_text, truncate, wrap

GUTTER = 13
COMPACT_GUTTER = 11
WRAP_MARK = "↩"
LABEL_ROWS = 6
"""Rows of a label from outside at most; what is longer ends with `…`."""
_LABEL_GOES_ON = "  "
VALUE_LIMIT = 100
"""Values stop here however wide the terminal is: longer lines are hard to read."""

Gutter = Literal["fact", "claim", "record"]
LabelFrom = Literal["ours", "file", "outside"]
_BARS: dict[Gutter, Piece] = {
    "fact": Piece("┃", "fact-bar"),
    "claim": Piece("┊", "claim-bar"),
    "record": Piece("│", "faint"),
}


TABLE_INDENT = 6
"""Cells of a table's row before its first bar."""
_WORD = 40
"""Cells of the longest word that a column has to hold: where one has less, each value has lines of its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value in a table's row: its lines behind a bar."""

    gutter: Gutter
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One logical line. `must_be_seen`: a person must have seen it before a yes that needs one press."""

    kind: Literal["heading", "value", "blank", "row"]
    """Of the rows of a table, the first has the titles of its columns."""
    label: Line = ()
    label_from: LabelFrom = "ours"
    """Where a label that does not fit its column goes: one of ours on a line of its own, one from an
    accepted file on in its column, indented; one that nobody accepted stands behind the bar."""
    gutter: Gutter = "fact"
    pieces: Line = ()
    background: Role | None = None
    """The ground of the whole value column (a line of a difference)."""
    must_be_seen: bool = False
    hang: int = 0
    """Blanks before each line but the first of a text that is wrapped: none of them begins like it."""
    cells: tuple[Cell, ...] = ()
    """Of a row; its label stands before them."""


@dataclass(frozen=True, slots=True)
class TextRange:
    """The characters `[start, end)` of block *block* that a drawn line covers."""

    block: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextPlace:
    """The characters `[start, end)` of block *block* in a drawn line, and how many others are before them."""

    block: int
    start: int
    end: int
    before: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The drawn lines of one width, without the read track, and the place of each in the text."""

    lines: tuple[Line, ...] = ()
    ranges: tuple[TextRange | None, ...] = ()
    blocks: tuple[int, ...] = ()
    """The block of each line."""
    wraps: frozenset[int] = frozenset()
    """The lines that end where the width ends; their text goes on in the next one."""
    end: int = 0
    """The first column that no value reaches."""
    places: tuple[TextPlace | None, ...] = ()
    """Which text of its block each line has; None where it has none."""

    def without_first(self, rows: int) -> "Layout":
        return Layout(
            self.lines[rows:],
            self.ranges[rows:],
            self.blocks[rows:],
            frozenset(row - rows for row in self.wraps if row >= rows),
            self.end,
            self.places[rows:],
        )

    def line(self, row: int, *, wrap_marks: bool = False) -> Line:
        """Return the drawn line *row*; with *wrap_marks* `↩` stands behind one that goes on.

        The sign is drawn in a reserved column, which no text from outside can write to.
        """
        pieces = self.lines[row]
        if not wrap_marks or row not in self.wraps:
            return pieces
        gap = Piece(" " * (self.end - cell_width(pieces)))
        return (*pieces, gap, Piece(WRAP_MARK, "muted"))

    def with_tail(self, tail: "Layout", first: int) -> "Layout":
        """Return this layout followed by *tail*, whose blocks are numbered from *first*."""
        return Layout(
            (*self.lines, *tail.lines),
            (*self.ranges, *tail.ranges),
            (*self.blocks, *(first + number for number in tail.blocks)),
            self.wraps | {len(self.lines) + row for row in tail.wraps},
            self.end or tail.end,
            (
                *self.places,
                *(
                    replace(each, block=first + each.block) if each else None
                    for each in tail.places
                ),
            ),
        )


def heading(name: str, remark: Line = (), role: Role = "fact") -> Block:
    """Return a section's first line: capitals of ours, then one remark."""
    return Block(kind="heading", label=(Piece(name, role),), pieces=remark)


def value(
    label: str | Line,
    pieces: Line,
    gutter: Gutter = "fact",
    *,
    background: Role | None = None,
    label_outside: bool = False,
    must_be_seen: bool = True,
    hang: int = 0,
) -> Block:
    """Return one labelled line; those of the record need not be seen, nor those that say so.

    A label that is a text is ours; one that is a line comes from an accepted file, or
    (*label_outside*) from an agent or a service.
    """
    named = (Piece(label, "muted"),) if isinstance(label, str) and label else label
    file: LabelFrom = "outside" if label_outside else "file"
    return Block(
        kind="value",
        label=() if isinstance(named, str) else named,
        label_from="ours" if isinstance(label, str) else file,
        gutter=gutter,
        pieces=pieces,
        background=background,
        must_be_seen=must_be_seen and gutter != "record",
        hang=hang,
    )


def blank() -> Block:
    """Return the line before a section."""
    return Block(kind="blank")


def lay_out(blocks: Sequence[Block], width: int, gutter: int) -> Layout:
    """Return *blocks* in *width* cells (the track included), the bar at column *gutter*."""
    drawn = _Drawn()
    room = min(VALUE_LIMIT, width - gutter - 4)
    of: list[int] = []
    table = [block for block in blocks if block.kind == "row"]
    sizes = _column_sizes(table, width - 2 - TABLE_INDENT)
    for index, block in enumerate(blocks):
        if not drawn.goes_on(block):
            drawn.end_label()
            of.extend([index - 1] * (len(drawn.lines) - len(of)))
        if block.kind == "blank":
            drawn.add(())
        elif block.kind == "row":
            _row_lines(block, index, table[0], sizes, width, drawn)
        elif block.kind == "heading":
            for each in _heading_lines(block, width - 2):
                drawn.add(each)
        else:
            _value_lines(block, index, (width, gutter, room), drawn)
        of.extend([index] * (len(drawn.lines) - len(of)))
    drawn.end_label()
    of.extend([len(blocks) - 1] * (len(drawn.lines) - len(of)))
    return Layout(
        tuple(drawn.lines),
        tuple(drawn.ranges),
        tuple(of),
        frozenset(drawn.wraps),
        gutter + 2 + room,
        tuple(drawn.places),
    )


@dataclass(slots=True)
class _Drawn:
    """The lines laid out so far, with the block and text range of each."""

    lines: list[Line] = field(default_factory=list[Line])
    ranges: list[TextRange | None] = field(default_factory=list[TextRange | None])
    places: list[TextPlace | None] = field(default_factory=list[TextPlace | None])
    wraps: set[int] = field(default_factory=set[int])
    label: list[Line] = field(default_factory=list[Line])
    """The rows of the present field's label that have no line yet."""
    gutter: Gutter | None = None
    """The present field's; None between fields."""

    def goes_on(self, block: Block) -> bool:
        """Tell whether *block* is one more line of the present field."""
        return block.kind == "value" and not block.label and block.gutter == self.gutter

    def end_label(self) -> None:
        """Add what is left of a label that has more rows than its field; no bar stands beside it."""
        for row in self.label:
            self.add((Piece(" "), *row))
        self.label, self.gutter = [], None

    def add(
        self, pieces: Line, text_range: TextRange | None = None, place: TextPlace | None = None
    ) -> None:
        self.lines.append(pieces)
        self.ranges.append(text_range)
        self.places.append(place)


def _column_sizes(rows: Sequence[Block], room: int) -> tuple[int, ...]:
    """Return how many cells each column gets, its bar and the gap included; nothing if words would be broken."""
    needed: list[int] = []
    least: list[int] = []
    for column in zip(*(row.cells for row in rows), strict=True):
        texts = [plain_text(text) for cell in column for text in cell.lines]
        words = [word for text in texts for word in text.split()]
        needed.append(max(map(cell_len, texts)) + 4)
        least.append(min(_WORD, max(map(cell_len, words), default=0)) + 4)
    sizes = fit(tuple(needed), tuple(least), tuple(least), room)
    return sizes if sum(sizes) <= room else ()


def _row_lines(
    block: Block, index: int, titles: Block, sizes: Sequence[int], width: int, drawn: _Drawn
) -> None:
    """Add the lines of one row of a table; without *sizes* its values below each other, each behind its title.

    In another width the lines are others: each has to be seen anew.
    """
    label, number = block.label, width << 20
    rows: list[tuple[Line, list[tuple[Cell, int]]]] = []
    named = 0
    if sizes:
        rows.append(((), [*zip(block.cells, sizes, strict=True)]))
    elif block is not titles:
        names = [truncate(cell.lines[0], width // 3) for cell in titles.cells]
        named = max(map(cell_width, names), default=0) + 1
        rest = width - 2 - TABLE_INDENT - named
        rows += [(name, [(e, rest)]) for name, e in zip(names, block.cells, strict=True)]
    for name, row in rows:
        columns = [
            [each.pieces for text in cell.lines for each in wrap(text, size - 4)]
            for cell, size in row
        ]
        for texts in zip_longest(*columns, fillvalue=()):
            head = _filled(label, TABLE_INDENT), _filled(name, named)
            cells = (
                (_BARS[cell.gutter], Piece(" "), *_filled(text, size - 2))
                for (cell, size), text in zip(row, texts, strict=True)
            )
            seen = TextRange(index, number, number + 1) if block.must_be_seen else None
            drawn.add(line(*(piece for part in (*head, *cells) for piece in part)), seen)
            label, name, number = (), (), number + 1


def _filled(text: Line, width: int) -> Line:
    return (*text, Piece(" " * (width - cell_width(text))))


def _heading_lines(block: Block, width: int) -> list[Line]:
    indent = 1 + cell_width(block.label)
    first: Line = (Piece(" "), *block.label)
    if not block.pieces:
        return [first]
    wrapped = wrap(block.pieces, max(8, width - indent - 2))
    pad = Piece(" " * (indent + 2))
    return [
        (*(first if row == 0 else ()), *((Piece("  "),) if row == 0 else (pad,)), *each.pieces)
        for row, each in enumerate(wrapped)
    ]


def _value_lines(block: Block, index: int, columns: tuple[int, int, int], drawn: _Drawn) -> None:
    """Add the lines of *block*; *columns*: the whole width, the gutter, and a value's width."""
    width, gutter, room = columns
    bar = _BARS[block.gutter]
    if not drawn.goes_on(block):
        drawn.label, drawn.gutter = _label_rows(block, gutter - 2), block.gutter
    if block.label_from != "file" and cell_width(block.label) > gutter - 2:
        drawn.add(_own_line(block, bar, width, gutter, room))
    wrapped = wrap(block.pieces, room - block.hang)
    first = len(drawn.lines)
    drawn.wraps.update(range(first, first + len(wrapped) - 1))
    for row, each in enumerate(wrapped):
        shown: Line = each.pieces
        if block.hang and row:
            shown = (Piece(" " * block.hang, block.background or "text"), *shown)
        body: Line = (Piece(" "), *shown)
        if block.background is not None:
            body = (Piece(" ", block.background), *shown)
            body = (*body, Piece(" " * (room - cell_width(shown)), block.background))
        named = drawn.label.pop(0) if drawn.label else ()
        head: Line = (Piece(" "), *named, Piece(" " * (gutter - 1 - cell_width(named))))
        text_range = TextRange(index, each.start, each.end) if block.must_be_seen else None
        before = len(plain_text(head)) + len(bar.text) + 1
        drawn.add((*head, bar, *body), text_range, TextPlace(index, each.start, each.end, before))


def _label_rows(block: Block, width: int) -> list[Line]:
    """Return the rows of the label of *block* in its column; none where it has a line of its own.

    All rows but the first are indented: a label from a file must not stand where headings do.
    """
    if cell_width(block.label) <= width:
        return [block.label] if block.label else []
    if block.label_from != "file":
        return []
    room = width - len(_LABEL_GOES_ON)
    rows = [each.pieces for each in wrap(block.label, room)]
    if len(rows) > LABEL_ROWS:
        last = (*rows[LABEL_ROWS - 1], Piece(" "), *rows[LABEL_ROWS])
        rows = [*rows[: LABEL_ROWS - 1], truncate(last, room)]
    return [rows[0], *((Piece(_LABEL_GOES_ON), *row) for row in rows[1:])]


def _own_line(block: Block, bar: Piece, width: int, gutter: int, room: int) -> Line:
    """Return the line of a label that is longer than its column."""
    if block.label_from == "outside":
        return (Piece(" " * gutter), bar, Piece(" "), *truncate(block.label, room))
    return (Piece(" "), *truncate(block.label, width - 3))


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
