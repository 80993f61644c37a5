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
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def parse_object(data: bytes | bytearray | str, what: str) -> JsonDict:
    """Return the object in *data*; *what* names it in an error.

    Raises:
        ModelFormatError: not one JSON object in UTF-8, a key twice, nested deeper than 200, a
            number out of range.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        if len(text) > MAX_VALUES and _count(text, ",[{") > MAX_VALUES:
            raise _Refused("it has too many values")
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise _Refused("it is no JSON object")
        if _count(text, "[{") > MAX_DEPTH and _is_deeper(cast("JsonDict", value), MAX_DEPTH):
            raise _Refused("it is nested too deeply")
    except RecursionError:
        raise ModelFormatError(f"Cannot read {what}: it is nested too deeply.") from None
    except UnicodeDecodeError:
        raise ModelFormatError(f"Cannot read {what}: it is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise ModelFormatError(
            f"Cannot read {what}: it is not JSON ({error.msg} at character {error.pos})."
        ) from None
    except ValueError as error:
        reason = str(error) if isinstance(error, _Refused) else "a number is too long"
        raise ModelFormatError(f"Cannot read {what}: {reason}.") from None
    return cast("JsonDict", value)


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


class _Refused(ValueError):
    """JSON by the grammar, yet not to be trusted; its text is ours."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> JsonDict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("an object has a key twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused("a number is out of range")
    return number


def _no_constant(_name: str) -> float:
    raise _Refused("a number is out of range")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_no_constant
)


def _count(text: str, marks: str) -> int:
    return sum(map(text.count, marks))


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
