"""The one codec of the port: intents, events and the views in them, as JSON.

A frame is an object with one member: the name of an intent or an event, and its fields. One that cannot
be read ends its connection.
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port.events import CoreEvent
from aileron_core.console_port.intents import Intent
from aileron_core.devices.signed import commitment
from aileron_core.vault.secret import Secret

_T = TypeVar("_T")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_TEXT: Final = 16 * 1024
"""Characters of a field of an intent."""
_EVENTS: Final[Mapping[str, type]] = {each.__name__: each for each in get_args(CoreEvent)}


def to_frame(message: Intent | CoreEvent) -> JsonObject:
    """Return *message* as it goes over the wire. An intent's secrets are in it: it is sent, and kept nowhere."""
    return {type(message).__name__: to_json(message)}


RANDOM_BYTES: Final = 32


def fresh_randoms(intent: Intent) -> Mapping[str, bytes]:
    """Return a random value for each field of *intent* that no record may hold, for `to_signed`."""
    return {each.name: secrets.token_bytes(RANDOM_BYTES) for each in _off_record(intent)}


def to_signed(intent: Intent, randoms: Mapping[str, bytes]) -> JsonObject:
    """Return *intent* as it is signed and kept: a commitment in place of each value that no record may hold.

    Raises:
        ValueError: *randoms* has not one value for each of those fields, and no other.
    """
    stored = {each.name: _encoded(getattr(intent, each.name)) for each in fields(intent)}
    hidden = {each.name: str(stored[each.name]).encode() for each in _off_record(intent)}
    if randoms.keys() != hidden.keys():
        raise ValueError("a secret is without its random value, or one is of nothing")
    made = {name: {"commitment": commitment(randoms[name], hidden[name])} for name in hidden}
    return {type(intent).__name__: {**stored, **made}}


def _off_record(intent: Intent) -> tuple[Field[Any], ...]:
    return tuple(
        each
        for each in fields(intent)
        if "off_record" in each.metadata or isinstance(getattr(intent, each.name), Secret)
    )


def intent_from_frame(frame: Mapping[str, Any], kinds: Mapping[str, type[_T]]) -> _T:
    """Read an intent of one of *kinds*, by name; a field that its kind has not is refused.

    Raises:
        ValueError: it is none. The message quotes nothing of it.
    """
    kind, stored = _opened(frame, kinds)
    texts = [each for each in stored.values() if isinstance(each, str)]
    if any(len(each) > _MAX_TEXT or _LONE_SURROGATE.search(each) for each in texts):
        raise ValueError("a field is too long, or not text")
    intent = from_json(kind, stored)
    if stored.keys() - _hints(kind):
        raise ValueError(f"{kind.__name__} has a field too many")
    return intent


def event_from_frame(frame: Mapping[str, Any]) -> CoreEvent:
    """Read an event, also one of a version with fewer or more fields that have defaults.

    Raises:
        ValueError: it is none.
    """
    return cast("CoreEvent", from_json(*_opened(frame, _EVENTS)))


def _opened(
    frame: Mapping[str, Any], kinds: Mapping[str, type[_T]]
) -> tuple[type[_T], dict[str, Any]]:
    if len(frame) != 1:
        raise ValueError("a frame has one member")
    ((name, stored),) = frame.items()
    if name not in kinds or not isinstance(stored, dict):
        raise ValueError("it is of no known kind")
    return kinds[name], cast("dict[str, Any]", stored)


def to_bytes(content: JsonObject) -> bytes:
    """Return JSON as it is sent. Read and written again, it is the same bytes."""
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def to_json(value: object) -> JsonObject:
    """Return a value of the port, with what is in it."""
    return cast("JsonObject", _encoded(value))


def from_json(kind: type[_T], stored: object) -> _T:
    """Read what `to_json` returned, also in a version with fewer or more fields that have defaults.

    Raises:
        ValueError: it is no such value. The message quotes nothing of it.
    """
    return cast("_T", _decoded(kind, stored))


def _encoded(value: Any) -> Json:
    if is_dataclass(value):
        return {each.name: _encoded(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_encoded(each) for each in cast("tuple[Any, ...]", value)]
    return value.reveal_text() if isinstance(value, Secret) else value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decoded(kind: Any, value: Any) -> Any:
    """Return *value* as *kind*, one of those that the port is made of."""
    origin, of = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value)
    if origin in (Union, UnionType):
        if value is None and NoneType in of:
            return None
        (kind,) = (each for each in of if each is not NoneType)
        return _decoded(kind, value)
    if origin is Literal and type(value) in (str, int) and value in of:
        return value
    if origin is tuple and isinstance(value, list):
        return _tuple(of, cast("list[Any]", value))
    if origin is Mapping and isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    if kind in (str, bool, int) and type(value) is kind:
        return value
    raise ValueError("a value is not of its type")


def _tuple(of: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    kinds = (of[0],) * len(items) if of[-1] is Ellipsis else of
    return tuple(_decoded(kind, item) for kind, item in zip(kinds, items, strict=True))


def _dataclass(kind: type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__} is no object")
    stored, hints = cast("dict[str, Any]", value), _hints(kind)
    found: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in stored:
            found[each.name] = _decoded(hints[each.name], stored[each.name])
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{kind.__name__} lacks {each.name!r}")
    return kind(**found)
