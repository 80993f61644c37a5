"""What a person asks about grants: what can be granted, what it would let through, what counts now, its end."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from aileron_core import tasks
from aileron_core.actions.model import is_builtin
from aileron_core.audit.events import AuditEvent
from aileron_core.console.past_answers import PastAnswers
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
from aileron_core.console_port.standing import FieldTest, FieldTests, TriedShape
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.containment.detection import SEEN_CONTAINED
from aileron_core.errors import AileronError, Conflict, NotFound
from aileron_core.events import EventBus
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
