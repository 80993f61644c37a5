"""The sentences about paired devices: browsers and other consoles that may decide."""

from collections.abc import Sequence
from typing import Final

MAKING: Final = "Making a link …"
OPENED: Final = "It was opened in your browser."
NOT_OPENED: Final = "The browser could not be opened. Open the link yourself:"
NO_BROWSER: Final = "No browser can be opened from here. Open the link in one:"
OPENING: Final = "Opening it in your browser …"
ELSEWHERE: Final = "From another machine:"
NO_ROOM: Final = "In a larger window, the link is shown as a QR code too."
EXPIRED: Final = (
    "The link is over: its minute has passed, or a program that was refused used it up."
)
NEVER_TYPED: Final = (
    "Open it as an address. A page that asks you to type or paste it is not Aileron's."
)
COPIED: Final = "The link was sent to the clipboard."
THEN: Final = "Then this console shows three words, and asks you."

KINDS: Final = {"page": "browser", "console": "console"}
SAME_WORDS: Final = "The page shows the same three words, or it is another one: then refuse."
SAME_WORDS_CONSOLE: Final = "It shows the same three words, or it is another one: then refuse."
NO_KEY_YET: Final = "it has not shown its key yet"
NOT_KNOWN: Final = "cannot be known: another user's, one that hides itself as sshd does, or this system does not tell"
HIDDEN: Final = "an executable that it does not let be read, as Aileron's own is"
OVER_SSH: Final = ", over ssh"
CONFIRMED: Final = "confirmed"
AS_MINE: Final = (
    "As mine, it may also accept files, bind accounts, pause, end sessions and stop everything."
)
IS_OWNERS: Final = "is yours"
PAGES_ANSWER: Final = "a page only answers calls"
NOT_CONFIRMED: Final = "not confirmed"
WORDS, PROGRAM, PAIRED, USED = "Words", "Program", "Paired", "Last used"
DEVICE: Final = "DEVICE"
DEVICE_REMARK: Final = "it may see and decide what waits here"
OWNERS_REMARK: Final = "it may see and decide, accept files, bind accounts, pause and stop"
UNCONFIRMED_REMARK: Final = "nobody has confirmed it: it gets nothing"
NOT_A_DEVICE: Final = "no device is selected"
LEFT: Final = "Left as it is. A link can be opened until it expires."
IS_CONFIRMED: Final = "this device is already confirmed"


def named(words: Sequence[str]) -> str:
    """Return a device's name: its three words."""
    return " · ".join(words) or "a new device"


def link(seconds: int) -> str:
    """Return what the link is for, and for how long."""
    return f"This link pairs one browser with this console, once, within {seconds} s."


def asks(kind: str) -> str:
    """Return the question about a device of *kind*."""
    if kind == "console":
        return "Let this console see all that this one shows, approve and deny?"
    return f"Let this {KINDS[kind]} see and decide what waits here?"


def process(pid: int) -> str:
    return f", process {pid}"


def wants_to_pair(kind: str, view_key: str, key: str) -> str:
    came = "asks to be attached" if kind == "console" else "has redeemed a link"
    return f"▲ A {KINDS[kind]} {came}. {view_key}, then {key} on its row, asks about it."


def confirmed(words: Sequence[str]) -> str:
    return f"✓ {named(words)} can now see and decide what waits here."


def ended(words: Sequence[str]) -> str:
    return f"The pairing of {named(words)} has ended."


def count(devices: int) -> str:
    return f"{devices} {'device' if devices == 1 else 'devices'}"


def ends(words: Sequence[str]) -> str:
    return f"End the pairing of {named(words)}?"
