"""What answers a call in a person's place: rules of `policy.toml` and grants, over what is on the screen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from aileron_core.actions.model import Action
from aileron_core.canonical import JsonObject
from aileron_core.clock import Clock
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.standing import (
    MAX_GRANT_SECONDS,
    MAX_GRANT_USES,
    FieldTests,
    GrantTerms,
    OffersView,
    RuleView,
)
from aileron_core.errors import Conflict
from aileron_core.policy.action_rules import (
    forbids_grants,
    is_over_fetched,
    judge,
    judge_arguments,
    rules_about,
)
from aileron_core.policy.model import ActionRule, Verdict, limits_in_words
from aileron_core.policy.offers import (
    cautions,
    offered_fields,
    refusal,
    shapes_offered,
    why_no_grant,
)
from aileron_core.policy.shapes import restricts
from aileron_core.policy.values import (
    ARGUMENT,
    FETCHED,
    Values,
    argument_values,
    declared_keys,
    values_of,
)
from aileron_core.runs.grants import Grant, Grants
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.preview.resolve import argument_fields, resolve_fields
from aileron_core.sessions.model import Session

NO_RULE = "no rule"
"""What answered a call of an action that asks nobody, and that no rule asks about or denies."""


@dataclass(eq=False, kw_only=True)
class StandingAnswers:
    """Judges calls of actions by a person's rules and grants."""

    rules: Callable[[], Sequence[ActionRule]]
    """Those in force."""
    grants: Grants
    clock: Clock
    is_contained: Callable[[Session], bool]
    _used: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    """By rule, how many calls it answered in this console, and when the last."""
    _rests: dict[str, str] = field(default_factory=dict[str, str])
    """By run whose end a person has to look at, what answered it."""

    def judge(self, resolved: ResolvedAction, args: JsonObject, session: Session) -> ResolvedAction:
        """Return *resolved* with what the rules say of a call before anything is fetched."""
        action = resolved.action
        rules = self._about(action, session)
        if not rules:
            return resolved
        values = argument_values(action, argument_fields(action, args))
        verdict = judge_arguments(rules, action, values)
        later = [each for each in rules if each.decision != "allow" and is_over_fetched(each)]
        if verdict is None and later and not action.gated:
            reason = f"{later[0].source} is about what is fetched"
            verdict = Verdict(
                decision="ask", reason=reason, source=later[0].source, asks_nobody=True
            )
        if verdict is None:
            return resolved
        if not verdict.asks_nobody:
            self._count(verdict.source)
        gated = replace(action, approval=replace(action.approval, required=True))
        return replace(resolved, action=gated, verdict=verdict)

    def _about(self, action: Action, session: Session) -> tuple[ActionRule, ...]:
        agent = "" if session.self_opened else session.agent
        return rules_about(self.rules(), action, agent=agent, contained=self.is_contained(session))

    def try_once(self, run: LiveRun) -> bool:
        """Return whether a rule or a grant may answer *run* once it was fetched; from then on it is the person's."""
        was_tried, run.was_tried = run.was_tried, True
        if was_tried or run.resolved is None or run.is_builtin or run.account_choices:
            return False
        if run.row.progress is not None:
            return False
        rules = self._about(run.resolved.action, run.session)
        over_fetched = any(each.decision == "allow" or is_over_fetched(each) for each in rules)
        return over_fetched or self.grants.are_about(run)

    def denial(self, run: LiveRun) -> Verdict | None:
        """Return what denies *run* once it was fetched, or asks since a field of it cannot be read; None if nothing."""
        assert run.resolved is not None
        action, values = run.resolved.action, self.values(run)
        verdict = judge(self._about(action, run.session), action, values)
        if verdict is not None and verdict.decision == "deny":
            self._count(verdict.source)
            return verdict
        denial = self.grants.denial(action.name, run.session, values)
        if denial is None:
            return None
        if denial[1]:
            self.grants.note_denial(denial[0].name, run)
            return _by_grant(denial[0], action)
        reason = f"a field that {denial[0].name} is about cannot be read"
        return Verdict(decision="ask", reason=reason)

    def answer(self, run: LiveRun) -> Verdict:
        """Return what is said of *run* in a person's place; a use of the grant that allows it is reserved."""
        assert run.resolved is not None
        assert run.row.args is not None
        action = run.resolved.action
        rules, values = self._about(action, run.session), self.values(run)
        verdict = judge(rules, action, values)
        if (denial := self.denial(run)) is not None:
            return denial
        if verdict is not None and verdict.decision == "allow":
            if verdict.source in self._rests.values():
                reason = f"{verdict.source} rests until you look at how its last call ended"
                return Verdict(decision="ask", reason=reason)
            self._count(verdict.source)
            return verdict
        if not forbids_grants(rules, values):
            if (grant := self.grants.match(run, values)) is not None:
                return _by_grant(grant, action)
            left = verdict is None or not verdict.source
            nearly = self.grants.nearly(run, values) if left else None
            if nearly is not None:
                (key,) = declared_keys(action, (nearly[1],))
                reason = f"{nearly[0].name} does not answer this, because of {key}"
                return Verdict(decision="ask", reason=reason)
        return self._left(run, verdict)

    def _left(self, run: LiveRun, verdict: Verdict | None) -> Verdict:
        before = run.resolved.verdict if run.resolved is not None else None
        if verdict is None and before is not None and before.asks_nobody:
            return Verdict(decision="allow", reason="no rule asks about it", source=NO_RULE)
        counted = before is not None and not before.asks_nobody  # by its arguments alone
        if verdict is not None and not counted:
            self._count(verdict.source)
        return verdict or before or Verdict(decision="ask", reason="")

    def came_back(self, run: LiveRun) -> None:
        """End what a person granted beside *run*, which is no longer what they saw."""
        self.grants.end_where(
            lambda grant: grant.seen_run == run.row.run_id, "the call beside it waits again"
        )

    def offers(self, run: LiveRun) -> OffersView:
        """Return what a person may grant beside a yes to *run*."""
        about = run.row.approval_id or ""
        if run.resolved is None or run.row.args is None or run.preview.status == "fetching":
            return OffersView(approval_id=about, why_none="The call is still being looked at.")
        action, values = run.resolved.action, self.values(run)
        why = "A session that opened itself can have no grant." if run.session.self_opened else ""
        if run.row.progress is not None or not run.is_waiting:
            why = "The call has begun, or was answered."
        rules = self._about(action, run.session)
        why = why or why_no_grant(action, values, forbids_grants(rules, values))
        fields = offered_fields(action, values, self._shown(run))
        return OffersView(
            approval_id=about,
            fields=fields,
            offers=() if why else shapes_offered(action, values, fields),
            why_none=why,
            uses=5 if action.approval.effect == "send" else 20,
            can_span_sessions=not run.is_builtin,
        )

    def draw_up(self, run: LiveRun, terms: GrantTerms) -> Grant:
        """Return a grant beside an answer to *run*, which counts once it is added.

        Raises:
            Conflict: no such grant can be made.
        """
        offered = self.offers(run)
        why = ""
        if terms.decision == "allow":
            why = offered.why_none or refusal(offered.fields, terms.tests, self.values(run))
        elif terms.scope != "session":
            why = "A denial that stands is for its session."
        elif restricts(dict(terms.tests), self.values(run)) is not True:
            why = "This very call is not one of those that would be denied."
        if not (0 < terms.seconds <= MAX_GRANT_SECONDS and 0 < terms.uses <= MAX_GRANT_USES):
            why = why or "A grant lasts a day and 100 calls at most."
        if terms.scope == "project" and not offered.can_span_sessions:
            why = why or "A grant for a built-in tool ends with its session."
        if why:
            raise Conflict(f"{why} Nothing was decided.")
        return self.grants.draw_up(run, terms)

    def to_record(self, run: LiveRun, grant: Grant) -> JsonObject:
        """Return what the record of a person's answer to *run* says of the *grant* that they made with it."""
        assert run.resolved is not None
        return grant.to_record(run.resolved.action)

    def cautions(self, run: LiveRun, tests: FieldTests) -> tuple[str, ...]:
        """Return what a grant with *tests* beside *run* would let through, as sentences."""
        assert run.resolved is not None
        action = run.resolved.action
        fields = offered_fields(action, self.values(run), self._shown(run))
        return cautions(action, fields, tests)

    def _shown(self, run: LiveRun) -> dict[str, FieldView]:
        assert run.resolved is not None
        assert run.row.args is not None
        action = run.resolved.action
        names = {entry.label or entry.name: entry.name for entry in action.inputs}
        shown = argument_fields(action, run.row.args)
        found = {f"{ARGUMENT}{names.get(each.label, each.label)}": each for each in shown}
        preview = action.approval.preview
        if preview is not None and run.preview.status == "ready":
            fields = resolve_fields(preview, run.preview.output)
            found |= {f"{FETCHED}{each.label}": each for each in fields if not each.missing}
        return found

    def values(self, run: LiveRun) -> Values:
        """Return the values of *run* as they stand on the screen."""
        assert run.resolved is not None
        assert run.row.args is not None
        action, preview = run.resolved.action, run.preview
        arguments = argument_fields(action, run.row.args)
        if (
            run.is_builtin
        ):  # what is fetched is what a rehearsal changed: it is shown and kept, not compared
            return argument_values(action, arguments)
        shown, declared = PreviewView(status=preview.status), action.approval.preview
        if declared is not None and preview.status == "ready":
            shown = replace(shown, fields=resolve_fields(declared, preview.output))
        return values_of(action, arguments, shown)

    def still_holds(self, run: LiveRun) -> bool:
        """Return whether what answered *run* still does, as its effect is about to begin."""
        if run.answered_by.startswith("grant"):
            return self.grants.holds(run)
        return run.answered_by == NO_RULE or any(
            rule.source == run.answered_by for rule in self.rules()
        )

    def claim(self, run: LiveRun) -> None:
        """Take a use of the grant that allowed *run*, a call of a built-in tool, as it is about to begin.

        Raises:
            Conflict: it has ended meanwhile, or has no use left.
        """
        if run.answered_by.startswith("grant"):
            grant = self.grants.match(run, self.values(run))
            if grant is None or grant.name != run.answered_by:
                self.grants.release(run)
                raise Conflict(
                    f"{run.answered_by} does not allow this any more. Nothing ran. Call it again."
                )
            self.grants.spend(run)

    def follow(self, run: LiveRun) -> None:
        """Have what answered *run* rest where nobody knows how it ended, or it ended otherwise, until a person looked."""
        self.grants.follow(run)
        if run.answered_by and run.waits_to_be_looked_at:
            self._rests[run.row.run_id] = run.answered_by
        else:
            self._rests.pop(run.row.run_id, None)

    def _count(self, source: str) -> None:
        if source:
            self._used[source] = (self._used.get(source, (0, 0.0))[0] + 1, self.clock.now())
            self.grants.notify()

    def rule_views(self, rules: Sequence[ActionRule]) -> tuple[RuleView, ...]:
        """Return *rules* as a person sees them, with what they answered in this console."""
        in_force = {rule.source for rule in self.rules()}
        return tuple(
            RuleView(
                source=rule.source,
                decision=rule.decision,
                actions=rule.actions,
                limits=limits_in_words(rule),
                tests=tuple(rule.where.items()),
                is_open=rule.is_open,
                grants=rule.grants,
                used=self._used.get(rule.source, (0, 0.0))[0],
                last_used=self._used[rule.source][1] if rule.source in self._used else None,
                counts=rule.source in in_force,
            )
            for rule in rules
        )


def _by_grant(grant: Grant, action: Action) -> Verdict:
    looked_at = declared_keys(action, (key for key, _ in grant.view.tests))
    return Verdict(
        decision=grant.view.decision,
        reason=grant.reason,
        source=grant.name,
        looked_at=looked_at,
    )
