"""The sentences of the console without a screen (`aileron console --plain`)."""

from collections.abc import Sequence
from typing import Final

PROMPT: Final = "> "
STARTS: Final = "Aileron in plain mode. Press Enter after each key."
CHANGED_MEANWHILE: Final = "The item changed before you answered. Nothing was decided."
SEVERAL_LINES: Final = "More than one line arrived at once. Nothing was decided."
NOTHING_ELSE: Final = "Nothing else is waiting."
HELD: Final = "All calls are on hold."
RELEASED: Final = "Calls resume."
ASKED_AGAIN: Final = "Fetching the preview again."
NO_ANSWER_YET: Final = "Still running. The result will appear here."
ENDS: Final = "Closing the console. Waiting calls keep waiting."
REST: Final = "Anything typed before the > appears is ignored."

LOCKED: Final = "Press Enter to show everything again; it does nothing else."
LEFT_ALONE: Final = "Cancelled. Nothing was stopped or ended."
ALL_SHOWN: Final = "The filter is off; everything is shown."
VERIFYING: Final = "Verifying every record …"
STOP: Final = "stop"
"""What can be typed in place of the key that stops everything."""

HELP: Final = (
    ("n", "print the next waiting item"),
    ("2 7", "print row 7 of view 2 in full; also in views 4 and 5; in view 3, record 7"),
    ("/ agent:codex", "show only what matches; / alone shows all"),
    (STOP, "stop everything; asks first"),
    ("┃", "marks what Aileron fetched or computed"),
    ("┊", "marks what the agent claims"),
    ("│", "marks what is in the audit"),
)
SAYS: Final = "says"
"""Before a name that is its bearer's own word."""


def keys(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the keys that do something now, each with what it does."""
    return "Keys: " + ", ".join(f"{key} {label}" for key, label in pairs) + "."


def no_effect(typed: str) -> str:
    """Return that *typed*, which was rendered, does nothing here."""
    return f"{typed} does nothing here now. Nothing was decided. ? lists the keys."


def reason_too_long(most: int) -> str:
    """Return that a reason cannot be sent."""
    return f"A reason can have at most {most:,} characters. Nothing was decided."


def more_wait(count: int, newest: str) -> str:
    """Return how many calls came; *newest* is an action's name."""
    verb = "more call arrived" if count == 1 else "more calls arrived"
    return f"{count} {verb}; the newest: {newest}."


def files_wait(count: int, key: str) -> str:
    """Return that files are not accepted."""
    verb = "file is" if count == 1 else "files are"
    return f"{count} {verb} not accepted; {key} shows them."


def and_more(count: int) -> str:
    """Return that a list goes on."""
    return f"and {count:,} more"


def more_rows(count: int, key: str) -> str:
    """Return that a list goes on, and what lists on."""
    return f"{and_more(count)}; {key} shows more."


def no_row(number: str) -> str:
    """Return that there is no row of the number that was typed; it was rendered."""
    return f"There is no row {number} here. Nothing was decided."


def reading(number: str) -> str:
    """Return that a record or a call is being read."""
    return f"Reading {number} …"


def not_read(number: str) -> str:
    """Return that a record could not be read."""
    return f"Record {number} could not be read."


def asks_again(key: str, label: str) -> str:
    """Return what the second answer does, and any other."""
    return f"{key} again: {label}. Anything else cancels."


def looks_again_at(key: str, title: str) -> str:
    """Return what the key does about a call whose end nobody knows. *title* was rendered."""
    return f"{key} looks again at: {title}"


def changes_too_fast(back: str, stop: str) -> str:
    """Return why the console turned to what happened, and what leads back or ends it."""
    return f"This changes too fast to decide on. {back} goes back; {stop} stops everything."


def in_shell(command: str) -> str:
    """Return where to do what this console does not ask about. *command* was rendered."""
    return f"To do this, type in another terminal: {command}"
