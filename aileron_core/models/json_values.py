"""JSON of a provider or an agent, which may be anything: read within bounds, or refused in one way.

Of a member, missing and null are the same. No message quotes what was read.
"""

import json
import math
from typing import Any, TypeAlias, cast

from aileron_core.errors import ModelFormatError

JsonDict: TypeAlias = dict[str, Any]

MAX_DEPTH = 200
MAX_VALUES = 1_000_000
"""Brackets and commas, also those in texts: reading more would hold up everything else for a second."""
_EMPTY: JsonDict = {}
_encode = json.JSONEncoder(separators=(",", ":")).encode


def parse_object(data: bytes | bytearray | str, what: str) -> JsonDict:
    """Return the object in *data*; *what* names it in an error.

    Raises:
        ModelFormatError: not one JSON object in UTF-8, a key twice, nested deeper than 200, a
            number out of range.
    """
    try:
        text = read_text(data)
        value = DECODER.decode(text)
        if not isinstance(value, dict):
            raise Refused("it is no JSON object")
        check_depth(cast("JsonDict", value), text)
    except RecursionError:
        raise ModelFormatError(f"Cannot read {what}: it is nested too deeply.") from None
    except UnicodeDecodeError:
        raise ModelFormatError(f"Cannot read {what}: it is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise ModelFormatError(
            f"Cannot read {what}: it is not JSON ({error.msg} at character {error.pos})."
        ) from None
    except ValueError as error:
        reason = str(error) if isinstance(error, Refused) else "a number is too long"
        raise ModelFormatError(f"Cannot read {what}: {reason}.") from None
    return cast("JsonDict", value)


def read_text(data: bytes | bytearray | str) -> str:
    """Return *data* as text.

    Raises:
        ValueError: it is not UTF-8, or has too many values.
    """
    text = data if isinstance(data, str) else data.decode()
    if len(text) > MAX_VALUES and count_values(text) > MAX_VALUES:
        raise Refused("it has too many values")
    return text


def count_values(text: str) -> int:
    """Return how many values JSON in *text* has at most, without reading it."""
    return sum(map(text.count, ",[{"))


def check_depth(
    value: object, text: str, begin: int = 0, end: int | None = None, *, within: int = 0
) -> None:
    """Raise Refused for a *value* that is nested too deeply.

    Args:
        text: where it was read, between *begin* and *end*.
        within: in how many objects and lists it is itself.
    """
    brackets = text.count("[", begin, end) + text.count("{", begin, end)
    if brackets > MAX_DEPTH - within and _is_deeper(value, MAX_DEPTH - within):
        raise Refused("it is nested too deeply")


def dump(value: object) -> bytes:
    """Return *value* as JSON in ASCII on one line: any reader of lines or of UTF-8 takes it."""
    return _encode(value).encode()


def text_of(value: JsonDict, key: str) -> str:
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ModelFormatError(f"Cannot read a model's message: `{key}` is no text.")
    return found


def integer_of(value: JsonDict, key: str) -> int | None:
    found = value.get(key)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ModelFormatError(f"Cannot read a model's message: `{key}` is no integer.")
    return found


def object_of(value: JsonDict, key: str) -> JsonDict:
    """Return a member that is an object, which may not be changed."""
    found = value.get(key)
    if found is None:
        return _EMPTY
    if not isinstance(found, dict):
        raise ModelFormatError(f"Cannot read a model's message: `{key}` is no object.")
    return cast("JsonDict", found)


def objects_of(value: JsonDict, key: str) -> list[JsonDict]:
    """Return a new list of the objects in a member."""
    found = value.get(key)
    if found is None:
        return []
    items: list[Any] = list(cast("list[Any]", found)) if isinstance(found, list) else [None]
    if not all(isinstance(item, dict) for item in items):
        raise ModelFormatError(f"Cannot read a model's message: `{key}` is no list of objects.")
    return items


class Refused(ValueError):
    """JSON by the grammar, yet not to be trusted; its text is ours."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> JsonDict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("an object has a key twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Refused("a number is out of range")
    return number


def _no_constant(_name: str) -> float:
    raise Refused("a number is out of range")


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_no_constant
)


def _is_deeper(value: object, levels: int) -> bool:
    level: list[Any] = [value]
    for _ in range(levels):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += cast("JsonDict", item).values()
            elif isinstance(item, list):
                below += cast("list[Any]", item)
        if not below:
            return False
        level = below
    return True
