"""Any JSON value, and any value of a kind of the console's port, for Hypothesis."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from aileron_core.vault.secret import Secret

_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
FINITE = st.integers() | _FLOATS


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


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_PLAIN: Mapping[Any, Any] = {bool: st.booleans(), int: st.integers(), float: _FLOATS}


def values(kind: Any, text: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[Any]:
    """Return every field filled, also those with defaults; *text*: what stands in each."""
    origin, of = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{name: values(hint, text) for name, hint in hints.items()})
    if origin in (Union, UnionType):
        return st.one_of([values(each, text) for each in of])
    if origin is Literal:
        return st.sampled_from(of)
    if origin is tuple and of[-1] is Ellipsis:
        return st.lists(values(of[0], text), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(values(each, text) for each in of))
    if origin is Mapping:
        return st.dictionaries(text, text | st.integers(), max_size=2)
    if kind is NoneType:
        return st.none()
    if kind is Secret:
        return text.map(Secret)
    return text if kind is str else _PLAIN[kind]
