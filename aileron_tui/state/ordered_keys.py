"""Keys in order of arrival, of which many may wait: found by row and by number without a walk."""

from bisect import bisect_left, bisect_right, insort


class OrderedKeys:
    """Keys by growing numbers. Looking takes O(log n), adding at the end O(1) however many there are.

    Taking one out moves the numbers behind it, which is one `memmove`: 80 kB of 10,000.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._keys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._keys

    def add(self, number: int, key: str) -> None:
        """Put *key* where *number* belongs; one that is there already stays."""
        if number not in self._keys:
            self._keys[number] = key
            insort(self._numbers, number)

    def discard(self, number: int) -> None:
        if self._keys.pop(number, None) is not None:
            del self._numbers[bisect_left(self._numbers, number)]

    def key(self, row: int) -> str:
        """Return the key at *row*, from 0.

        Raises:
            IndexError: there is no such row.
        """
        return self._keys[self._numbers[row]]

    def row(self, number: int) -> int:
        """Return the row of *number*, or the one it would have."""
        return bisect_left(self._numbers, number)

    def after(self, number: int) -> str | None:
        """Return the nearest key behind *number*."""
        row = bisect_right(self._numbers, number)
        return self.key(row) if row < len(self._numbers) else None

    def before(self, number: int) -> str | None:
        """Return the nearest key ahead of *number*."""
        row = bisect_left(self._numbers, number)
        return self.key(row - 1) if row else None
