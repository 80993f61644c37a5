"""Navigation in the console without a screen: lists, one row whole, the filter. Nothing here decides."""

from aileron_core.console_port import ExportAudit, RefetchPreview, VerifyAudit
from aileron_core.ids import APPROVAL_ID
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.text import Line
from aileron_tui.input.situation import View
from aileron_tui.plain.context import PlainContext
from aileron_tui.plain.output import PAGE_ROWS, Output
from aileron_tui.state.tables.table import Table, filter_problem, filter_status
from aileron_tui.terminal.browser import browser_command, open_in_browser

VIEWS: dict[str, View] = {
    "view_waiting": "waiting",
    "view_activity": "activity",
    "view_audit": "audit",
    "view_library": "library",
    "view_sessions": "sessions",
    "view_accounts": "accounts",
}


class Navigation:
    """Selects what the person wants to see; `Output` prints it at the next turn."""

    def __init__(self, context: PlainContext, output: Output) -> None:
        self._context, self._state, self._model = context, context.state, context.model
        self._output = output

    # The views

    def open_view(self, view: View, number: str) -> None:
        """List *view*; with a *number*, print that row of it whole."""
        if view == "waiting":
            if self._model.view != view:
                self._state.open_view(view)
            self._list_what_waits()
        elif number:
            self._open(view, number)
        else:
            self._state.open_view(view)

    def _list_what_waits(self) -> None:
        self._output.print_waiting()
        if status := self._filter_status():
            self._context.say(status)

    def _filter_status(self) -> Line:
        queue = self._model.queue
        given = (queue.parsed_filter, queue.matching, queue.total)
        return filter_problem(*given) or filter_status(*given)

    def next(self) -> None:
        """Go to the next waiting item, from the last one to the first."""
        state = self._state
        if self._model.view != "waiting":
            state.open_view("waiting")
            if state.item is not None:
                return
        waiting, here = state.waiting, state.item
        others = [each for each in waiting if each is not here]
        if not others:
            self._context.say(words.plain.NOTHING_ELSE)
            return
        row = waiting.index(here) + 1 if here in waiting else 0
        state.go_to(waiting[row % len(waiting)])

    def page_down(self, typed: str) -> None:
        self._page(1, typed)

    def page_up(self, typed: str) -> None:
        self._page(-1, typed)

    def _page(self, pages: int, typed: str) -> None:
        table, state = self._model.table, self._state
        top = state.top_row + pages * PAGE_ROWS.get(self._model.view, 0)
        if table is None or table.opened or not 0 <= top < len(table) or top == state.top_row:
            self._context.say_unavailable(typed)
            return
        state.top_row = top
        self._read_page(top)

    def _read_page(self, top: int) -> None:
        """Wait for records that have to be read before they can be listed."""
        audit, state = self._model.audit, self._state
        if self._model.view != "audit":
            return
        size = PAGE_ROWS["audit"]
        audit.set_viewport(top, size)
        audit.stop_following()
        audit.select(min(top + size, len(audit)) - 1)
        state.read_on()
        self._context.wait_until(lambda: audit.current is not None)

    # One row

    def _open(self, view: View, number: str) -> None:
        model, state = self._model, self._state
        listed = state.row_numbers.get(view)
        if model.view != view:
            state.open_view(view)
        table = model.tables[view]
        row = self._row_of(table, number, listed)
        if row is None:
            self._context.say(words.plain.no_row(escape(number)))
            return
        state.printed_version = ()
        table.stop_following()
        table.select(row)
        table.opened = True
        if view == "audit":
            model.audit.set_viewport(row, 1)
            state.read_on()
        else:
            state.read_call()
        self._context.wait_until(lambda: not state.is_reading)

    def _row_of(self, table: Table, number: str, listed: dict[int, str] | None) -> int | None:
        """Return the row of *number*: as it was listed, or by the record's own number."""
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return None
        if (keys := table.keys) or table is not self._model.audit:
            key = (listed or dict(enumerate(keys, 1))).get(int(number))
            return keys.index(key) if key in keys else None
        wanted = table.total - int(number)
        if not 0 <= wanted < table.total:
            return None
        if table.filtered:
            self._model.set_filter("", self._context.clock.now())
        return wanted

    def back(self, typed: str) -> None:
        """Go back to the rows; from there, show all of them again."""
        table = self._model.table
        if table is not None and table.opened:
            table.opened = False
            self._state.printed_version = ()
        elif self._model.filtered:
            self.set_filter("")
        else:
            self._context.say_unavailable(typed)

    # The filter

    def set_filter(self, text: str) -> None:
        """Filter the present list by *text*, and say how many rows match."""
        model, state, now = self._model, self._state, self._context.clock.now()
        table = model.table
        if table is None:
            state.set_filter(text)
            status = self._filter_status()
            self._context.say(status or words.plain.ALL_SHOWN)
            return
        table.opened, state.top_row, state.printed_version = False, 0, ()
        model.set_filter(text, now)
        if table.matching and len(table) > table.matching:
            # The selected row stays whatever it is: let it be one that matches.
            table.select(0 if table.index else 1)
            model.set_filter(text, now)
        if model.view == "audit":
            state.read_on()
            self._context.wait_until(
                lambda: table.matching >= PAGE_ROWS["audit"] or _looked_at(table)
            )

    # The item, or the opened row

    def unfold(self, typed: str) -> None:
        """Print it with code points, or again without."""
        if self._context.availability("unfold").shown:
            self._model.unfold()
        else:
            self._context.say_unavailable(typed)

    def whole(self, typed: str) -> None:
        """Print the whole new preview of a call that changed."""
        row = self._model.preview_row
        if row is None or not self._context.availability("whole").shown:
            self._context.say_unavailable(typed)
        else:
            self._context.printer.preview(row)

    def look_again(self, typed: str) -> None:
        """Look at the service again, where nobody knows how the call ended."""
        model, state = self._model, self._state
        call_id = ""
        if self._context.availability("look_again").shown:
            call_id = self._context.situation.unknown_outcome_id
        elif state.unknown_outcome is not None and model.view == "waiting":
            call_id = state.unknown_outcome.call_id
            self._open_call(state.unknown_outcome.run_id)
            state.unknown_outcome = None  # from here on its row offers it
        if not call_id or not self._context.situation.can_change:
            self._context.say_unavailable(typed)
            return
        self._context.port.submit(RefetchPreview(call_id=call_id))
        self._context.say(words.views.LOOKING_AGAIN)

    def _open_call(self, run_id: str) -> None:
        """Turn to the row of the run in view 2."""
        state, table = self._state, self._model.activity
        state.open_view("activity")
        if run_id in table.keys:
            table.stop_following()
            table.select(table.keys.index(run_id))
            table.opened = True
            state.read_call()
            self._context.wait_until(lambda: not state.is_reading)

    def open_review(self, typed: str) -> None:
        """Open the page of the call in the browser; without one, print its address."""
        item, base, context = self._state.item, self._model.snapshot.url, self._context
        shown = context.availability("open_review").shown
        if item is None or not shown or not base or not APPROVAL_ID.fullmatch(item.key):
            context.say_unavailable(typed)
            return
        url = f"{base}/review/{item.key}"
        program = browser_command(context.environment)
        if program is None:
            context.say(words.terminal.no_browser(url))
            return
        answers: list[bool] = []

        def done(worked: bool) -> None:
            answers.append(worked)
            context.terminal.wake()

        open_in_browser(program, url, done)
        context.wait_until(lambda: bool(answers))
        context.say(
            words.terminal.no_browser(url) if answers == [False] else words.terminal.opened(url)
        )

    def show_record(self, typed: str) -> None:
        """Print the record itself, as it is stored; again: its call."""
        if self._context.availability("show_record").shown:
            self._model.audit.show_record()
        else:
            self._context.say_unavailable(typed)

    # The audit as a whole

    def verify(self, typed: str) -> None:
        """Verify the whole chain, in the background; the list is then printed anew with the result."""
        if not self._context.availability("verify").shown:
            self._context.say_unavailable(typed)
            return
        self._model.audit.verifying = True
        self._context.port.submit(VerifyAudit())
        self._context.say(words.plain.VERIFYING)

    def export(self) -> None:
        """Write every record into a new file in the home."""
        before = self._state.report_count
        self._context.port.submit(ExportAudit())
        self._context.wait_until(lambda: self._state.report_count > before)


def _looked_at(table: Table) -> bool:
    """Return whether the filter has looked at every row: until then the status line says how far it got."""
    given = (table.parsed_filter, table.matching, table.total)
    return table.filter_status() == (filter_problem(*given) or filter_status(*given))
