"""Our own versions of the WASI calls `poll_oneoff` and `fd_write`.

wasmtime's `poll_oneoff` sleeps in Rust, out of reach of epochs and other threads (a guest that
asked for 3 s returned after 3 s whatever its limit). Its `fd_write` passes through threads of
another runtime, which costs as much as the rest of a small guest. Layouts: WASI preview 1,
`subscription` (48 bytes), `event` (32 bytes), `ciovec` (8 bytes).
"""

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import wasmtime

from aileron_core.connectors.wasm.invocation import Invocation

_PART_BYTES: Final = 256 * 1024


def unsigned(value: int) -> int:
    """Convert a pointer or length: wasmtime passes signed numbers."""
    return value & 0xFFFFFFFF


class GuestMemory:
    """The memory of a guest that is inside a host function; not to be used after that returns."""

    def __init__(self, caller: wasmtime.Caller) -> None:
        memory = caller.get("memory")
        self._caller = caller
        self._memory = memory if isinstance(memory, wasmtime.Memory) else None
        self._size = 0 if self._memory is None else self._memory.data_len(caller)

    def read(
        self, pointer: int, length: int, limit: int, yield_control: Callable[[], None] | None = None
    ) -> bytes | None:
        """Return up to *limit* bytes of the guest's range; None if the range leaves its memory.

        *yield_control* is called after each part of a large one.
        """
        parts = self.parts(pointer, length, limit)
        if parts is None:
            return None
        buffer = BytesIO()
        for part in parts:
            buffer.write(part)
            if yield_control is not None:
                yield_control()
        return buffer.getvalue()

    def parts(self, pointer: int, length: int, limit: int) -> Iterator[bytearray] | None:
        """Return what `read` does, as an iterator of parts."""
        start, size = unsigned(pointer), unsigned(length)
        if self._memory is None or start + size > self._size:
            return None
        return self._parts(self._memory, start, start + min(size, limit))

    def _parts(self, memory: wasmtime.Memory, start: int, end: int) -> Iterator[bytearray]:
        for at in range(start, end, _PART_BYTES):
            yield memory.read(self._caller, at, min(at + _PART_BYTES, end))

    def write(self, pointer: int, data: bytes | memoryview) -> bool:
        """Copy *data* into the guest's memory; False if it does not fit there."""
        start = unsigned(pointer)
        if self._memory is None or start + len(data) > self._size:
            return False
        view = memoryview(data)
        for at in range(0, len(data), _PART_BYTES):
            self._memory.write(self._caller, bytearray(view[at : at + _PART_BYTES]), start + at)
        return True


SUBSCRIPTION_BYTES: Final = 48
EVENT_BYTES: Final = 32
VECTOR_BYTES: Final = 8
MAX_SUBSCRIPTIONS: Final = 1024
MAX_VECTORS: Final = 1024
SUCCESS, INVAL, FAULT = 0, 28, 21

_CLOCK, _FD_READ, _FD_WRITE = 0, 1, 2
_REALTIME, _MONOTONIC = 0, 1
_ABSOLUTE = 1
_BADF, _NOSPC, _NOTSUP = 8, 51, 58
_STDOUT, _STDERR = 1, 2
_MOST_AT_ONCE = 0x7FFFFFFF
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subscription:
    userdata: int
    kind: int
    seconds: float = 0.0
    error: int = SUCCESS


def poll(invocation: Invocation, subscriptions: bytes) -> bytes:
    """Wait until one of *subscriptions* is due and return the events of all that are.

    Standard streams are always ready: input and output are in memory.
    """
    waited = [
        _read(invocation, subscriptions[at : at + SUBSCRIPTION_BYTES])
        for at in range(0, len(subscriptions), SUBSCRIPTION_BYTES)
    ]
    at_once = [each for each in waited if each.kind != _CLOCK or each.error or each.seconds <= 0]
    if at_once:
        return b"".join(_event(each) for each in at_once)
    shortest = min(each.seconds for each in waited)
    invocation.leave_guest()
    try:
        invocation.sleep(shortest)
    finally:
        invocation.enter_guest()
    return b"".join(_event(each) for each in waited if each.seconds <= shortest)


def write_output(
    invocation: Invocation, descriptor: int, memory: GuestMemory, vectors: bytes
) -> tuple[int, int]:
    """Append what *vectors* name to stdout or stderr; return an errno and the number of bytes taken.

    Parts may overlap, so a few bytes of table can name gigabytes: nothing is copied beyond the
    remaining limit.
    """
    if descriptor not in (_STDOUT, _STDERR):
        return _BADF, 0
    taken = 0
    for pointer, size in struct.iter_unpack("<II", vectors):
        if taken + size > _MOST_AT_ONCE:
            break
        room = invocation.stdout_room if descriptor == _STDOUT else invocation.stderr_room
        if descriptor == _STDOUT and size > room:
            invocation.stdout_overflow = True
            return _NOSPC, taken
        parts = memory.parts(pointer, size, room)
        if parts is None:
            return FAULT, taken
        kept = invocation.stdout if descriptor == _STDOUT else invocation.stderr
        for part in parts:
            kept += part
            invocation.release_gil()
        taken += size
    return SUCCESS, taken


def _read(invocation: Invocation, entry: bytes) -> _Subscription:
    userdata, kind = struct.unpack_from("<QB", entry)
    if kind in (_FD_READ, _FD_WRITE):
        (descriptor,) = struct.unpack_from("<I", entry, 16)
        return _Subscription(
            userdata=userdata, kind=kind, error=SUCCESS if descriptor < 3 else _BADF
        )
    if kind != _CLOCK:
        return _Subscription(userdata=userdata, kind=kind, error=INVAL)
    clock, timeout, _, flags = struct.unpack_from("<IxxxxQQH", entry, 16)
    if clock not in (_REALTIME, _MONOTONIC):
        return _Subscription(userdata=userdata, kind=kind, error=_NOTSUP)
    seconds = timeout / _NANOSECONDS
    if flags & _ABSOLUTE:
        # wasmtime's monotonic clock starts with the run.
        started = invocation.clock_base
        now = time.time_ns() / _NANOSECONDS if clock == _REALTIME else invocation.clock.monotonic() - started  # fmt: skip
        seconds -= now
    return _Subscription(userdata=userdata, kind=kind, seconds=seconds)


def _event(each: _Subscription) -> bytes:
    ready = 1 if each.kind in (_FD_READ, _FD_WRITE) and not each.error else 0
    return struct.pack("<QHBxxxxxQHxxxxxx", each.userdata, each.error, each.kind, ready, 0)
