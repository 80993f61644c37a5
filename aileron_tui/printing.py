"""Printing for the console without a screen: lines in the terminal's letters and width."""

from collections.abc import Iterable

from aileron_tui.line_terminal import LineTerminal
from aileron_tui.presenters.blocks import Layout
from aileron_tui.presenters.glyphs import Glyphs
from aileron_tui.presenters.lines import Line
from aileron_tui.presenters.pages import Pages
from aileron_tui.presenters.plain_lines import head_lines, item_page, listed, own, spoken, text_of
from aileron_tui.presenters.queue import Item

__all__ = ["Printer"]


class Printer:
    """Writes sentences and items to a terminal, whole, and returns once they have left."""

    def __init__(self, terminal: LineTerminal, glyphs: Glyphs, pages: Pages) -> None:
        self._terminal, self._glyphs, self._pages = terminal, glyphs, pages

    def say(self, told: Line | str) -> None:
        """Print a sentence of ours, or an empty line."""
        pieces = own(told) if isinstance(told, str) else told
        self.lines(spoken(pieces, self._terminal.columns) or ((),))

    def lines(self, lines: Iterable[Line]) -> None:
        """Print *lines*, which are no wider than the terminal."""
        columns = self._terminal.columns
        texts = [text_of(self._glyphs.draw(each, columns)) for each in lines]
        self._terminal.send("".join(f"{text}\n" for text in texts))

    def head(self, item: Item, now: float, *, file_moved: bool) -> None:
        """Print the head of *item* alone."""
        columns = self._terminal.columns
        self.lines(((), *head_lines(self._pages, item, now, columns, file_moved=file_moved)))

    def item(self, item: Item, now: float, *, file_moved: bool) -> Layout:
        """Print the whole of *item* and return what its document was laid out as."""
        page = item_page(self._pages, item, now, self._terminal.columns, file_moved=file_moved)
        self.lines(((), *page, ()))
        return self._pages.current

    def listing(self, items: list[Item], current: str, now: float) -> None:
        """Print a line for each of *items*."""
        self.lines(listed(items, current, now, self._terminal.columns))
