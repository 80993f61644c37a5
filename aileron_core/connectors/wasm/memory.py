"""A guest's memory as the host sees it: every range it names is held against what there is."""

import wasmtime

__all__ = ["GuestMemory", "unsigned"]


def unsigned(value: int) -> int:
    """Return a pointer or length as the guest means it: wasmtime hands over signed numbers."""
    return value & 0xFFFFFFFF


class GuestMemory:
    """The memory of a guest that is in a host function right now; of no use after it."""

    def __init__(self, caller: wasmtime.Caller) -> None:
        memory = caller.get("memory")
        self._caller = caller
        self._memory = memory if isinstance(memory, wasmtime.Memory) else None
        self._size = 0 if self._memory is None else self._memory.data_len(caller)

    def read(self, pointer: int, length: int, limit: int) -> bytes | None:
        """Return up to *limit* bytes of the guest's range; None if the range leaves its memory."""
        start, size = unsigned(pointer), unsigned(length)
        if self._memory is None or start + size > self._size:
            return None
        return bytes(self._memory.read(self._caller, start, start + min(size, limit)))

    def write(self, pointer: int, data: bytes) -> bool:
        """Copy *data* into the guest's memory; False if it does not fit there."""
        start = unsigned(pointer)
        if self._memory is None or start + len(data) > self._size:
            return False
        if data:
            self._memory.write(self._caller, data, start)
        return True
