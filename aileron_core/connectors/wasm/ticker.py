"""The clock that running guests are interrupted by."""

import threading
from collections.abc import Callable

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
