"""Stopping everything in sandboxes from outside, for as long as the launcher itself is stopped."""

import contextlib
import os
import signal
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from aileron_core.launch.agent_job import is_stopped

_SECONDS = 2.0
_PAUSE = 0.01


@contextlib.contextmanager
def frozen(pids: Iterable[int]) -> Generator[None, None, None]:
    """Keep what descends from the processes *pids* stopped until this is left.

    What is in the kernel without end is stopped when it comes out of that.
    """
    pids = [*pids]
    stopped: set[int] = set()
    deadline = time.monotonic() + _SECONDS
    # Twice without one that ran: what was looked at may have been continued by one that was not yet.
    for _ in range(2):
        while running := [each for each in _descendants(pids) if not is_stopped(each)]:
            stopped |= {each for each in running if _signal(each, signal.SIGSTOP)}
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
    try:
        yield
    finally:
        for pid in stopped & {*_descendants(pids)}:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, number)
        return True
    return False


def _descendants(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        for task in _names(Path(f"/proc/{pid}/task")):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text("ascii")
                children = [int(each) for each in text.split()]
                yield from children
                yield from _descendants(children)


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - names alone
    return []
