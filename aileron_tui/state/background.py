"""Work that would delay a key is done on another thread; the screen draws again when it is done."""

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")

RESULTS_KEPT = 64
"""Results that nobody has fetched yet; more than any pane shows rows."""


@dataclass(frozen=True, slots=True)
class WorkResult(Generic[_T]):
    """The outcome of some work: a value or an exception."""

    value: _T | None = None
    error: Exception | None = None

    def get(self) -> _T:
        """Return the value.

        Raises:
            Exception: whatever the work raised.
        """
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


class BackgroundWorker(Generic[_T]):
    """Does one job after the other, and of each kind only the one that was requested last.

    A person who walks over large texts must not wait for those that are out of sight already.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        """*ready* is called on the other thread each time that something is done."""
        self._ready = ready
        self._lock = threading.Lock()
        self._asked: dict[Hashable, tuple[Hashable, Callable[[], _T]]] = {}
        self._done: dict[Hashable, tuple[Hashable, WorkResult[_T]]] = {}
        self._doing: tuple[Hashable, Hashable] | None = None
        self._works = False

    def request(
        self, kind: Hashable, key: Hashable, work: Callable[[], _T]
    ) -> WorkResult[_T] | None:
        """Return the result of *work*, which *key* names; None while it is still to be done."""
        with self._lock:
            known = self._done.get(kind)
            if known is not None and known[0] == key:
                return known[1]
            if self._doing != (kind, key):
                self._asked[kind] = (key, work)
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="aileron-layout", daemon=True).start()
        return None

    def forget(self, kind: Hashable) -> None:
        with self._lock:
            self._asked.pop(kind, None)
            self._done.pop(kind, None)

    def _next(self) -> tuple[Hashable, Hashable, Callable[[], _T]] | None:
        with self._lock:
            if not self._asked:
                self._works, self._doing = False, None
                return None
            kind = next(iter(self._asked))
            key, work = self._asked.pop(kind)
            self._doing = (kind, key)
            return kind, key, work

    def _work(self) -> None:
        while (task := self._next()) is not None:
            kind, key, work = task
            done: WorkResult[_T]
            try:
                done = WorkResult(work())
            except Exception as error:  # noqa: BLE001 - the thread's edge: raised where it is asked for
                done = WorkResult(error=error)
            with self._lock:
                self._done[kind] = (key, done)
                if len(self._done) > RESULTS_KEPT:
                    del self._done[next(iter(self._done))]
                self._doing = None
            with suppress(RuntimeError):  # the loop has ended
                self._ready()
