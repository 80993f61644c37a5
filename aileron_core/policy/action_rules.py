"""What the rules of a person's `policy.toml` say of a call of an action: deny over ask over allow. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from aileron_core.actions.model import Action
from aileron_core.policy.evaluate import because
from aileron_core.policy.model import ActionRule, Verdict
from aileron_core.policy.shapes import fits, is_like, misfits, restricts
from aileron_core.policy.values import ARGUMENT, FETCHED, Values, declared_keys

_WEB_ADDRESS: Final = re.compile(r"//|\bwww\.|[^\s.]\.[^\W\d_]{2,}[/?:#]", re.IGNORECASE)
_NAMING: Final = ("is", "only", "within")


def is_named(rule: ActionRule, action: str) -> bool:
    return is_like(rule.actions, action)


def rules_about(
    rules: Iterable[ActionRule], action: Action, *, agent: str, contained: bool
) -> tuple[ActionRule, ...]:
    """Return the rules that may say something of a call, whatever its arguments are.

    Args:
        rules: those in force.
        action: that is called.
        agent: the launcher's name for it; empty where the session opened itself, and only says what it is.
        contained: whether the agent was seen to be contained.
    """
    return tuple(
        rule
        for rule in rules
        if is_named(rule, action.name)
        and (not rule.effects or action.approval.effect in rule.effects)
        and (rule.contained is None or rule.contained == contained)
        # Who an agent says that it is takes it out of no rule that restricts, and into none that allows.
        and (not rule.agents or agent in rule.agents or (not agent and rule.decision != "allow"))
    )


def judge_arguments(rules: Sequence[ActionRule], action: Action, values: Values) -> Verdict | None:
    """Return what *rules* say by arguments alone, before anything is fetched; None: nothing, or it depends on what is.

    Args:
        rules: those about the call.
        action: that is called.
        values: of the call's arguments.
    """
    by_arguments = [rule for rule in rules if not is_over_fetched(rule)]
    return _restricting(by_arguments, values) or _web_address(rules, action, values)


def judge(rules: Sequence[ActionRule], action: Action, values: Values) -> Verdict | None:
    """Return what *rules* say of a call once its preview is there or could not be fetched; None: nothing.

    A rule that allows counts only beside what was fetched: an action without a preview is asked about, unless it only
    reads.
    """
    verdict = _restricting(rules, values) or _web_address(rules, action, values)
    if verdict is not None:
        return verdict
    why_not = ""
    for rule in rules:
        if rule.decision != "allow":
            continue
        missed = misfits(rule.where, values, is_open=rule.is_open)
        if not missed and (action.approval.preview is not None or action.approval.effect == "read"):
            return _verdict(rule, because(rule))
        why = "because the action has no preview"
        if missed:
            why = f"because of {', '.join(declared_keys(action, missed))}"
        why_not = why_not or f"{rule.source} does not allow it, {why}"
    return Verdict(decision="ask", reason=why_not) if why_not else None


def _web_address(rules: Sequence[ActionRule], action: Action, values: Values) -> Verdict | None:
    """Return that a read asks whose arguments hold a web address, which could carry data there.

    Where a rule allows such reads, one has to name the host.
    """
    allowing = [rule for rule in rules if rule.decision == "allow"]
    if not allowing or not action.is_read_only:
        return None
    for key, value in values.items():
        holds = value.status == "unreadable" or any(map(_WEB_ADDRESS.search, value.items))
        if key.startswith(ARGUMENT) and holds:
            tests = [rule.where[key] for rule in allowing if key in rule.where]
            if not any(test.name in _NAMING and fits(test, value) for test in tests):
                (name,) = declared_keys(action, (key,))
                reason = f"{name} may hold a web address, and no rule names its host"
                return Verdict(decision="ask", reason=reason)
    return None


def forbids_grants(rules: Iterable[ActionRule], values: Values) -> str:
    """Return the rule that keeps a call from a grant: one that says so, or that denies what it cannot read.

    Empty where none does.
    """
    found = (
        rule.source
        for rule in rules
        if (not rule.grants or rule.decision == "deny")
        and restricts(rule.where, values) is not False
    )
    return next(found, "")


def _restricting(rules: Sequence[ActionRule], values: Values) -> Verdict | None:
    unsure: Verdict | None = None
    for decision in ("deny", "ask"):
        for rule in rules:
            found = rule.decision == decision and restricts(rule.where, values)
            if found:
                return _verdict(rule, because(rule))
            if found is None and unsure is None:
                reason = f"a field that {rule.source} is about cannot be read"
                unsure = replace(_verdict(rule, reason), decision="ask")
    return unsure


def _verdict(rule: ActionRule, reason: str) -> Verdict:
    return Verdict(
        decision=rule.decision, reason=reason, source=rule.source, looked_at=tuple(rule.where)
    )


def is_over_fetched(rule: ActionRule) -> bool:
    """Return whether *rule* can be judged only beside what was fetched."""
    return any(key.startswith(FETCHED) for key in rule.where)
