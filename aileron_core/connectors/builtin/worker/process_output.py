"""What a command prints, of which as much is kept as a person or an agent reads."""

KEPT = 256 * 1024
"""Bytes kept of each stream: its first and its last half."""


class Output:
    """One stream of a command."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = KEPT // 2 - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > KEPT:
            del self._last[: -KEPT // 2]

    def text(self) -> str:
        """Return what was kept, with a line that says how much was not."""
        left_out = self._total - len(self._first) - min(len(self._last), KEPT // 2)
        first = self._first.decode("utf-8", "replace")
        if left_out == 0:
            return (self._first + self._last).decode("utf-8", "replace")
        last = self._last[-KEPT // 2 :].decode("utf-8", "replace")
        return f"{first}\n[{left_out} bytes left out]\n{last}"
