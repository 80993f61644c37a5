"""How deep an output is, and whether it is small enough to be looked through in the loop."""

from typing import Any

import pytest

from aileron_core.connectors.protocol import is_deeper_than, is_small


@pytest.mark.parametrize(
    ("value", "small"),
    [
        (None, True),
        ({}, True),
        ("x" * 1000, True),
        ("x" * 1001, True),
        ("x" * 6401, False),
        ([1] * 100, True),
        ([1] * 101, False),
        ({"a": [[1] * 60, {"b": [1] * 60}]}, False),
        ({"a": ["x" * 3200, "y" * 3201]}, False),
    ],
)
def test_small_is_what_has_few_values_and_short_texts(value: Any, small: bool) -> None:
    """Counted in every part; what is not small is not walked to its end."""
    assert is_small(value, 100) is small


def test_depth_counts_objects_and_arrays() -> None:
    """The last level that may be there, and the first that may not."""
    assert not is_deeper_than(2, {"a": [1]})
    assert is_deeper_than(2, {"a": [[1]]})
