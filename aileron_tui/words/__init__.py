"""Every sentence of the console. Second person, present tense; digits for counts.

Functions take text that was rendered before (`aileron_core.text.escape`) where it comes from
outside, and return plain strings; the caller chooses the role.
"""

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

# The queue and the list of decisions
WAITING: Final = "WAITING"
OLDEST_FIRST: Final = "oldest first"
DECIDED: Final = "DECIDED"
NEWEST_FIRST: Final = "newest first"
NOTHING_YET: Final = "nothing yet"
FIRST_ENDS: Final = "first ends in"
NOTHING_WAITS: Final = "Nothing is waiting."
NO_RECORDS: Final = "Nothing is on record yet."
FILE_EFFECT: Final = "FILE"
TAGS: Final = {
    "changed": "▲ changed",
    "hidden": "▲ hidden text",
    "no preview": "▲ no preview",
    "vault": "▲ vault",
    "gone": "gone",
}
ROW_STATES: Final = {
    "checking": "… looking once more",
    "approved": "✓ approved",
    "executing": "▶ running",
    "completed": "✓ done",
    "failed": "✗ failed",
    "unknown": "? unknown",
    "denied": "✗ denied",
    "expired": "– expired",
    "withdrawn": "← withdrawn",
}
GLYPHS: Final = {
    "new": "●",
    "pending": "●",
    "checking": "●",
    "awaiting_vault": "◇",
    "approved": "✓",
    "executing": "▶",
    "completed": "✓",
    "failed": "✗",
    "unknown": "?",
    "denied": "✗",
    "expired": "–",
    "withdrawn": "←",
}
OUTCOMES: Final = {
    "approved": "approved",
    "executing": "running",
    "completed": "done",
    "failed": "failed",
    "unknown": "unknown",
    "denied": "denied",
    "expired": "expired",
    "withdrawn": "withdrawn",
}

# The document
OUTCOME: Final = "OUTCOME"
WAS_SHOWN: Final = "WHAT WAS SHOWN"
WILL_HAPPEN: Final = "WILL HAPPEN"
CHANGED: Final = "CHANGED"
RECORD: Final = "RECORD"
FILE_SECTION: Final = "THE FILE"
CHANGED_REMARK: Final = "after you looked. Nothing has run. These are the two readings:"
GONE_REMARK: Final = "after you looked. Nothing has run. The preview is gone:"
SENT_REMARK: Final = "the agent's words, exactly as they go out; not checked"
SENT_NOTHING: Final = "nothing"
NOT_KNOWN: Final = "not known"
NO_PREVIEW_DECLARED: Final = "not looked at: its action file declares no preview"
MISSING: Final = "n/a"
NONE: Final = "none"
FETCHING_VALUE: Final = "·····"
BEFORE: Final = "before"
AFTER: Final = "after"
WHAT_YOU_SAW: Final = "what you saw"
WHAT_WOULD_BE: Final = "what would happen now"
NO_PREVIEW_NOW: Final = "no preview any more"
WORDS_REMARK: Final = "also in the audit and the result"

WARN_CHANGED: Final = "changed after you looked"
WARN_NO_PREVIEW: Final = "no preview"
WARN_GONE: Final = "the requester is gone"
WARN_VAULT: Final = "waits for the vault"
WARN_SELF_OPENED: Final = "opened its session itself; its name is its own word"
WARN_FILE_MOVED: Final = "its action file changed; approving will not run it"
CONTAINMENT: Final[Mapping[Containment, str]] = MappingProxyType(
    {
        "seen": "contained",
        "other_user": "as another user",
        "said": "said to be contained",
        "none": "not contained",
    }
)

# Banner
BANNER_STORAGE: Final = "✗ NOTHING CAN RUN: the audit cannot be written."
BANNER_LOST: Final = "✗ THE CORE HAS ENDED. Nothing that waits was lost."
ROUTE_GOES: Final = " goes to "
ROUTE_BY: Final = " (--route)"

# Voice
VERBS: Final = {
    "approve": "approve",
    "accept": "accept it",
    "accept_rest": "accept the rest",
    "withdraw_acceptance": "withdraw its acceptance",
}
ALL_SEEN: Final = "✓ All seen."
RECHECKING: Final = "Looking once more before it runs …"
LOOKING: Final = "Still looking. Approve is possible once the answer is here, or has failed."
SENDING: Final = "Handing it over …"
UNDRAWABLE: Final = "✗ This cannot be drawn, so nothing decides it here. It stays waiting."
UNDRAWABLE_WHY: Final = (
    "A fault of Aileron's own, met while drawing this. The log says where: aileron logs. "
    "Everything else goes on."
)
SCREEN_FAILED: Final = (
    "The console met a fault of its own and closed. What waited still waits; nothing was decided. "
    "The log says where: aileron logs."
)
STORAGE_STOPS: Final = "✗ Nothing can be decided until the audit can be written."
VAULT: Final = "The vault is locked. This stays waiting until it is open."
DEADLINE_OVER: Final = "Its time is over; it expires now, and nothing of it runs."
PROBLEM_TITLE: Final = "A file has a problem"
PROBLEM_READ: Final = "Nothing to decide here. Mend the file; it is read again when it changes."
ACTIVITY_REMARK: Final = "Newest first."


def too_small(waiting: int) -> str:
    """Return the one sentence of a pane that is too small to decide in."""
    verb = "call waits" if waiting == 1 else "calls wait"
    return f"Make this pane at least 60 x 16. {waiting} {verb}."


def fetched(host: str, age: str) -> str:
    """Return where and when a ready preview was read."""
    if not host:
        return f"from the connector itself, which asked no host, {age} ago"
    return f"fetched by Aileron from {host}, {age} ago"


def unknown_outcome(key: str) -> str:
    """Return what to do where nobody knows how a call ended; *key* looks again, if there is one."""
    look = f"{key} looks again" if key else "Look at the service itself"
    return f"? It may or may not have run. {look}; it is not repeated."


def shown_at(at: str) -> str:
    """Return when what an ended item showed was read."""
    return f"as it was read at {at}"


def asking(host: str, seconds: float, limit: float) -> str:
    """Return how long Aileron has been asking already."""
    return f"asking {host or 'the connector'} … {max(0.0, seconds):.0f} s of at most {limit:.0f} s"


def preparing(seconds: float) -> str:
    """Return that the service was not asked yet, and for how long that has been so."""
    return f"preparing the connector … {max(0.0, seconds):.0f} s"


def unavailable(reason: str) -> str:
    """Return the first line of a preview that could not be had."""
    return f"Preview unavailable: {reason}"


def sent_heading(agent: str) -> str:
    """Return the heading of the agent's section."""
    return f"{agent.upper()} SENT"


def same(count: int) -> str:
    """Return how many shown fields did not differ."""
    return f"{count} shown {'field is' if count == 1 else 'fields are'} as before"


def other_paths(count: int, shown: int) -> str:
    """Return how many places outside the shown fields differ."""
    places = "place" if count == 1 else "places"
    more = f", the first {shown} of them" if shown < count else ""
    return f"{count} {places} outside the shown fields differ{'s' if count == 1 else ''}{more}:"


def unseen(count: int, total: int) -> str:
    """Return how much was not on screen yet."""
    return f"▼ {count} of {total} lines not seen yet."


def unseen_pressed(count: int, total: int, key: str, verb: str) -> str:
    """Return what the second press would do, where lines are unread."""
    return f"▼ {count} of {total} lines not seen. Press {key} again to {verb} without reading them."


def unread(count: int) -> str:
    """Return how many lines the key that was pressed once leaves unread."""
    return f"{count} {'line' if count == 1 else 'lines'} unread"


def blind_pressed(key: str) -> str:
    """Return what the second press would do, where there is no preview."""
    return f"○ No preview. Press {key} again to approve without one."


def blind(key: str, verb: str) -> str:
    """Return what the approve key stands for, where there is no preview."""
    return f"○ No preview. {key} {verb}, without a preview."


def changed(key: str, verb: str) -> str:
    """Return what the approve key would do after a change."""
    return f"▲ Changed. {key} {verb} as it is now."


def runs_nothing(key: str) -> str:
    """Return what the approve key stands for, where the action file changed."""
    return f"▲ Its action file changed: {key} would run nothing. The agent has to ask again."


def ready(key: str, verb: str) -> str:
    """Return what the approve key would do."""
    return f"{key} {verb}."


def reads_on(key: str) -> str:
    """Return what the reading key does."""
    return f"{key} reads on."


def lost(key: str) -> str:
    """Return what is left to do once the core has ended."""
    told = "✗ Aileron's core has ended. Nothing can be decided any more"
    return f"{told}; {key} quits, with exit code 70."


def ends_soon(seconds: int) -> str:
    """Return the warning of a near deadline."""
    return f"Ends in {seconds} s; then it expires."


def keys_dropped(count: int) -> str:
    """Return what happened to keys that came faster than a person types."""
    if count < 2:
        return "Other input came with the key. Nothing was decided."
    return f"{count} keys came at once. Nothing was decided."


def approved(title: str) -> str:
    """Return the report of a yes."""
    return f"✓ Approved: {title}"


def failed(title: str, outcome: str) -> str:
    """Return the report of a run that failed, with our sentence on how."""
    return f"✗ Failed: {title}. {outcome}" if outcome else f"✗ Failed: {title}."


def denied(title: str, agent: str, reason: str, calls: int = 1) -> str:
    """Return the report of a no to *calls* equal calls, with what the agent reads."""
    who = "The agent" if agent == "the agent" else agent
    told = f'{who} is told: "{reason}"' if reason else f"{who} is told that you gave no reason"
    equal = f", {calls} equal calls" if calls > 1 else ""
    return f"✗ Denied: {title}{equal}. {told}"


def accepted(name: str) -> str:
    """Return the report of a file that counts now."""
    return f"✓ Accepted: {name}. It counts from now on."


def ended_elsewhere(title: str, outcome: str) -> str:
    """Return the report of an item that ended without a key of yours."""
    return f"{title}: {outcome} without a key of yours. Nothing else changed here."


def quit_asks(waiting: int, key: str) -> str:
    """Return the question before quitting while something waits."""
    verb = "waits. It stays" if waiting == 1 else "wait. They stay"
    tail = "expires" if waiting == 1 else "expire"
    return f"{waiting} {verb} waiting and {tail} on time. {key} again quits."


def one_of(count: int) -> str:
    """Return where an op goes that may reach *count* hosts, and nobody can say which."""
    return f"one of {count} hosts"


def accept(key: str, kind: str, name: str) -> str:
    """Return what the accept key would do."""
    if kind == "preview":
        return f"{key} lets previews read by POST: {name}."
    return f"{key} accepts the {kind} {name}, exactly as it is."


def deny_question(title: str, agent: str) -> str:
    """Return the question of the deny panel."""
    return f'Deny "{title}". What shall {agent} be told?'


def accepted_installed() -> str:
    """Return the standing line of `--accept-installed`."""
    return "▲ files that lay there at start were accepted unseen (--accept-installed)"


def more_warnings(count: int, *, of_more: bool, key: str) -> str:
    """Return how many standing warnings have no row; *of_more*: besides some that have one."""
    noun = "warning" if count == 1 else "warnings"
    told = f"and {count} more {noun}" if of_more else f"{count} standing {noun}"
    return f"▲ {told}: {key} shows every one"


def not_accepted(count: int, words: int) -> str:
    """Return how many files nobody accepted, for the top bar, in 0 to 2 *words*."""
    noun = "file" if count == 1 else "files"
    return f"▲ {count}" + ("", f" {noun}", " not accepted")[words]


def load_problems(count: int, keys: str, words: int) -> str:
    """Return how many problems the files in the home have, in 0 to 2 *words*, and the *keys* there."""
    noun = "problem" if count == 1 else "problems"
    named = ("", f" {noun}", f" file {noun}")[words]
    return f"! {count}{named}: {keys}"


def problem_why(severity: str) -> str:
    """Return what the problem of a file does."""
    if severity == "warning":
        return "it counts as it is; look at this all the same"
    return "it cannot be used as it is, and nothing of it runs"


def asked_times(count: int) -> str:
    """Return how often the same call was asked for."""
    return f"Asked {count} times"


def agents_at_work(count: int) -> str:
    """Return how many agents are connected."""
    return f"{count} {'agent is' if count == 1 else 'agents are'} at work."


def ready_actions(count: int) -> str:
    """Return how many actions agents can see."""
    if not count:
        return "No actions yet: `aileron init --example`, or `aileron action add PATH`."
    return f"{count} {'action is' if count == 1 else 'actions are'} ready for agents."


def why_not_accepted(kind: str, why: str) -> str:
    """Return why a file does not count."""
    if kind == "preview":
        return "A preview tried to read this by POST and was refused: nobody accepted it."
    lies = (
        "changed on disk after it was accepted"
        if why == "changed"
        else "lies there; nobody accepted it"
    )
    return f"This {kind} {lies}."


def notification(waiting: int) -> str:
    """Return the terminal's title: a count and our name, nothing from outside."""
    return f"({waiting}) aileron" if waiting else "aileron"


def ask_again_at(at: str, key: str) -> str:
    """Return what a person can do about a preview that could not be had at the time *at*."""
    return f"Asked at {at}. {key} asks again. You can still decide, on what the agent sent."


THEN_GATED: Final = "agents can ask for it, and every run waits for you"
THEN_FREE: Final = "▲ agents can run it at any time; no run of it waits for you"
READ_SECTION: Final = "THE READ"
ACCEPT_READ: Final = "Let this connector read by POST in its previews?"
READ_WHY: Final = "tried in a preview, and refused"
READ_ROW: Final = "by POST: "
THEN_GRAPHQL: Final = (
    "its previews may send GraphQL there by POST; Aileron reads each and lets one query alone pass"
)
THEN_AWS: Final = "its previews may ask AWS for exactly this operation, by POST; that it only reads is for you to know"
WARN_READS_UNSEEN: Final = "reads by POST in previews, accepted unseen (--accept-installed)"
THEN_CONNECTOR: Final = "actions of yours can use it, on these hosts only"
WHOLE_REMARK: Final = "the whole new reading"
WARN_FREE: Final = "runs without asking you"


def runs(op: str) -> str:
    """Return the verb phrase of an approve key, where the action file gives none."""
    return f"runs {op}"


REASON_PLACEHOLDER: Final = "a reason; empty is fine"


def audit_head(words: tuple[str, str]) -> str:
    """Return the head of the audit in two words."""
    return f"Head of the audit: {words[0]} · {words[1]}."


def hidden(count: int) -> str:
    """Return the head's warning of characters that do not show."""
    return f"{count} hidden {'character' if count == 1 else 'characters'}"


def lookalikes(count: int) -> str:
    """Return the head's warning of names that look like others."""
    return f"{count} look-alike {'name' if count == 1 else 'names'}"


def blank_lines(count: int) -> str:
    """Return the head's warning of text far below."""
    return f"{count} blank lines"


def drawn_as_marks(count: int, parts: str) -> str:
    """Return which characters were drawn as marks."""
    return f"{count} {'character' if count == 1 else 'characters'} drawn as marks: {parts}"


def blank_lines_folded(count: int) -> str:
    """Return that the text goes on."""
    return f"{count} blank lines folded; the text goes on after them"


IS: Final = " is "
IS_NOT: Final = ", not "
