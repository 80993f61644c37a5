"""View 1: what waits, and the one item that the keys are about.

`python -m aileron_tui.screens.waiting` shows it on fixtures.
"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer

from aileron_core.clock import Clock
from aileron_core.control_plane.port import Refresh
from aileron_core.text import escape
from aileron_tui.actions import bindings_for
from aileron_tui.messages import DocumentScrolled, RowClicked, SettleDue
from aileron_tui.presenters import chrome, wording
from aileron_tui.presenters.arming import AFTER_SECONDS
from aileron_tui.presenters.blocks import COMPACT_GUTTER, GUTTER
from aileron_tui.presenters.document import agent_name
from aileron_tui.presenters.head import item_head
from aileron_tui.presenters.lines import Line, spread
from aileron_tui.presenters.model import Model, Token
from aileron_tui.presenters.pages import Pages
from aileron_tui.presenters.rows import (
    compact_list_rows,
    decided_lines,
    out_of_sight,
    queue_header,
    row_lines,
)
from aileron_tui.presenters.situation import availability
from aileron_tui.presenters.voice import voice
from aileron_tui.screens.base import ConsoleScreen, Submit
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.linework import Lines
from aileron_tui.widgets.reason import Reason
from aileron_tui.widgets.rows import RowList

__all__ = ["WaitingScreen"]

SEEN_SECONDS = 0.1
"""A line counts as seen when it stood on screen this long."""
SETTLE_AGAIN_SECONDS = 0.005


class WaitingScreen(ConsoleScreen):
    """The list, the item, the voice, the keys; the reason's panel in place of the last two."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for("waiting", "panel")
    AUTO_FOCUS = "#document"

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__(model, clock, submit)
        self._pages = Pages()
        self._shown_content: Token = ()
        self._in_view: tuple[Token, int, int] = ((), 0, 0)
        self._in_view_since = 0.0
        self._waker: Timer | None = None
        self._pressed = ""

    def compose(self) -> ComposeResult:
        """Lay the regions out from top to bottom; the stylesheet places them by size class."""
        yield Lines(id="topbar")
        yield Lines(id="banner", grows=True)
        with Container(id="body"):
            with Vertical(id="side"):
                yield Lines(id="sidehead")
                yield RowList(id="queue", draw=self._row)
                yield Lines(id="sidefoot")
                yield Lines(id="decided")
            with Vertical(id="item"):
                yield Lines(id="head", grows=True)
                yield Lines(id="gap")
                yield Document(id="document")
        yield Lines(id="empty")
        yield Lines(id="sentence")
        with Vertical(id="foot"):
            yield Lines(id="voice")
            yield Lines(id="keys")
            with Vertical(id="panel"):
                yield Lines(id="question")
                yield Reason(id="reason", placeholder=wording.REASON_PLACEHOLDER)
                yield Lines(id="panelkeys")

    # Drawing

    @property
    def _compact(self) -> bool:
        return self.has_class("-compact")

    def redraw(self) -> None:
        """Draw everything from the model, then learn when it stands on screen."""
        super().redraw()
        self._leave_a_panel_of_nothing()
        self.set_class(not self.model.queue.items, "-empty")
        self.set_class(self.model.panel != "none", "-panel")
        if self.model.small:
            self._draw_sentence()
        else:
            self._draw_list()
            self._draw_item()
            self._draw_empty()
        self._draw_foot()
        self.call_after_refresh(self._stands, self.model.token)

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        items = self.model.queue.items
        if row >= len(items):
            return ()
        return row_lines(
            items[row],
            width,
            self.clock.now(),
            hidden=bool(self._pages.findings(items[row])),
            selected=selected,
            compact=self._compact,
        )

    def _draw_list(self) -> None:
        queue, now = self.model.queue, self.clock.now()
        rows = self.query_one("#queue", RowList)
        items = queue.items
        self._pages.forget(frozenset(item.key for item in items))
        rows.show(len(items), 1 if self._compact else 2, queue.index(queue.selected))
        width = self.query_one("#side").size.width
        more = out_of_sight(*rows.hidden_rows)
        if self._compact:
            self.query_one("#sidefoot", Lines).show(spread((), more, width))
        else:
            header = queue_header(items, now, width)
            self.query_one("#sidehead", Lines).show((), header, spread((), more, width))
            self.query_one("#decided", Lines).show(*decided_lines(queue.decided, width))

    def _draw_item(self) -> None:
        item, now = self.model.queue.current, self.clock.now()
        document = self.query_one("#document", Document)
        width = document.size.width
        if not width:
            self.model.laid_out = None
            return
        moved = self.model.queue.file_moved(item)
        warned = self._pages.warnings(item, file_moved=moved) if item is not None else []
        head = item_head(item, warned, now, width, compact=self._compact)
        self.query_one("#head", Lines).show(*head)
        self.query_one("#gap", Lines).show(())
        self._fit_list(len(head))
        gutter = COMPACT_GUTTER if self._compact else GUTTER
        layout = self._pages.layout(item, width, gutter, now, file_moved=moved)
        self.model.longer = len(layout.lines) > document.size.height
        self.model.reading.lay_out(layout.places)
        self.model.laid_out = item.version if item is not None else None
        document.show(layout, self.model.reading.unseen_rows())
        content = item.version if item is not None else ()
        if content != self._shown_content:
            self._shown_content = content
            document.start_over()

    def _fit_list(self, head: int) -> None:
        """Give the list its height where it stands above an item whose head has *head* lines."""
        items, banner = len(self.model.queue.items), self.query_one("#banner", Lines).rows
        height = self.size.height
        rows = compact_list_rows(items, height, banner, head) if self._compact else 0
        if rows != self.model.list_rows:
            self.model.list_rows = rows
            self.query_one("#queue", RowList).styles.height = rows or None

    def _draw_empty(self) -> None:
        if self.model.queue.items:
            return
        decided = self.model.queue.decided
        rows = chrome.empty_lines(
            last=decided[0] if decided else None,
            connected=sum(session.connected for session in self.model.sessions),
            actions_ready=self.model.actions_ready,
            now=self.clock.now(),
            width=self.size.width,
            height=self.size.height - 4,
        )
        self.query_one("#empty", Lines).show(*rows)

    def _draw_foot(self) -> None:
        if not self.query("#keys"):
            return  # a timer's last call, while the application ends
        width, now = self.size.width, self.situation
        if self.model.panel == "deny":
            self.query_one("#panelkeys", Lines).show(chrome.footer_line("panel", now, width))
            return
        item = self.model.queue.current
        words = item.approval.words if item is not None and item.approval is not None else None
        said = voice(now, self.model.said, self.clock.now())
        self.query_one("#voice", Lines).show(chrome.voice_line(said, words, width))
        self.query_one("#keys", Lines).show(chrome.footer_line("waiting", now, width))

    # What stands on screen, and since when

    def _stands(self, token: Token) -> None:
        """Everything drawn for *token* was painted: from here on it can be read and rested before."""
        at = self.clock.monotonic()
        item = self.model.queue.current
        if item is not None and self.model.laid_out != item.version:
            return  # shown only now, its size not known yet: its lines come with the next drawing
        if not self.query("#keys") or not self.is_current or token != self.model.token:
            return
        self.model.arming.drawn(token, at)
        view = (token, *self.query_one("#document", Document).in_view)
        if view != self._in_view:
            self._in_view, self._in_view_since = view, at
        self._draw_foot()
        self._wake()

    def _wake(self) -> None:
        """Look again when the next thing is due: lines that count as seen, a key that arms."""
        at = self.clock.monotonic()
        waits: list[float] = []
        if arms_in := self.model.arming.arms_in(self.model.token, at):
            waits.append(arms_in)
        if self.model.reading.unseen_rows() & frozenset(range(*self._in_view[1:])):
            waits.append(self._in_view_since + SEEN_SECONDS - at)
        if self._waker is not None:
            self._waker.stop()
        if waits:
            self._waker = self.set_timer(max(min(waits), SETTLE_AGAIN_SECONDS), self._look)

    def _look(self) -> None:
        if not self.query("#keys"):
            return
        at = self.clock.monotonic()
        token, first, last = self._in_view
        rested = at - self._in_view_since >= SEEN_SECONDS
        present = token == self.model.token and rested and not self.model.small
        if present and self.model.reading.mark(range(first, last)):
            unseen = self.model.reading.unseen_rows()
            self.query_one("#document", Document).show(self._pages.current, unseen)
        self._draw_foot()
        self._wake()

    def on_document_scrolled(self, message: DocumentScrolled) -> None:
        """Other lines stand there now; they count from their own painting on."""
        message.stop()
        self.call_after_refresh(self._stands, self.model.token)

    # Moving and reading

    def action_next(self) -> None:
        """Select the next row."""
        self.model.queue.move(1)
        self.redraw()

    def action_previous(self) -> None:
        """Select the previous row."""
        self.model.queue.move(-1)
        self.redraw()

    def action_first(self) -> None:
        """Select the first row."""
        self.model.queue.select(0)
        self.redraw()

    def action_last(self) -> None:
        """Select the last row."""
        self.model.queue.select(len(self.model.queue.items) - 1)
        self.redraw()

    def action_page_down(self) -> None:
        """Select the row one page below."""
        self.model.queue.move(self.query_one("#queue", RowList).page)
        self.redraw()

    def action_page_up(self) -> None:
        """Select the row one page above."""
        self.model.queue.move(-self.query_one("#queue", RowList).page)
        self.redraw()

    def on_row_clicked(self, message: RowClicked) -> None:
        """Select the clicked row; the mouse decides nothing."""
        if self.model.panel == "none":
            self.model.queue.select(message.row)
            self.redraw()

    def action_read_on(self) -> None:
        """Read on by one pane less two lines."""
        self.query_one("#document", Document).read_panes(1)

    def action_read_back(self) -> None:
        """Read back by one pane less two lines."""
        self.query_one("#document", Document).read_panes(-1)

    def action_line_down(self) -> None:
        """Scroll the document down by one line."""
        self.query_one("#document", Document).read(1)

    def action_line_up(self) -> None:
        """Scroll the document up by one line."""
        self.query_one("#document", Document).read(-1)

    def action_refresh(self) -> None:
        """Fetch the preview again."""
        item = self.model.queue.current
        if item is not None and item.approval is not None:
            self.submit(Refresh(approval_id=item.key))

    # Deciding

    def action_approve(self) -> None:
        """Approve, if this press counts."""
        self._press("approve")

    def action_take_in(self) -> None:
        """Take the file in, if this press counts."""
        self._press("take_in")

    def action_panel_enter(self) -> None:
        """Deny with the reason, if this press counts."""
        self._press("panel_enter")

    def _press(self, action: str) -> None:
        model = self.model
        at = model.key_at
        state = availability(action, model.situation(self.clock.now(), at))
        if state.asks:
            model.confirm()
        elif state.shown and model.press(at):
            self._pressed = action
            self._settle_in(AFTER_SECONDS)
        self.redraw()

    def _settle_in(self, seconds: float) -> None:
        # By way of the application's queue: every key that had arrived is counted before.
        self.set_timer(seconds, lambda: self.post_message(SettleDue()))

    def settle(self) -> None:
        """Let a press that had its silence decide; say it where a burst took it back."""
        at = self.clock.monotonic()
        arming = self.model.arming
        token = arming.settled(at)
        if token is not None and token == self.model.token:
            self._decide(self._pressed)
        if dropped := arming.take_dropped(at):
            self.model.say(wording.keys_dropped(dropped), at)
            self.redraw()
        if arming.unsettled:
            self._settle_in(SETTLE_AGAIN_SECONDS)

    def _decide(self, action: str) -> None:
        now = self.situation
        block = now.deny_block if action == "panel_enter" else now.block
        reason = self.query_one("#reason", Reason).value
        intent = self.model.intent(action, reason)
        if block != "none" or intent is None:
            return
        self.model.sending(intent)
        self.submit(intent)
        self._close_panel()
        self.redraw()

    def action_deny(self) -> None:
        """Ask for the reason; `enter` there denies."""
        item = self.model.queue.current
        if item is None or item.approval is None:
            return
        view = item.approval
        reason = self.query_one("#reason", Reason)
        reason.value = ""
        self.model.open_panel(item.key)
        question = chrome.panel_question(escape(view.title), agent_name(view), self.size.width)
        self.query_one("#question", Lines).show(question)
        self.redraw()
        reason.focus()

    def action_panel_leave(self) -> None:
        """Leave it waiting."""
        self._close_panel()
        self.redraw()

    def _close_panel(self) -> None:
        self.model.close_panel()
        self.query_one("#reason", Reason).value = ""
        # Hiding the focused input leaves nothing focused.
        self.query_one("#document", Document).focus()

    def _leave_a_panel_of_nothing(self) -> None:
        """Close the panel where its item cannot be denied any more."""
        if self.model.panel == "none":
            return
        if self.situation.deny_block in ("over", "empty", "lost", "storage"):
            self._close_panel()


def demo() -> int:
    """Show the screen on fixtures; return the exit code."""
    from aileron_tui.app import AileronApp
    from aileron_tui.screens.fixtures import FixturePort

    return AileronApp(FixturePort()).run_to_end()


if __name__ == "__main__":
    raise SystemExit(demo())
