"""What the rules say of a call: deny over ask over allow, and ask where nothing matches."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from aileron_core.path_patterns import HiddenPaths, matches
from aileron_core.policy.model import (
    ANY_FURTHER_WORDS,
    COMMAND,
    WRITING,
    ActionRule,
    Facts,
    Rule,
    Verdict,
)

_GIT: Final = ".git"


def evaluate(rules: Sequence[Rule], facts: Facts) -> Verdict:
    """Return what *rules* say of the call that *facts* describe; the first of several equal rules gives the reason.

    A rule allows only what stays in the project: elsewhere a person is asked, with the place that it leads to. Of commands it allows a simple one whose program the session
    cannot change, or one by what its rehearsal changed: then that may be kept, and nothing may run.
    """
    for decision in ("deny", "ask"):
        if decision == "ask" and facts.outside:
            return Verdict(decision="ask", reason="it leads out of the project", about=facts.target)
        for rule in rules:
            if rule.decision == decision and (about := _restricted(rule, facts)) is not None:
                return Verdict(decision=decision, reason=because(rule), about=about, rule=rule)
    why_not: tuple[str, str] | None = None
    for rule in rules:
        if rule.decision == "allow" and _is_meant(rule, facts):
            why = _why_not_allowed(rule, facts) or _why_not_by_changes(rule, rules, facts)
            if why is None:
                by = "" if rule.changes is None else ", by what its rehearsal changed"
                return Verdict(decision="allow", reason=f"{because(rule)}{by}", rule=rule)
            why_not = why_not or why
    reason, about = why_not or (_nothing_allows(facts), "")
    before = facts if _may_allow_by_changes(rules, facts) else None
    return Verdict(decision="ask", reason=reason, about=about, before_rehearsal=before)


def hidden_paths(rules: Sequence[Rule], facts: Facts) -> tuple[str, ...]:
    """Return what a search by the call must leave out, for `path_patterns.HiddenPaths`.

    What a rule would ask about is left out too, unless that rule is about the call itself.
    """
    found: list[str] = []
    for rule in rules:
        asked = rule.decision == "ask" and _restricted(rule, facts) is not None
        if rule.decision != "allow" and not asked and facts.tool in rule.tools:
            # Only the first rule has exceptions: they take nothing back that a later one hides.
            found += _patterns(rule)
    return tuple(found)


def because(rule: Rule | ActionRule) -> str:
    """Return why *rule* says what it does, as a clause."""
    if rule.reason:
        return f"{rule.reason} ({rule.source})" if rule.source else rule.reason
    return f"{_SAYS[rule.decision]} {rule.source or 'a rule'}"


_SAYS = {"allow": "allowed by", "ask": "asked by", "deny": "denied by"}


def _nothing_allows(facts: Facts) -> str:
    if facts.tool == COMMAND:
        return "no rule allows this command"
    return "no rule allows this change" if facts.tool in WRITING else "no rule allows this"


def _restricted(rule: Rule, facts: Facts) -> str | None:
    """Return what of the call a rule that denies or asks is about, empty for the whole; None if it is not about it."""
    if facts.tool not in rule.tools:
        return None
    if rule.argv and not any(_are_words(rule.argv, words) for words in _spellings(facts)):
        return None
    if not rule.paths:
        return ""
    found = (path for path in facts.paths if _restricted_paths(rule).hides(path))
    path = next(found, None)
    return "" if path is not None and path == facts.path else path


@lru_cache
def _restricted_paths(rule: Rule) -> HiddenPaths:
    return HiddenPaths(_patterns(rule))


def _patterns(rule: Rule) -> tuple[str, ...]:
    return (*rule.paths, *(f"!{each}" for each in rule.except_paths))


def _spellings(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """Return the words of a simple command, and the same with its program's bare name."""
    if not facts.argv:
        return ()
    first, *rest = facts.argv
    names = dict.fromkeys(
        (first, facts.program, *(PurePosixPath(each).name for each in (first, facts.program)))
    )
    return tuple((name, *rest) for name in names if name)


def _are_words(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if pattern[-1] == ANY_FURTHER_WORDS:
        return words[: len(pattern) - 1] == pattern[:-1]
    return words == pattern


def _is_meant(rule: Rule, facts: Facts) -> bool:
    """Return whether a rule that allows is about the call, or would be if its command were a simple one."""
    if facts.tool not in rule.tools:
        return False
    if facts.tool == COMMAND:
        if rule.paths:  # which say nothing about what a command does
            return False
        if rule.changes is not None and not rule.argv:
            return True
        words = facts.argv if facts.simple else (*facts.command.split(),)
        pattern = rule.argv if facts.simple else (*_fixed_words(rule), ANY_FURTHER_WORDS)
        return bool(_fixed_words(rule)) and _are_words(pattern, words)
    path = facts.path
    if path is None or rule.argv or ".." in path.split("/"):
        return False
    return not rule.paths or any(matches(each, path, strict=True) for each in rule.paths)


def _fixed_words(rule: Rule) -> tuple[str, ...]:
    return rule.argv[:-1] if rule.argv[-1:] == (ANY_FURTHER_WORDS,) else rule.argv


def _why_not_allowed(rule: Rule, facts: Facts) -> tuple[str, str] | None:
    """Return why a rule that allows does not count for the call, and what that is about; None if it does."""
    if facts.tool != COMMAND or not rule.argv:
        return None
    name = rule.source or "a rule"
    if not facts.simple:
        syntax = "an expansion, redirection, assignment or operator"
        return f"{name} allows only literal words, and this command has {syntax}", ""
    if not facts.program.startswith("/"):
        return f"{name} does not count, because its program was not found", facts.argv[0]
    if facts.program_writable:
        return f"{name} does not count, because the session can write its program", facts.program
    return None


def _may_allow_by_changes(rules: Sequence[Rule], facts: Facts) -> bool:
    return facts.rehearsal is None and any(
        rule.changes is not None
        and rule.decision == "allow"
        and _is_meant(rule, facts)
        and _why_not_allowed(rule, facts) is None
        for rule in rules
    )


def _why_not_by_changes(rule: Rule, rules: Sequence[Rule], facts: Facts) -> tuple[str, str] | None:
    """Return why what the command changed is not what *rule* allows, and what that is about; None if it is."""
    if rule.changes is None:
        return None
    name, rehearsal = rule.source or "a rule", facts.rehearsal
    if rehearsal is None or not rehearsal.done:
        return f"{name} allows only what was rehearsed, and this command was not", ""
    for path in rehearsal.paths:
        if not _covers(rule.changes, path):
            return f"{name} does not allow everything that it changes", path
        for other in rules:
            if other.decision != "allow" and other.paths and _restricts_change(other, path, facts):
                return f"{name} does not count, because of what it changes: {because(other)}", path
    if rehearsal.own_changes:
        return f"{name} does not allow changes of the sandbox's own home and caches", ""
    return None


def _covers(patterns: tuple[str, ...], path: str) -> bool:
    """Return whether one of *patterns* means *path*; what is git's only one that names `.git`."""
    if path.startswith("/"):
        return False
    if _GIT in path.casefold().split("/"):
        patterns = tuple(each for each in patterns if _GIT in each.split("/"))
    return any(matches(each, path, strict=True) for each in patterns)


def _restricts_change(rule: Rule, path: str, facts: Facts) -> bool:
    """Return whether a rule that denies or asks is about a change of *path*, by a command or a tool that writes."""
    if not {COMMAND, *WRITING} & {*rule.tools}:
        return False
    changed = replace(facts, path=None, named=(path,))
    return _restricted(replace(rule, tools=(COMMAND,)), changed) is not None
