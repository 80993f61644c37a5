"""Which lines of a document were seen: by place in the text, not by row. `screens/reading.py` says when."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from aileron_tui.draw.blocks import TextRange


class ReadingProgress:
    """What of one content was seen. A new width asks the same text anew; new content is a new object."""

    def __init__(self) -> None:
        self._ranges: Sequence[TextRange | None] = ()
        self._seen: set[int] = set()
        self._required: frozenset[int] = frozenset()
        self.frozen = False
        """Nothing is added to it any more."""

    def frozen_copy(self) -> "ReadingProgress":
        copy = ReadingProgress()
        copy._ranges, copy._required, copy._seen = self._ranges, self._required, set(self._seen)
        copy.frozen = True
        return copy

    def set_lines(self, ranges: Sequence[TextRange | None]) -> None:
        """Take the drawn lines of a new width; `None` is a line that need not be seen."""
        if ranges == self._ranges:
            return
        covered = self._covered()
        self._ranges = ranges
        self._required = frozenset(
            row for row, text_range in enumerate(ranges) if text_range is not None
        )
        self._seen = {row for row in self._required if _within(ranges[row], covered)}

    def mark_seen(self, rows: Iterable[int]) -> bool:
        """Note that *rows* stood on screen; return whether that was news."""
        if self.frozen:
            return False
        fresh = (self._required & frozenset(rows)) - self._seen
        self._seen |= fresh
        return bool(fresh)

    @property
    def total(self) -> int:
        """How many lines must be seen."""
        return len(self._required)

    @property
    def unseen(self) -> int:
        """How many of them were not."""
        return len(self._required) - len(self._seen)

    def unseen_rows(self) -> frozenset[int]:
        return self._required - self._seen

    def _covered(self) -> dict[int, list[tuple[int, int]]]:
        """Return the seen characters of every block as sorted, joined ranges."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for row in sorted(self._seen):
            text_range = self._ranges[row]
            if text_range is None:
                continue
            joined = ranges.setdefault(text_range.block, [])
            end = max(text_range.end, text_range.start + 1)
            if joined and joined[-1][1] >= text_range.start:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((text_range.start, end))
        return ranges


def _within(text_range: TextRange | None, covered: dict[int, list[tuple[int, int]]]) -> bool:
    if text_range is None:
        return False
    ranges = covered.get(text_range.block, [])
    at = bisect_right(ranges, (text_range.start, 1 << 60)) - 1
    return at >= 0 and ranges[at][0] <= text_range.start and text_range.end <= ranges[at][1]
