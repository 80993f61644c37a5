"""The words of grants and rules: when one ends, what it matches of the past, the list, what becomes of one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aileron_core.console_port.standing import GrantTerms, TestName, TriedShape
from aileron_tui.words.bars import counted

STATUS: Final = "Grants end with this console; rules stand in policy.toml."
NONE: Final = "No grants, and no rules for actions in policy.toml. Every gated call waits for you."
SHAPES: Final[Mapping[int, str]] = {
    1: "this very call", 2: "other text", 3: "what it reaches stays",
}  # fmt: skip
NO_GRANTS: Final = ", no grants"
OPEN: Final = ", any other arguments"
NOT_ACCEPTED: Final = ", not accepted"
FITS: Final = "FITS"
OTHERS_ABSENT: Final = "allowed if each field passes; any other must be absent"
OTHERS_ANY: Final = "about a call if each field passes; any other may be anything"
ANY_CALL: Final = "every call"
BOUND: Final = "to action file, connectors, hosts and accounts, as they were"
ANSWERED: Final = "ANSWERED"
NEWEST: Final = "enter opens the newest call, then older ones"
CANNOT_BE_RULE: Final = (
    "Not copied: a rule cannot hold a value of more than 400 characters, or more than 64 values."
)
OF_A_TOOL: Final = (
    "Not copied: rules for the built-in tools are written in another way (docs/rules.md)."
)
NO_GRANT: Final = "no grant is selected; a rule stands in policy.toml"
NO_CALLS: Final = "it has answered no call"


def count(grants: int, resting: int, rules: int) -> str:
    rest = f", {resting} at rest" if resting else ""
    return f"{counted(grants, 'grant')}{rest} · {counted(rules, 'rule')}"


def ends(at: str, uses: int | None, *, spans_sessions: bool) -> str:
    """Return when a grant ends; *uses*: how many are left, None where they do not end it."""
    session = "" if spans_sessions else ", with the session"
    after = "" if uses is None else f", or after {counted(uses, 'more call')}"
    return f"at {at}{session}{after}, whichever is first"


def copied(lines: int) -> str:
    return f"Copied {lines} lines for policy.toml. A rule has no end, and is for every session."


def ended(grant: str, why: str) -> str:
    return f"Grant {grant} ended: {why}."


TESTS: Final[Mapping[TestName, str]] = MappingProxyType(
    {"is": "stays", "at_most": "at most", "at_least": "at least"}
)
"""The tests that are not called here as in `policy.toml`."""
TRYING: Final = "still looking at what it would let through"


def time(seconds: float) -> str:
    hours = round(seconds / 3600)
    if not hours:
        return counted(round(seconds / 60), "minute")
    return counted(hours, "hour") if hours < 24 else counted(hours // 24, "day")


def would_end(terms: GrantTerms, *, can_span_sessions: bool) -> str:
    """Return when the offered grant would end, with the keys that change that."""
    text = f"in {time(terms.seconds)} (h), after {counted(terms.uses, 'call')} (u)"
    in_session = (
        "or with this session" if terms.scope == "session" else "in this project, any session"
    )
    return f"{text} {in_session}{' (s)' if can_span_sessions else ''}"


def past(tried: TriedShape) -> str:
    """Return how many answers of the past the shape matches."""
    matched, yes = len(tried.matching), sum(each.approved for each in tried.matching)
    text = f"{matched or 'none'} of your last {counted(tried.looked_at, 'answer')} would match"
    text += f": {yes} approved, {matched - yes} denied" if matched else ""
    text = text if tried.looked_at else "no answer of yours to compare with"
    return f"{text}; {tried.unread} could not be read" if tried.unread else text


def findings(denied: int, unseen: int) -> tuple[str, ...]:
    """Return what wants a second press: *denied* calls that the shape matches, *unseen* rows of the panel."""
    found = [f"You denied {counted(denied, 'call')} like this"] if denied else []
    return (
        (*found, f"{counted(unseen, 'field')} of this panel not seen") if unseen else tuple(found)
    )
