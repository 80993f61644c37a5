"""Printing for the console without a screen: lines in the terminal's letters and width."""

from collections.abc import Callable, Iterable, Sequence

from aileron_tui.draw.blocks import Block, Layout
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.text import Line
from aileron_tui.items import Item
from aileron_tui.plain.lines import (
    call_page,
    head_lines,
    item_list,
    item_page,
    own_line,
    row_list,
    row_page,
    rows_width,
    sentence_lines,
    text_of,
    whole_preview,
)
from aileron_tui.plain.terminal import LineTerminal
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.opened_call import OpenedCall
from aileron_tui.state.tables.table import Table


class Printer:
    """Writes sentences and items to a terminal, whole, and returns once they have left."""

    def __init__(self, terminal: LineTerminal, glyphs: Glyphs, pages: DocumentCache) -> None:
        self._terminal, self._glyphs = terminal, glyphs
        self.pages = pages
        """Keeps what was laid out last."""

    def say(self, message: Line | str) -> None:
        pieces = own_line(message) if isinstance(message, str) else message
        self.lines(sentence_lines(pieces, self._terminal.columns) or ((),))

    def lines(self, lines: Iterable[Line]) -> None:
        """Print *lines*, which are no wider than the terminal."""
        columns = self._terminal.columns
        texts = [text_of(self._glyphs.draw(each, columns)) for each in lines]
        self._terminal.send("".join(f"{text}\n" for text in texts))

    def head(self, item: Item, now: float, *, file_changed: bool) -> None:
        columns = self._terminal.columns
        self.lines(((), *head_lines(self.pages, item, now, columns, file_changed=file_changed)))

    def item(self, item: Item, now: float, *, file_changed: bool, unfold: bool) -> Layout:
        """Print the whole of *item* and return its document's layout."""
        page = item_page(
            self.pages, item, now, self._terminal.columns, file_changed=file_changed, unfold=unfold
        )
        self.lines(((), *page, ()))
        return self.pages.current

    def preview(self, row: int) -> None:
        """Print the section that begins at line *row* of the document that was printed last."""
        self.lines(((), *whole_preview(self.pages, row)))

    def listing(
        self, items: list[Item], current: str, now: float, equal: Callable[[Item], int]
    ) -> None:
        self.lines(item_list(items, current, now, self._terminal.columns, equal))

    @property
    def row_width(self) -> int:
        return rows_width(self._terminal.columns)

    def rows(self, header: tuple[Line, ...], rows: Iterable[tuple[int | None, Line]]) -> None:
        """Print a list: *header*, and each row behind its number."""
        self.lines(((), *row_list(header, rows, self._terminal.columns)))

    def call(
        self, opened: OpenedCall, now: float, *, unfold: bool, record: Sequence[Block]
    ) -> Layout | None:
        """Print the page of an opened call whole and return its layout; None where it is not known."""
        columns = self._terminal.columns
        page = call_page(self.pages, opened, now, columns, unfold=unfold, record=record)
        if not page:
            return None
        self.lines(((), *page, ()))
        return self.pages.current

    def row(self, table: Table, now: float, *, unfold: bool) -> Layout:
        """Print the opened row of *table* whole and return its document's layout."""
        page = row_page(self.pages, table, now, self._terminal.columns, unfold=unfold)
        self.lines(((), *page, ()))
        return self.pages.current
