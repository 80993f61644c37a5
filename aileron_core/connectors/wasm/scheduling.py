"""Sharing the processor among guests: a fair semaphore, and the ticker that interrupts them."""

import threading
from collections import deque
from collections.abc import Callable

_POLL_SECONDS = 0.05


class GuestSemaphore:
    """A semaphore that gives a free slot to the waiter that has waited longest.

    With `threading.Semaphore` the thread that releases a slot may take it again at once, so a busy
    guest would starve the rest although it yields.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[threading.Event] = deque()

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiting)

    def acquire(self, give_up: Callable[[], bool]) -> bool:
        """Wait for a slot; False if *give_up*, which is polled, returned True first."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        while not turn.wait(_POLL_SECONDS):
            if not give_up():
                continue
            with self._lock:
                if turn.is_set():
                    break
                self._waiting.remove(turn)
                return False
        return True

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


TICK_SECONDS = 0.01


class EpochTicker:
    """Calls *tick* every 10 ms while a guest runs, from a thread that sleeps while none does."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._changed = threading.Condition()
        self._guests = 0
        self._closed = False
        self._idle = False
        self._thread: threading.Thread | None = None

    def add_guest(self) -> None:
        """Count one more running guest, and tick from now on."""
        with self._changed:
            self._guests += 1
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="aileron-epoch", daemon=True)
                self._thread.start()
            # Woken only from its endless wait: woken between two ticks it would tick early, and
            # interrupt a guest that has just begun.
            if self._idle:
                self._changed.notify()

    def remove_guest(self) -> None:
        """Undo one `add_guest`."""
        with self._changed:
            self._guests -= 1

    def close(self) -> None:
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                if self._guests:
                    self._changed.wait(TICK_SECONDS)
                    self._tick()
                else:
                    self._idle = True
                    self._changed.wait()
                    self._idle = False
