"""Two sequences compared, in bounded time: a hostile text must not make the screen stand still."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

__all__ = ["BoundedDiff", "Opcode"]

WORK = 50_000_000
"""Steps in all, at the worst: half a second. Honest drafts of a thousand lines stay far below."""

Opcode: TypeAlias = tuple[str, int, int, int, int]
"""As `difflib` has it: what is done, and the ranges `[start, end)` of the old and the new."""


class BoundedDiff:
    """Compares several pairs of sequences until its work is used up; then each is one replacement.

    `difflib` takes time with the number of equal pairs times the number of blocks between them:
    2,000 lines of two kinds took 43 s.
    """

    def __init__(self, work: int = WORK) -> None:
        self._left = work

    def opcodes(self, old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
        """Return how *old* becomes *new*."""
        counts = Counter(old)
        pairs = sum(counts[each] * times for each, times in Counter(new).items())
        work = pairs * min(len(old), len(new))
        if work > self._left:
            return [("replace", 0, len(old), 0, len(new))]
        self._left -= work
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
