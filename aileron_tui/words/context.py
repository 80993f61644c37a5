"""The words around a call: who asks, what its session did before, how equal calls were answered."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aileron_core.containment.detection import Containment

WHO_ASKS: Final = "WHO ASKS"
BY_KERNEL: Final = "confirmed by the kernel"
BY_LAUNCHER: Final = "according to its launcher"
ITS_OWN_WORDS: Final = "the agent's words; not checked"
NOT_CHECKED: Final = "not checked"
RECENT_RUNS: Final = "EARLIER CALLS"
NEWEST_FIRST: Final = "of this session, newest first"
NOTHING_BEFORE: Final = "none in this session"
EQUAL_CALLS: Final = "SAME ACTION"
NO_EQUAL_CALLS: Final = "none in the last 200 decisions"
LAST_DECISIONS: Final = "in the last 200 decisions"
CONTAINMENT: Final[Mapping[Containment, str]] = MappingProxyType(
    {
        "verified": "yes",
        "other_user": "runs as another user",
        "claimed": "unverified",
        "none": "no: it can do what your account can",
    }
)
REACHES: Final[Mapping[str, str]] = MappingProxyType(
    {"all": "the whole network", "offline": "no network (offline)"}
)
"""By what its launcher reported."""
REQUESTER_GONE: Final = "the agent's session has ended"


def more_hosts(count: int) -> str:
    """Return how many hosts there are besides one that is named; empty for none."""
    return f" and {count} more" if count else ""


def times_asked(count: int) -> str:
    """Return how often the same call was asked for."""
    return f"{count} times"


def stopped_waiting(at: str) -> str:
    return f"stopped waiting at {at}"


def approved(count: int, median: str) -> str:
    return f"{count} approved, median wait {median}"


def denied(count: int) -> str:
    return f"{count} denied"


def ended(count: int, outcome: str) -> str:
    """Return how many equal calls ended without a person."""
    return f"{count} {outcome}"


def more_lines(count: int) -> str:
    return f"▾ {count} more {'line' if count == 1 else 'lines'}"
