"""The sentences on a key press that did nothing: each names the key, and why."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
NOT_IN_FOCUS: Final = "This pane was not in focus. Go to it, then"

LOST: Final = "Aileron's server has stopped"
STORAGE: Final = "the audit cannot be written"
TOO_SMALL: Final = "this pane is too small"
NO_ITEM: Final = "no item is selected"
SENDING: Final = "your decision is being sent"
BEING_CHECKED: Final = "the passphrase is being checked"
CHECKING: Final = "this is being checked once more before it runs"
DECIDED: Final = "this is already decided"
ENDED: Final = "this has ended"
UNKNOWN: Final = "its outcome is unknown"
FETCHING: Final = "the preview is still being fetched"
DEADLINE: Final = "its deadline has passed"
DRAWING: Final = "the item is still being formatted"
UNDRAWABLE: Final = "this item cannot be shown"
NO_CALL: Final = "this is not a call"
NOT_FOR_SESSION: Final = "only a call of a built-in tool can be approved for the session"
NO_FILE: Final = "there is no file to accept here"
NO_SUITE: Final = "nothing here has to be reviewed first"
NOT_ACCEPTED: Final = "there is no acceptance to withdraw here"
NOT_PAUSED: Final = "no calls are on hold"
PAUSED_ALREADY: Final = "all calls are already on hold"
KNOWN_OUTCOME: Final = "its outcome is known"
NO_PREVIEW: Final = "this has no preview to fetch"
NO_CHANGE: Final = "no new preview is shown here"
NO_DOCUMENT: Final = "no document is shown"
ALL_IN_VIEW: Final = "all of it is already in view"
AT_END: Final = "this is the end"
AT_START: Final = "this is the beginning"
NO_MARKS: Final = "nothing here is shown as a mark"
NO_WRAPS: Final = "no line here is wrapped"
ONLY_ROW: Final = "there is no other row"
LAST_ROW: Final = "this is the last row"
FIRST_ROW: Final = "this is the first row"
OPENED: Final = "a row is already open"
NOTHING_TO_LEAVE: Final = "nothing is open and there is no filter"
FOLLOWING: Final = "the list already follows the newest row"
VERIFYING: Final = "the audit is already being verified"
NOT_KEPT: Final = "no screen is kept for this record"
NOT_RUNNING: Final = "this call is not running"
NOTHING_TO_UNDO: Final = "only an open call of a built-in tool that wrote something, in a session that is open, can be undone"
NO_HOST_TO_ALLOW: Final = "this session asks for no host that could be allowed"
NO_SESSION: Final = "no session is selected"
SAME_VIEW: Final = "this view is already shown"
NO_SEARCH: Final = "it searches the document; press tab first"
NO_MATCH: Final = "no search has found anything here"
ONLY_MATCH: Final = "there is no other match"
NO_LINKS: Final = "there are no links here"
NO_EARLIER: Final = "there is no earlier reason"
NO_LATER: Final = "there is no later reason"
NO_EQUAL: Final = "no other call is waiting that could be denied with this one"
HELP_OPEN: Final = "this page only lists the keys"
QUESTION: Final = "answer the question first"


def again(why: str, key: str) -> str:
    """Return *why*, and that the same key can be pressed again."""
    return f"{why} Press {key} again."


def press_again(why: str, key: str) -> str:
    """Return *why*, which ends in what comes before the press, and the key."""
    return f"{why} press {key} again."


def did_nothing(key: str, why: str) -> str:
    """Return that *key* did nothing, and why."""
    return f"{key} did nothing: {why}."


def on_hold(key: str, resume: str) -> str:
    """Return that *key* did nothing while all calls are on hold, and what resumes them."""
    return f"{key} did nothing: all calls are on hold. {resume} resumes them."


def unknown_key(key: str, help_key: str) -> str:
    """Return that *key* has no meaning here, and which one lists those that have."""
    return f"{key} does nothing here. {help_key} lists the keys."


def left_ended_row(key: str, *, another: bool) -> str:
    """Return that *key* only left a row that has ended; *another* one that waits is shown."""
    shown = "The next waiting item is now shown." if another else "Nothing else is waiting."
    return f"{key} decided nothing: that row had ended. {shown}"


def left_other_row(key: str, *, another: bool) -> str:
    """Return that *key* only left a row that the filter lets through no more."""
    shown = "The next match is now shown." if another else "Nothing else matches."
    return f"{key} decided nothing: that row no longer matches. {shown}"


def in_reader(key: str) -> str:
    """Return why a key does nothing while the document has the whole screen; *key* leaves it."""
    return f"this page is only for reading; {key} goes back"
