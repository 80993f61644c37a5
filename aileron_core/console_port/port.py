"""The core, as a front end on another thread sees it."""

from collections.abc import Callable
from typing import Protocol

from aileron_core.console_port.events import CoreEvent, Snapshot
from aileron_core.console_port.intents import Intent


class ConsolePort(Protocol):
    """The core, which runs on another thread and loop.

    An intent is handed over and never cancelled from outside, so a screen that goes away cannot stop a
    decision half-way; its answer arrives as an event like any other.
    """

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. Answers come as events. After CoreLost: no effect."""
        ...

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state and have *sink* called, on the core's thread, for every later event.

        *sink* must return at once (`App.post_message` does). Blocks for at most 5 s.

        Raises:
            Unavailable: the core has ended.
        """
        ...
