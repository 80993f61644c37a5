"""The words in which it is said where a person is, and what is in the way of a key."""

from dataclasses import dataclass
from typing import Literal

View = Literal["waiting", "activity", "audit", "library", "sessions", "accounts", "rules"]
BlockedBy = Literal[
    "none", "lost", "storage", "small", "empty", "sending", "checking", "vault", "over", "fetching",
    "deadline", "drawing", "undrawable",
]  # fmt: skip
"""Reasons for which nothing can be approved here, however long one waits."""
Change = Literal["cursor", "item", "list", "screen"]
"""What moved last under the person's eye."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCall:
    """A call whose steps run now."""

    run_id: str
    name: str
    """Its title, or its action's name: foreign text."""
    started_at: float
    """Epoch seconds."""
