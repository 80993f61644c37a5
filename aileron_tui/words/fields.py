"""Marks on the values of a document. Nothing from outside can write their brackets."""

from typing import Final

TEXT: Final = "‹text›"
CLOSING: Final = "›"


def list_of(count: int) -> str:
    """Return the mark above a list that has one item a line."""
    return f"‹list of {count}›"


def opening(count: int) -> str:
    """Return how the mark above values begins whose names it then gives."""
    return "‹stands there as " if count == 1 else f"‹{count} values, under "


def several(count: int) -> str:
    """Return what the head says after a label to which the answer has more than one value."""
    return f": {count} values"
