"""How the core notifies its listeners: a small synchronous fan-out.

Listeners are called on the core's loop and must return at once; one that raises is dropped, so
that a broken front end never stops the gate.
"""

import logging
import traceback
from collections.abc import Callable
from typing import Generic, TypeVar

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
                # Where, but not what it says: that may have a secret in it.
                places = (
                    f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)
                )
                name = type(error).__name__
                _log.error("a listener failed with %s and was dropped: %s", name, ", ".join(places))
                self._listeners.remove(listener)
