"""A page on which a press may decide: a document, a voice, keys, a panel that asks."""

import logging
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from aileron_core.clock import Clock
from aileron_tui.faults import fault_place
from aileron_tui.messages import DocumentScrolled, Painted, SettleDue
from aileron_tui.presenters import chrome, wording
from aileron_tui.presenters.arming import AFTER_SECONDS
from aileron_tui.presenters.blocks import COMPACT_GUTTER, lay_out
from aileron_tui.presenters.document import undrawable_blocks
from aileron_tui.presenters.lines import Piece, line
from aileron_tui.presenters.model import Model, Token
from aileron_tui.presenters.pages import Pages
from aileron_tui.presenters.queue import Item
from aileron_tui.presenters.situation import availability
from aileron_tui.presenters.voice import voice
from aileron_tui.screens.base import ConsoleScreen, Submit
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.linework import Lines
from aileron_tui.widgets.reason import Reason

__all__ = ["DecidingScreen"]

_log = logging.getLogger(__name__)

SEEN_SECONDS = 0.1
"""A line counts as seen when it stood on screen this long."""
SETTLE_AGAIN_SECONDS = 0.005


class DecidingScreen(ConsoleScreen):
    """Knows since when what stands on screen stands there, and lets a key decide only then."""

    AUTO_FOCUS = "#document"

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__(model, clock, submit)
        self._pages = Pages(model.registry)
        self._in_view: tuple[Token, int, int] = ((), 0, 0)
        self._in_view_since = 0.0
        self._waker: Timer | None = None
        self._pressed = ""

    def compose_foot(self) -> ComposeResult:
        """Lay out the voice and the keys, and the panel that takes their place."""
        with Vertical(id="foot"):
            yield Lines(id="voice")
            yield Lines(id="keys")
            with Vertical(id="panel"):
                yield Lines(id="question")
                yield Reason(id="reason", placeholder=wording.REASON_PLACEHOLDER)
                yield Lines(id="panelkeys")

    def _draw_foot(self) -> None:
        if not self.query("#keys"):
            return  # a timer's last call, while the application ends
        width, now = self.size.width, self.situation
        if self.model.panel == "deny":
            self.query_one("#panelkeys", Lines).show(chrome.footer_line("deny", now, width))
            return
        item = self.model.queue.current
        words = item.approval.words if item is not None and item.approval is not None else None
        said = voice(now, self.model.said, self.clock.now())
        self.query_one("#voice", Lines).show(chrome.voice_line(said, words, width))
        self.query_one("#keys", Lines).show(chrome.footer_line("waiting", now, width))

    # What cannot be drawn

    def _guarded(self, draw: Callable[[], None]) -> None:
        """Draw; where that fails, say so in its place, and let nothing decide the item."""
        try:
            draw()
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            self._cannot_draw(self.model.queue.current, error)
            document = self.query_one("#document", Document)
            layout = lay_out(undrawable_blocks(), max(40, document.size.width), COMPACT_GUTTER)
            document.show(layout, frozenset())
            self.model.reading.lay_out(())
            self.query_one("#head", Lines).show(line(" ", Piece(wording.UNDRAWABLE, "danger")))

    def _cannot_draw(self, item: Item | None, error: Exception) -> None:
        if self.model.cannot_draw(item):
            _log.error("an item could not be drawn: %s", fault_place(error))

    # What stands on screen, and since when

    def _painted(self, token: Token) -> None:
        """Everything drawn for *token* was written; a slow line may not have brought it yet."""
        self.post_message(Painted(lambda: self._stands(token)))

    def _stands(self, token: Token) -> None:
        """What was drawn for *token* is on screen: from here on it can be read and rested before."""
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
        self.call_after_refresh(self._painted, self.model.token)

    # Reading

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

    # Deciding

    def action_approve(self) -> None:
        """Approve, if this press counts."""
        self._press("approve")

    def action_take_in(self) -> None:
        """Take the file in, if this press counts."""
        self._press("take_in")

    def action_deny_enter(self) -> None:
        """Deny with the reason, if this press counts."""
        self._press("deny_enter")

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
        block = now.deny_block if action == "deny_enter" else now.block
        reason = self.query_one("#reason", Reason).value
        intent = self.model.intent(action, reason)
        if block != "none" or intent is None:
            return
        self.model.sending(intent)
        self.submit(intent)
        self._close_panel()
        self.redraw()

    def action_deny_leave(self) -> None:
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
