"""The console's own messages: from the core, gathered for a moment and then taken some at a time, and from widgets to screens.

Core and screen share one interpreter: each time that the screen wakes, the core pauses.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from textual.message import Message

from aileron_core.console_port.events import CoreEvent


class CoreEventArrived(Message):
    """An event of the core, which it published on its own thread."""

    def __init__(self, event: CoreEvent) -> None:
        super().__init__()
        self.event = event


@dataclass
class DocumentClicked(Message):
    """The document was clicked, at a link where *href* is not empty."""

    href: str


class SizeChanged(Message):
    """A widget got another size: what it shows must be laid out anew."""


@dataclass
class RowClicked(Message):
    """A row of a list was clicked."""

    row: int
    list_id: str | None


@dataclass
class PieceClicked(Message):
    """A piece of a line was clicked that names an action."""

    action: str


@dataclass
class CommandRequested(Message):
    """A key asked for an application-wide command: another view, help, quit."""

    action: str


@dataclass
class Painted(Message):
    """A screen was written to the terminal; *then* is called once the terminal has drawn it."""

    callback: Callable[[], None]


class CoreEventsReady(Message):
    """Events of the core are queued."""


@dataclass
class NotificationFailed(Message):
    """A configured notification failed; reported once, in a sentence of the console's own."""

    reason: str


class SettleDue(Message):
    """A press may have had its silence. It goes by the application's queue, behind every key."""


@dataclass
class PagerRequested(Message):
    """A text, as it is drawn, is to be read in the pager; *name* is ours, or empty."""

    text: str
    name: str


BATCH_SIZE = 200
"""How many events are taken in one go."""
GATHER_SECONDS = 0.015
"""How long the first of several events waits for the others."""
MIN_INTERVAL_SECONDS = 0.1
"""Events are taken at most so often: what a person sees of a storm is its end."""


class EventQueue:
    """A queue that one thread fills and the screen's loop empties."""

    def __init__(self, ready: Callable[[], object]) -> None:
        """*ready* is called on the screen's loop once events are to be taken."""
        self._ready = ready
        self._events: deque[CoreEvent] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._taken_at = float("-inf")

    def open(self) -> None:
        """Begin to notify the running loop of events."""
        self._loop = asyncio.get_running_loop()

    def put(self, event: CoreEvent) -> None:
        """Queue *event*, on the core's thread; after the loop's end it is dropped.

        One message for all that have come: each one that crosses threads writes to the pipe by which
        the loop learns of signals as well, and a full pipe loses them.
        """
        self._events.append(event)
        if len(self._events) > 1 or self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._gather, self._loop)
        except RuntimeError:
            return  # `NoActiveAppError` is one as well

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait a moment for the other events of the same call, whose agent waits."""
        wait = max(GATHER_SECONDS, self._taken_at + MIN_INTERVAL_SECONDS - loop.time())
        loop.call_later(wait, self._ready)

    def take(self) -> Iterator[CoreEvent]:
        """Yield some of what has come, oldest first."""
        self._taken_at = self._loop.time() if self._loop is not None else 0.0
        for _ in range(min(len(self._events), BATCH_SIZE)):
            yield self._events.popleft()

    @property
    def has_more(self) -> bool:
        return bool(self._events)
