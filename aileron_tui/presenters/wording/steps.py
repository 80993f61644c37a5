"""Sentences on the steps of an action."""

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
