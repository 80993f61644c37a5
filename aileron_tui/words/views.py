"""The words of activity, audit, actions and sessions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aileron_core.console_port import Containment

NAME: Final = "aileron"
VIEWS: Final = {
    "waiting": "Waiting",
    "activity": "Activity",
    "audit": "Audit",
    "library": "Actions",
    "sessions": "Sessions",
}
ACTORS: Final = {"person": "you", "agent": "agent", "aileron": "aileron"}
NO_RECORDS: Final = "Nothing is on record yet."
ACTIVITY_REMARK: Final = "Newest first."

# Activity
GLYPHS: Final = {"changed": "▲", "refused": "✗"}
STATES: Final = {"pending": "waiting", "changed": "changed", "refused": "refused"}
OTHER: Final = "·"
SO_FAR: Final = "SO FAR"
SO_FAR_REMARK: Final = "what is on record of it, oldest first"
YOU_SAID: Final = "you: "
ITS_FILE_ASKS: Final = "its action file asks"

IS_NOW: Final = "HOW IT IS NOW"
LOOKING_AGAIN: Final = "Looking again …"

# Audit
VERIFYING: Final = "verifying …"
NOT_VERIFIED: Final = "not verified since the console started"
READING: Final = "reading …"
NO_RECORD: Final = "✗ no such record"
WHAT: Final = "WHAT"
WHAT_REMARK: Final = "as the record says it"
CHAIN: Final = "CHAIN"
CHAIN_REMARK: Final = "each record's hash covers the one before it"
SCREEN: Final = "SCREEN"
SCREEN_KEPT: Final = "kept as you saw it when you decided, until this console ends"
SCREEN_NOT_KEPT: Final = (
    "not kept: only the console in which a person decided has it, until it ends"
)
AS_SEEN: Final = "This is what you saw when you decided. Nothing is decided here."
AS_STORED: Final = "AS STORED"
AS_STORED_REMARK: Final = "the text that the hash was made from"

# Actions and connectors
LIBRARY_STATES: Final = {
    "ready": "ready",
    "cannot_run": "cannot run",
    "held_back": "not accepted",
    "error": "in error",
}
LIBRARY_GLYPHS: Final = {"ready": "●", "cannot_run": "✗", "held_back": "▲", "error": "!"}
LIBRARY_STATUS: Final = "What lies in the home. Agents see what is ready, nothing else."
NO_LIBRARY: Final = "No action lies in the home. `aileron action add` adds one."
FILE_REMARK: Final = "as Aileron read it from this machine"
PROBLEMS: Final = "PROBLEMS"
ASKS: Final = "asks you"
RUNS_FREE: Final = "▲ runs free"
NO_HOST: Final = "no host"
NOT_KNOWN: Final = "not known as long as it is in error"
ACCEPTED: Final = "accepted "
NOT_ACCEPTED: Final = "nobody accepted it"

# Sessions
CONNECTED: Final = "connected"
NOT_CONNECTED: Final = "not connected"
YES: Final = "yes"
NO: Final = "no"
CONTAINMENT_SHORT: Final[Mapping[Containment, str]] = MappingProxyType(
    {"verified": YES, "other_user": "other user", "claimed": "said to be", "none": f"▲ {NO}"}
)
UNCONTAINED: Final = "nothing contains it: it can do what your account can, past Aileron as well"
ONLY_CLAIMED: Final = "said to be contained; Aileron has not seen every process of it in a sandbox"
OTHER_USER: Final = "its processes are another user's: it can do what that account can"
SEEN: Final = "SEEN"
SEEN_REMARK: Final = "by the kernel, when it was opened"
SEEN_NOTHING: Final = "nothing: no kernel told who opened it"
CLAIMS: Final = "CLAIMED"
CLAIMS_REMARK: Final = "what the agent says of itself; not checked"
NO_CLAIMS: Final = "its client said nothing of itself"
MODEL: Final = "MODEL"
MODEL_REMARK: Final = "what passed the gateway, in numbers; contents are not looked at"
NO_MODEL: Final = "nothing passed the gateway yet"
NO_ANSWER: Final = "no answer"
SESSIONS_STATUS: Final = "Who is at work. What an agent says of itself is a claim."
NO_SESSIONS: Final = "No agent is at work. `aileron launch` starts one."


def last_hour(*, calls: int, free: int, approved: int, denied: int, median: str) -> tuple[str, ...]:
    """Return what the last hour was like, in parts of which the last are the least."""
    if not calls:
        return ("No call in the last hour",)
    parts = [f"{calls} {'call' if calls == 1 else 'calls'} in the last hour"]
    parts += [f"{free} not gated"] if free else []
    parts += [f"{approved} approved by you"] if approved else []
    parts += [f"{denied} denied"] if denied else []
    parts += [f"median wait {median}"] if median else []
    return tuple(parts)


def read_after(at: str) -> str:
    """Return when it was looked at again, after the end."""
    return f"as it was read at {at}, after the end"


def not_gated(seconds: float) -> str:
    """Return why a call ran without a person, and how long it took."""
    took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"not gated · {took}"


def you(waited: str) -> str:
    """Return that a person decided, and how long that took."""
    return f"you, {waited}"


def new_above(count: int, key: str) -> str:
    """Return how many rows came in above the one that is read."""
    return f"{count} new above, {key} follows."


def records(count: int) -> str:
    """Return how many records there are."""
    return f"{count:,} {'record' if count == 1 else 'records'}"


def record(number: int) -> str:
    """Return the name of one record."""
    return f"Record {number:,}"


def as_shown(at: str, unseen: int, total: int) -> str:
    """Return that a screen is not live, and how much of it had been read."""
    unread = f", {unseen} of {total} lines unread" if unseen else ""
    return f"as shown at {at}, not live{unread}"


def sound(count: int) -> str:
    """Return what verifying found where all is well."""
    return f"{records(count)}, no gap, chain verified"


def problems(count: int) -> str:
    """Return how many problems there are."""
    return f"{count} {'problem' if count == 1 else 'problems'}"


def more_problems(count: int) -> str:
    """Return how many problems there is no room for, and what lists them."""
    return f"and {count} more; `aileron audit verify` lists them all"


def looked_through(looked: int, total: int) -> str:
    """Return how far a filter has looked."""
    return f"in the newest {looked:,} of {total:,} records; further down it reads on."


def sessions(count: int, connected: int) -> str:
    """Return how many sessions are open, and how many of them are connected."""
    noun = "session" if count == 1 else "sessions"
    return f"{count} {noun} open, {connected} connected"


def uncontained(count: int) -> str:
    """Return how many sessions nothing contains."""
    return f"{count} not contained"


def only_claimed(count: int) -> str:
    """Return how many sessions are contained by somebody's word alone."""
    return f"{count} said to be contained"


def self_declared(self_opened: bool) -> str:
    """Return who says who it is, where no kernel does."""
    return "it opened its session itself" if self_opened else "its launcher says so"


def passed(requests: int, in_flight: int) -> str:
    """Return how many model requests there were, and how many are under way."""
    return f"{requests:,}, {in_flight} under way" if in_flight else f"{requests:,}"


def size(count: int) -> str:
    """Return *count* bytes in the unit that a person reads."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:,.1f} MB"


def faults(count: int) -> str:
    """Return how many requests Aileron itself answered with an error."""
    return f"▲ {count:,} answered with an error of Aileron's own"


def exported(count: int) -> str:
    """Return the report of a copy of the audit, before its path."""
    return f"{records(count)} in"


def audit_head(words: tuple[str, str]) -> str:
    """Return the head of the audit in two words."""
    return f"Head of the audit: {words[0]} · {words[1]}."
