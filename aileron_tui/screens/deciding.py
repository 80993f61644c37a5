"""A page on which a press may decide: it knows since when what stands on screen stands there."""

import logging
from collections.abc import Callable

from textual.timer import Timer

from aileron_core.clock import Clock
from aileron_core.console_port.port import Approve, Deny, FetchAgain
from aileron_tui import words
from aileron_tui.draw.blocks import COMPACT_GUTTER, Layout, lay_out
from aileron_tui.draw.document import undrawable_blocks
from aileron_tui.draw.text import Piece, line
from aileron_tui.error_location import error_location
from aileron_tui.input.arming import AFTER_SECONDS
from aileron_tui.input.situation import availability
from aileron_tui.messages import DocumentScrolled, Painted, SettleDue, SizeChanged
from aileron_tui.screens.base import ConsoleScreen, Submit
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.intents import intents_of
from aileron_tui.state.model import Model, Token
from aileron_tui.state.situation import situation_of
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.line_view import Lines
from aileron_tui.words import views

__all__ = ["DecidingScreen"]

_log = logging.getLogger(__name__)

SEEN_SECONDS = 0.1
"""A line counts as seen when it stood on screen this long."""
SETTLE_AGAIN_SECONDS = 0.005
DROPPED_SECONDS = 1.0
"""How long the keys of a burst, of which some come late, do not end the report on it."""


class DecidingScreen(ConsoleScreen):
    """Knows since when what stands on screen stands there, and lets a key decide only then."""

    AUTO_FOCUS = "#document"

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__(model, clock, submit)
        self._pages = DocumentCache(model.registry, ready=lambda: self.post_message(SizeChanged()))
        self._in_view: tuple[Token, int, int] = ((), 0, 0)
        self._in_view_since = 0.0
        self._shown_content: Token = ()
        self._waker: Timer | None = None
        self._pressed = ""

    def draw_foot(self) -> None:
        """Draw the voice and the keys."""

    # The document

    def _show_document(self, layout: Layout, version: Token) -> None:
        """Show *layout*, which is what *version* names; other content begins at its first line."""
        document, model = self.query_one("#document", Document), self.model
        model.longer = len(layout.lines) > document.size.height
        model.marked = self._pages.marked
        model.wrapped = bool(layout.wraps)
        model.reading.lay_out(layout.places)
        model.laid_out = version if self._pages.whole else None
        document.show(layout, model.reading.unseen_rows(), wrap_marks=model.wrap_marks)
        content = (version, model.unfolded)
        if content != self._shown_content:
            self._shown_content = content
            document.start_over()

    def action_unfold(self) -> None:
        """Show every mark with its code point, or again as it was."""
        self.model.unfold()
        self.redraw()

    def action_wrap_marks(self) -> None:
        """Show which lines go on in the next one, or no more; no line moves by it."""
        self.model.wrap_marks = not self.model.wrap_marks
        self.redraw()

    def action_look_again(self) -> None:
        """Look at the service again, where nobody knows how the call ended."""
        approval_id = self.situation.unknown
        if approval_id:
            self.submit(FetchAgain(approval_id=approval_id))
            self.model.say(views.LOOKING_AGAIN, self.clock.monotonic())
            self.redraw()

    # What cannot be drawn

    def _guarded(self, draw: Callable[[], None]) -> None:
        """Draw; where that fails, say so in its place, and let nothing decide the item."""
        try:
            draw()
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            subject = self.model.subject
            self._cannot_draw(subject.version if subject is not None else (), error)
            document = self.query_one("#document", Document)
            layout = lay_out(undrawable_blocks(), max(40, document.size.width), COMPACT_GUTTER)
            document.show(layout, frozenset())
            self.model.reading.lay_out(())
            self.query_one("#head", Lines).show(line(" ", Piece(words.UNDRAWABLE, "danger")))

    def _cannot_draw(self, version: Token, error: Exception) -> None:
        if self.model.cannot_draw(version):
            _log.error("an item could not be drawn: %s", error_location(error))

    # What stands on screen, and since when

    def _painted(self, token: Token) -> None:
        """Everything drawn for *token* was written; a slow line may not have brought it yet."""
        self.post_message(Painted(lambda: self._stands(token)))

    def _stands(self, token: Token) -> None:
        """What was drawn for *token* is on screen: from here on it can be read and rested before."""
        at = self.clock.monotonic()
        subject = self.model.subject if self.model.document_shown else None
        if subject is not None and self.model.laid_out != subject.version:
            return  # shown only now, its size not known yet: its lines come with the next drawing
        if not self.stands or not self.is_current or token != self.model.token:
            return
        self.model.arming.drawn(token, at)
        view = (token, *self.query_one("#document", Document).in_view)
        if view != self._in_view:
            self._in_view, self._in_view_since = view, at
        self.draw_foot()
        self._wake()

    def _wake(self) -> None:
        """Look again when the next thing is due: lines that count as seen, a key that arms."""
        at = self.clock.monotonic()
        waits: list[float] = []
        if arms_in := self.model.arming.arms_in(self.model.token, at):
            waits.append(arms_in)
        reading = self.model.reading
        if not reading.over and reading.unseen_rows() & frozenset(range(*self._in_view[1:])):
            waits.append(self._in_view_since + SEEN_SECONDS - at)
        if self._waker is not None:
            self._waker.stop()
        if waits:
            self._waker = self.set_timer(max(min(waits), SETTLE_AGAIN_SECONDS), self._look)

    def _look(self) -> None:
        if not self.stands:
            return
        at = self.clock.monotonic()
        token, first, last = self._in_view
        rested = at - self._in_view_since >= SEEN_SECONDS
        present = token == self.model.token and rested and not self.model.small
        if present and self.model.reading.mark(range(first, last)):
            unseen = self.model.reading.unseen_rows()
            marks, document = self.model.wrap_marks, self.query_one("#document", Document)
            document.show(self._pages.current, unseen, wrap_marks=marks)
        self.draw_foot()
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

    def action_accept(self) -> None:
        """Accept the file, if this press counts."""
        self._press("accept")

    def action_accept_rest(self) -> None:
        """Accept what was added together but those to look at first, if this press counts."""
        self._press("accept_rest")

    def action_withdraw_acceptance(self) -> None:
        """Withdraw the acceptance of the file, if this press counts."""
        self._press("withdraw_acceptance")

    def action_go_on(self) -> None:
        """Let calls go on, if this press counts."""
        self._press("go_on")

    def _press(self, action: str) -> None:
        model = self.model
        at = model.key_at
        state = availability(action, situation_of(model, self.clock.now(), at))
        if model.confirmed not in ("", action):
            model.take_back()
        if state.asks:
            self._ask_first(action)
        elif state.shown and model.press(at):
            self._pressed = action
            self._settle_in(AFTER_SECONDS)
        self.redraw()

    def _ask_first(self, action: str) -> None:
        """Say what was not seen; the next press of the same key decides."""
        self.model.confirm(action)

    def _settle_in(self, seconds: float) -> None:
        # By way of the application's queue: every key that had arrived is counted before.
        self.set_timer(seconds, lambda: self.post_message(SettleDue()))

    def settle(self, at: float) -> None:
        """Let a press that had its silence until *at* decide; say it where a burst took it back."""
        arming = self.model.arming
        token = arming.settled(at)
        if token is not None and token == self.model.token:
            self._decide(self._pressed)
        if dropped := arming.take_dropped(at):
            self.model.say(words.keys_dropped(dropped), at, hold=DROPPED_SECONDS)
            self.redraw()
        if arming.unsettled:
            self._settle_in(SETTLE_AGAIN_SECONDS)

    def _decide(self, action: str) -> None:
        """Hand over what the press of *action* asks for, if it may still be asked."""
        if not availability(action, self.situation).shown:
            return
        intents = intents_of(self.model, action, self.reason, self.clock.now())
        if not intents:
            return
        denied = [each.approval_id for each in intents if isinstance(each, Deny)]
        if denied or isinstance(intents[0], Approve):
            self.keep_screen()
        if denied:
            self.model.denying.sent(denied, self.reason)
        for intent in intents:
            self.model.sending(intent)
            self.submit(intent)
        self.close_panel()
        self.redraw()

    def keep_screen(self) -> None:
        """Keep what stands on screen while a call is decided, to show it again."""

    @property
    def reason(self) -> str:
        """What the person wrote where something was asked."""
        return ""

    def close_panel(self) -> None:
        """Take away what was asked first."""
