"""A person's other devices: how each is paired, and what it signs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from aileron_core.canonical import Json

DeviceKind: TypeAlias = Literal["page", "console"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """With what a person answered."""

    name: str
    """`console`, `attached 2`, or a device's three words with hyphens."""
    proof: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What the record keeps of what a device signed; empty of the console, whose keys are pressed in its process."""

    require: Callable[[], object] = lambda: None
    """Raises where this hand may not answer any more; asked last, while nothing else changes the call."""

    def details(self) -> dict[str, Json]:
        """Return what the record of the answer says of it."""
        return {"hand": self.name, **self.proof}

    def mark(self) -> dict[str, Json]:
        """Return what any other record says of it: nothing of the console."""
        return {} if self.name == CONSOLE.name else self.details()


CONSOLE: Final = Hand(name="console")


def answered(hand: str, state: str, at: float) -> str:
    """Return whose answer counted, as a clause: `attached 2 approved it at 14:03:11`, by this machine's clock.

    Args:
        hand: as a person is told it.
        state: of the call, from then on.
    """
    did = "denied" if state == "denied" else "approved"
    said = f"{hand} {did} it at {time.strftime('%H:%M:%S', time.localtime(at))}"
    return (
        said
        if state in ("denied", "approved", "checking", "executing")
        else f"{said}; it is {state} now"
    )
