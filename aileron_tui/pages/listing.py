"""A list of rows, replaced by the selected row whole once that is opened."""

from aileron_core.clock import Clock
from aileron_core.console_port.intents import VerifyAudit
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.blocks import COMPACT_GUTTER, GUTTER, Layout
from aileron_tui.draw.text import Line, Piece, line, wrap
from aileron_tui.input.commands import View
from aileron_tui.pages.page import Page, Submit
from aileron_tui.pages.panes import RowsPane
from aileron_tui.pages.surface import Surface
from aileron_tui.state.document_cache import LayoutOptions
from aileron_tui.state.model import Model
from aileron_tui.state.tables.table import AnyTable

_OF_RECORDS: frozenset[View] = frozenset({"activity", "audit"})


class ListPage(Page):
    """The rows of a `Table`. The cursor belongs to a row's key: new rows do not move it."""

    def __init__(
        self, view: View, model: Model, clock: Clock, submit: Submit, surface: Surface
    ) -> None:
        self.table: AnyTable = model.tables[view]
        self.list = RowsPane(self._row)
        super().__init__(view, model, clock, submit, surface)

    # Drawing

    @property
    def is_empty(self) -> bool:
        return not self.table.total

    def arrangement(self) -> dict[str, bool]:
        """Return which of the stylesheet's arrangements hold."""
        of_table = {"opened": self.table.opened, "beside": self.model.beside}
        return {**super().arrangement(), **of_table}

    def redraw(self) -> None:
        """Draw everything, and ask for what is to be drawn next."""
        super().redraw()
        if not self.surface.is_ready:
            return
        self.table.set_viewport(self.list.top, self.list.height)
        if not self.surface.is_current or self.model.core_lost is not None:
            return
        wanted = self.table.next_read(self.clock.now(), beside=self.model.beside)
        if wanted is not None:
            self.submit(wanted)

    def draw_view(self) -> None:
        """Draw the list, the opened row, both, or that there is nothing."""
        if self.is_empty:
            self._draw_empty()
            return
        if not self.table.opened:
            self.reader.draw_guarded(self._draw_list)
        if self.table.opened or self.model.beside:
            self.reader.draw_guarded(self._draw_page)

    def _draw_empty(self) -> None:
        width, height = self.model.size
        wrapped = wrap(self.table.status(self.model.registry), width - 4)
        rows = bars.centred([each.pieces for each in wrapped], width, height - 4)
        self.surface.show("empty", *rows)

    def _draw_list(self) -> None:
        table, width, now = self.table, self.model.size[0], self.clock.now()
        width = self.list.width if self.model.beside else width
        self.surface.show("listhead", *table.header(width, now))
        self.list.show(len(table), 1, table.index, table.key)
        self.surface.show("detail", *table.detail(width, now))

    def _draw_page(self) -> None:
        width = self.reader.document.width
        subject = self.model.subject
        if not width or subject is None:
            self.model.laid_out_version = None
            return
        gutter = COMPACT_GUTTER if self.layout == "compact" else GUTTER
        head, layout = self._page_of(
            LayoutOptions(width=width, gutter=gutter, unfold=self.model.unfolded)
        )
        call = self.model.opened_call.call
        self.reader.show_head(head, call.approval if call is not None else None)
        self.reader.show(layout, subject.version)

    def _page_of(self, options: LayoutOptions) -> tuple[tuple[Line, ...], Layout]:
        now = self.clock.now()
        blocks = self.table.blocks(now, unfold=options.unfold)
        record = blocks if self.view == "audit" else ()
        page = self.model.opened_call.page(self.reader.cache, options, now, record=record)
        if page is not None:
            return page
        layout = self.reader.cache.page(blocks, options, self.table.content)
        self.model.findings = self.reader.cache.page_findings
        return self.table.head(options.width, now), layout

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        try:
            return (self.table.row(row, width, self.clock.now(), selected=selected),)
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            self.reader.report_undrawable((self.view, row), error)
            return ((Piece(f"  {words.status.UNDRAWABLE}", "danger"),),)

    def rows_status(self) -> Line:
        """Return what the filter leaves, or the list's own sentence; of records, their head as well."""
        status: Line = ()
        if not self.is_empty:
            status = self.table.filter_status() or self.table.status(self.model.registry)
        head_words = self.model.head_words if self.view in _OF_RECORDS else None
        head = words.views.audit_head(head_words) if head_words is not None else ""
        return line(*status, "  " if status and head else "", Piece(head, "muted"))

    # Commands

    @property
    def page_rows(self) -> int:
        return self.list.page_rows

    def move_cursor(self, rows: int) -> None:
        self.table.select(self.table.index + rows)

    def select_row(self, row: int) -> None:
        self.table.select(row if row >= 0 else len(self.table) + row)

    def click_row(self, row: int, pane: str | None) -> None:
        if self.model.panel == "none":
            self.table.select(row)
            self.redraw()

    def open(self) -> None:
        """Show the selected row whole."""
        self.table.stop_following()
        self.table.opened = True
        self.surface.focus_on("document")

    def go_back(self) -> None:
        """Go back to the list; from there, show all rows again."""
        if self.table.opened:
            self.table.close()
        else:
            self.model.set_filter("", self.clock.now())

    def require_second_press(self, command: str) -> None:
        """In the list, open the row first; in an opened row, say what was not seen."""
        if self.table.opened:
            super().require_second_press(command)
        else:
            self.open()


class AuditPage(ListPage):
    """One row for each record; older ones are read as the cursor nears them."""

    def __init__(self, model: Model, clock: Clock, submit: Submit, surface: Surface) -> None:
        super().__init__("audit", model, clock, submit, surface)

    def show_record(self) -> None:
        """Show the selected record itself, or again its call."""
        self.model.audit.show_record()
        self.surface.focus_on("document")

    def verify(self) -> None:
        """Verify the chain of records in the background."""
        self.model.audit.verifying = True
        self.submit(VerifyAudit())
