"""How deep an output may be nested. Deeper ones pass one JSON reader and break the next."""

from collections.abc import Mapping, Sequence
from typing import Final

from aileron_core.canonical import Json

__all__ = ["MAX_DEPTH", "deeper_than"]

MAX_DEPTH: Final = 200
"""Levels of an op's output: a row, the digest and an agent's reader have to bear it too."""


def deeper_than(levels: int, value: Json) -> bool:
    """Tell whether objects and arrays stand more than *levels* deep in one another in *value*."""
    waiting: list[tuple[Json, int]] = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if isinstance(found, str) or not isinstance(found, Mapping | Sequence):
            continue
        if depth > levels:
            return True
        inner = found.values() if isinstance(found, Mapping) else found
        waiting += [(item, depth + 1) for item in inner]
    return False
