"""How much one request of an agent may set off."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_AT_ONCE = 1024 * 1024
"""Bytes of a request that are read, or written, while all else waits: for about 10 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentLimits:
    """Each ends in an error in the provider's shape."""

    request_bytes: int = 32 * 1024 * 1024
    """Of the agent's own request; a longer one passes unread."""
    buffered_bytes: int = 128 * 1024 * 1024
    """Of the requests of all sessions that are being answered, and the answers; of one session half of it at most."""
    turns: int = 32
    """Requests to the model."""
    calls: int = 128
    """Calls of our tools."""
    bytes: int = 64 * 1024 * 1024
    """Of all answers of the model."""
    seconds: float = 3600.0
    keep_alive_seconds: float = 10.0
    """Between two signs of life to an agent whose stream waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """What is remembered of one session; beyond it the oldest is forgotten."""

    entries: int = 256
    bytes: int = 32 * 1024 * 1024


async def beside_if_large(size: int, do: Callable[_P, _T], *args: _P.args, **more: _P.kwargs) -> _T:
    """Return what *do* makes of a request of *size* bytes; of a large one on a thread of its own."""
    if size <= _AT_ONCE:
        return do(*args, **more)
    return await asyncio.to_thread(do, *args, **more)
