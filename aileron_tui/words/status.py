"""The sentences of the status line: what a key would do, why not yet, why a press did nothing, what just happened."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

ALL_SEEN: Final = "✓ All seen."
RECHECKING: Final = "Checking once more before it runs …"
LOOKING: Final = "Fetching the preview. You can approve once it arrives or fails."
SENDING: Final = "Sending your decision …"
UNDRAWABLE: Final = "✗ This cannot be shown, so it cannot be decided here. It keeps waiting."
SCREEN_FAILED: Final = (
    "The console closed because of a bug. What was waiting still waits; nothing was decided. "
    "Run `aileron logs` to see where."
)
STORAGE_STOPS: Final = "✗ Nothing can be decided until the audit can be written."
NOT_FOCUSED: Final = (
    "Your terminal reports that another pane has the focus, so no key decides here."
)
DEADLINE_OVER: Final = "Its deadline has passed; it expires and does not run."
PROBLEM_READ: Final = (
    "Nothing to decide here. Fix the file; Aileron reads it again when it changes."
)


def unknown_outcome(key: str, acknowledge_key: str = "") -> str:
    """Return what to do where nobody knows how a call ended.

    *key* looks again and *acknowledge_key* acknowledges, where they can.
    """
    look = f"{key} looks again" if key else "Check the service itself"
    if acknowledge_key:
        return f"? It may or may not have run. {look}, {acknowledge_key} acknowledges."
    return f"? It may or may not have run. {look}; it is not repeated."


def acknowledged(title: str) -> str:
    return f"✓ Acknowledged: {title}. Its outcome stays on record as unknown."


def settled(wanted: str) -> str:
    """Return that a look at the service settled an unknown outcome; *wanted*: what it holds."""
    return f"✓ Settled: the service holds {wanted}."


def still_differs(labels: Sequence[str]) -> str:
    """Return the report of a look at the service: these fields, one or more, are not what they should be."""
    *first, last = labels
    if len(labels) > 3:
        first, last = list(labels[:2]), f"{len(labels) - 2} more fields"
    return f"It still differs in {', '.join(first) + ' and ' if first else ''}{last}."


def same_preview(*, changed_before: bool) -> str:
    """Return the report that a preview fetched again is as it was; *changed_before*: in drift before that."""
    return f"Fetched again: nothing {'else ' if changed_before else ''}changed."


def read_back_differs(title: str) -> str:
    return f"▲ {title}: the service does not hold what was approved."


def unseen(count: int, total: int) -> str:
    return f"▼ {count} of {total} lines not seen yet."


def unseen_pressed(count: int, total: int, key: str, verb: str) -> str:
    """Return what the second press would do, where lines are unread."""
    return f"▼ {count} of {total} lines not seen. Press {key} again to {verb} anyway."


def unread(count: int) -> str:
    """Return how many lines the key that was pressed once leaves unread."""
    return f"{count} {'line' if count == 1 else 'lines'} unread"


def found_pressed(finding: str, more: int, unseen: int, key: str, effect: str) -> tuple[str, ...]:
    """Return what the second press would do, where something was found; ever shorter, to fit the line.

    *finding*: a sentence without its stop. *more*: how many other findings there are. *unseen*: lines.
    """
    others = f" (and {more} more)" if more else ""
    lines = f" {unread(unseen)}." if unseen else ""
    start, end = f"▲ {finding}{others}.", f"Press {key} again"
    return (
        f"{start}{lines} {end} to {effect}.",
        f"{start}{lines} {end}.",
        f"{start} {end}.",
        f"▲ {finding}. {end}.",
    )


def found(finding: str, key: str, effect: str) -> str:
    """Return what the approve key stands for, where something was found that wants a stronger yes."""
    return f"▲ {finding}. Press {key} to {effect}."


def no_preview(key: str, effect: str, *, again: bool = False) -> str:
    """Return what the approve key would do without a preview; *again*: with its second press."""
    return f"○ No preview. Press {key}{' again' if again else ''} to {effect} anyway."


def changed(key: str, effect: str) -> str:
    return f"▲ Changed. Press {key} to {effect} as it is now."


def runs_nothing(key: str) -> str:
    """Return what the approve key stands for, where the action file, as it was when the call came, is not accepted."""
    return f"▲ Its action no longer counts: {key} would run nothing. The agent has to ask again."


def ready(key: str, effect: str) -> str:
    return f"Press {key} to {effect}."


def reads_on(key: str) -> str:
    return f"{key} reads on."


def lost(key: str, *, attached: bool) -> str:
    """Return what is left to do once the core has ended, or an attached console is cut off from it."""
    what = "This console is cut off from its server" if attached else "Aileron's server has stopped"
    text = f"✗ {what}. Nothing can be decided now"
    return f"{text}; {key} quits (exit code 70)."


def ends_soon(seconds: int) -> str:
    return f"Expires in {seconds} s."


def keys_dropped(count: int) -> str:
    if count < 2:
        return "Other input arrived with the key. Nothing was decided."
    return f"{count} keys arrived at once. Nothing was decided."


def approved(title: str, calls: int = 1) -> str:
    return f"✓ Approved: {title}{_together(calls)}"


def changed_and_wait(calls: int) -> str:
    which = "1 call changed and waits" if calls == 1 else f"{calls} calls changed and wait"
    return f" ▲ {which}."


def approves_calls(count: int, of: int) -> str:
    return f"approve {count} of {of} calls"


def _together(calls: int) -> str:
    return f", {calls} calls together" if calls > 1 else ""


def failed(title: str, outcome: str) -> str:
    return f"✗ Failed: {title}. {outcome}" if outcome else f"✗ Failed: {title}."


def undone(action: str) -> str:
    return f"✓ Undone: {action}. What was there before is back."


def denied(title: str, agent: str, reason: str, calls: int = 1) -> str:
    """Return the report of a no to *calls* calls, with what the agent reads."""
    who = "The agent" if agent == "the agent" else agent
    text = f'{who} will read: "{reason}"' if reason else f"{who} gets no reason"
    return f"✗ Denied: {title}{_together(calls)}. {text}"


def ended_elsewhere(title: str, outcome: str, hand: str) -> str:
    """Return the report of an item that ended without a key of this console; *hand*: whose, if any."""
    by = f" by {hand}" if hand else ", not by you"
    return f"{title}: {outcome}{by}. Nothing else changed here."


def confirm_quit(waiting: int, key: str) -> str:
    """Return the question before quitting while something waits."""
    verb = "call is waiting. It keeps" if waiting == 1 else "calls are waiting. They keep"
    tail = "expires" if waiting == 1 else "expire"
    return f"{waiting} {verb} waiting and {tail} on time. Press {key} again to quit."


def effect(title: str) -> str:
    """Return *title*, a verb phrase that a heading begins with a capital, as it stands after `to`."""
    is_word = title[1:2].islower() or title[1:2] == " "
    return title[0].lower() + title[1:] if is_word else title


def runs_action(name: str) -> str:
    """Return what a yes does, where the action file has no title."""
    return f"run {name}"


def changes_fields(phrase: str, count: int) -> str:
    return f"{phrase} ({count} {'field changes' if count == 1 else 'fields change'})"


def to_recipients(phrase: str, count: int) -> str:
    return f"{phrase} to {count} {'recipient' if count == 1 else 'recipients'}"


def in_steps(phrase: str, ops: Sequence[str]) -> str:
    """Return what a yes does, and the steps that it runs, their number first."""
    steps = "1 step" if len(ops) == 1 else f"{len(ops)} steps"
    return f"{phrase} ({steps}: {', '.join(ops)})"


def session_ended(agent: str) -> str:
    return f"✓ Ended the session of {agent}. Its calls keep waiting."


def ends_session(key: str, agent: str) -> str:
    return f"{key} ends the session of {agent}; it asks first."


def may_reach(host: str) -> str:
    return f"✓ The session can reach {host} until it ends."


def allows_host(key: str, host: str) -> str:
    return f"{key} lets this session reach {host} until it ends."


def read_whole(key: str) -> str:
    """Return what the reader says once all of a document was seen; *key* leaves it."""
    return f"✓ All seen. {key} goes back to the item, where you can decide."


TOO_SOON: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cursor": "Too soon: another item is under the cursor.",
        "item": "Too soon: this item changed.",
        "list": "Too soon: the list moved.",
        "screen": "Too soon: the screen changed.",
        "key": "Too soon after another key.",
        "refocused": "Too soon: this pane has just come into focus.",
        "mouse": "Too soon after a mouse action.",
    }
)
CHANGED_MEANWHILE: Final = "The screen changed as you pressed the key."

ATTACHED: Final = "only the console itself does this, or an attached one that is confirmed as yours"
OWNERS: Final = "only the console itself does this, not an attached one"
LOST: Final = "Aileron's server has stopped"
CUT_OFF: Final = "this console is cut off from its server"
NO_ITEM: Final = "no item is selected"
ENDED: Final = "this has ended"
NO_CALL: Final = "this is not a call"
SEVERAL_CALLS: Final = "these are several calls; enter opens one"
NONE_PUT_IN: Final = "every call here is left out; x puts one in"
NO_BATCH: Final = "this is not a batch of calls"
BATCH_GRANTED: Final = "a batch has no grant: open one call of it"
TYPE_COUNT: Final = "type how many calls you approve"
NO_FILE: Final = "there is no file to accept here"
ALL_IN_VIEW: Final = "all of it is already in view"
AT_END: Final = "this is the end"
AT_START: Final = "this is the beginning"
ONLY_ROW: Final = "there is no other row"
LAST_ROW: Final = "this is the last row"
FIRST_ROW: Final = "this is the first row"
NOT_RUNNING: Final = "this call is not running"
NO_SESSION: Final = "no session is selected"
NO_MATCH: Final = "no search has found anything here"
ONLY_MATCH: Final = "there is no other match"


def unlock_there(does: str) -> str:
    """Return why an attached console does nothing about the vault; *does*: what does it."""
    return f"no passphrase leaves an attached console; {does} does it, or the console there"


def again(why: str, key: str) -> str:
    """Return *why*, and that the same key can be pressed again."""
    return f"{why} Press {key} again."


def did_nothing(key: str, why: str) -> str:
    return f"{key} did nothing: {why}."


def left_ended_row(key: str, whose: str, *, another: bool) -> str:
    """Return that *key* only left a row that has ended, by *whose* answer; *another* one that waits is shown."""
    shown = "The next waiting item is now shown." if another else "Nothing else is waiting."
    return f"{key} decided nothing: {whose or 'that row had ended'}. {shown}"


def left_other_row(key: str, *, another: bool) -> str:
    """Return that *key* only left a row that the filter lets through no more."""
    shown = "The next match is now shown." if another else "Nothing else matches."
    return f"{key} decided nothing: that row no longer matches. {shown}"
