"""Sentences on filters."""

from collections.abc import Sequence
from typing import Final

from aileron_core.text import escape

NONE: Final = "No item matches "
SHOW_ALL: Final = "  esc shows all"
SEARCHING: Final = "Searching …"


def bad_age(value: str) -> str:
    if not value:
        return "age: needs a time, such as age:5m or age:>2h."
    return f"{escape(value)} is not a time. Write age:5m or age:>2h; the units are s, m, h, d."


def unknown_field(name: str, known: Sequence[str]) -> str:
    """Return that rows have nothing of that name, and what they have."""
    names = ", ".join(f"{each}:" for each in known)
    return f"This list has no {escape(name)}: filter. Use {names} or words; quote a phrase."


def empty_field(name: str) -> str:
    """Return that a field was named and nothing said of it."""
    return f"{escape(name)}: needs a value, such as {escape(name)}:x."


def counted(shown: int, total: int) -> str:
    """Return how many rows a filter lets through."""
    return f"{shown:,} of {total:,} match"


def show_all(total: int) -> str:
    return f". esc shows all {total:,}."


def matches(count: int) -> str:
    """Return how many rows a filter has found so far."""
    return f"{count} found for"
