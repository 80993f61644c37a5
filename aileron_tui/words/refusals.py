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

ATTACHED: Final = "only the console itself does this, or an attached one that is confirmed as yours"
OWNERS: Final = "only the console itself does this, not an attached one"
LOST: Final = "Aileron's server has stopped"
CUT_OFF: Final = "this console is cut off from its server"
NO_ITEM: Final = "no item is selected"
ENDED: Final = "this has ended"
UNDRAWABLE: Final = "this item cannot be shown"
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
