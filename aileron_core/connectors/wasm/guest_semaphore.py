"""Turns on the processor for guests: as many run at once as there are cores, first come first served."""

import threading
from collections import deque
from collections.abc import Callable

_LOOK_SECONDS = 0.05


class GuestSemaphore:
    """A semaphore that hands a free slot to whoever waits longest.

    `threading.Semaphore` lets the one that gives up its slot take it again at once, so a guest that
    spins would starve the rest although it yields.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[threading.Event] = deque()

    @property
    def wanted(self) -> bool:
        """Tell whether somebody waits."""
        return bool(self._waiting)

    def acquire(self, give_up: Callable[[], bool]) -> bool:
        """Wait for a slot; False if *give_up*, asked now and then, said so first."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        while not turn.wait(_LOOK_SECONDS):
            if not give_up():
                continue
            with self._lock:
                if turn.is_set():
                    break
                self._waiting.remove(turn)
                return False
        return True

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
