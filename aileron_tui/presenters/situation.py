"""What each key would do at this moment: the one function that footer, voice and keys read."""

from dataclasses import dataclass
from typing import Literal

from aileron_core.control_plane.port import ApprovalView, HeldBackView
from aileron_tui.actions import DEFAULT, Registry

__all__ = ["Availability", "Block", "Situation", "availability"]

View = Literal["waiting", "activity"]
Panel = Literal["none", "deny"]
Block = Literal[
    "none",
    "lost",
    "storage",
    "small",
    "empty",
    "sending",
    "checking",
    "vault",
    "over",
    "fetching",
    "deadline",
    "drawing",
    "undrawable",
]
"""Why nothing can be approved here at all, whoever rests for however long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that says what a key may do now."""

    view: View = "waiting"
    panel: Panel = "none"
    approval: ApprovalView | None = None
    held: HeldBackView | None = None
    problem: bool = False
    """The selected row is a problem of a file: nothing there is to be decided."""
    block: Block = "empty"
    deny_block: Block = "empty"
    armed: bool = False
    unseen: int = 0
    total: int = 0
    confirmed: bool = False
    """The person pressed once and was told what is unread or unknown."""
    longer: bool = False
    """The document has more lines than its pane: there is something to read on to."""
    several: bool = False
    """More than one row to move among."""
    registry: Registry = DEFAULT
    """The keys that this console gives to the actions."""

    @property
    def needs_second(self) -> bool:
        """The first press only says what the person has not seen."""
        if self.confirmed:
            return False
        blind = self.approval is not None and self.approval.preview.status == "unavailable"
        return self.unseen > 0 or blind


@dataclass(frozen=True, slots=True)
class Availability:
    """How one key stands: in the footer or not, and whether its next press decides.

    `asks`: the key works, and asks something first (its label gets `…`).
    `filled`: the very next press decides. Neither: it is there, and does nothing yet.
    """

    shown: bool
    filled: bool = False
    asks: bool = False

    @property
    def works(self) -> bool:
        """A press does something."""
        return self.shown and (self.filled or self.asks)


_ABSENT = Availability(shown=False)
_PLAIN = Availability(shown=True, asks=True)


def availability(action: str, now: Situation) -> Availability:
    """Return how the key of *action* stands in the situation *now*."""
    if now.panel != "none":
        return _in_panel(action, now)
    match action:
        case "approve":
            return _decide(now, now.block) if now.approval is not None else _ABSENT
        case "take_in":
            return _decide(now, now.block) if now.held is not None else _ABSENT
        case "deny":
            possible = now.approval is not None and now.deny_block == "none"
            return _PLAIN if possible and now.view == "waiting" else _ABSENT
        case "refresh":
            possible = now.approval is not None and now.block in _REFRESHABLE
            return _PLAIN if possible and _has_preview(now) else _ABSENT
        case "read_on":
            return _PLAIN if now.longer else _ABSENT
        case "next":
            return _PLAIN if now.several else _ABSENT
        case _:
            return _PLAIN


_REFRESHABLE: frozenset[Block] = frozenset({"none", "deadline"})


def _has_preview(now: Situation) -> bool:
    return now.approval is not None and now.approval.preview.status != "none"


def _decide(now: Situation, block: Block) -> Availability:
    if block != "none" or now.view != "waiting":
        return _ABSENT
    if now.needs_second:
        return Availability(shown=True, asks=True)
    return Availability(shown=True, filled=now.armed)


def _in_panel(action: str, now: Situation) -> Availability:
    if action == "deny_enter":
        if now.deny_block != "none":
            return _ABSENT
        return Availability(shown=True, filled=now.armed)
    return _PLAIN if action == "deny_leave" else _ABSENT
