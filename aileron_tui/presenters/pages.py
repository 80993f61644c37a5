"""The document of the selected item, laid out once for a width and kept."""

from aileron_tui.presenters.blocks import Block, Layout, lay_out
from aileron_tui.presenters.document import (
    approval_blocks,
    first_heading,
    held_blocks,
    problem_blocks,
)
from aileron_tui.presenters.findings import Findings, findings_of
from aileron_tui.presenters.head import warnings
from aileron_tui.presenters.lines import Line
from aileron_tui.presenters.queue import Item

__all__ = ["Pages"]

KEPT = 200
"""Items whose findings are kept: more than any pane shows rows."""


class Pages:
    """Keeps what is dear to make: the layout of one item, and what the renderer found in each."""

    def __init__(self) -> None:
        self._item: Item | None = None
        self._width = (0, 0)
        self._blocks: tuple[Block, ...] = ()
        self._layout = Layout((), ())
        self._file_moved = False
        self._findings: dict[str, tuple[object, Findings]] = {}

    def findings(self, item: Item) -> Findings:
        """Return what the renderer found in the item's fields."""
        known = self._findings.get(item.key)
        if known is None or known[0] is not item.approval:
            known = (item.approval, findings_of(item.approval))
            self._findings[item.key] = known
            if len(self._findings) > KEPT:
                del self._findings[next(iter(self._findings))]
        return known[1]

    def warnings(self, item: Item, *, file_moved: bool) -> list[Line]:
        """Return the warnings of the item's head; *file_moved*: `Queue.file_moved`."""
        if item.approval is None:
            return []
        return warnings(item.approval, self.findings(item), file_moved=file_moved)

    @property
    def current(self) -> Layout:
        """The layout that was asked for last."""
        return self._layout

    def layout(
        self, item: Item | None, width: int, gutter: int, now: float, *, file_moved: bool
    ) -> Layout:
        """Return the layout of *item*; the same object while nothing in it differs."""
        if item is None:
            self._item, self._layout = None, Layout((), ())
            return self._layout
        same = (self._item, self._width, self._file_moved)
        if same[0] is not item or same[1:] != ((width, gutter), file_moved):
            self._item, self._width, self._file_moved = item, (width, gutter), file_moved
            self._blocks = _blocks(item, now, self.warnings(item, file_moved=file_moved))
            self._layout = lay_out(self._blocks, width, gutter)
        elif item.approval is not None:
            self._age(first_heading(item.approval, now), width, gutter)
        return self._layout

    def _age(self, first: Block, width: int, gutter: int) -> None:
        """Draw the first heading anew; it alone tells an age."""
        if first == self._blocks[0]:
            return
        old = len(lay_out(self._blocks[:1], width, gutter).lines)
        head = lay_out((first,), width, gutter)
        self._blocks = (first, *self._blocks[1:])
        lines = (*head.lines, *self._layout.lines[old:])
        places = (*head.places, *self._layout.places[old:])
        self._layout = Layout(lines, places)


def _blocks(item: Item, now: float, warned: list[Line]) -> tuple[Block, ...]:
    if item.approval is not None:
        return approval_blocks(item.approval, now, warned)
    if item.problem is not None:
        return problem_blocks(item.problem)
    return held_blocks(item.held) if item.held is not None else ()
