"""The words of grants: when one ends, what it matches of the past."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aileron_core.console_port.standing import GrantTerms, TestName, TriedShape
from aileron_tui.words.bars import counted

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


def ends(terms: GrantTerms, *, can_span_sessions: bool) -> str:
    """Return when the grant ends, with the keys that change that."""
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
