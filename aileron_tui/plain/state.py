"""The state of the console without a screen: the model, what to print before the next item, the item to ask about."""

from collections import deque
from collections.abc import Callable

from aileron_core.actions.model import shown_name
from aileron_core.clock import Clock
from aileron_core.console_port.events import (
    ApprovalUpdated,
    CoreEvent,
    PauseChanged,
    SessionsUpdated,
)
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.text import Line, line
from aileron_tui.items import Item
from aileron_tui.pages.questions import QUESTIONS
from aileron_tui.state.apply_event import apply_event, newly_around
from aileron_tui.state.model import Model, Version
from aileron_tui.state.situation import Situation
from aileron_tui.terminal.notifications import NotificationScheduler, Notifier


class PlainState:
    """Applies events to a model and keeps the cursor on a waiting item. It prints and asks nothing."""

    def __init__(
        self, model: Model, events: deque[CoreEvent], clock: Clock, notifier: Notifier
    ) -> None:
        """Take events from *events*, where another thread puts them."""
        self.model = model
        self.messages: deque[Line] = deque()
        """What happened, to print before the next item."""
        self.ended = False  # by the person or a signal
        self.asks_nothing = False
        """The items change too fast to be asked about; `go_on` asks again."""
        self.printed_version: Version = ()
        self.printed_at = 0.0
        self._chosen = ""  # the key of the item that the person went to
        self._events, self._clock, self._warn = events, clock, notifier.warn
        self._due: tuple[float, Callable[[], None]] | None = None
        self._attention = NotificationScheduler(
            notifier.deliver, waiting=lambda: model.queue.waiting, clock=clock, later=self._later
        )

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due = (self._clock.monotonic() + seconds, do)

    @property
    def is_over(self) -> bool:
        """Nothing more can be asked."""
        return self.ended or self.model.core_lost is not None

    def take_events(self) -> None:
        """Take the events that came, and let time pass."""
        model, at = self.model, self._clock.monotonic()
        while self._events:
            self._take(self._events.popleft(), at)
        model.status_message = None
        model.tick(at)
        model.sweep(self._clock.now())
        self._select_waiting()
        question = QUESTIONS.get(model.panel)
        if question is not None and question.is_over(self.situation):
            model.close_panel()
        if self._due is not None and self._due[0] <= at:
            (_, do), self._due = self._due, None
            do()

    def _take(self, event: CoreEvent, at: float) -> None:
        model = self.model
        model.status_message = None
        if isinstance(event, SessionsUpdated) and newly_around(model.sessions, event.sessions):
            self._warn(words.terminal.WENT_AROUND)
        arrived = apply_event(model, event, self._clock.now(), at)
        if model.status_message is not None:
            self.messages.append(model.status_message.pieces)
        elif isinstance(event, PauseChanged):
            held = event.paused_at is not None
            self.messages.append(line(words.plain.HELD if held else words.plain.RELEASED))
        if not isinstance(event, ApprovalUpdated):
            return
        view = event.view
        done_here = view.state == "completed" and model.queue.was_decided_here(view.call_id)
        if model.status_message is None and done_here:
            done = f"{words.item.ROW_STATES['completed']}: {escape(view.title)}"
            self.messages.append(line(done))
        if arrived and model.paused_at is None:
            self._attention.on_arrival(shown_name(view.action))

    # What is asked about

    @property
    def item(self) -> Item | None:
        """What is asked about; None where nothing waits."""
        item = self.model.queue.current
        return item if item is not None and item.is_waiting else None

    @property
    def others(self) -> list[Item]:
        """What else waits, in the order in which `next` goes: below the item, then from the top."""
        queue, here = self.model.queue, self.item
        waiting = [each for each in queue.items if each.is_waiting]
        row = next((row for row, each in enumerate(waiting) if each is here), -1)
        return [each for each in waiting[row + 1 :] + waiting[: row + 1] if each is not here]

    def go_on(self) -> bool:
        """Ask about the next item, or again about what changed too fast; return whether there is one."""
        if self.asks_nothing:
            self.asks_nothing = False
            self._select_waiting()
        elif others := self.others:
            self._chosen = others[0].key
            self.model.queue.select(self.model.queue.index(self._chosen))
        else:
            return False
        self.print_again()
        return True

    def print_again(self) -> None:
        self.printed_version = ()

    def _select_waiting(self) -> None:
        """Keep the selected item while it waits; else select the call that waits longest."""
        queue, item = self.model.queue, self.item
        if self.asks_nothing:
            queue.selected = None
        elif item is None or (item.approval is None and item.key != self._chosen):
            calls = (row for row, each in enumerate(queue.items) if each.is_waiting)
            first = next((row for row in calls if queue.at(row).approval), None)
            queue.selected = None
            if first is not None:
                queue.select(first)

    @property
    def situation(self) -> Situation:
        return Situation(self.model, self._clock.now(), self._clock.monotonic())

    @property
    def content_version(self) -> Version:
        """The version of everything that is printed about the item, or of the question that stands."""
        model, item = self.model, self.item
        if model.panel in ("pair", "device"):
            return (model.panel, *model.pairing.version(model.panel_key))
        if model.panel != "none" or item is None:
            return (model.panel, model.panel_key)
        return (item.version, model.queue.file_changed(item), model.unfolded)

    @property
    def question_version(self) -> Version:
        """Everything whose change interrupts the question."""
        model, item = self.model, self.item
        core = (model.paused_at is not None, model.health.writable, model.core_lost)
        if model.panel != "none" or self.asks_nothing:
            return (self.content_version, *core)
        state = item.state if item is not None else ""
        has_news = item is None and bool(self.messages)  # then it is reported at once
        is_sending = self.situation.blocked_by == "sending"
        return (self.content_version, state, is_sending, has_news, *core)
