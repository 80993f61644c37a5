"""Sentences on filters."""

from collections.abc import Sequence
from typing import Final

from aileron_core.text import escape

QUESTION: Final = "Show which rows?"
PLACEHOLDER: Final = "words, agent:codex action:send state:pending age:5m"
NONE: Final = "No item matches "
SHOW_ALL: Final = "  esc shows all"


def bad_age(value: str) -> str:
    """Return what is wrong with the value of `age:`."""
    if not value:
        return "age: wants a time, as in age:5m or age:>2h."
    return f"{escape(value)} is no age. Say it as in age:5m or age:>2h; units are s, m, h, d."


def unknown_field(name: str, known: Sequence[str]) -> str:
    """Return that rows have nothing of that name, and what they have."""
    names = ", ".join(f"{each}:" for each in known)
    return f"No {escape(name)}: in this list. It has {names} and words; quote what is one word."


def empty_field(name: str) -> str:
    """Return that a field was named and nothing said of it."""
    return f"{escape(name)}: wants a value, as in {escape(name)}:x."


def counted(shown: int, total: int) -> str:
    """Return how many rows a filter lets through."""
    return f"{shown:,} of {total:,} match"


def show_all(total: int) -> str:
    """Return the way back from a filter that lets nothing through."""
    return f". esc shows all {total:,}."


def matches(count: int) -> str:
    """Return how many rows a filter has found so far."""
    return f"{count} found for"
