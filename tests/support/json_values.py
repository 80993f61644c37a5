"""Any JSON value, for Hypothesis."""

from typing import Any

from hypothesis import strategies as st

FINITE = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def json_values(
    text: st.SearchStrategy[str] | None = None, numbers: st.SearchStrategy[float] = FINITE
) -> st.SearchStrategy[Any]:
    """Return values whose texts, and keys, are any text or of *text*."""
    text = st.text() if text is None else text
    return st.recursive(
        st.none() | st.booleans() | numbers | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )
