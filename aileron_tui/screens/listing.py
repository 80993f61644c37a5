"""A page of rows: the list, and the selected row whole in its place once it is opened."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical

from aileron_core.clock import Clock
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.blocks import COMPACT_GUTTER, GUTTER, Layout
from aileron_tui.draw.text import Line, Piece, line, wrap
from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import View
from aileron_tui.messages import RowClicked
from aileron_tui.screens.base import Submit
from aileron_tui.screens.sharing import SharingScreen
from aileron_tui.state.document_cache import LayoutOptions
from aileron_tui.state.model import Model
from aileron_tui.state.tables.table import Table
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.line_view import Lines
from aileron_tui.widgets.rows import RowList

__all__ = ["ListScreen"]


_OF_RECORDS: frozenset[View] = frozenset({"activity", "audit"})


class ListScreen(SharingScreen):
    """The rows of a `Table`. The cursor belongs to a row's key: new rows do not move it."""

    VIEW: ClassVar[View]
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ()

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__(model, clock, submit)
        self.table: Table = model.tables[self.VIEW]

    def compose(self) -> ComposeResult:
        """Lay out the list, and the page of one row, between top bar and keys."""
        yield Lines(id="topbar")
        yield Lines(id="banner", grows=True)
        with Vertical(id="table"):
            yield Lines(id="listhead")
            yield RowList(id="list", draw=self._row)
            yield Lines(id="detail")
        with Vertical(id="page"):
            yield Lines(id="head", grows=True)
            yield Lines(id="gap")
            yield Document(id="document")
        yield Lines(id="empty")
        yield Lines(id="sentence")
        yield from self.compose_foot()

    # Drawing

    def redraw(self) -> None:
        """Draw everything from the model, then learn when it stands on screen."""
        super().redraw()
        self.draw_panel()
        self.set_class(self.table.opened, "-opened")
        self.set_class(self._is_empty, "-empty")
        if self.model.small:
            self._draw_sentence()
        elif self._is_empty:
            self._draw_empty()
        else:
            self._guarded(self._draw_page if self.table.opened else self._draw_list)
        self.draw_foot()
        self.call_after_refresh(self._painted, self.model.token)

    @property
    def _is_empty(self) -> bool:
        """There is no row at all, filter or not."""
        return not self.table.total

    def _draw_empty(self) -> None:
        width, height = self.size
        told = wrap(self.table.voice(self.model.registry), width - 4)
        rows = bars.centred([each.pieces for each in told], width, height - 4)
        self.query_one("#empty", Lines).show(*rows)

    def _draw_list(self) -> None:
        table, width, now = self.table, self.size.width, self.clock.now()
        self.query_one("#listhead", Lines).show(*table.header(width, now))
        self.query_one("#list", RowList).show(len(table), 1, table.index, table.key)
        self.query_one("#detail", Lines).show(*table.about(width, now))

    def _draw_page(self) -> None:
        width = self.query_one("#document", Document).size.width
        subject = self.model.subject
        if not width or subject is None:
            self.model.laid_out = None
            return
        gutter = COMPACT_GUTTER if self.has_class("-compact") else GUTTER
        head, layout = self._page_of(
            LayoutOptions(width=width, gutter=gutter, unfold=self.model.unfolded)
        )
        self.query_one("#head", Lines).show(*head)
        self.query_one("#gap", Lines).show(())
        self._show_document(layout, subject.version)

    def _page_of(self, form: LayoutOptions) -> tuple[tuple[Line, ...], Layout]:
        """Return head and document of the opened row."""
        now = self.clock.now()
        blocks = self.table.blocks(now, unfold=form.unfold)
        return self.table.head(form.width, now), self._pages.page(blocks, form)

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        try:
            return (self.table.row(row, width, self.clock.now(), selected=selected),)
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            self._cannot_draw((self.VIEW, row), error)
            return ((Piece(f"  {words.UNDRAWABLE}", "danger"),),)

    def _of_list(self) -> Line:
        told: Line = ()
        if not self._is_empty:
            told = self.table.filter_voice() or self.table.voice(self.model.registry)
        head_words = self.model.head_words if self.VIEW in _OF_RECORDS else None
        head = words.audit_head(head_words) if head_words is not None else ""
        return line(*told, "  " if told and head else "", Piece(head, "muted"))

    # Moving

    def _go(self, row: int) -> None:
        self.table.go(row)
        self.redraw()

    @property
    def _page_rows(self) -> int:
        return self.query_one("#list", RowList).page

    def action_next(self) -> None:
        """Select the next row."""
        self._go(self.table.index + 1)

    def action_previous(self) -> None:
        """Select the previous row."""
        self._go(self.table.index - 1)

    def action_first(self) -> None:
        """Select the first row."""
        self._go(0)

    def action_last(self) -> None:
        """Select the last row."""
        self._go(len(self.table) - 1)

    def action_page_down(self) -> None:
        """Select the row one page below."""
        self._go(self.table.index + self._page_rows)

    def action_page_up(self) -> None:
        """Select the row one page above."""
        self._go(self.table.index - self._page_rows)

    def on_row_clicked(self, message: RowClicked) -> None:
        """Select the clicked row; the mouse decides nothing."""
        if self.model.panel == "none":
            self._go(message.row)

    def action_follow(self) -> None:
        """Stay on the newest row."""
        self.table.follow()
        self.redraw()

    # Opening

    def action_open(self) -> None:
        """Show the selected row whole."""
        self.table.stay()
        self.table.opened = True
        self.redraw()
        self.query_one("#document", Document).focus()

    def action_back(self) -> None:
        """Go back to the list; from there, show all rows again."""
        if self.table.opened:
            self.table.opened = False
        else:
            self.model.narrow("", self.clock.now())
        self.redraw()

    def _ask_first(self, action: str) -> None:
        """In the list, show the row whole first; there, say what was not seen."""
        if self.table.opened:
            super()._ask_first(action)
        else:
            self.action_open()
