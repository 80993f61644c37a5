"""The processes of this machine, as /proc has them. One that ends meanwhile is left out."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def _stats() -> Iterator[tuple[int, str, int]]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            yield int(stat.parent.name), state, int(parent)


def alive() -> set[int]:
    return {pid for pid, state, _ in _stats() if state not in "ZX"}


def states(*pids: int) -> set[str]:
    return {state for pid, state, _ in _stats() if pid in pids}


def with_descendants(pids: set[int]) -> set[int]:
    parents = {pid: parent for pid, _, parent in _stats()}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids = pids | more
    return pids


def eventually(holds: Callable[[], Any], what: str = "", seconds: float = 60) -> Any:
    """Ask until *holds* is true and return what it said; for what another process tells nobody."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return found


def command_lines() -> dict[int, str]:
    """Return the command line of each process; NUL stands between two words."""
    found: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_bytes().decode("utf-8", "replace")
    return found


def running_with(*texts: str) -> list[int]:
    lines = command_lines().items()
    return [pid for pid, line in lines if all(text in line for text in texts)]
