"""What the console without a screen prints: the same heads and documents, as lines of one width.

Text from outside never begins a line: there it could imitate a question or an answer of ours.
"""

from collections.abc import Callable, Iterator, Sequence

from aileron_tui.presenters import wording
from aileron_tui.presenters.blocks import GUTTER
from aileron_tui.presenters.document import agent_name
from aileron_tui.presenters.head import item_head
from aileron_tui.presenters.lines import Line, Piece, cut, line, plain, wrap
from aileron_tui.presenters.outside import brief
from aileron_tui.presenters.pages import Form, Pages
from aileron_tui.presenters.queue import Item
from aileron_tui.presenters.rows import effect_word
from aileron_tui.presenters.times import age
from aileron_tui.presenters.wording import plain as words

__all__ = ["LISTED", "Page", "head_lines", "item_page", "listed", "own", "spoken", "text_of"]

LISTED = 50
"""Items that a list names; the rest is counted."""
_OWN_COLUMNS = GUTTER + 4

Page = tuple[Line, ...]


def head_lines(pages: Pages, item: Item, now: float, columns: int, *, file_moved: bool) -> Page:
    """Return the head of *item* in lines that a terminal does not break."""

    def head(width: int) -> Page:
        warned = pages.warnings(item, file_moved=file_moved)
        return item_head(item, warned, now, width, compact=False)

    return _unbroken(head, columns)


def item_page(pages: Pages, item: Item, now: float, columns: int, *, file_moved: bool) -> Page:
    """Return head and document of *item*, as `head_lines`; `Pages.current` is the document's layout."""

    def document(width: int) -> Page:
        form = Form(width=width, gutter=GUTTER, file_moved=file_moved)
        return pages.layout(item, form, now).lines

    head = head_lines(pages, item, now, columns, file_moved=file_moved)
    return (*head, (), *_unbroken(document, columns))


def _unbroken(make: Callable[[int], Page], columns: int) -> Page:
    """Return what *make* makes of a width at which even wide letters stay within *columns*.

    Terminals differ in how wide they draw a letter; a line that they break would let the rest of it
    begin the next one.
    """
    made = make(columns)
    if all(_widest(each) <= columns for each in made):
        return made
    return make(_OWN_COLUMNS + (columns - _OWN_COLUMNS) // 2)


def _widest(pieces: Line) -> int:
    """Return how many cells *pieces* may take: two for each letter that is not ASCII."""
    return sum(len(p.text) * (2 if p.foreign and not p.text.isascii() else 1) for p in pieces)


def spoken(pieces: Line, columns: int) -> Page:
    """Return a sentence of ours, which may quote outside text, in lines; those that go on are indented."""
    rows = wrap(pieces, columns // 2 if _widest(pieces) > columns - 3 else columns - 3)
    return tuple(
        each.pieces if row == 0 else line("  ", *each.pieces) for row, each in enumerate(rows)
    )


def listed(items: Sequence[Item], current: str, now: float, columns: int) -> Iterator[Line]:
    """Yield a line for each of *items*, the present one marked."""
    for number, item in enumerate(items[:LISTED], 1):
        sign = "*" if item.key == current else " "
        whole = line(f" {sign} {number}. ", *_named(item, now))
        yield cut(whole, columns // 2 if _widest(whole) > columns else columns - 1)
    if len(items) > LISTED:
        yield line(f"   {words.and_more(len(items) - LISTED)}")


def _named(item: Item, now: float) -> Line:
    if item.approval is not None:
        view = item.approval
        about = f"{effect_word(view.effect)}, {agent_name(view)}, {age(now - view.requested_at)}: "
        return line(about, *brief(view.title))
    name = item.held.name if item.held is not None else ""
    return line(f"{wording.FILE_EFFECT}: ", *brief(name))


def text_of(pieces: Line) -> str:
    """Return the line as it is written, without blanks at its end."""
    return plain(pieces).rstrip(" ")


def own(text: str) -> Line:
    """Return a sentence of ours as a line."""
    return (Piece(text),)
