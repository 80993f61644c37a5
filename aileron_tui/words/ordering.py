"""Words on the order of the waiting list."""

from typing import Final

BY_DEADLINE: Final = "by deadline"


def newer(count: int) -> str:
    """Return how many calls came after the list was put in order."""
    return f"{count:,} new at the end"
