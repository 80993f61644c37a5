"""Background tasks: kept, named, and their failures logged."""

import asyncio
import logging
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
_alive: set[asyncio.Task[Any]] = set()
_log = logging.getLogger(__name__)


def spawn(work: Coroutine[Any, Any, _T], *, name: str) -> asyncio.Task[_T]:
    """Start *work* on the running loop and hold it until it ends; an unexpected end is logged by type only."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    _alive.add(task)
    task.add_done_callback(_ended)
    return task


async def uninterrupted(work: Coroutine[Any, Any, _T], *, name: str) -> _T:
    """Run *work* to its end even if the caller is cancelled meanwhile, and return what it returned.

    Whatever writes and then remembers what it wrote goes through here: stopped in between, memory
    and database would differ. Errors go to the caller.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    _alive.add(task)
    task.add_done_callback(_alive.discard)
    return await asyncio.shield(task)


async def any_set(*events: asyncio.Event, seconds: float | None = None) -> bool:
    """Return True once one of *events* is set, or False after so many *seconds*."""
    waits = [spawn(each.wait(), name="wait for an event") for each in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for each in waits:
            each.cancel()


def type_and_places(error: Exception) -> str:
    """Return what *error* is and where it came by, but not what it says: that may have a secret in it."""
    places = (
        f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)
    )
    return f"{type(error).__name__} at {', '.join(places)}"


def _ended(task: asyncio.Task[Any]) -> None:
    _alive.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        # The message may quote arguments or a preview, which never reach a log.
        _log.error("task %s ended with %s", task.get_name(), type(error).__name__)
