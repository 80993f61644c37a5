"""Which tests run: a few variants of each in `make test`, all in `make test-all`; none without what it needs."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
ALL = "AILERON_TEST_ALL" in os.environ
needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None or not Path("/usr/bin/python3").exists(),
    reason="needs bubblewrap and a system Python",
)


def variants(values: Iterable[T], usual: int = 1) -> list[T]:
    """Return all of *values* in `make test-all`, the first *usual* of them otherwise."""
    return list(values)[: None if ALL else usual]
