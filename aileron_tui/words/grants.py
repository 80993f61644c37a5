"""The words of grants: the panel that makes one, and how one ends."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aileron_core.console_port.standing import GrantScope, TestName
from aileron_tui.words.bars import counted

TITLE: Final = "ANSWER LATER CALLS LIKE THIS"
LOOKING: Final = "Looking at what can be granted …"
SHAPES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "this very call", 2: "other text", 3: "what it reaches stays"}
)
TESTS: Final[Mapping[TestName, str]] = MappingProxyType(
    {"is": "stays", "at_most": "at most", "at_least": "at least"}
)
"""The tests that are not called here as in `policy.toml`."""
FETCHED: Final = "fetched"
AGENTS: Final = "agent's"
REACH: Final = "reach"
ABSENT_NOW: Final = "(absent now)"
TRYING: Final = "still looking at what it would let through"
CHANGED: Final = "the call has changed since this panel opened"
APPROVES: Final = "approve it and such calls"
NOT_OFFERED: Final = "that shape is not offered for this call"
ENDS_WITH_SESSION: Final = "a grant for a built-in tool ends with its session"
STAYS: Final = "this field stays as it is"
NO_VALUE: Final = "no value was typed"
NO_NUMBER: Final = "type one number, such as 100 or 9.50"


def test(name: TestName) -> str:
    return TESTS.get(name, name)


def time(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 24:
        return counted(round(hours / 24), "day")
    return counted(round(hours), "hour") if hours >= 1 else f"{round(seconds / 60)} minutes"


def ends(seconds: float, uses: int, scope: GrantScope, keys: tuple[str, str, str]) -> str:
    """Return when the grant ends, with the keys that change that; the last is empty where nothing else is offered."""
    in_time, after = f"in {time(seconds)} ({keys[0]})", f"after {counted(uses, 'call')} ({keys[1]})"
    other = f" ({keys[2]})" if keys[2] else ""
    if scope == "session":
        return f"{in_time}, {after} or with this session{other}"
    return f"{in_time} or {after}; for this project and agent, in any session{other}"


def past(looked_at: int, approved: int, denied: int, unread: int) -> str:
    """Return how many answers of the past the shape matches."""
    sealed = f"; {unread} could not be read" if unread else ""
    if not looked_at:
        return f"no answer of yours to compare with{sealed}"
    matched = f"{approved + denied} of your last {counted(looked_at, 'answer')} match"
    if not approved + denied:
        return f"none of your last {counted(looked_at, 'answer')} matches{sealed}"
    return f"{matched}: {approved} approved, {denied} denied{sealed}"


def more_denied(count: int) -> str:
    return f"and {count} more that you denied"


def denied_before(count: int) -> str:
    return f"You denied {counted(count, 'call')} like this"


def rows_unseen(count: int) -> str:
    return f"{counted(count, 'field')} of this panel not seen"


def more_rows(above: int, below: int) -> str:
    parts = [f"▴ {above} above"] if above else []
    return "  ".join([*parts, *([f"▾ {below} below"] if below else [])])


def misfits(labels: str) -> str:
    return f"this very call does not match: {labels}"


def matches(key: str) -> str:
    return f"Matches this call. {key} approves it; later matches run without asking."


def and_such(phrase: str) -> str:
    return f"{phrase}, and such calls without asking"


def more_lines(count: int) -> str:
    return f"… {count} more lines"


def edits(label: str, name: TestName) -> tuple[str, str]:
    """Return what is asked where the values of a test are written, and how they are written."""
    if name == "plain":
        return f"{label}: text of at most how many characters?", "Without links and hidden text."
    if name in ("at_most", "at_least"):
        return f"{label}: {test(name)}", "A number."
    if name == "within":
        how = "Domains, addresses or folders, separated by commas; *.a.example: below a.example."
        return f"{label}: within", how
    return f"{label}: only", "Values, separated by commas; * stands for any characters."


def not_a_size(most: int) -> str:
    return f"type a number of characters, at most {most:,}"


def ended(grant_id: str, why: str) -> str:
    return f"Grant {grant_id} ended: {why}."


# A denial that stands


WITH: Final = " with"
WHATEVER: Final = ", whatever it is given"


def stands(seconds: float) -> str:
    """Return what stands before the calls that are denied too."""
    return f"Also denied in this session, for {time(seconds)}:"
