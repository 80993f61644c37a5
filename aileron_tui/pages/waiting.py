"""View 1: what waits, and the one item that the keys are about."""

from dataclasses import replace

from aileron_core.clock import Clock
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.blocks import COMPACT_GUTTER, GUTTER
from aileron_tui.draw.changes import full_preview_row
from aileron_tui.draw.context import (
    Section,
    equal_calls_section,
    rail_lines,
    recent_runs_section,
    requester_section,
)
from aileron_tui.draw.header import item_head
from aileron_tui.draw.rows import (
    compact_list_rows,
    hidden_rows_line,
    order_line,
    queue_header,
    row_lines,
    undrawable_row,
)
from aileron_tui.draw.text import Line, justify, line, truncate
from aileron_tui.items import Batch, Item
from aileron_tui.pages.command import whose_answer
from aileron_tui.pages.grant_questions import GRANT
from aileron_tui.pages.page import Page, Submit
from aileron_tui.pages.panes import RowsPane
from aileron_tui.pages.surface import Surface
from aileron_tui.state.decision_screens import DecisionScreen
from aileron_tui.state.document_cache import LayoutOptions
from aileron_tui.state.model import Model
from aileron_tui.state.opened_call import CallPage
from aileron_tui.state.situation import COUNTED_FROM
from aileron_tui.state.tables.table import filter_status

COMPACT_DECISIONS = 5
"""Rows of the list of decisions, where it takes the place of what waits."""


class WaitingPage(Page):
    """The list beside or above the item, and in a wide terminal a rail with its context."""

    def __init__(self, model: Model, clock: Clock, submit: Submit, surface: Surface) -> None:
        self.queue = RowsPane(self._row)
        self.decided = RowsPane(self._decided_row)
        self._table_cursor = ""
        super().__init__("waiting", model, clock, submit, surface)
        model.queue.form_batches()

    # Drawing

    @property
    def _compact(self) -> bool:
        return self.layout == "compact"

    @property
    def is_empty(self) -> bool:
        """Nothing waits, no file is in error, and no decided call is shown."""
        return not self.model.queue.total and not self.model.decided.active

    def arrangement(self) -> dict[str, bool]:
        """Return which of the stylesheet's arrangements hold."""
        return {**super().arrangement(), "decided": self.model.decided.active}

    def draw_view(self) -> None:
        """Draw the lists, the item or the decided call, and the rail, or that nothing waits."""
        for draw in (self._draw_list, self._draw_item, self._draw_rail, self._draw_empty):
            self.reader.draw_guarded(draw)

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        items = self.model.queue.items
        if row >= len(items):
            return ()
        try:
            return row_lines(
                items[row],
                width,
                self.clock.now(),
                hidden=bool(self.reader.cache.findings(items[row])),
                selected=selected,
                compact=self._compact,
            )
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            self.reader.report_undrawable(items[row].version, error)
            return undrawable_row(width, selected=selected)

    def _draw_list(self) -> None:
        queue = self.model.queue
        rows, items = self.queue, queue.items
        height = 1 if self._compact else 2
        row, has_cursor = queue.index(queue.selected), not self.model.decided.active
        rows.show(len(items), height, row, queue.selected, has_cursor=has_cursor)
        width = self._rows.width
        more = hidden_rows_line(*rows.hidden_rows)
        status = filter_status(queue.parsed_filter, queue.matching, queue.total)
        if self._compact:
            order = order_line(queue.newer_count, by_deadline=queue.by_deadline)
            foot = line(" ", *order, "  " if order and status else "", *status)
            self.surface.show("sidefoot", justify(foot, more, width))
        else:
            header = self._list_header(status, width)
            # The order is not repeated below if the header has it.
            order = order_line(queue.newer_count, by_deadline=queue.by_deadline and bool(status))
            below = justify(line(" ", *order), more, width)
            self.surface.show("sidehead", (), header, below)
            self.surface.show("sidefoot", ())

        self._draw_decided(width)

    def _draw_decided(self, width: int) -> None:
        decided, rows = self.model.decided, self.decided
        # Without the cursor it begins with the newest, whichever row was selected last.
        row, key = (decided.index, decided.key) if decided.active else (0, None)
        rows.show(len(decided), 1, row, key, has_cursor=decided.active)
        height = min(len(decided), COMPACT_DECISIONS) if self._compact else None
        self.surface.set_rows("decided", height)
        more = hidden_rows_line(*rows.hidden_rows)
        (header,) = decided.header(width, self.clock.now())
        self.surface.show("decidedhead", justify(header, more, width))

    def _decided_row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        try:
            return (self.model.decided.row(row, width, self.clock.now(), selected=selected),)
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            self.reader.report_undrawable(("decided", row), error)
            return undrawable_row(width, selected=selected)[:1]

    def _list_header(self, filter_status: Line, width: int) -> Line:
        """Return the line above the rows: their order and the nearest deadline, or what the filter lets through."""
        if filter_status:
            return truncate(line(" ", *filter_status), width - 1)
        queue, now = self.model.queue, self.clock.now()
        nearest = queue.nearest_deadline()
        return queue_header(queue.length, nearest, now, width, by_deadline=queue.by_deadline)

    def _draw_item(self) -> None:
        item, now = self.model.current_item, self.clock.now()
        width = self.reader.document.width
        if not width:
            self.model.laid_out_version = None
            return
        gutter = COMPACT_GUTTER if self._compact else GUTTER
        options = LayoutOptions(width=width, gutter=gutter, unfold=self.model.unfolded)
        decides = self.model.table is None
        page = self.model.opened_call.page(self.reader.cache, options, now, as_decided=not decides)
        if page is not None:
            self._draw_call(page)
            return
        if not decides:
            item = self.model.decided.current_item
        file_changed = self.model.queue.file_changed(item)
        warnings = (
            self.reader.cache.warnings(item, file_changed=file_changed) if item is not None else []
        )
        head = item_head(item, warnings, now, width, compact=self._compact)
        self.reader.show_head(head, item.approval if item is not None else None)
        self._fit_list(len(head))
        # At the document's end, where the layout has no rail for it.
        around = () if self._has_rail else self._around(item)
        options = replace(options, file_changed=file_changed, context=around)
        layout = self.reader.cache.layout(item, options, now)
        view = item.approval if item is not None else None
        changed = decides and view is not None and view.drift is not None
        self.model.preview_row = (
            full_preview_row(self.reader.cache.blocks, layout) if changed else None
        )
        self.model.findings = self.reader.cache.findings_in(item)
        subject = self.model.subject
        self.reader.show(layout, subject.version if subject is not None else ())
        self._follow_cursor(item.batch if item is not None else None)

    def _follow_cursor(self, batch: Batch | None) -> None:
        """Scroll to the call under the cursor of a batch, if that is another one than before."""
        before, self._table_cursor = self._table_cursor, batch.cursor if batch is not None else ""
        if batch is None or self._table_cursor in ("", before):
            return
        document, cache = self.reader.document, self.reader.cache
        rows = [at for at, each in enumerate(cache.blocks) if each.kind == "row"]
        block = rows[batch.ids.index(batch.cursor) + 1] if rows else 0
        if lines := [at for at, of in enumerate(cache.current.blocks) if of == block]:
            document.scroll_to(min(lines[0], max(document.top, lines[-1] + 1 - document.height)))

    def _draw_call(self, page: CallPage) -> None:
        """Draw the page of a call that is over or decided."""
        model, subject = self.model, self.model.subject
        head, layout = page
        call = model.opened_call.call
        self.reader.show_head(head, call.approval if call is not None else None)
        self._fit_list(len(head))
        model.preview_row = None
        self.reader.show(layout, subject.version if subject is not None else ())

    def _around(self, item: Item | None) -> tuple[Section, ...]:
        """Return the context of the call."""
        if item is None or not item.calls:
            return ()
        view = item.calls[0]
        return (
            requester_section(view),
            recent_runs_section(self.model.records, view),
            equal_calls_section(self.model.queue.decided, view),
        )

    def _draw_rail(self) -> None:
        if self._has_rail:
            sections = self._around(self.model.current_item)
            self.surface.show("rail", *rail_lines(sections, *self.surface.rail_size))

    @property
    def _has_rail(self) -> bool:
        return self.layout == "wide" and not self.model.reader

    def _fit_list(self, head: int) -> None:
        """Set the list's height in the layout that has it above the item, whose head has *head* lines."""
        items = len(self.model.queue.items)
        height, around = self.model.size[1], self.rows_around
        rows = compact_list_rows(items, height, around, head) if self._compact else 0
        if self.panel.question is GRANT:
            rows = min(rows, 1)
        self.model.list_rows = rows
        self.surface.set_rows("queue", rows or None)

    def _draw_empty(self) -> None:
        if not self.is_empty:
            return
        decided = self.model.queue.decided
        rows = bars.empty_lines(
            last=decided[0] if decided else None,
            connected=sum(session.connected for session in self.model.sessions),
            actions_ready=self.model.actions_ready,
            now=self.clock.now(),
            width=self.model.size[0],
            height=self.model.size[1] - 4,
        )
        self.surface.show("empty", *rows)

    def save_screen(self) -> None:
        """Keep the call as it is shown when it is decided, for the audit view."""
        item, reading = self.model.queue.current, self.model.reading
        one_by_one = self.situation.calls if self.situation.batch is not None else ()
        for view in one_by_one:  # each as its own page, of which the batch showed a row
            each = Item(key=view.call_id, approval=view)
            screen = DecisionScreen(at=self.clock.now(), item=each, context=self._around(each))
            self.model.decision_screens.add(screen)
        if item is None or item.approval is None:
            return
        self.model.decision_screens.add(
            DecisionScreen(
                at=self.clock.now(),
                item=item,
                context=self._around(item),
                file_changed=self.model.queue.file_changed(item),
                unfolded=self.model.unfolded,
                reading=reading.frozen_copy(),
                unseen=reading.unseen,
                total=reading.total,
            )
        )

    def require_second_press(self, command: str) -> None:
        """Of a batch what was not on screen is not approved, and of a large one the number is typed."""
        now, key = self.key_situation, self.model.registry.key_label(command)
        if now.batch is not None and now.unseen:
            self._refuse(words.status.did_nothing(key, words.status.unread(now.unseen)))
        elif len(now.calls) >= COUNTED_FROM:
            self.panel.ask("count", self.model.queue.selected or "")
        else:
            super().require_second_press(command)

    # Commands

    def leave_row(self, key: str) -> bool:
        queue, said = self.model.queue, words.status
        if self.model.decided.active:
            return False
        if not queue.selected_matches:
            sentence = said.left_other_row(key, another=queue.leave_row())
        elif queue.selected_is_over:
            view = queue.current.approval if queue.current is not None else None
            sentence = said.left_ended_row(key, whose_answer(view), another=queue.leave_row())
        else:
            return False
        self.model.refuse(sentence, self.clock.monotonic())
        return True

    def click_row(self, row: int, pane: str | None) -> None:
        model = self.model
        if model.panel != "none":
            return
        if pane == "decided":
            model.decided.enter()
            model.decided.select(row)
            self._turned()
        else:
            self._leave_decided()
            model.document_focused = False
            model.queue.select(row)
        self.redraw()

    @property
    def _rows(self) -> RowsPane:
        """The list that has the cursor."""
        return self.decided if self.model.decided.active else self.queue

    @property
    def page_rows(self) -> int:
        return self._rows.page_rows

    def move_cursor(self, rows: int) -> None:
        decided = self.model.decided
        if decided.active:
            decided.select(min(decided.index + rows, len(decided) - 1))
        elif (batch := self.model.queue.batch) is not None and self.key_situation.in_table:
            self.model.queue.set_batch(batch.moved(rows))
        else:
            self.model.queue.move(rows)

    def select_row(self, row: int) -> None:
        decided, queue = self.model.decided, self.model.queue
        if decided.active:
            decided.select(row if row >= 0 else len(decided) + row)
        else:
            queue.select(row if row >= 0 else len(queue.items) + row)

    def change_list(self) -> None:
        """Put the cursor into the list of decisions, or back into what waits."""
        if self.model.decided.active:
            self._leave_decided()
        else:
            self.model.decided.enter()
            self._turned()

    def _leave_decided(self) -> None:
        if self.model.decided.active:
            self.model.decided.leave()
            self._turned()

    def _turned(self) -> None:
        """The keys are about something else: each that decides has to rest anew."""
        self.model.document_focused = False
        self.model.forget_first_press()
        self.model.arming.reset()

    def go_back(self) -> None:
        if self.model.decided.active:
            self._leave_decided()
        elif self.model.queue.in_table:
            self.model.queue.leave_table()
        else:
            self.model.set_filter("", self.clock.now())

    def open_batch(self) -> None:
        """Go into the table of the batch, and from there into the call under the cursor."""
        batch, self.model.document_focused = self.model.queue.batch, False
        if batch is not None:
            opened = replace(batch, opened=True) if batch.cursor else batch.moved(0)
            self.model.queue.set_batch(opened)

    def put_in(self) -> None:
        """Put the call under the cursor in, or leave it out again."""
        if (batch := self.model.queue.batch) is not None:
            self.model.queue.set_batch(replace(batch, left_out=batch.left_out ^ {batch.cursor}))

    def show_whole(self) -> None:
        """Scroll to the whole new preview; from there, back to what changed."""
        document, row = self.reader.document, self.model.preview_row
        if row is None:
            return
        top = document.top
        document.scroll_to(row)
        if document.top == top:
            document.scroll_to_start()
