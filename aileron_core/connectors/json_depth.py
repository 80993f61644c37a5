"""How deep an output may be nested. Deeper ones pass one JSON reader and break the next."""

from collections.abc import Mapping
from typing import Final

from aileron_core.canonical import Json

MAX_DEPTH: Final = 200
"""Levels of an op's output: a row, the digest and an agent's reader have to bear it too."""

# Level by level and scalars first: an output may hold a million values, and a loop waits for this.
_SCALARS = (str, int, float, type(None))


def deeper_than(levels: int, value: Json) -> bool:
    """Tell whether objects and arrays stand more than *levels* deep in one another in *value*."""
    level = [] if isinstance(value, _SCALARS) else [value]
    for _ in range(levels):
        if not level:
            return False
        level = [
            item
            for found in level
            for item in (found.values() if isinstance(found, (dict, Mapping)) else found)
            if not isinstance(item, _SCALARS)
        ]
    return bool(level)


def is_small(value: Json, most: int = 2_000) -> bool:
    """Tell whether *value* has at most *most* values and 64 times as many characters in its texts.

    What is small may be walked or written in the loop; anything else would keep other calls waiting.
    """
    left, characters, stack = most, 64 * most, [value]
    while stack:
        found = stack.pop()
        if isinstance(found, str):
            characters -= len(found)
        elif not isinstance(found, _SCALARS):
            left -= len(found)
            if left < 0:
                return False
            stack.extend(found.values() if isinstance(found, Mapping) else found)
        if characters < 0:
            return False
    return True
