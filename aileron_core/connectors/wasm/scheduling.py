"""Sharing the processor among guests: a fair semaphore, and the ticker that interrupts them."""

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

    def begin(self) -> None:
        """Tick from now on: one more guest runs."""
        with self._changed:
            self._guests += 1
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="aileron-epoch", daemon=True)
                self._thread.start()
            # Woken only from its endless wait: woken between two ticks it would tick early, and
            # interrupt a guest that has just begun.
            if self._idle:
                self._changed.notify()

    def end(self) -> None:
        """Take back one `begin`."""
        with self._changed:
            self._guests -= 1

    def close(self) -> None:
        """End the thread."""
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
