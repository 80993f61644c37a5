"""The state of the console without a screen: the model, messages to print, the item to ask about."""

from collections import deque
from collections.abc import Callable, Iterator

from aileron_core.clock import Clock
from aileron_core.console_port import (
    ApprovalUpdated,
    ApprovalView,
    AuditExported,
    CoreEvent,
    EverythingStopped,
    Intent,
    IntentRefused,
    PauseChanged,
    SessionsUpdated,
)
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.text import Line
from aileron_tui.input.situation import View
from aileron_tui.items import Item
from aileron_tui.plain.lines import own_line
from aileron_tui.state.apply_event import apply_event, newly_around
from aileron_tui.state.filter_fields import item_fields
from aileron_tui.state.intents import seen_difference
from aileron_tui.state.model import Model, Version
from aileron_tui.state.situation import running_call, situation_of
from aileron_tui.terminal.notifications import NotificationScheduler, Notifier


class PlainState:
    """Applies events to a model and keeps the cursor on a waiting item. It prints and asks nothing."""

    def __init__(
        self,
        model: Model,
        events: deque[CoreEvent],
        clock: Clock,
        notifier: Notifier,
        submit: Callable[[Intent], None],
    ) -> None:
        """Take events from *events*, where another thread puts them; *submit* asks for records."""
        self.model = model
        self.messages: deque[Line] = deque()
        """Messages to print before the next item."""
        self.chosen_key = ""
        """The row that the person went to."""
        self.ended = False
        """The person, a signal or the core ended it."""
        self.printed_version: Version = ()
        """The content that was printed last."""
        self.printed_at = 0.0
        self.top_row = 0
        """The first row of the page of rows that is listed."""
        self.row_numbers: dict[View, dict[int, str]] = {}
        """The key of the row that each number named when it was listed."""
        self.unknown_outcome: ApprovalView | None = None
        """The call approved last whose outcome is unknown."""
        self.report_count = 0
        """How many answers came that are not about a single row."""
        self._reported_unknown: set[str] = set()
        self._reads = False
        self._submit = submit
        self._events, self._clock = events, clock
        self._warn = notifier.warn
        self._arrived: dict[str, str] = {}
        """The actions of calls that arrived and were not reported yet, by approval."""
        self._due: tuple[float, Callable[[], None]] | None = None
        self._attention = NotificationScheduler(
            notifier.deliver, waiting=lambda: model.queue.waiting, clock=clock, later=self._later
        )
        if (rest := model.next_read()) is not None:
            submit(rest)

    def take_events(self) -> None:
        """Take the events that came, and let time pass."""
        now, at, model = self._clock.now(), self._clock.monotonic(), self.model
        while self._events:
            event = self._events.popleft()
            model.status_message = None
            self.report_count += isinstance(
                event, EverythingStopped | AuditExported | IntentRefused
            )
            if isinstance(event, IntentRefused):
                self._reads = False  # the same read would be refused again at once
            if isinstance(event, SessionsUpdated) and newly_around(model.sessions, event.sessions):
                self._warn(words.terminal.WENT_AROUND)
            arrived = apply_event(model, event, now, at)
            if model.status_message is not None:
                self.messages.append(model.status_message.pieces)
            else:
                self.messages.extend(self._news_of(event))
            if isinstance(event, ApprovalUpdated):
                self._note_unknown(event.view)
            if arrived and isinstance(event, ApprovalUpdated):
                self._arrived[event.view.call_id] = event.view.action
                if model.paused_at is None:
                    self._attention.on_arrival(event.view.action)
        model.status_message = None
        model.tick(at)
        model.sweep(now)
        self._select_waiting()
        self._close_stale_question()
        self._ask_for_records()
        if (seen := seen_difference(model)) is not None:
            self._submit(seen)
        if self._due is not None and self._due[0] <= at:
            _, do = self._due
            self._due = None
            do()

    def _news_of(self, event: CoreEvent) -> Iterator[Line]:
        match event:
            case ApprovalUpdated(view=view) if self._done_here(view):
                yield own_line(f"{words.item.ROW_STATES['completed']}: {escape(view.title)}")
            case PauseChanged(paused_at=at):
                yield own_line(words.plain.RELEASED if at is None else words.plain.HELD)
            case _:
                pass

    def _note_unknown(self, view: ApprovalView) -> None:
        """Keep an approved call whose outcome is unknown; say once which key checks it."""
        model, key = self.model, view.call_id
        if (
            not view.can_fetch_again
            or not view.awaits_acknowledgement
            or not model.queue.was_decided_here(key)
            or key in self._reported_unknown
        ):
            return
        self.unknown_outcome = view
        self._reported_unknown.add(key)
        key_label = model.registry.key_label("look_again")
        self.messages.append(own_line(words.plain.looks_again_at(key_label, escape(view.title))))

    def _close_stale_question(self) -> None:
        model = self.model
        lost = model.core_lost is not None or not model.health.writable
        ended = model.panel == "end" and model.sessions_table.key != model.panel_key
        if model.panel == "stop_run":
            running = running_call(model)
            ended = running is None or running.run_id != model.panel_key
        if model.panel != "none" and (lost or ended):
            model.close_panel()

    def _done_here(self, view: ApprovalView) -> bool:
        return view.state == "completed" and self.model.queue.was_decided_here(view.call_id)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due = (self._clock.monotonic() + seconds, do)

    # The other views

    def open_view(self, view: View) -> None:
        """Show *view* from its first row; its content has to be printed anew."""
        self.model.switch_to(view)
        table = self.model.table
        if table is not None:
            table.opened = False
            table.follow()
        self.top_row, self._reads, self.printed_version = 0, False, ()

    def read_on(self) -> None:
        """Ask the core for the records that are to be printed."""
        self._reads = True
        self._ask_for_records()

    def read_call(self) -> None:
        """Ask the core for the call that is opened, where it is not known or differs by now."""
        self.model.turn_to_call()
        if (call := self.model.opened_call.next_read()) is not None:
            self._submit(call)

    def _ask_for_records(self) -> None:
        model = self.model
        if model.core_lost is not None:
            return
        self.read_call()
        if model.view != "audit" or not self._reads:
            return
        if (wanted := model.audit.next_read()) is not None:
            self._submit(wanted)

    @property
    def is_reading(self) -> bool:
        audit, table = self.model.audit, self.model.table
        if table is None or not table.opened:
            return False
        reads = self.model.view == "audit" and audit.opened and self._reads
        return (reads and not self._record_complete) or self.model.opened_call.is_awaited

    @property
    def _record_complete(self) -> bool:
        audit = self.model.audit
        return audit.current is not None and audit.version[1] is True

    # What is asked about

    def _select_waiting(self) -> None:
        """Keep the selected item while it waits; else select the call that waits longest."""
        queue = self.model.queue
        item = queue.current
        if (
            item is not None
            and item.is_waiting
            and (item.approval is not None or item.key == self.chosen_key)
        ):
            return
        calls = (row for row, each in enumerate(queue.items) if each.is_waiting and each.approval)
        first = next(calls, None)
        if first is None:
            queue.selected = None
        else:
            queue.select(first)

    def go_to(self, item: Item) -> None:
        """Ask about *item*, which waits."""
        queue = self.model.queue
        queue.select(queue.index(item.key))
        self.chosen_key = item.key

    def set_filter(self, text: str) -> None:
        """Leave out what the filter *text* does not let through; ask about the first that is left.

        Where nothing is left, what was asked about stays.
        """
        model, queue, here, now = self.model, self.model.queue, self.item, self._clock.now()
        queue.selected = None  # a selected row would be kept even if it does not match
        model.set_filter(text, now)
        waiting = [each for each in queue.items if each.is_waiting]
        chosen = here if here in waiting or not waiting else waiting[0]
        queue.selected = chosen.key if chosen is not None else None
        self.chosen_key = queue.selected or self.chosen_key
        model.set_filter(text, now)

    @property
    def item(self) -> Item | None:
        """What is asked about; None where nothing waits."""
        item = self.model.queue.current
        return item if item is not None and item.is_waiting else None

    @property
    def waiting(self) -> list[Item]:
        """What waits and the filter lets through: calls in the list's order, then files that are not accepted."""
        here = self.item
        return [
            each
            for each in self.model.queue.items
            if each.is_waiting and (each is not here or self._passes_filter(each))
        ]

    def _passes_filter(self, item: Item) -> bool:
        """Return whether the filter matches *item*; the present item is kept in any case."""
        query = self.model.queue.parsed_filter.query
        if not query:
            return True
        return query.matches(item_fields(item), self._clock.now())

    @property
    def question_version(self) -> Version:
        """Everything whose change interrupts the question."""
        model = self.model
        core = (model.paused_at is not None, model.health.writable, model.core_lost)
        if model.panel != "none":
            return (self.content_version, *core)
        item = self.item if model.view == "waiting" else None
        state = item.approval.state if item is not None and item.approval is not None else ""
        # With no item to ask about, ends are reported at once.
        has_news = model.view == "waiting" and item is None and bool(self.messages)
        return (self.content_version, state, self.is_sending, has_news, *core)

    @property
    def is_sending(self) -> bool:
        """An answer about the present item is on its way."""
        block = situation_of(self.model, self._clock.now(), self._clock.monotonic()).blocked_by
        return block == "sending"

    @property
    def content_version(self) -> Version:
        """The version of everything printed about the present item."""
        model, table = self.model, self.model.table
        if model.panel != "none":
            return (model.panel, model.panel_key)
        if table is None:
            item = self.item
            version = item.version if item is not None else ()
            return (version, model.queue.file_changed(item), model.unfolded)
        if table.opened:
            of_record = (self._record_complete, self.is_reading) if model.view == "audit" else ()
            return (model.view, table.version, of_record, model.opened_call.reads, model.unfolded)
        verified = model.audit.verified if model.view == "audit" else None
        return (model.view, self.top_row, table.parsed_filter.text, verified)

    def take_messages(self) -> Iterator[Line]:
        """Yield each message to print once: what happened, then how many other calls came."""
        while self.messages:
            yield self.messages.popleft()
        here = self.item if self.model.view == "waiting" else None
        arrived = self._arrived
        self._arrived = {}
        queue = self.model.queue
        came = [
            action
            for key, action in arrived.items()
            if (item := queue.get(key)) is not None and item.is_waiting and item is not here
        ]
        if came:
            yield own_line(words.plain.more_wait(len(came), escape(came[-1])))
