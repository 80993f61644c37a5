"""The words of one call: its row, its head, its document; who asks, what its session did, how equal calls were answered."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from aileron_core.containment.detection import Containment

WAITING: Final = "WAITING"
OLDEST_FIRST: Final = "oldest first"
DECIDED: Final = "DECIDED"
NEWEST_FIRST: Final = "newest first"
NOTHING_YET: Final = "nothing yet"
FIRST_ENDS: Final = "next expiry in"
TAGS: Final = {
    "changed": "▲ changed",
    "hidden": "▲ hidden text",
    "no preview": "▲ no preview",
    "gone": "session ended",
}
ROW_STATES: Final = {
    "checking": "… checking",
    "approved": "✓ approved",
    "executing": "▶ running",
    "completed": "✓ done",
    "failed": "✗ failed",
    "unknown": "? unknown",
    "settled": "✓ settled",
    "denied": "✗ denied",
    "expired": "– expired",
    "withdrawn": "← withdrawn",
}
CAN_BE_UNDONE: Final = ", can undo"
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
    "settled": "✓",
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
    "settled": "settled by looking again",
    "denied": "denied",
    "expired": "expired",
    "withdrawn": "withdrawn",
}
SETTLED: Final = "settled"
OUTCOME: Final = "OUTCOME"
WAS_SHOWN: Final = "WHAT WAS SHOWN"
WILL_HAPPEN: Final = "WILL HAPPEN"
NOW: Final = "NOW"
CHANGED: Final = "CHANGED"
RECORD: Final = "RECORD"
SAME: Final = "SAME"
DIFFER: Final = "DIFFER"
PUT_IN: Final = "[x]"
LEFT_OUT: Final = "[ ]"
CHANGED_REMARK: Final = "nothing has run"
GONE_REMARK: Final = "nothing has run; the preview can no longer be fetched"
SENT_REMARK: Final = "used exactly as shown; not checked with the service"
BUILTIN_TOOLS: Final = "Aileron's built-in tools"
EDITED: Final = "EDITED"
EDITED_ROW: Final = "edited"
EDITED_REMARK: Final = "The agent reads what was changed with the result, and all arguments."
SENT_EDITED: Final = "with what was edited above; used exactly as shown"
EDIT: Final = "Change the call before you answer it:"
EDIT_HOW: Final = {"text": "", "json": "JSON", "lines": "one text a line"}
SENT_TO_TOOL: Final = "used exactly as shown"
SENT_NOTHING: Final = "nothing"
NOT_KEPT: Final = "no longer kept"
SEALED: Final = "sealed"
WANTS_NOTHING_ELSE: Final = "nothing else"
WANTS_REMARK: Final = "to be created exactly as shown; not checked with the service"
STAYS_REMARK: Final = "unchanged fields, as fetched"
NOTHING_CHANGES: Final = "Nothing changes: each new value equals the current one."
SAME_VALUE: Final = "‹the new value is the same›"
EMPTY: Final = "‹empty›"
NOT_KNOWN: Final = "not known"


def no_preview(*, of_server: bool) -> str:
    """Return why nothing was fetched of a call."""
    return f"no preview: {'nothing else is known of it' if of_server else 'the action file declares none'}"


MISSING: Final = "n/a"
NONE: Final = "none"
FETCHING_VALUE: Final = "·····"
NOT_FOUND: Final = "No longer found: "
NOT_READ: Final = "It could not be read: "
NOTHING_CHANGED_YET: Final = "Nothing has changed there so far."
SETTLED_BY_CHANGES: Final = (
    "Only the changed fields were compared: the others are not known after a restart."
)
NOT_GATED: Final = "without asking you: its action file does not require approval."
CHECK_YOURSELF: Final = "Check the service yourself: Aileron cannot fetch the current state."
BEFORE: Final = "before"
AFTER: Final = "after"
WHAT_YOU_SAW: Final = "what you saw"
AS_IT_IS_NOW: Final = "as it is now"
NO_PREVIEW_NOW: Final = "no preview now"
RULES: Final = "RULES"
WORDS: Final = "Words"
THE_FILE: Final = "the file"
THE_HOSTS: Final = "Hosts"
WARN_CHANGED: Final = "Changed after you looked"
WARN_NO_PREVIEW: Final = "No preview"
WARN_GONE: Final = "The agent's session has ended"
WARN_SELF_OPENED: Final = "Unverified agent: it connected by itself and chose this name."
WARN_FILE_CHANGED: Final = "Its action no longer counts as it was; approving would run nothing"
CONTAINMENT: Final[Mapping[Containment, str]] = MappingProxyType(
    {
        "verified": "contained",
        "other_user": "runs as another user",
        "claimed": "containment unverified",
        "none": "not contained",
    }
)
UNDRAWABLE_WHY: Final = (
    "Aileron could not draw this because of a bug. Run `aileron logs` to see where. "
    "Everything else still works."
)
WHOLE_REMARK: Final = "the whole new preview"
IS: Final = " is "
IS_NOT: Final = ", not "
READ_BACK: Final = "AFTER THE RUN"
READING_BACK: Final = "fetching what the service holds now"
READ_BACK_TAGS: Final[Mapping[str, str]] = MappingProxyType(
    {"reading": "comparing", "held": "as approved", "unavailable": "not compared"}
)
WAS_APPROVED: Final = "what was approved"
WAS_ASKED_FOR: Final = "what the agent asked for"
IS_HELD: Final = "what the service holds"
DIFFERED: Final = "differed; an earlier console showed what the service held, which is not kept"
VALUE_TEXT: Final = "‹text›"
VALUE_END: Final = "›"
VALUE_JSON: Final = "‹text›, formatted as JSON"
UNSEEN_HIDDEN: Final = "hidden"
UNSEEN_SMALL: Final = "too small"
UNSEEN_COLOUR: Final = "same colour as its background"
UNSEEN_MOVED: Final = "out of view"
UNSEEN_STYLE: Final = "its style is written in escapes"
SEEN_AGAIN: Final = "‹visible again›"
STRUCK: Final = "‹struck out: "
STRUCK_END: Final = "›"
IMAGE: Final = "image"
INPUT_FIELD: Final = "field"
ONLY_IN_SOURCE: Final = "‹only in the source› "
FORMAT_NAMES: Final = {"html": "HTML", "markdown": "Markdown"}
BY_DEADLINE: Final = "by deadline"
STEPS: Final = "STEPS"
STEP_DONE: Final = "✓ done"
STEP_ASKED: Final = "needs your approval now, with these inputs"
STEP_FIXED: Final = "exactly as shown here"
STEP_RUNNING: Final = "▲ set at run time"
STEP_ASKS_AGAIN: Final = "; the run stops before this step and asks you again"
STEP_RUNS_ON: Final = "; you are not asked again, because this step is safe to repeat"


def words_remark(*, ended: bool, builtin: bool) -> str:
    """Return when to compare the three words with the agent's: both are the same if they are about this call.

    *builtin*: the tool's answer is its output alone, as an agent's own tool answers.
    """
    if builtin:
        return ""
    return "compare with the agent's answer" if ended else "compare when the agent answers"


def how_it_ended(state: str, at: str, took: str, *, builtin: bool = False) -> str:
    """Return how a call ended, or how far it is.

    Args:
        took: how long its steps ran, or have been running.
        builtin: it was a built-in tool's, which asks no service.
    """
    if state == "executing":
        return f"running for {took}"
    if state not in OUTCOMES or not at:
        return "not finished yet"
    after = f", took {took}" if took else ""
    returned = "; what it returned:" if builtin else "; what the service returned:"
    whose = returned if state == "completed" else ""
    return f"{OUTCOMES[state]} at {at}{after}{whose}"


def running(time: str) -> str:
    """Return the state of a call whose steps are running; *time* says for how long, and how long they may."""
    return f"{ROW_STATES['executing']} {time}"


def running_short(time: str) -> str:
    """Return the same for a narrow row."""
    return f"{GLYPHS['executing']} {time}"


WAITS_FOR: Final = "waits for the end of "
WAITS_FOR_RUN: Final = "… waits"


def waits_until(time: str) -> str:
    """Return why an approved call waits for another, and until when at most; *time*: empty where not known."""
    until = f"; at most until {time}" if time else ""
    return f", which uses the same connector{until}"


def read_back_at(time: str, took: str) -> str:
    """Return when the service was asked, and how long after the run's end."""
    return f"checked at {time}" + (f", {took} after the run" if took else "")


def wanted(approval_id: str) -> str:
    """Return what a look at the service is compared with; the id is empty where nobody was asked."""
    return WAS_APPROVED if approval_id else WAS_ASKED_FOR


def read_back_held(compared: int, wanted: str = WAS_APPROVED) -> str:
    """Return that each of the *compared* fields is as *wanted*."""
    fields = "1 field" if compared == 1 else f"{compared} fields"
    return f"✓ The service now holds {wanted} ({fields} compared)."


def read_back_differs(count: int, compared: int, wanted: str = WAS_APPROVED) -> str:
    """Return that *count* of the *compared* fields are not as *wanted*."""
    fields = "1 field" if compared == 1 else f"{compared} fields"
    verb = "differs" if count == 1 else "differ"
    return f"▲ The service does not hold {wanted}: {count} of {fields} {verb}."


def read_back_unavailable(*, why: bool) -> str:
    """Return that nobody knows what the service holds; *why*: a reason follows."""
    return "What the service holds now could not be fetched" + (": " if why else ".")


def fields_differ(count: int) -> str:
    return "1 field differs" if count == 1 else f"{count} fields differ"


def found_in_project(age: str) -> str:
    """Return where and when the preview of a built-in tool's call was made."""
    return f"as Aileron found the project, {age} ago"


def fetched(host: str, age: str, *, by_server: bool) -> str:
    """Return where and when a ready preview was read; *by_server*: by an MCP server that lists hosts."""
    if not host and by_server:
        return f"from the server itself, {age} ago"
    if not host:
        return f"from the connector itself, which contacted no host, {age} ago"
    return f"fetched by Aileron from {host}, {age} ago"


def check_by(key: str) -> str:
    """Return that *key* shows how things stand at the service."""
    return f"{key} fetches the current state from the service. Nothing is repeated."


def check_looked(key: str) -> str:
    """Return that what was read, below, is not what should be there; *key* acknowledges the outcome."""
    return f"Compare the current state, below, with what should have happened; {key} acknowledges."


def cannot_tell(key: str) -> str:
    """Return that what the service answered settles nothing; *key*, if any, acknowledges the outcome."""
    then = f"; {key} acknowledges." if key else "."
    return f"Aileron cannot tell from the answer below whether it ran{then}"


def settled_at(at: str) -> str:
    return f"Settled by looking again at {at}. The call's own answer never arrived."


def shown_at(at: str) -> str:
    return f"as fetched at {at}"


def asking(host: str, seconds: float, limit: float) -> str:
    return f"asking {host or 'the connector'} … {max(0.0, seconds):.0f} s of at most {limit:.0f} s"


def preparing(seconds: float) -> str:
    """Return that the service was not asked yet, and for how long that has been so."""
    return f"preparing the connector … {max(0.0, seconds):.0f} s"


def unavailable(reason: str) -> str:
    """Return the first line of a preview that could not be had."""
    return f"Preview unavailable: {reason}"


def compared(fetched: str, agent: str) -> str:
    """Return whose the two values of each field are; *fetched* says where and when the old was read."""
    return f"+ what {agent} wants, − {fetched}"


def lines_stay(count: int) -> str:
    """Return the mark in place of lines that a change leaves as they are."""
    return f"‹{count} unchanged lines›"


def sent_heading(agent: str) -> str:
    """Return the heading of the agent's section."""
    return f"{agent.upper()} SENT"


def wants_heading(agent: str) -> str:
    """Return the heading of the agent's section, where what was fetched will not remain."""
    return f"{agent.upper()} WANTS"


def same(count: int) -> str:
    return f"{count} shown {'field is' if count == 1 else 'fields are'} unchanged"


def other_paths(count: int, shown: int) -> str:
    """Return how many values outside the shown fields differ."""
    values = "value" if count == 1 else "values"
    more = f"; the first {shown}" if shown < count else ""
    return f"{count} {values} outside the shown fields differ{'s' if count == 1 else ''}{more}:"


def others_below(count: int) -> str:
    """Return that *count* values outside the shown fields differ, which the end of the preview lists."""
    return f"{count} values outside the shown fields differ too: see below"


def one_of(count: int) -> str:
    """Return where an op goes that may reach *count* hosts, and nobody can say which."""
    return f"one of {count} hosts"


def ask_again_at(at: str, key: str) -> str:
    """Return what a person can do about a preview that could not be had at the time *at*."""
    return f"Tried at {at}. {key} tries again. You can still decide on the agent's arguments alone."


def alone(count: int) -> str:
    """Return how many calls of a batch differ where all others agree."""
    which = "one differs" if count == 1 else f"{count} each differ"
    return f"▲ {which} where the others agree"


def hidden_in(label: str, names: Sequence[str]) -> str:
    """Return in which field characters are hidden, and the names of their kinds; no stop."""
    more = len(names) - 2 if len(names) > 3 else 0
    kinds = ", ".join(names[:2] if more else names)
    return f"Hidden text in {label}: {kinds}" + (f" and {more} more" if more else "")


def lookalike_in(label: str, name: str, resembles: str) -> str:
    """Return in which field *name* imitates *resembles*, which may be empty; no stop."""
    like = f" of {resembles}" if resembles else ""
    return f"Look-alike{like} in {label}: {name}"


def unseen_in(label: str) -> str:
    """Return which field has text that its reader would not see; no stop."""
    return f"Invisible text in {label}"


def misleading_in(label: str) -> str:
    """Return which field has a link that does not lead where its text says; no stop."""
    return f"Misleading link in {label}"


def blank_in(label: str, count: int) -> str:
    """Return in which field text continues below blank lines; no stop."""
    return f"Text below {count} blank lines in {label}"


def drift_in(labels: Sequence[str]) -> str:
    """Return which fields changed after the person looked; no stop."""
    more = f" and {len(labels) - 2} more" if len(labels) > 2 else ""
    return WARN_CHANGED + (f": {', '.join(labels[:2])}{more}" if labels else "")


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
    return f"{count} {'character' if count == 1 else 'characters'} shown as marks: {parts}"


def blank_lines_folded(count: int) -> str:
    return f"{count} blank lines folded; the text continues below"


def unseen_passages(count: int) -> str:
    """Return the head's warning of text that a mail's reader would not see."""
    return f"{count} invisible {'passage' if count == 1 else 'passages'}"


def misleading_links(count: int) -> str:
    """Return the head's warning of links that say another host than they lead to."""
    return f"{count} misleading {'link' if count == 1 else 'links'}"


def unseen_remark(count: int) -> str:
    return f"{unseen_passages(count)}, marked in the text; not visible in a mail program"


def misleading_remark(count: int) -> str:
    return f"{misleading_links(count)}, marked in the text: the link text names another host"


def unseen(why: str) -> str:
    """Return the mark before text that its reader would not see."""
    return f"‹invisible: {why}›"


def leads_elsewhere(host: str) -> str:
    """Return the mark behind a link whose text names another host."""
    return f"‹leads to {host}›"


def drawn_as_text(form: str) -> str:
    """Return the mark above a text that is drawn without its markup."""
    return f"‹{FORMAT_NAMES[form]}, shown as text›"


def only_source(form: str) -> str:
    """Return the mark above a text that cannot be drawn without its markup."""
    return f"‹{FORMAT_NAMES[form]}, too large to show as text: this is the source›"


def not_drawn(counts: Iterable[tuple[str, int]]) -> str:
    """Return the mark below a text that names what only its source shows."""
    named = (f"{count} × {name}" for name, count in counts)
    return f"‹only in the source: {', '.join(named)}›"


def blank_lines_sign(count: int) -> str:
    """Return the mark in place of many blank lines."""
    return f"‹{count} blank lines›"


def list_of(count: int) -> str:
    """Return the mark above a list that has one item a line."""
    return f"‹list of {count}›"


def value_start(count: int) -> str:
    """Return how the mark above values begins whose names it then gives."""
    return "‹found at " if count == 1 else f"‹{count} values, under "


def several_values(count: int) -> str:
    """Return what the head says after a label to which the answer has more than one value."""
    return f": {count} values"


def laying_out(characters: int) -> str:
    return (
        f"▲ {characters:,} characters are still being formatted. This is only the beginning; you "
        "can decide once all of it is shown."
    )


def newer(count: int) -> str:
    return f"{count:,} new at the end"


def steps_remark(later: int) -> str:
    """Return how the steps follow each other; *later* of them are decided while running."""
    if not later:
        return "one after another"
    return f"one after another; {later} {'is' if later == 1 else 'are'} set at run time"


def step(number: int) -> str:
    return f"Step {number}"


def more_steps(count: int) -> str:
    """Return that there are *count* steps besides the one that was named."""
    return f" and {count} more {'step' if count == 1 else 'steps'}"


def rule_decided(gated: bool, state: str, decided_by: str) -> str:
    """Return what the rules did with a call, before the reason; *decided_by*: a person, a rule or a grant, if any did."""
    if state == "denied" and decided_by != "person":
        return "denied because: "
    if decided_by not in ("", "person"):
        return "approved because: "
    return "asked because: " if gated else "ran without asking because: "


WHO_ASKS: Final = "WHO ASKS"
BY_KERNEL: Final = "confirmed by the kernel"
BY_LAUNCHER: Final = "according to its launcher"
ITS_OWN_WORDS: Final = "the agent's words; not checked"
NOT_CHECKED: Final = "not checked"
RECENT_RUNS: Final = "EARLIER CALLS"
SESSION_NEWEST_FIRST: Final = "of this session, newest first"
NOTHING_BEFORE: Final = "none in this session"
EQUAL_CALLS: Final = "SAME ACTION"
NO_EQUAL_CALLS: Final = "none in the last 200 decisions"
LAST_DECISIONS: Final = "in the last 200 decisions"
CONTAINED: Final[Mapping[Containment, str]] = MappingProxyType(
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
