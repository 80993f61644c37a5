"""Bounds-checked access to a guest's memory.

Copied in parts: one copy of 16 MiB holds the interpreter lock for 10 ms and more.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final

import wasmtime

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
