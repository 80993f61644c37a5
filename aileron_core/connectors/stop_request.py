"""A person's request to stop one run, and the failure that it ends with."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from aileron_core.errors import Conflict

_T = TypeVar("_T")


class StopRequested(Exception):
    """A person stopped the run meanwhile."""


class StopRequest:
    """Whether a person wants one run stopped. Used on the core's loop alone; once made, it stays."""

    def __init__(self) -> None:
        self._made = asyncio.Event()
        self._stops: list[Callable[[], object]] = []

    @property
    def is_made(self) -> bool:
        return self._made.is_set()

    def make(self) -> None:
        """Stop what runs now; nothing more of the run begins."""
        self._made.set()
        for stop in self._stops:
            stop()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Generator[None]:
        """Call *stop* when the request is made while the context is open, or was made before."""
        self._stops.append(stop)
        try:
            if self.is_made:
                stop()
            yield
        finally:
            self._stops.remove(stop)

    async def interrupt(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return what *work* returns.

        Raises:
            StopRequested: the request was made first; *work* was cancelled.
        """
        working = asyncio.get_running_loop().create_task(work)
        try:
            with self.stopping(working.cancel):
                return await working
        except asyncio.CancelledError:
            if self.is_made and working.cancelled() and not _is_cancelled():
                raise StopRequested from None
            working.cancel()
            raise


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def stopped_by_person() -> Conflict:
    """Return why a run that a person stopped did not go on."""
    return Conflict("A person stopped this run.", details={"outcome": "stopped"})
