"""What of a document was seen, and the screens in which a person decided.

`pages/reading.py` says when a line was seen. The newest 200 screens are kept for as long as this console runs.
A screen holds what was fetched for the approver alone. It is kept in memory: in a file every program
of the same account could read it. What the core keeps sealed comes with the call (`CallView.screens`).
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aileron_tui.draw.blocks import TextRange
from aileron_tui.draw.context import Section
from aileron_tui.items import Item
from aileron_tui.state.document_cache import foreign_size

SCREENS_KEPT = 200
CHARACTERS_KEPT = 16_000_000
"""Text of all kept screens together; the last one is kept however large it is."""

RECORDED_SECONDS = 0.001
"""Times on record hold no parts of a millisecond: one is up to so much before its moment."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionScreen:
    """Everything that the page of *item* was drawn from at *at* (epoch seconds)."""

    at: float
    item: Item
    context: tuple[Section, ...] = ()
    file_changed: bool = False
    unfolded: bool = False
    reading: ReadingProgress | None = None
    """What of it had been on screen; None where that is not known any more."""
    unseen: int = 0
    """How many of its *total* lines had not, in the width that it had."""
    total: int = 0
    """0 where that is not known any more."""

    @property
    def run_id(self) -> str:
        return self.item.approval.run_id if self.item.approval is not None else ""


class DecisionScreens:
    """The newest screens in which a call was decided."""

    def __init__(self) -> None:
        self._screens: deque[DecisionScreen] = deque()
        self._weight = 0

    def add(self, screen: DecisionScreen) -> None:
        """Keep *screen*; the oldest go where they are too many, or hold too much."""
        self._screens.append(screen)
        self._weight += foreign_size(screen.item.approval)
        while len(self._screens) > 1 and (
            len(self._screens) > SCREENS_KEPT or self._weight > CHARACTERS_KEPT
        ):
            self._weight -= foreign_size(self._screens.popleft().item.approval)

    def find(self, run_id: str | None, at: float) -> DecisionScreen | None:
        """Return the last screen in which *run_id* was decided before *at*, epoch seconds."""
        if run_id is None:
            return None
        own = (each for each in reversed(self._screens) if each.run_id == run_id)
        return next((each for each in own if each.at < at + RECORDED_SECONDS), None)
