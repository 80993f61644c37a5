"""An item or a row whole, for what is printed and not painted: `console --plain`, and commands that show a file."""

from collections.abc import Callable

from aileron_tui.draw.blocks import GUTTER, Page, unbroken
from aileron_tui.draw.header import item_head
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.items import Item
from aileron_tui.state.document_cache import DocumentCache, LayoutOptions
from aileron_tui.state.tables.table import AnyTable


def is_fetching(item: Item | None) -> bool:
    view = item.approval if item is not None else None
    return view is not None and view.state == "pending" and view.preview.status == "fetching"


def item_page(
    pages: DocumentCache,
    item: Item,
    now: float,
    columns: int,
    *,
    file_changed: bool,
    unfold: bool = False,
) -> Page:
    """Return header and document of *item* in lines that no terminal breaks; only the header while it is fetched.

    `DocumentCache.current` is then the document's layout.
    """

    def head(width: int) -> Page:
        warnings = pages.warnings(item, file_changed=file_changed)
        return item_head(item, warnings, now, width, compact=False)

    def document(width: int) -> Page:
        options = LayoutOptions(
            width=width, gutter=GUTTER, file_changed=file_changed, unfold=unfold
        )
        return pages.layout(item, options, now).lines

    if is_fetching(item):
        return unbroken(head, columns)
    return _page(head, document, columns)


def row_page(table: AnyTable, now: float, columns: int) -> Page:
    """Return head and document of the selected row of *table*, as `item_page`."""
    # It names no key.
    blocks, pages = table.blocks(now, unfold=False), DocumentCache(CommandRegistry(()))

    def document(width: int) -> Page:
        return pages.page(blocks, LayoutOptions(width=width, gutter=GUTTER), table.content).lines

    return _page(lambda width: table.head(width, now), document, columns)


def _page(head: Callable[[int], Page], document: Callable[[int], Page], columns: int) -> Page:
    return (*unbroken(head, columns), (), *unbroken(document, columns))
