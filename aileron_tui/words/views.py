"""The words of activity, audit, actions and sessions, and of their filters."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from aileron_core.console_port.view_models import UnreadReason
from aileron_core.containment.detection import Containment
from aileron_core.text import escape

NAME: Final = "aileron"
_STANDING: Final = re.compile(r"policy\.toml(:[0-9]{1,6})?|grant [gd][0-9]{1,6}")
"""The names of what answers calls in a person's place."""
VIEWS: Final = {
    "waiting": "Waiting",
    "activity": "Activity",
    "audit": "Audit",
    "library": "Actions",
    "sessions": "Sessions",
    "rules": "Rules",
}
ACTORS: Final = {"person": "you", "agent": "agent", "aileron": "aileron"}
NO_RECORDS: Final = "No records yet."
ACTIVITY_REMARK: Final = "Newest first."

# Activity
GLYPHS: Final = {"changed": "▲", "refused": "✗"}
STATES: Final = {
    "pending": "waiting",
    "changed": "changed",
    "refused": "refused",
    "settled": "settled",
}
OTHER: Final = "·"
HISTORY: Final = "HISTORY"
HISTORY_REMARK: Final = "every record, oldest first"
ITS_FILE_ASKS: Final = "its action file asks you"
ITS_WORD_IS_ASK: Final = "its word is ask"

IS_NOW: Final = "HOW IT IS NOW"
LOOKING_AGAIN: Final = "Looking again …"

# Audit
VERIFYING: Final = "verifying …"
NOT_VERIFIED: Final = "not verified since the console started"
LAYING_OUT: Final = "Preparing the page …"
READING: Final = "reading …"
NO_RECORD: Final = "✗ no such record"
WHAT: Final = "WHAT"
WHAT_REMARK: Final = "from the record"
CHAIN: Final = "CHAIN"
CHAIN_REMARK: Final = "each record's hash covers the one before it"
SEALED_ROW: Final = "sealed until the vault is unlocked"
UNLOCK_TO_READ: Final = "Unlock the vault to read it."
"""How the core's sentence on contents ends where that is all that is needed."""
NOT_KEPT_ROW: Final = "no longer kept"
EDITED_ROW: Final = "▲ changed by another program"
SHOWN_NOT_KEPT: Final = "Not kept: what was shown stays only in the memory of the console where it was decided, until it closes."
NOTHING_SHOWN: Final = "Nothing: the action is not gated, so you were not asked."
FORGOTTEN: Final = "no longer kept; the audit has its hash"
EDITED: Final = (
    "▲ Another program changed this call in the database: what is below may not be what happened. "
    "Run `aileron audit verify` for details."
)
AS_SEEN: Final = "This is what was shown at the decision. Nothing can be decided here."
AS_STORED: Final = "AS STORED"
AS_STORED_REMARK: Final = "the text that was hashed"

# Actions and connectors
LIBRARY_STATES: Final = {
    "ready": "ready",
    "cannot_run": "cannot run",
    "held_back": "not accepted",
    "error": "invalid",
}
LIBRARY_GLYPHS: Final = {"ready": "●", "cannot_run": "✗", "held_back": "▲", "error": "!"}
LIBRARY_STATUS: Final = "Everything installed. Agents see only what is ready."
REFUSED_HOSTS: Final = "Refused"
"""The label of hosts that a server wanted to reach and may not."""
NO_LIBRARY: Final = "No actions are installed. Add one with `aileron action add`."
FILE_REMARK: Final = "as Aileron read it from disk"
PROBLEMS: Final = "PROBLEMS"
NO_HOST: Final = "no host"
NOT_KNOWN: Final = "unknown until its errors are fixed"
ACCEPTED: Final = "accepted "
NOT_ACCEPTED: Final = "not accepted"

# Sessions
CONNECTED: Final = "connected"
NOT_CONNECTED: Final = "not connected"
YES: Final = "yes"
NO: Final = "no"
NOT_GATED: Final = f"▲ {NO}"
CONTAINMENT_SHORT: Final[Mapping[Containment, str]] = MappingProxyType(
    {"verified": YES, "other_user": "other user", "claimed": "unverified", "none": f"▲ {NO}"}
)
UNCONTAINED: Final = "not sandboxed: it can do whatever your account can, even without Aileron"
ONLY_CLAIMED: Final = (
    "reported as contained; Aileron could not confirm that all its processes are in a sandbox"
)
OTHER_USER: Final = "it runs as another user and can do whatever that account can"
SEEN: Final = "SEEN"
SEEN_REMARK: Final = "by the kernel, when the agent connected"
SEEN_NOTHING: Final = "nothing: the kernel did not report who connected"
CLAIMS: Final = "CLAIMED"
CLAIMS_REMARK: Final = "what the agent says about itself; not checked"
NO_CLAIMS: Final = "its client said nothing about itself"
MODEL: Final = "MODEL"
MODEL_REMARK: Final = "traffic through the gateway, counted; contents are not read"
MODEL_INSPECTED: Final = (
    "traffic through the gateway, counted; of its answers only the names of called tools are read"
)
MODEL_AUGMENTED: Final = (
    "requests and answers are read, and your actions are added to its tools (augment mode)"
)
AROUND: Final = "AROUND THE GATE"
AROUND_REMARK: Final = "what the model called; the agent may have refused it"
OWN_SERVERS: Final = "ITS OWN MCP SERVERS"
OWN_SERVERS_REMARK: Final = "that Aileron has too; what their tools do is not gated"
STARTS: Final = "Starts"
CALLED: Final = "Called"
WENT_AROUND: Final = "▲ went around"
TOOLS: Final = "Tools"
NO_TOOLS: Final = "no call seen since this console started"
UNREAD: Final = "Not read"
UNREAD_WHY: Final[Mapping[UnreadReason, str]] = MappingProxyType(
    {
        "busy": "faster than Aileron reads",
        "compressed": "compressed",
        "error": "too large, or not as its format says",
        "format": "a format that Aileron does not read",
        "websocket": "over a WebSocket",
    }
)
NO_MODEL: Final = "no traffic through the gateway yet"
WAITS_FOR_VAULT: Final = "▲ locked"
"""In the column of a session's model requests."""
MODEL_WAITS: Final = "▲ for the vault: model requests are refused until it is unlocked"
NO_ANSWER: Final = "no answer"
NETWORK: Final = "NETWORK"
NETWORK_REMARK: Final = "hosts that its sandbox refused; the names are the agent's"
ASKS_FOR: Final = "Asks for"
REFUSED_HOST: Final = "Refused"
ALLOWED_HOST: Final = "Allowed"
ALLOWED_BY_YOU: Final = "by you, until the session ends"
SESSIONS_STATUS: Final = "Connected agents. What an agent says about itself is not checked."
NO_SESSIONS: Final = "No agent is connected. Start one with `aileron launch`."


def last_hour(*, calls: int, free: int, approved: int, denied: int, median: str) -> tuple[str, ...]:
    """Return what the last hour was like, in parts of which the last are the least."""
    if not calls:
        return ("No calls in the last hour",)
    parts = [f"{calls} {'call' if calls == 1 else 'calls'} in the last hour"]
    parts += [f"median wait {median}"] if median else []
    parts += [f"{free} not gated"] if free else []
    parts += [f"{approved} approved"] if approved else []
    parts += [f"{denied} denied"] if denied else []
    return tuple(parts)


def last_hours(count: int) -> str:
    return f"last {count} h"


def searched_calls(looked: int, total: int, *, more: bool) -> str:
    if not more:
        return f"in all {total:,} calls"
    return f"in the newest {looked:,} of {total:,} calls; go down for more"


def unread_contents(sealed: int, not_kept: int) -> str:
    """Return of how many calls the contents could not be searched."""
    parts = [f"{sealed:,} sealed"] if sealed else []
    parts += [f"{not_kept:,} no longer kept"] if not_kept else []
    return f"; not searched: {', '.join(parts)}" if parts else ""


def went_around(count: int) -> str:
    return f"{count} went around the gate"


def called_around(tool: str) -> str:
    """Return what was seen of a tool that does not go through the gate, a clause; it may not have run."""
    return f"the model called {tool}, which does not go through the gate"


def other_names(count: int) -> str:
    """Return how many calls were of tools whose name is not kept."""
    return f"{count:,} by other names"


def read_after(at: str) -> str:
    return f"as fetched at {at}, after it ended"


def not_gated(seconds: float) -> str:
    """Return why a call ran without a person, and how long it took."""
    took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"not gated · {took}"


def asks_for_hosts(count: int) -> str:
    return f"{count} {'asks' if count == 1 else 'ask'} for a host"


def further_refusals(count: int) -> str:
    return f"and {count:,} more attempts to reach others, which are not listed here"


def by(actor: str, hand: str = "") -> str:
    """Return who or what did something: you only where that was in a console; *hand*: a person's, rendered."""
    if _STANDING.fullmatch(actor):
        return actor
    return hand if actor == "person" and is_elsewhere(hand) else ACTORS.get(actor, NAME)


THE_CONSOLE: Final = "the console"
"""How another hand names it."""


def is_elsewhere(hand: str) -> bool:
    """Return whether another hand than this console's decided; records of before hands name none."""
    return hand not in ("", "console")


def waited(by_whom: str, hand: str, time: str) -> str:
    """Return what or who decided, a person with which *hand*, and how long they took."""
    person = by_whom in ("", "person")
    return f"{by('person', hand)}, {time}" if person else by(by_whom)


def new_above(count: int, key: str) -> str:
    """Return how many rows came in above the one that is read."""
    return f"{count} new above; {key} jumps to the newest."


def records(count: int) -> str:
    return f"{count:,} {'record' if count == 1 else 'records'}"


def record(number: int) -> str:
    """Return the name of one record."""
    return f"Record {number:,}"


def as_shown(at: str, unseen: int, total: int) -> str:
    unread = f", {unseen} of {total} lines unread" if unseen else ""
    return f"as shown at {at}, not live{unread}"


def sound(count: int) -> str:
    """Return what verifying found where all is well."""
    return f"{records(count)}, no gaps, chain verified"


def problems(count: int) -> str:
    return f"{count} {'problem' if count == 1 else 'problems'}"


def more_problems(count: int) -> str:
    return f"and {count} more; `aileron audit verify` lists them all"


def looked_through(looked: int, total: int) -> str:
    return f"in the newest {looked:,} of {total:,} records; scroll down to search further."


def sessions(count: int, connected: int) -> str:
    noun = "session" if count == 1 else "sessions"
    return f"{count} {noun} open, {connected} connected"


def uncontained(count: int) -> str:
    return f"{count} not contained"


def waiting_for_vault(count: int) -> str:
    """Return how many sessions' model requests are refused until the vault is unlocked."""
    return f"{count} wait{'s' if count == 1 else ''} for the vault"


def only_claimed(count: int) -> str:
    return f"{count} unverified"


def self_declared(self_opened: bool) -> str:
    """Return who says who it is, where no kernel does."""
    return "it connected by itself" if self_opened else "according to its launcher"


def passed(requests: int, in_flight: int) -> str:
    return f"{requests:,}, {in_flight} under way" if in_flight else f"{requests:,}"


def size(count: int) -> str:
    """Return *count* bytes in the unit that a person reads."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:,.1f} MB"


def faults(count: int) -> str:
    return f"▲ {count:,} answered by Aileron with an error"


def exported(count: int) -> str:
    return f"{records(count)} in"


def audit_head(words: tuple[str, str]) -> str:
    """Return the head of the audit in two words."""
    return f"Head of the audit chain: {words[0]} · {words[1]}."


# Filters
NO_MATCH: Final = "No item matches "
SHOW_ALL: Final = "  esc shows all"
SEARCHING: Final = "Searching …"


def bad_age(value: str) -> str:
    if not value:
        return "age: needs a time, such as age:5m or age:>2h."
    return f"{escape(value)} is not a time. Write age:5m or age:>2h; the units are s, m, h, d."


def unknown_field(name: str, known: Sequence[str]) -> str:
    """Return that rows have nothing of that name, and what they have."""
    names = ", ".join(f"{each}:" for each in known)
    return f"This list has no {escape(name)}: filter. Use {names} or words; quote a phrase."


def empty_field(name: str) -> str:
    """Return that a field was named and nothing said of it."""
    return f"{escape(name)}: needs a value, such as {escape(name)}:x."


def matching(shown: int, total: int) -> str:
    """Return how many rows a filter lets through."""
    return f"{shown:,} of {total:,} match"


def show_all(total: int) -> str:
    return f". esc shows all {total:,}."


def matches(count: int) -> str:
    """Return how many rows a filter has found so far."""
    return f"{count} found for"
