"""What a person answered before: what a new grant or rule would have answered in their place is tried on it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from aileron_core.actions.model import Action
from aileron_core.console_port.standing import FieldTests, PastCall
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.history.sealed_screens import PastScreen, SealedScreens
from aileron_core.history.sealing import CannotUnseal
from aileron_core.policy.shapes import misfits
from aileron_core.policy.values import values_of

MOST: Final = 500
Tried: TypeAlias = tuple[tuple[PastCall, ...], int, int]
"""The answers that match, denied ones first; how many were looked at; how many of them could not be read."""


@dataclass(eq=False, kw_only=True)
class PastAnswers:
    """The newest answers: of the sealed screens while the vault is open, else of this console."""

    screens: SealedScreens
    is_open: Callable[[], bool]
    """Whether the sealed screens can be read."""
    _own: deque[tuple[PastCall, ApprovalView]] = field(default_factory=lambda: deque(maxlen=MOST))
    _read: dict[tuple[str, float], ApprovalView] = field(
        default_factory=dict[tuple[str, float], ApprovalView]
    )
    """Sealed screens that were opened; empty once the vault is locked."""

    def forget(self) -> None:
        """Forget what was unsealed; called when the vault was locked."""
        self._read = {}

    def note(self, view: ApprovalView, at: float, *, approved: bool, reason: str) -> None:
        """Take note of a person's answer to *view*."""
        self._own.append((_past(view, view.run_id, at, approved=approved, reason=reason), view))

    async def matching(self, action: Action, tests: FieldTests) -> Tried:
        """Return what a grant with *tests* for *action* would have answered."""
        shape = dict(tests)

        def matches(view: ApprovalView) -> bool:
            return not misfits(shape, values_of(action, view.arguments, view.preview))

        return await self.where({action.name}, matches)

    async def where(
        self, actions: AbstractSet[str], matches: Callable[[ApprovalView], bool]
    ) -> Tried:
        """Return the answers to calls of *actions* for which *matches* says so."""
        if not self.is_open():
            own = [each for each in self._own if each[1].action in actions]
            return await asyncio.to_thread(_tried, own, len(self._own), 0, matches)
        kept = await self.screens.newest(MOST)
        there = {(each.run_id, each.at) for each in kept}
        self._read = {key: view for key, view in self._read.items() if key in there}
        meant = [each for each in kept if each.action in actions]
        opened = await asyncio.to_thread(lambda: list(self._opened(meant)))
        return await asyncio.to_thread(_tried, opened, len(kept), len(meant) - len(opened), matches)

    def _opened(self, screens: Sequence[PastScreen]) -> Iterator[tuple[PastCall, ApprovalView]]:
        for each in screens:
            key = each.run_id, each.at
            with suppress(CannotUnseal):
                view = self._read.get(key) or self.screens.open(each)
                self._read[key] = view
                call = _past(view, each.run_id, each.at, approved=each.approved, reason=each.reason)
                yield call, view


def _past(view: ApprovalView, run_id: str, at: float, *, approved: bool, reason: str) -> PastCall:
    shown = (f"{each.label}: {each.value}" for each in view.arguments)
    what = view.preview.gist or next(shown, view.title)
    return PastCall(run_id=run_id, at=at, approved=approved, what=what, reason=reason)


def _tried(
    answers: Sequence[tuple[PastCall, ApprovalView]],
    looked_at: int,
    unread: int,
    matches: Callable[[ApprovalView], bool],
) -> Tried:
    found = [call for call, view in answers if matches(view)]
    return tuple(sorted(found, key=lambda each: (each.approved, -each.at))), looked_at, unread
