"""The checks of `aileron doctor`: agents, machine, uncontained agents, Aileron's own code, the home."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "broken"]
"""`broken` alone makes the command fail: something that was asked for cannot work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence of the report and its severity."""

    level: Level
    topic: str
    text: str
    """May hold names from outside: escape it before it is drawn."""

    def to_json(self) -> dict[str, str]:
        """Return the object that `doctor --json` prints."""
        return {"level": self.level, "topic": self.topic, "text": self.text}
