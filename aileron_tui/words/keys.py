"""Sentences on the keys that a person gives to actions, and on what can be done with a key."""

from collections.abc import Sequence
from typing import Final

from aileron_core.text import escape

PALETTE: Final = "every command by name"
PALETTE_NONE: Final = "No command matches here."
IN_DOCUMENT: Final = "The keys now move in the document; / searches it. tab: back to the list."
IN_LIST: Final = "The keys move in the list again."
ENDED_TOO: Final = "all of ended sessions"
SOURCE: Final = "source"
"""What the key of `unfold` shows where a text is drawn in another form."""
FOLD: Final = "fold again"
"""What the key of `unfold` does where code points stand already."""
ITS_CALL: Final = "the call"
WHAT_WAITS: Final = "waiting"
"""What a key does where its page is shown already."""
HELP: Final = "KEYS"
HELP_STANDING: Final = "WARNINGS"
HELP_VIEWS: Final = "waiting, activity, audit, actions, sessions"
HELP_SIGNS: Final = "SIGNS"
HELP_GLYPHS: Final = (
    ("●", "waiting, preview fetched"),
    ("◌", "preview being fetched"),
    ("○", "waiting without a preview; not connected"),
    ("▲", "changed, or needs attention"),
    ("◇", "waiting for the vault or an account"),
    ("▶", "running"),
    ("✓", "approved, or done"),
    ("✗", "denied, failed or refused"),
    ("–", "expired"),
    ("←", "withdrawn by its agent"),
    ("?", "unknown outcome; unverified agent"),
    ("!", "a file with a problem"),
    ("┃", "fetched or computed by Aileron"),
    ("│", "from the audit"),
    ("┊", "claimed by the agent"),
)


def help_rest(seconds: float) -> tuple[str, str]:
    """Return when a key counts."""
    return (
        "A filled key acts at once; one with … asks first.",
        f"A key counts once the item and the keyboard have been still for {seconds:g} s.",
    )


def no_action(close: Sequence[str]) -> str:
    """Return that there is no action of that name, and which is meant perhaps."""
    return (
        f"is not a command; did you mean {close[0]}?"
        if close
        else "is not a command; ? lists the keys"
    )


def fixed(key: str) -> str:
    """Return that an action keeps its key."""
    return f"always has the key {key}, which cannot be changed"


def no_key(text: str) -> str:
    """Return that something is not a key."""
    return f"{escape(text)} is not a key; use one character, or a name such as space, home, f5 or ctrl+f"


def not_alone(text: str) -> str:
    """Return that a key cannot decide."""
    message = f"{escape(text)} cannot be a key that decides; use one character"
    return f"{message}, without ctrl or alt, and not esc or enter"


def shared(key: str, other: str, *, both: bool) -> str:
    """Return that two actions would share a key."""
    text = f"{key} is already the key of {other}"
    if both:
        return f"{text}; two actions that decide cannot share a key"
    return f"{text}; give {other} another key too"


def press_key(key: str, label: str) -> str:
    """Return what does what was clicked."""
    return f"Press {key} to {label}. The mouse decides nothing."
