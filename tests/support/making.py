"""Files, bytes and runs of a guest that tests make, and what work costs."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.wasm.invocation import Invocation
from aileron_core.connectors.wasm.scheduling import EpochTicker, GuestSemaphore
from aileron_core.sessions import tool_calls


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def huge(path: Path, megabytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(megabytes << 20)


def cut(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Cut *data* into pieces of *sizes*, and what is left."""
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


def an_invocation(clock: Clock | None = None, seconds: float = 60.0) -> Invocation:
    """Return a run of a guest that may reach no host."""
    clock = clock or SystemClock()
    given: dict[str, Any] = {"hosts": (), "read_only": False, "on_request": None, "clock": clock}
    given |= {"limits": Limits(wall_seconds=seconds), "deadline": clock.monotonic() + seconds}
    given |= {"slots": GuestSemaphore(1), "ticker": EpochTicker(lambda: None)}
    return Invocation(manifest=Manifest(name="local://a/b", version="1.0.0"), **given)


def own_tools(agent: str) -> frozenset[str]:
    """Return the names of the tools of *agent* that act on files or run commands; none if it is not known."""
    found = tool_calls._OWN_TOOLS.get(agent)
    return found.writing | found.reading if found is not None else frozenset()


def calls(work: Callable[[], object]) -> int:
    """Count the function calls, C's too, that *work* makes: no clock, so that a busy machine counts as an idle one."""
    count = 0

    def on_event(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
