"""A view of a call as JSON, and back: what is read may be of another version, or not a view at all."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port.view_models import ApprovalView


def view_to_json(view: ApprovalView) -> JsonObject:
    return cast("JsonObject", _encoded(view))


def view_from_json(stored: JsonObject) -> ApprovalView:
    """Read what `view_to_json` returned, also in a version with fewer or more fields that have defaults.

    Raises:
        ValueError: it is no such view.
    """
    return cast("ApprovalView", _decoded(ApprovalView, stored))


def _encoded(value: Any) -> Json:
    if is_dataclass(value):
        return {each.name: _encoded(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_encoded(each) for each in cast("tuple[Any, ...]", value)]
    return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decoded(kind: Any, value: Any) -> Any:
    """Return *value* as *kind*, one of those that views are made of."""
    origin, of = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value)
    if origin in (Union, UnionType):
        if value is None and NoneType in of:
            return None
        (kind,) = (each for each in of if each is not NoneType)
        return _decoded(kind, value)
    if origin is Literal and isinstance(value, str) and value in of:
        return value
    if origin is tuple and isinstance(value, list):
        return _tuple(of, cast("list[Any]", value))
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind in (str, bool, int) and type(value) is kind:
        return value
    raise ValueError("a value of a stored view is not of its type")


def _tuple(of: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    kinds = (of[0],) * len(items) if of[-1] is Ellipsis else of
    return tuple(_decoded(kind, item) for kind, item in zip(kinds, items, strict=True))


def _dataclass(kind: type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("a part of a stored view is no object")
    stored, hints = cast("dict[str, Any]", value), _hints(kind)
    found: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in stored:
            found[each.name] = _decoded(hints[each.name], stored[each.name])
        elif each.default is MISSING:
            raise ValueError("a stored view lacks a field")
    return kind(**found)
