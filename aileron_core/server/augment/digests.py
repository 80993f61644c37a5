"""What an agent's history says, as a digest that stays the same however its SDK writes it. Pure.

Agents give turns back in other shapes: a text for a list of one block, members that are null, no
thinking, moved cache markers. Only who said what, calls and results count.
"""

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from aileron_core.models.json_values import JsonDict

_TEXTS = ("text", "input_text", "output_text")
_UNREAD = ("thinking", "redacted_thinking", "reasoning")
_MARKS = ("id", "status", "cache_control", "caller")
_END = b"\0\n"
_canonical_json = json.JSONEncoder(sort_keys=True).encode
Unit: TypeAlias = tuple[str, ...]
"""`text`, who said it and what; or a call, a result, anything else."""


class HistoryDigest:
    """Reads a history item by item; the time for each depends on that item alone.

    Args:
        seed: what stands before its first item, such as `previous_response_id`.
    """

    def __init__(self, seed: str = "") -> None:
        self._hash = hashlib.sha256(_packed(seed))
        self._role = ""
        """Who said the text that was read last; empty if something else followed it."""

    def add(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if unit[0] != "text":
                self._role = ""
                self._hash.update(_END + _packed(*unit))
                continue
            _, role, text = unit
            if role != self._role:
                self._role = role
                self._hash.update(_END + _packed("text", role) + _END)
            # In pieces it is the same text, and none can contain an end.
            self._hash.update(text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\0"))

    def extended(self, items: Iterable[JsonDict]) -> "HistoryDigest":
        """Return another one that has read *items* too."""
        other = copy.copy(self)
        other._hash = self._hash.copy()  # noqa: SLF001 - of this class
        for item in items:
            other.add(units_of(item))
        return other

    @property
    def value(self) -> str:
        """The digest of what was read so far."""
        return self._hash.hexdigest()


class ReadItem(NamedTuple):
    """An item of an agent's history."""

    value: JsonDict
    units: tuple[Unit, ...]
    digest: str
    """Of the history up to its end."""


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """An agent's own history."""

    seed: str
    """See `HistoryDigest`."""
    items: tuple[ReadItem, ...]
    digest: HistoryDigest
    """Of all of it."""

    @classmethod
    def of(cls, items: Iterable[JsonDict], seed: str = "") -> "ReadHistory":
        digest = HistoryDigest(seed)
        found: list[ReadItem] = []
        for item in items:
            units = tuple(units_of(item))
            digest.add(units)
            found.append(ReadItem(item, units, digest.value))
        return cls(seed, tuple(found), digest)


def digest_of(items: Iterable[JsonDict]) -> str:
    """Return the digest of *items* alone."""
    return HistoryDigest().extended(items).value


def is_of_model(item: JsonDict) -> bool:
    """Return whether the model said *item*, in any of the formats."""
    role, kind = item.get("role"), item.get("type")
    if isinstance(role, str):
        return role == "assistant"
    return isinstance(kind, str) and not kind.endswith("_output")


def units_of(item: JsonDict) -> Iterator[Unit]:
    role, kind = item.get("role"), item.get("type")
    if isinstance(role, str) and kind in (None, "message"):
        if role == "tool":
            yield ("result", _text(item.get("tool_call_id")), _result(item.get("content")))
            return
        yield from _content(role, item.get("content"))
        for call in _objects(item.get("tool_calls")):
            function = call.get("function")
            if isinstance(function, dict):
                made = cast("JsonDict", function)
                arguments = _arguments(made.get("arguments"))
                yield ("call", _text(call.get("id")), _text(made.get("name")), arguments)
            else:
                yield ("other", _canonical(call))
    elif kind == "function_call":
        arguments = _arguments(item.get("arguments"))
        yield ("call", _text(item.get("call_id")), _text(item.get("name")), arguments)
    elif kind == "function_call_output":
        yield ("result", _text(item.get("call_id")), _result(item.get("output")))
    elif kind not in _UNREAD:
        yield ("other", _canonical(item))


def _content(role: str, content: object) -> Iterator[Unit]:
    if isinstance(content, str):
        if content:
            yield ("text", role, content)
        return
    for part in _objects(content):
        kind = part.get("type")
        if kind in _TEXTS or kind == "refusal":
            if text := _text(part.get("refusal" if kind == "refusal" else "text")):
                yield ("text", role, text)
        elif kind == "tool_use":
            arguments = _arguments(part.get("input"))
            yield ("call", _text(part.get("id")), _text(part.get("name")), arguments)
        elif kind == "tool_result":
            yield ("result", _text(part.get("tool_use_id")), _result(part.get("content")))
        elif kind not in _UNREAD:
            yield ("other", _canonical(part))


def _result(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = _objects(content)
    if parts and all(part.get("type") in _TEXTS for part in parts):
        return "".join(_text(part.get("text")) for part in parts)
    return _canonical(content)


def _arguments(given: object) -> str:
    if isinstance(given, str):
        try:
            return _canonical(json.loads(given or "{}"))
        except (ValueError, RecursionError):
            return given
    return _canonical(given)


def _canonical(value: object) -> str:
    if isinstance(value, dict):
        kept = cast("dict[str, Any]", value)
        value = {k: v for k, v in kept.items() if v is not None and k not in _MARKS}
        if value.keys() <= {"type"} and (
            id_ := kept.get("id")
        ):  # a reference: it is all that it says
            value["id"] = id_
    return _canonical_json(value)


def _packed(*texts: str) -> bytes:
    """Return *texts* as bytes that no others have."""
    return f"{[*map(len, texts)]}{''.join(texts)}".encode("utf-8", "surrogatepass")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: object) -> list[JsonDict]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("JsonDict", item) for item in items if isinstance(item, dict)]
