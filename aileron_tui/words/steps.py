"""Sentences on the steps of an action."""

from collections.abc import Sequence
from typing import Final

STEPS: Final = "STEPS"
DONE: Final = "✓ done"
ASKED: Final = "asked now, with these inputs"
FIXED: Final = "as it stands here"
RUNNING: Final = "▲ decided while running"
ASKS_AGAIN: Final = "; it stops before this step and asks you again"
RUNS_ON: Final = "; it does not ask again, for this step can be repeated"


def steps_remark(later: int) -> str:
    """Return how the steps follow each other; *later* of them are decided while running."""
    if not later:
        return "one after another"
    return f"one after another; {later} {'is' if later == 1 else 'are'} decided while running"


def step(number: int) -> str:
    """Return the label of a step."""
    return f"Step {number}"


def runs(ops: Sequence[str]) -> str:
    """Return the verb phrase of an approve key that runs several steps, their number first."""
    return f"runs {len(ops)} steps: {', '.join(ops)}"


def more_steps(count: int) -> str:
    """Return that there are *count* steps besides the one that was named."""
    return f" and {count} more {'step' if count == 1 else 'steps'}"
