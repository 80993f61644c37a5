"""How many variants of a test run: a few in `make test`, all of them in `make test-all`."""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
ALL = "AILERON_TEST_ALL" in os.environ


def variants(values: Iterable[T], usual: int = 1) -> list[T]:
    """Return all of *values* in `make test-all`, the first *usual* of them otherwise."""
    return list(values)[: None if ALL else usual]
