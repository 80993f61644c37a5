"""Paths into JSON: `message.payload.headers.To`, by key, header name (in any case) or index.

`lookup` is for what goes on to a service: one value, exactly where the path says. `find` is for what
a person is shown: every value that another reader of the same JSON may find at the path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

from aileron_core.canonical import Json, JsonObject

JsonPath = tuple[str | int, ...]
"""Where a value stands: object keys and array indexes, from the root."""

_INDEX_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A value that a path led to, and its place without the header shorthand."""

    value: Json
    place: JsonPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Everything that a path leads to where case does not count: at least one value, none of them null."""

    values: tuple[Json, ...]
    places: tuple[JsonPath, ...]
    spellings: tuple[str, ...] = ()
    """The names as the value has them, where a name occurs several times or in several spellings,
    or where an object's key is not written as in the path; else empty."""


def lookup(value: Json, path: str) -> Match | None:
    """Return what *path* leads to in *value*, or None for a miss; JSON null at the end is a miss.

    A segment is an object's exact key. In an array it is first a header's name (entries
    `{"name", "value"}`, matched exactly, case and all), then a decimal index.
    """
    place: JsonPath = ()
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
    return None if value is None else Match(value=value, place=place)


def find(value: Json, path: str) -> Matches | None:
    """Return everything that *path* leads to in *value*, or None for a miss.

    Names of headers and keys of objects match without regard to case: services read `BCC` as `Bcc`.
    The key that is written as in the path comes first.
    """
    matches = [Match(value=value, place=())]
    spellings: dict[str, None] = {}
    for segment in path.split("."):
        next_matches: list[Match] = []
        for each in matches:
            children = _named(each.value, segment)
            names = [name for name, _ in children]
            if len(names) > 1 or (isinstance(each.value, Mapping) and names not in ([], [segment])):
                spellings.update(dict.fromkeys(names))
            next_matches += [
                Match(value=one.value, place=(*each.place, *one.place)) for _, one in children
            ]
        matches = next_matches
    matches = [each for each in matches if each.value is not None]
    if not matches:
        return None
    return Matches(
        values=tuple(each.value for each in matches),
        places=tuple(each.place for each in matches),
        spellings=tuple(spellings),
    )


def is_array(value: Json) -> TypeGuard[Sequence[Json]]:
    """Return whether *value* is a JSON array (text is a sequence to Python, not to JSON)."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _entry(array: Sequence[Json], segment: str) -> Match | None:
    for index, entry in enumerate(array):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            break  # not a list of headers: the shorthand ends here, an index may still fit
        if entry["name"] == segment:
            if "value" not in entry:
                return None
            return Match(value=entry["value"], place=(index, "value"))
    if segment.isascii() and segment.isdigit() and len(segment) <= _INDEX_DIGITS:
        index = int(segment)
        if index < len(array):
            return Match(value=array[index], place=(index,))
    return None


def _named(value: Json, segment: str) -> list[tuple[str, Match]]:
    """Return (name as spelled there, its value) for everything in *value* that *segment* names."""
    if isinstance(value, Mapping):
        folded = segment.casefold()
        others = [key for key in value if key.casefold() == folded and key != segment]
        keys = [segment, *others] if segment in value else others
        return [(key, Match(value=value[key], place=(key,))) for key in keys]
    if not is_array(value):
        return []
    one, headers = _entry(value, segment), _headers(value, segment)
    if one is not None and one.place not in (header.place for _, header in headers):
        return [(segment, one), *headers]
    return headers


def _headers(array: Sequence[Json], segment: str) -> list[tuple[str, Match]]:
    """Return the entries `{"name", "value"}` of that name; blanks around a name are none of it."""
    folded = segment.strip().casefold()
    found: list[tuple[str, Match]] = []
    for index, entry in enumerate(array):
        # Asking for the abstract type takes most of the time of a long list.
        if entry.__class__ is not dict and not isinstance(entry, Mapping):
            continue
        header = cast("JsonObject", entry)
        name = header.get("name")
        if isinstance(name, str) and name.strip().casefold() == folded and "value" in header:
            found.append((name, Match(value=header["value"], place=(index, "value"))))
    return found
