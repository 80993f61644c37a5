"""The sentences of the console without a screen (`aileron console --plain`)."""

from collections.abc import Sequence
from typing import Final

PROMPT: Final = "> "
STARTS: Final = "Aileron, line by line. Each key is followed by Enter."
CHANGED_MEANWHILE: Final = "What stood there changed. What you typed decides nothing."
TOGETHER: Final = "More than one line came. Nothing was decided."
NOTHING_ELSE: Final = "Nothing else waits."
HELD: Final = "All calls are held."
RELEASED: Final = "Calls go on."
ASKED_AGAIN: Final = "Asking for the preview again."
UNDER_WAY: Final = "Still under way. Its end is told here."
ENDS: Final = "The console ends. What waits stays waiting."
REST: Final = "What you type before the > stands there is thrown away."

HELP: Final = (
    ("n", "print the next item that waits"),
    ("l", "list what waits"),
    ("┃", "before what Aileron read or worked out"),
    ("┊", "before what the agent says"),
    ("│", "before what is on record"),
)


def keys(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the keys that do something now, each with what it does."""
    return "Keys: " + ", ".join(f"{key} {label}" for key, label in pairs) + "."


def not_now(typed: str) -> str:
    """Return that *typed*, which was rendered, does nothing here."""
    return f"{typed} does nothing here now. Nothing was decided. ? tells the keys."


def reason_too_long(most: int) -> str:
    """Return that a reason cannot be sent."""
    return f"A reason has at most {most:,} characters. Nothing was decided."


def more_wait(count: int, newest: str) -> str:
    """Return how many calls came; *newest* is an action's name."""
    verb = "more call came" if count == 1 else "more calls came"
    return f"{count} {verb}; the newest: {newest}."


def files_wait(count: int, key: str) -> str:
    """Return that files are held back."""
    verb = "file is" if count == 1 else "files are"
    return f"{count} {verb} held back; {key} shows them."


def and_more(count: int) -> str:
    """Return that a list goes on."""
    return f"and {count} more"
