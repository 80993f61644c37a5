"""What the console without a screen prints: the same heads and documents, as lines of one width.

Text from outside never begins a line: there it could imitate a question or an answer of ours.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from aileron_tui import words
from aileron_tui.draw.blocks import GUTTER, Block, lay_out
from aileron_tui.draw.document import agent_name
from aileron_tui.draw.foreign_text import brief
from aileron_tui.draw.header import item_head
from aileron_tui.draw.rows import effect_word
from aileron_tui.draw.suite_page import suite_name
from aileron_tui.draw.text import Line, Piece, cell_width, line, plain_text, truncate, wrap
from aileron_tui.draw.times import age
from aileron_tui.items import Item
from aileron_tui.state.document_cache import DocumentCache, LayoutOptions
from aileron_tui.state.opened_call import OpenedCall
from aileron_tui.state.tables.table import Table

MAX_LISTED = 50
"""Items that a list names; the rest is counted."""
_NUMBER = 5
"""Columns before a row, for its number."""
_OWN_COLUMNS = GUTTER + 4
_NARROWEST = 6
"""Into how many parts the columns for outside text are divided at most, of which it gets one."""

Page = tuple[Line, ...]


def head_lines(
    pages: DocumentCache, item: Item, now: float, columns: int, *, file_changed: bool
) -> Page:
    """Return the head of *item* in lines that a terminal does not break."""

    def head(width: int) -> Page:
        warnings = pages.warnings(item, file_changed=file_changed)
        return item_head(item, warnings, now, width, compact=False)

    return _unbroken(head, columns)


def item_page(
    pages: DocumentCache,
    item: Item,
    now: float,
    columns: int,
    *,
    file_changed: bool,
    unfold: bool = False,
) -> Page:
    """Return header and document of *item*, as `head_lines` does; `DocumentCache.current` is then its layout."""

    def document(width: int) -> Page:
        options = LayoutOptions(
            width=width, gutter=GUTTER, file_changed=file_changed, unfold=unfold
        )
        return pages.layout(item, options, now).lines

    head = head_lines(pages, item, now, columns, file_changed=file_changed)
    return (*head, (), *_unbroken(document, columns))


def whole_preview(pages: DocumentCache, row: int) -> Page:
    """Return the section that begins at line *row* of the document that was laid out last."""
    layout, blocks = pages.current, pages.blocks
    for end in range(row + 1, len(layout.lines)):
        if (
            blocks[layout.blocks[end]].kind == "heading"
            and layout.blocks[end] != layout.blocks[row]
        ):
            return layout.lines[row:end]
    return layout.lines[row:]


def row_page(pages: DocumentCache, table: Table, now: float, columns: int, *, unfold: bool) -> Page:
    """Return head and document of the opened row of *table*, as `item_page`."""
    blocks = table.blocks(now, unfold=unfold)

    def document(width: int) -> Page:
        options = LayoutOptions(width=width, gutter=GUTTER, unfold=unfold)
        return pages.page(blocks, options, table.content).lines

    head = _unbroken(lambda width: table.head(width, now), columns)
    return (*head, (), *_unbroken(document, columns))


def call_page(
    pages: DocumentCache,
    opened: OpenedCall,
    now: float,
    columns: int,
    *,
    unfold: bool,
    record: Sequence[Block],
) -> Page:
    """Return head and document of the opened call, as `item_page`; nothing where it is not known."""

    def part(number: int, width: int) -> Page:
        options = LayoutOptions(width=width, gutter=GUTTER, unfold=unfold)
        page = opened.page(pages, options, now, record=record)
        if page is None:
            return ()
        return page[1].lines if number else page[0]

    head, document = (_unbroken(partial(part, number), columns) for number in (0, 1))
    return (*head, (), *document) if document else ()


def blocks_page(blocks: Sequence[Block], columns: int) -> Page:
    """Return *blocks* in lines that a terminal does not break."""
    return _unbroken(lambda width: lay_out(blocks, width, GUTTER).lines, columns)


def row_list(
    header: tuple[Line, ...], rows: Iterable[tuple[int | None, Line]], columns: int
) -> Iterator[Line]:
    """Yield the two lines of *header*, then *rows*, each behind its number where it has one."""
    title, titles = header
    yield from sentence_lines(title, columns)
    numbered = [(number, _spoken(row)) for number, row in rows]
    indent = " " * _NUMBER if any(number is not None for number, _ in numbered) else ""
    yield truncate(line(indent, *titles), columns - 1)
    for number, row in numbered:
        first = "" if number is None else f"{number:>{_NUMBER - 1}}."
        whole = line(first, *row)
        # As wide as a terminal may draw it that gives every letter of others two columns.
        yield truncate(whole, columns - 1 - (_widest(whole) - cell_width(whole)))


def _spoken(pieces: Line) -> Line:
    """Return *pieces* with a word for each bar, which a screen reader would spell out or leave out."""
    word = Piece(f"{words.plain.SAYS} ", "claim")
    return tuple(word if piece.role == "claim-bar" else piece for piece in pieces)


def rows_width(columns: int) -> int:
    """Return how wide a row of a list may be, its number apart."""
    return columns - _NUMBER


def _unbroken(make: Callable[[int], Page], columns: int) -> Page:
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


def sentence_lines(pieces: Line, columns: int) -> Page:
    """Return a sentence of the console, which may quote outside text, in lines; continuation lines are indented."""

    def make(width: int) -> Page:
        rows = wrap(pieces, width - 3)  # the indent, and one to spare
        return tuple(
            each.pieces if row == 0 else line("  ", *each.pieces) for row, each in enumerate(rows)
        )

    return _unbroken(make, columns)


def item_list(
    items: Sequence[Item],
    current: str,
    now: float,
    columns: int,
    equal: Callable[[Item], int] = lambda _: 0,
) -> Iterator[Line]:
    """Yield a line for each of *items*, the present one marked; *equal*: how many calls equal to it wait."""
    for number, item in enumerate(items[:MAX_LISTED], 1):
        sign = "*" if item.key == current else " "
        whole = line(f" {sign} {number}. ", *_named(item, now, equal(item)))
        yield truncate(whole, columns // 2 if _widest(whole) > columns else columns - 1)
    if len(items) > MAX_LISTED:
        yield line(f"   {words.plain.and_more(len(items) - MAX_LISTED)}")


def _named(item: Item, now: float, equal: int) -> Line:
    if item.approval is not None:
        view = item.approval
        same = f", {words.item.equal(equal)}" if equal > 1 else ""
        asked = age(now - view.requested_at)
        about = f"{effect_word(view.effect)}, {agent_name(view)}, {asked}{same}: "
        if item.is_unacknowledged:
            about = f"{words.item.ROW_STATES['unknown']}, {about}"
        return line(about, *brief(view.preview.gist or view.title))
    if item.suite is not None:
        return line(f"{words.files.FILE_EFFECT}: ", *suite_name(item.suite, "text"))
    name = item.file.name if item.file is not None else ""
    return line(f"{words.files.FILE_EFFECT}: ", *brief(name))


def text_of(pieces: Line) -> str:
    """Return the line as it is written, without blanks at its end."""
    return plain_text(pieces).rstrip(" ")


def own_line(text: str) -> Line:
    """Return a sentence of the console as a line."""
    return (Piece(text),)
