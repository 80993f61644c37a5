"""What a person asks about grants: what can be granted, what it would let through, what counts now, its end.

What a new grant or rule would let through is tried on what the person answered before.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from aileron_core import tasks
from aileron_core.actions.model import Action, is_builtin
from aileron_core.audit.events import AuditEvent
from aileron_core.console.records import ConsoleRecords
from aileron_core.console_port.events import (
    CoreEvent,
    GrantEnded,
    OffersRead,
    ShapeTried,
    StandingUpdated,
)
from aileron_core.console_port.intents import (
    EndGrant,
    ReadOffers,
    ReadStanding,
    StandingIntent,
    TryShape,
)
from aileron_core.console_port.standing import FieldTest, FieldTests, PastCall, TriedShape
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.containment.detection import SEEN_CONTAINED
from aileron_core.errors import AileronError, Conflict, NotFound
from aileron_core.events import EventBus
from aileron_core.history.sealed_screens import PastScreen, SealedScreens
from aileron_core.history.sealing import CannotUnseal
from aileron_core.library.home_library import HomeLibrary
from aileron_core.policy.action_rules import judge, rules_about
from aileron_core.policy.model import ActionRule
from aileron_core.policy.shapes import is_well_formed, misfits
from aileron_core.policy.values import values_of
from aileron_core.runs.grants import Grant
from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.standing import StandingAnswers

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantCommands:
    """Carries out a person's intents about grants, and tells the front ends what counts."""

    events: EventBus[CoreEvent]
    registry: RunRegistry
    standing: StandingAnswers
    rules: Sequence[ActionRule]
    """Of `policy.toml`, accepted or not."""
    records: ConsoleRecords
    past: PastAnswers
    pause: PauseSwitch

    def updated(self) -> StandingUpdated:
        """Return the grants and the rules as they are now."""
        views = [grant.view for grant in self.standing.grants]
        if self.pause.is_on:
            views = [replace(each, rests=each.rests or "all calls are on hold") for each in views]
        return StandingUpdated(
            grants=tuple(views),
            rules=self.standing.rule_views(self.rules),
        )

    def listed(self) -> StandingUpdated:
        """Return what `updated` does for a command: what tests compare with was fetched for the person alone."""
        found = self.updated()
        bare = (
            replace(each, tests=tuple((key, FieldTest(test.name)) for key, test in each.tests))
            for each in found.grants
        )
        return replace(found, grants=tuple(bare))

    def changed(self) -> None:
        self.events.publish(self.updated())

    def ended(self, grant: Grant, why: str) -> None:
        """Tell the front ends and the record that a grant has ended."""
        self.events.publish(GrantEnded(grant_id=grant.view.grant_id, why=why))
        extra = {"grant": grant.view.grant_id, "used": grant.view.used}
        tasks.spawn(
            self.records.record(
                AuditEvent.GRANT_ENDED, f"The {grant.name} ended: {why}", extra=extra
            ),
            name=f"record the end of {grant.name}",
        )

    async def sweep(self) -> None:
        """End the grants whose time or uses are over. Called twice a second."""
        self.standing.grants.sweep()

    def library_changed(self, library: HomeLibrary) -> None:
        """End the grants whose action is not what it was; rules may count now that did not."""

        def is_changed(grant: Grant) -> bool:
            if is_builtin(grant.view.action):
                return False
            name = grant.view.action
            with suppress(AileronError):
                return library.find(name).action.sha256 != grant.binding[0]
            with suppress(AileronError):  # it may be an op of a connector, which has no file
                return library.find_op(name).action.sha256 != grant.binding[0]
            return True

        self.standing.grants.end_where(is_changed, "its action has changed")
        self.changed()

    async def carry_out(self, intent: StandingIntent) -> None:
        """Carry out *intent*, and publish what answers it.

        Raises:
            NotFound: there is no such call or grant in this console.
        """
        match intent:
            case ReadOffers():
                offers = self.standing.offers(self._run(intent.approval_id))
                self.events.publish(OffersRead(offers=offers))
            case TryShape():
                tried = await self._try(self._run(intent.approval_id), intent.tests)
                self.events.publish(
                    ShapeTried(approval_id=intent.approval_id, tests=intent.tests, tried=tried)
                )
            case EndGrant():
                if not self.standing.grants.end(intent.grant_id, "a person ended it"):
                    raise NotFound(f"The grant {intent.grant_id} has ended already.")
            case ReadStanding():
                self.changed()

    async def try_rules(self, library: HomeLibrary) -> TriedShape:
        """Return which of a person's answers the rules would have given in their place."""
        actions = {each.name: each for each in library.ready()}

        def decides(view: ApprovalView) -> bool:
            if (action := actions.get(view.action)) is None:
                return False
            agent = "" if view.self_opened else view.agent
            contained = view.containment in SEEN_CONTAINED
            rules = rules_about(self.rules, action, agent=agent, contained=contained)
            verdict = judge(rules, action, values_of(action, view.arguments, view.preview))
            return verdict is not None and verdict.decision != "ask"

        found, looked_at, unread = await self.past.where(actions.keys(), decides)
        return TriedShape(
            misfits=(), cautions=(), looked_at=looked_at, matching=found, unread=unread
        )

    async def _try(self, run: LiveRun, tests: FieldTests) -> TriedShape:
        if run.resolved is None or run.row.args is None:
            raise Conflict("The call cannot run any more. Nothing was tried.")
        if not all(is_well_formed(test) for _, test in tests):
            raise Conflict("A test has values that it does not take. Nothing was tried.")
        matching, looked_at, unread = await self.past.matching(run.resolved.action, tests)
        return TriedShape(
            misfits=misfits(dict(tests), self.standing.values(run)),
            cautions=self.standing.cautions(run, tests),
            looked_at=looked_at,
            matching=matching,
            unread=unread,
        )

    def _run(self, approval_id: str) -> LiveRun:
        run = self.registry.by_approval(approval_id)
        if run is None:
            raise NotFound(f"No call {approval_id} waits in this console.")
        return run
