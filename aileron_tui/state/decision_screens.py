"""The screens in which a person decided, the newest 200, kept for as long as this console runs.

A screen holds what was fetched for the approver alone. It is kept in memory: in a file every program
of the same account could read it. What the core keeps sealed comes with the call (`CallView.screens`).
"""

from collections import deque
from dataclasses import dataclass

from aileron_tui.draw.context import Section
from aileron_tui.items import Item
from aileron_tui.state.document_cache import foreign_size
from aileron_tui.state.reading_progress import ReadingProgress

SCREENS_KEPT = 200
CHARACTERS_KEPT = 16_000_000
"""Text of all kept screens together; the last one is kept however large it is."""

RECORDED_SECONDS = 0.001
"""Times on record hold no parts of a millisecond: one is up to so much before its moment."""


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
