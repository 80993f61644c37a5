"""What the console without a screen prints before it asks: one item or row whole, or a page of rows; then the keys."""

import logging
from collections.abc import Callable, Iterable, Iterator

from aileron_tui import words
from aileron_tui.draw.blocks import Layout
from aileron_tui.draw.document import session_name
from aileron_tui.draw.drift import full_preview_row
from aileron_tui.draw.rows import running_question
from aileron_tui.draw.status_line import status_line
from aileron_tui.draw.text import Line, Piece, plain_text
from aileron_tui.draw.times import clock_seconds
from aileron_tui.error_location import error_location
from aileron_tui.input.situation import View
from aileron_tui.items import Item
from aileron_tui.plain.context import PlainContext
from aileron_tui.plain.lines import MAX_LISTED, own_line
from aileron_tui.plain.terminal import EndOfInput
from aileron_tui.state.model import Version
from aileron_tui.state.situation import running_call
from aileron_tui.state.tables.table import Table, filter_problem, filter_status

_log = logging.getLogger(__name__)

NEXT_KEY = "n"
"""The key that is only here."""
PAGE_ROWS: dict[View, int] = {
    "activity": 20,
    "audit": 20,
    "library": MAX_LISTED,
    "sessions": MAX_LISTED,
    "accounts": MAX_LISTED,
}
"""Rows that are listed at once, fewer of lists that have no end."""
_OF_RECORDS = ("activity", "audit")
_ABOUT = (
    "choose_account",
    "unlock_vault",
    "go_on",
    "approve",
    "approve_session",
    "accept",
    "accept_rest",
    "withdraw_acceptance",
    "allow_host",
    "end_session",
    "stop_run",
    "undo_run",
    "deny",
    "whole",
    "refresh",
    "look_again",
    "acknowledge",
    "show_record",
    "unfold",
    "back",
)
"""Commands about the present item, listed whenever they do something."""
_ALWAYS = (
    "view_waiting",
    "view_activity",
    "view_audit",
    "view_library",
    "view_sessions",
    "pause",
    "quit",
    "help",
)


_FOLLOWS = {"deny": " REASON", "choose_account": " NUMBER"}
"""What is typed behind a key."""


class Output:
    """Prints the present item unless it was printed last, then what an answer would do."""

    def __init__(self, context: PlainContext) -> None:
        self._context, self._state, self._model = context, context.state, context.model

    def show(self) -> Version:
        """Print; return the version that an answer is about: it counts only while that is unchanged."""
        state = self._state
        shown, content = state.question_version, state.content_version
        if content != state.printed_version:
            self._print()
            state.printed_at = self._context.clock.monotonic()
        state.printed_version = content
        if self._model.panel == "none":
            self._say_status()
        return shown

    def status(self) -> Line:
        return status_line(self._context.situation, None, self._context.clock.now(), width=1 << 16)

    # What is asked about

    def _print(self) -> None:
        table = self._model.table
        if self._model.panel != "none":
            self._question()
        elif table is None:
            if (item := self._state.item) is not None:
                self._item(item)
        elif not table.opened:
            self._rows(table)
        elif self._state.is_reading:
            self._context.say(words.plain.reading(table.key or ""))
        else:
            self._row(table)

    def _item(self, item: Item) -> None:
        """Print the whole of *item*, which then counts as seen; only its head while its preview is fetched."""
        model, now, printer = self._model, self._context.clock.now(), self._context.printer
        file_changed = model.queue.file_changed(item)

        def print_it() -> Layout | None:
            if is_fetching(item):
                printer.head(item, now, file_changed=file_changed)
                return None
            return printer.item(item, now, file_changed=file_changed, unfold=model.unfolded)

        model.preview_row = None
        layout = self._drawn(item.version, print_it)
        model.findings = printer.pages.findings_in(item)
        if layout is not None and item.approval is not None and item.approval.drift is not None:
            model.preview_row = full_preview_row(printer.pages.blocks, layout)
        model.scrollable = model.preview_row is not None

    def _row(self, table: Table) -> None:
        """Print the opened row of *table* whole, which counts as seen then."""
        model, context = self._model, self._context
        if model.view == "audit" and table.version[1] is not True:
            context.say(words.plain.not_read(table.key or ""))
            return
        now, unfold = context.clock.now(), model.unfolded
        if (seen := model.replayed) is not None:
            notice = words.views.as_shown(clock_seconds(seen.at), seen.unseen, seen.total)
            context.say(f"▲ {notice}")
        record = table.blocks(now, unfold=unfold) if model.view == "audit" else ()
        opened, printer = model.opened_call, context.printer

        def print_it() -> Layout:
            page = printer.call(opened, now, unfold=unfold, record=record)
            return page or printer.row(table, now, unfold=unfold)

        self._drawn(table.version, print_it)
        model.findings = printer.pages.page_findings

    def _drawn(self, version: Version, print_it: Callable[[], Layout | None]) -> Layout | None:
        """Print, and note that all of *version* was read; if printing fails, nothing can decide it."""
        model = self._model
        try:
            layout = print_it()
        except EndOfInput:
            raise
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            if model.mark_undrawable(version):
                _log.error("an item could not be drawn: %s", error_location(error))
            return None
        if layout is not None:
            model.has_marks = self._context.printer.pages.has_marks
            model.is_converted = self._context.printer.pages.is_converted
            model.laid_out_version = version
            model.reading.set_lines(layout.ranges)
            model.reading.mark_seen(range(len(layout.ranges)))
        return layout

    def _question(self) -> None:
        model, context = self._model, self._context
        if model.panel == "stop":
            running = sum(each.running for each in model.sessions)
            asked = words.panels.stop_question(model.queue.undecided, len(model.sessions), running)
            remark, action, done = words.panels.STOP_REMARK, "stop_everything", "stop_enter"
        elif model.panel == "stop_run":
            running_now = running_call(model)
            asked = running_question(running_now, context.clock.now()) if running_now else ""
            remark, action, done = words.panels.STOP_RUN_REMARK, "stop_run", "stop_run_enter"
        else:
            session = model.sessions_table.current
            asked = words.panels.end_question(session_name(session) if session is not None else "")
            remark = words.panels.end_remark(session.waiting if session is not None else 0)
            action, done = "end_session", "end_enter"
        context.say(asked)
        context.say(remark)
        label = context.registry.command(done).label
        context.say(words.plain.asks_again(context.registry.key_label(action), label))

    # Lists

    def print_waiting(self) -> None:
        """Print a line for each waiting item, and the filter's status."""
        model, state = self._model, self._state
        selected, now = model.queue.selected or "", self._context.clock.now()
        items = state.waiting
        calls = model.deny_panel.calls
        self._context.printer.listing(items, selected, now, lambda item: calls.count(item.approval))

    def _rows(self, table: Table) -> None:
        """Print a page of *table*, each row behind the number that opens it."""
        context, model, state = self._context, self._model, self._state
        status = table.filter_status() or table.status(model.registry)
        if table.matching:
            rows = range(state.top_row, min(state.top_row + PAGE_ROWS[model.view], len(table)))
            header = table.header(context.printer.row_width, context.clock.now())
            context.printer.rows(header, self._numbered(table, rows))
            if more := len(table) - rows.stop:
                context.say(words.plain.more_rows(more, context.registry.key_label("page_down")))
        context.say(status)
        problems = model.audit.verified.problems if model.audit.verified is not None else ()
        if model.view == "audit" and problems:
            context.printer.lines(table.detail(context.printer.row_width, context.clock.now()))
        if model.view in _OF_RECORDS and model.head_words is not None:
            context.say(words.views.audit_head(model.head_words))

    def _numbered(self, table: Table, rows: Iterable[int]) -> Iterator[tuple[int | None, Line]]:
        """Yield the rows, each with its number, which names it until the next listing."""
        keys, numbers = table.keys, self._state.row_numbers
        if not self._state.top_row:
            numbers[self._model.view] = {}
        for row in rows:
            if keys:
                numbers[self._model.view][row + 1] = keys[row]
            yield row + 1 if keys else None, self._line(table, row)

    def _line(self, table: Table, row: int) -> Line:
        context = self._context
        try:
            return table.row(row, context.printer.row_width, context.clock.now(), selected=False)
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            if self._model.mark_undrawable((self._model.view, row)):
                _log.error("a row could not be drawn: %s", error_location(error))
            return (Piece(f"  {words.status.UNDRAWABLE}", "danger"),)

    # Status line and keys

    def _say_status(self) -> None:
        context, model, state = self._context, self._model, self._state
        if model.view == "waiting":
            item = state.item
            if item is None:
                self._say_nothing_waits()
            message = own_line(words.status.LOOKING) if is_fetching(item) else self.status()
        else:
            message = self.status()
        if plain_text(message):
            context.say(message)
        context.say(words.plain.keys(list(self._keys())))

    def _say_nothing_waits(self) -> None:
        queue, say = self._model.queue, self._context.say
        doubt = filter_problem(queue.parsed_filter, queue.matching, queue.total)
        if queue.waiting and queue.parsed_filter.query:
            say(doubt or filter_status(queue.parsed_filter, queue.matching, queue.total))
        else:
            say(words.bars.NOTHING_WAITS)
        if queue.not_accepted:
            say(words.plain.files_wait(queue.not_accepted, NEXT_KEY))

    def _keys(self) -> Iterable[tuple[str, str]]:
        registry, model = self._context.registry, self._model
        for action in _ABOUT:
            if self._context.availability(action).shown:
                key = registry.key_label(action)
                typed = f"{key}{_FOLLOWS.get(action, '')}"
                creates = action == "unlock_vault" and model.vault.state == "absent"
                label = words.vault.CREATE_LABEL if creates else registry.command(action).label
                yield typed, label
        others = [each for each in self._state.waiting if each is not self._state.item]
        if others and model.view == "waiting":
            yield NEXT_KEY, "next"
        for action in _ALWAYS:
            if self._context.availability(action).shown:
                yield registry.key_label(action), registry.command(action).label


def is_fetching(item: Item | None) -> bool:
    view = item.approval if item is not None else None
    return view is not None and view.state == "pending" and view.preview.status == "fetching"
