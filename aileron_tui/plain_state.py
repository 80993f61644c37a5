"""What the console without a screen knows: the state that facts made, what is to be told, what to ask about."""

from collections import deque
from collections.abc import Callable, Iterator

from aileron_core.clock import Clock
from aileron_core.control_plane.port import ApprovalUpdated, ApprovalView, Fact, PauseChanged
from aileron_core.text import escape
from aileron_tui.notifying import Attention, Notifier
from aileron_tui.presenters import wording
from aileron_tui.presenters.lines import Line
from aileron_tui.presenters.model import Model, Token
from aileron_tui.presenters.news import take_fact
from aileron_tui.presenters.plain_lines import own
from aileron_tui.presenters.queue import Item
from aileron_tui.presenters.wording import plain as words

__all__ = ["PlainState"]


class PlainState:
    """Takes facts into a model and keeps the cursor on what waits. It prints and asks nothing."""

    def __init__(self, model: Model, facts: deque[Fact], clock: Clock, notifier: Notifier) -> None:
        """Take facts from *facts*, where another thread puts them."""
        self.model = model
        self.news: deque[Line] = deque()
        """What is to be told before the next item."""
        self.chosen = ""
        """The row that the person went to."""
        self._facts, self._clock = facts, clock
        self._arrived: dict[str, str] = {}
        """The actions of calls that came and were not told yet, by approval."""
        self._due: tuple[float, Callable[[], None]] | None = None
        self._attention = Attention(
            notifier.tell, waiting=lambda: model.queue.waiting, clock=clock, later=self._later
        )

    def take(self) -> None:
        """Take the facts that came, and let time pass."""
        now, at, model = self._clock.now(), self._clock.monotonic(), self.model
        while self._facts:
            fact = self._facts.popleft()
            model.said = None
            arrived = take_fact(model, fact, now, at)
            if model.said is not None:
                self.news.append(model.said.pieces)
            else:
                self.news.extend(self._told_of(fact))
            if arrived and isinstance(fact, ApprovalUpdated):
                self._arrived[fact.view.approval_id] = fact.view.action
                if model.paused_at is None:
                    self._attention.arrived(fact.view.action)
        model.said = None
        model.tick(now, at)
        self._go_to_one_that_waits()
        if self._due is not None and self._due[0] <= at:
            _, do = self._due
            self._due = None
            do()

    def _told_of(self, fact: Fact) -> Iterator[Line]:
        match fact:
            case ApprovalUpdated(view=view) if self._done_here(view):
                yield own(f"{wording.ROW_STATES['completed']}: {escape(view.title)}")
            case PauseChanged(paused_at=at):
                yield own(words.RELEASED if at is None else words.HELD)
            case _:
                pass

    def _done_here(self, view: ApprovalView) -> bool:
        return view.state == "completed" and self.model.queue.was_mine(view.approval_id)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due = (self._clock.monotonic() + seconds, do)

    def _go_to_one_that_waits(self) -> None:
        """Stay where the person is while that waits; else go to the call that waits longest."""
        queue = self.model.queue
        item = queue.current
        if item is not None and item.waits and (item.held is None or item.key == self.chosen):
            return
        first = next((each for each in queue.items if each.waits and each.approval), None)
        queue.selected = first.key if first is not None else None

    @property
    def item(self) -> Item | None:
        """What is asked about; None where nothing waits."""
        item = self.model.queue.current
        return item if item is not None and item.waits else None

    @property
    def waiting(self) -> list[Item]:
        """Everything that waits, calls in order of arrival, then held-back files."""
        return [each for each in self.model.queue.items if each.waits]

    @property
    def token(self) -> Token:
        """Name everything that, when it differs, takes the question away."""
        model, item = self.model, self.item
        state = item.approval.state if item is not None and item.approval is not None else ""
        sending = item is not None and model.sent.get(item.key) is not None
        core = (model.paused_at is not None, model.health.writable, model.lost)
        return (self.content, state, sending, *core)

    @property
    def content(self) -> Token:
        """Name everything that is printed of the item."""
        item = self.item
        version = item.version if item is not None else ()
        return (version, self.model.queue.file_moved(item))

    def take_news(self) -> Iterator[Line]:
        """Yield what is to be told, once: what happened, then how many other calls came."""
        while self.news:
            yield self.news.popleft()
        here, arrived = self.item, self._arrived
        self._arrived = {}
        queue = self.model.queue
        came = [
            action
            for key, action in arrived.items()
            if (item := queue.get(key)) is not None and item.waits and item is not here
        ]
        if came:
            yield own(words.more_wait(len(came), escape(came[-1])))
