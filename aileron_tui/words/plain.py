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
ASKED: Final = {
    "pause": "Pausing …",
    "refresh": "Fetching the preview again.",
}
"""What is said at once of a command that asks the core for something and decides nothing."""
NO_ANSWER_YET: Final = "Still running. The result will appear here."
ENDS: Final = "Closing the console. Waiting calls keep waiting."
REST: Final = "Anything typed before the > appears is ignored."

LOCKED: Final = "Press Enter to show everything again; it does nothing else."
LEFT_ALONE: Final = "Cancelled. Nothing was stopped or ended."
STOP: Final = "stop"
"""What can be typed in place of the key that stops everything."""
DEVICES: Final = "devices"
GRANTS: Final = "grants"

HELP: Final = (
    ("n", "print the next waiting item"),
    ("1", "print the item again"),
    (STOP, "stop everything; asks first"),
    (DEVICES, "list the paired browsers and consoles; with a number, confirm or end one"),
    (GRANTS, "list the grants; with the name of one, end it"),
    ("┃", "marks what Aileron fetched or computed"),
    ("┊", "marks what the agent claims"),
)


def keys(pairs: Sequence[tuple[str, str]]) -> str:
    return "Keys: " + ", ".join(f"{key} {label}" for key, label in pairs) + "."


def no_effect(typed: str) -> str:
    """Return that *typed*, which was rendered, does nothing here."""
    return f"{typed} does nothing here now. Nothing was decided. ? lists the keys."


def reason_too_long(most: int) -> str:
    return f"A reason can have at most {most:,} characters. Nothing was decided."


def files_wait(count: int, key: str) -> str:
    verb = "file is" if count == 1 else "files are"
    return f"{count} {verb} not accepted; {key} shows them."


def asks_again(key: str, label: str) -> str:
    return f"{key} again: {label}. Anything else cancels."


def about_devices(count: int) -> str:
    """Return how to go on after the list of *count* devices."""
    return f"{DEVICES} NUMBER asks about one." if count else "No device is paired."


def no_grant(name: str) -> str:
    return f"There is no grant {name}; {GRANTS} lists them."


def about_grants(count: int) -> str:
    """Return how to go on after the list of *count* grants."""
    return f"{GRANTS} NAME ends one." if count else "There are no grants."


def changes_too_fast(key: str) -> str:
    """Return that nothing is asked about, and what asks again or stops everything."""
    return f"This changes too fast to decide on. {key} goes on; {STOP} stops everything."


def in_shell(command: str) -> str:
    """Return where to do what this console does not ask about. *command* was rendered."""
    return f"To do this, type in another terminal: {command}"


def next_of(count: int) -> str:
    """Return what the key for the next item does; *count*: how many wait besides."""
    return f"next ({count} more)"
