"""How the core notifies its listeners: a small synchronous fan-out.

Listeners are called on the core's loop and must return at once; one that raises is dropped, so
that a broken front end never stops the gate.
"""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from aileron_core import tasks

E = TypeVar("E")
_log = logging.getLogger(__name__)


class EventBus(Generic[E]):
    """Hands each published event to every listener, in order of subscription."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[E], object]] = []

    def subscribe(self, listener: Callable[[E], object]) -> Callable[[], None]:
        """Add *listener* and return the call that removes it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def publish(self, event: E) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a listener may not stop the core
                _log.error("a listener was dropped: %s", tasks.type_and_places(error))
                self._listeners.remove(listener)
