"""Whether an agent still waits for a person's answer, and since when it does not."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from aileron_core.clock import Clock

GRACE_SECONDS = 2.0
"""Seconds without a waiting call until its agent counts as gone: agents wait by calls that come again and again."""


@dataclass(slots=True)
class _Wait:
    calls: int = 0
    left_at: float = 0.0
    left_tick: float = 0.0
    stopped_at: float | None = None


class WaitingAgents:
    """The calls that are held for an answer, by approval. In memory alone.

    Args:
        changed: called with the id of an approval when nobody waits for it any more, or somebody does again.
    """

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._waits: dict[str, _Wait] = {}

    @contextmanager
    def waiting(self, approval_id: str) -> Generator[None]:
        """Count one call that waits for the answer, for as long as the context is open."""
        wait = self._waits.setdefault(approval_id, _Wait())
        wait.calls += 1
        if wait.stopped_at is not None:
            wait.stopped_at = None
            self._changed(approval_id)
        try:
            yield
        finally:
            wait.calls -= 1
            wait.left_at, wait.left_tick = self._clock.now(), self._clock.monotonic()

    def stopped_at(self, approval_id: str) -> float | None:
        """Return the time since which no agent waits; None while one does, or where none ever did."""
        wait = self._waits.get(approval_id)
        return wait.stopped_at if wait else None

    def sweep(self, is_open: Callable[[str], bool]) -> None:
        """Mark approvals whose last call ended `GRACE_SECONDS` ago; drop answered ones. Called often."""
        now = self._clock.monotonic()
        for approval_id, wait in tuple(self._waits.items()):
            if wait.calls:
                continue
            if not is_open(approval_id):
                del self._waits[approval_id]
            elif wait.stopped_at is None and now - wait.left_tick >= GRACE_SECONDS:
                wait.stopped_at = wait.left_at
                self._changed(approval_id)
