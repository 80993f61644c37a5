"""Events on their way from the core's thread to the screen: gathered for a moment, then taken some at a time.

Core and screen share one interpreter: each time that the screen wakes, the core pauses.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from aileron_core.console_port.events import CoreEvent

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
