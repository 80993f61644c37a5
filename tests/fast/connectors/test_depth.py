"""How deep an output is, and whether it is small enough to be looked through in the loop."""

from typing import Any

from aileron_core.connectors.protocol import is_deeper_than, is_small


def test_small_is_what_has_few_values_and_short_texts() -> None:
    """Counted in every part; what is not small is not walked to its end."""
    smalls: tuple[Any, ...] = (None, {}, "x" * 1000, "x" * 1001, [1] * 100)
    for small in smalls:
        assert is_small(small, 100)
    in_parts: list[Any] = [{"a": [[1] * 60, {"b": [1] * 60}]}, {"a": ["x" * 3200, "y" * 3201]}]
    for large in ("x" * 6401, [1] * 101, *in_parts):
        assert not is_small(large, 100)


def test_depth_counts_objects_and_arrays() -> None:
    """The last level that may be there, and the first that may not."""
    assert not is_deeper_than(2, {"a": [1]})
    assert is_deeper_than(2, {"a": [[1]]})
