"""The one WASI call that is ours: `poll_oneoff`, so that a guest asleep can be stopped.

wasmtime's own sleeps in Rust, where no epoch and no other thread reaches it (a guest that asked
for 3 s was back after 3 s whatever its limit). Layouts: WASI preview 1, `subscription` (48 bytes)
and `event` (32 bytes).
"""

import struct
import time
from dataclasses import dataclass
from typing import Final

from aileron_core.connectors.wasm.invocation import Invocation

__all__ = ["EVENT_BYTES", "MAX_SUBSCRIPTIONS", "SUBSCRIPTION_BYTES", "poll"]

SUBSCRIPTION_BYTES: Final = 48
EVENT_BYTES: Final = 32
MAX_SUBSCRIPTIONS: Final = 1024

_CLOCK, _FD_READ, _FD_WRITE = 0, 1, 2
_REALTIME, _MONOTONIC = 0, 1
_ABSOLUTE = 1
_SUCCESS, _BADF, _INVAL, _NOTSUP = 0, 8, 28, 58
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    userdata: int
    kind: int
    seconds: float = 0.0
    error: int = _SUCCESS


def poll(invocation: Invocation, subscriptions: bytes) -> bytes:
    """Wait until one of *subscriptions* is due and return the events of all that are.

    Standard streams are always ready: input is bytes in memory, output goes to memory.
    """
    wishes = [
        _read(invocation, subscriptions[at : at + SUBSCRIPTION_BYTES])
        for at in range(0, len(subscriptions), SUBSCRIPTION_BYTES)
    ]
    at_once = [wish for wish in wishes if wish.kind != _CLOCK or wish.error or wish.seconds <= 0]
    if at_once:
        return b"".join(_event(wish) for wish in at_once)
    shortest = min(wish.seconds for wish in wishes)
    invocation.leave_guest()
    try:
        invocation.sleep(shortest)
    finally:
        invocation.enter_guest()
    return b"".join(_event(wish) for wish in wishes if wish.seconds <= shortest)


def _read(invocation: Invocation, entry: bytes) -> _Wish:
    userdata, kind = struct.unpack_from("<QB", entry)
    if kind in (_FD_READ, _FD_WRITE):
        (descriptor,) = struct.unpack_from("<I", entry, 16)
        return _Wish(userdata=userdata, kind=kind, error=_SUCCESS if descriptor < 3 else _BADF)
    if kind != _CLOCK:
        return _Wish(userdata=userdata, kind=kind, error=_INVAL)
    clock, timeout, _, flags = struct.unpack_from("<IxxxxQQH", entry, 16)
    if clock not in (_REALTIME, _MONOTONIC):
        return _Wish(userdata=userdata, kind=kind, error=_NOTSUP)
    seconds = timeout / _NANOSECONDS
    if flags & _ABSOLUTE:
        # wasmtime's monotonic clock starts with the run.
        started = invocation.clock_base
        now = time.time_ns() / _NANOSECONDS if clock == _REALTIME else invocation.clock.monotonic() - started  # fmt: skip
        seconds -= now
    return _Wish(userdata=userdata, kind=kind, seconds=seconds)


def _event(wish: _Wish) -> bytes:
    ready = 1 if wish.kind in (_FD_READ, _FD_WRITE) and not wish.error else 0
    return struct.pack("<QHBxxxxxQHxxxxxx", wish.userdata, wish.error, wish.kind, ready, 0)
