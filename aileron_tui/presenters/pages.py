"""The document of the selected item, laid out once for a width and kept."""

from dataclasses import dataclass

from aileron_tui.actions import DEFAULT, Registry
from aileron_tui.presenters.around import Section
from aileron_tui.presenters.blocks import Block, Layout, lay_out
from aileron_tui.presenters.document import (
    approval_blocks,
    around_blocks,
    first_heading,
    held_blocks,
    problem_blocks,
)
from aileron_tui.presenters.findings import Findings, findings_of
from aileron_tui.presenters.head import warnings
from aileron_tui.presenters.lines import Line
from aileron_tui.presenters.queue import Item

__all__ = ["Form", "Pages"]

KEPT = 200
"""Items whose findings are kept: more than any pane shows rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a document is to be laid out."""

    width: int
    gutter: int
    unfold: bool = False
    """Marks with their code points, and nothing folded."""
    around: tuple[Section, ...] = ()
    """What stands at the end, where there is no rail beside it."""
    file_moved: bool = False
    """`Queue.file_moved` of the item."""


class Pages:
    """Keeps what is dear to make: the layout of one item, and what the renderer found in each."""

    def __init__(self, registry: Registry = DEFAULT) -> None:
        self._registry = registry
        self._of: tuple[object, ...] = ()
        """What `_main` was made from."""
        self._blocks: tuple[Block, ...] = ()
        self._main = Layout()
        self._around: tuple[tuple[Section, ...], int, int] = ((), 0, 0)
        self._tail_blocks: tuple[Block, ...] = ()
        self._whole = Layout()
        self._findings: dict[str, tuple[object, Findings]] = {}
        self.marked = False
        """Something in the document is drawn as a mark."""

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
        return self._whole

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that it was made from, as `Layout.blocks` numbers them."""
        return (*self._blocks, *self._tail_blocks)

    def layout(self, item: Item | None, form: Form, now: float) -> Layout:
        """Return the layout of *item*; the same object while nothing in it differs."""
        if item is None:
            return self.page((), form)
        made_from = (id(item), form.width, form.gutter, form.unfold, form.file_moved)
        if self._of[:-1] != made_from:
            blocks = self._blocks_of(item, form, now)
            self._lay_out(blocks, form, (*made_from, item))
        elif item.approval is not None:
            self._age(first_heading(item.approval, now), form)
        return self._with_tail(form)

    def page(self, blocks: tuple[Block, ...], form: Form) -> Layout:
        """Return the layout of *blocks*, which are no item's; the same object while they are equal."""
        made_from = (blocks, form.width, form.gutter)
        if self._of != made_from:
            self._lay_out(blocks, form, made_from)
        return self._with_tail(form)

    def _lay_out(
        self, blocks: tuple[Block, ...], form: Form, made_from: tuple[object, ...]
    ) -> None:
        self._of, self._blocks = made_from, blocks
        self.marked = any(piece.role == "mark" for each in blocks for piece in each.pieces)
        self._main = self._whole = lay_out(blocks, form.width, form.gutter)
        self._around = ((), 0, 0)
        self._tail_blocks = ()

    def _with_tail(self, form: Form) -> Layout:
        """Return the layout with what stands around the call at its end; that changes by itself."""
        around = (form.around, form.width, form.gutter) if form.around else ((), 0, 0)
        if around != self._around:
            self._around = around
            self._tail_blocks = tuple(around_blocks(form.around))
            tail = lay_out(self._tail_blocks, form.width, form.gutter)
            self._whole = self._main.joined(tail, len(self._blocks))
        return self._whole

    def _age(self, first: Block, form: Form) -> None:
        """Draw the first heading anew; it alone tells an age."""
        if first == self._blocks[0]:
            return
        old = self._main.blocks.count(0)
        head = lay_out((first,), form.width, form.gutter)
        self._blocks = (first, *self._blocks[1:])
        main = self._main
        rest = Layout(main.lines[old:], main.places[old:], main.blocks[old:])
        self._main = self._whole = head.joined(rest, 0)
        self._around = ((), 0, 0)

    def _blocks_of(self, item: Item, form: Form, now: float) -> tuple[Block, ...]:
        if item.approval is not None:
            return approval_blocks(
                item.approval,
                now,
                self.warnings(item, file_moved=form.file_moved),
                unfold=form.unfold,
                refresh_key=self._registry.face("refresh"),
            )
        if item.problem is not None:
            return problem_blocks(item.problem)
        return held_blocks(item.held) if item.held is not None else ()
