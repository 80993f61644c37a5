"""What another `policy.toml` allows that the accepted one does not, and what else differs. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from aileron_core.console_port.file_views import AcceptanceChangeView, ChangeKind
from aileron_core.errors import FileProblems
from aileron_core.policy.model import Decision, Rule
from aileron_core.policy.policy_file import parse_policy

_KINDS: dict[Decision, ChangeKind] = {
    "allow": "rule_allows",
    "ask": "rule_asks",
    "deny": "rule_denies",
}


def compare_policies(old: str, new: str) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two `policy.toml`, what allows more first.

    Raises:
        ValueError: one of them cannot be read.
    """
    try:
        before, after = parse_policy(old), parse_policy(new)
    except FileProblems as error:
        raise ValueError(str(error)) from error
    found = [
        *_rules(before.rules, after.rules),
        *_exceptions(before.secret_exceptions, after.secret_exceptions),
    ]
    if not found and old != new:
        found = [AcceptanceChangeView(kind="text", direction="other", name="reasons or comments")]
    return tuple(sorted(found, key=lambda each: each.direction != "wider"))


def _rules(before: Sequence[Rule], after: Sequence[Rule]) -> Iterator[AcceptanceChangeView]:
    for rule in _new(before, after):
        direction = "wider" if rule.decision == "allow" else "narrower"
        kind = _KINDS[rule.decision]
        yield AcceptanceChangeView(kind=kind, direction=direction, after=rule_text(rule))
    for rule in _new(after, before):
        direction = "narrower" if rule.decision == "allow" else "wider"
        kind = _KINDS[rule.decision]
        yield AcceptanceChangeView(kind=kind, direction=direction, before=rule_text(rule))


def _new(before: Sequence[Rule], after: Sequence[Rule]) -> Iterable[Rule]:
    """Return the rules of *after* that *before* has not, whatever their reasons."""
    known, found = (
        {replace(each, reason="", source=""): each for each in x} for x in (before, after)
    )
    return (rule for key, rule in found.items() if key not in known)


def _exceptions(before: Sequence[str], after: Sequence[str]) -> Iterator[AcceptanceChangeView]:
    kind: ChangeKind = "secret_except"
    for pattern in sorted({*after} - {*before}):
        yield AcceptanceChangeView(kind=kind, direction="wider", after=pattern)
    for pattern in sorted({*before} - {*after}):
        yield AcceptanceChangeView(kind=kind, direction="narrower", before=pattern)


def rule_text(rule: Rule) -> str:
    """Return what a rule is about, in one line: its tools, its paths or command, and its changes."""
    about = (
        [*map(repr, rule.argv)]
        if any(" " in word or not word for word in rule.argv)
        else [*rule.argv]
    )
    words = ", for ".join(filter(None, (" ".join(about), ", ".join(rule.paths))))
    tools = ", ".join(rule.tools)
    text = f"{tools}: {words}" if words else tools
    if rule.changes is None:
        return text
    return (
        f"{text}, if it changes {'only ' + ', '.join(rule.changes) if rule.changes else 'nothing'}"
    )
