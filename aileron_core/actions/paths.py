"""Paths into JSON: `message.payload.headers.To` (FACTS A.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from aileron_core.canonical import Json

__all__ = ["Located", "Place", "is_array", "lookup"]

Place = tuple[str | int, ...]
"""Where a value stands: object keys and array indexes, from the root."""

_INDEX_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value that a path led to, and its place without the header shorthand."""

    value: Json
    place: Place


def lookup(value: Json, path: str) -> Located | None:
    """Return what *path* leads to in *value*, or None for a miss; JSON null at the end is a miss.

    A segment is an object's exact key. In an array it is first a header's name (entries
    `{"name", "value"}`, matched exactly, case and all), then a decimal index.
    """
    place: Place = ()
    for segment in path.split("."):
        if isinstance(value, Mapping):
            if segment not in value:
                return None
            value, place = value[segment], (*place, segment)
        elif is_array(value):
            found = _entry(value, segment)
            if found is None:
                return None
            value, place = found.value, (*place, *found.place)
        else:
            return None
    return None if value is None else Located(value=value, place=place)


def is_array(value: Json) -> TypeGuard[Sequence[Json]]:
    """Tell whether *value* is a JSON array (text is a sequence to Python, not to JSON)."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _entry(array: Sequence[Json], segment: str) -> Located | None:
    for index, entry in enumerate(array):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            break  # not a list of headers: the shorthand ends here, an index may still fit
        if entry["name"] == segment:
            if "value" not in entry:
                return None
            return Located(value=entry["value"], place=(index, "value"))
    if segment.isascii() and segment.isdigit() and len(segment) <= _INDEX_DIGITS:
        index = int(segment)
        if index < len(array):
            return Located(value=array[index], place=(index,))
    return None
