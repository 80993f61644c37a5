"""The request envelope that a guest hands to the host (FACTS C.2).

It may be as large as a body, so it is not parsed as a whole: 32 MiB of `{}` would cost half a
gigabyte and stop every other thread for seconds. A text may be large, anything else may not.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["Envelope", "read_envelope"]

_MAX_MEMBERS = 64
_MAX_PART = 256 * 1024
"""Characters of a member that is no text: the headers, mostly."""
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A request as the guest asked for it."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    credential: str | None


def read_envelope(data: bytes) -> Envelope:
    """Read an envelope; keys that are not known are ignored.

    Raises:
        ValueError: it is malformed; the message names the part, never its value.
    """
    try:
        fields = _members(data.decode("utf-8", "replace"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError("the request is not a JSON object") from error
    url = _text(fields, "url")
    if not url:
        raise ValueError("the request names no url")
    headers = fields.get("headers")
    entries = cast("dict[str, Any]", {} if headers is None else headers)
    if not isinstance(headers, dict | None) or not all(
        isinstance(v, str) for v in entries.values()
    ):
        raise ValueError("the request's headers are not an object of strings")
    body = _text(fields, "body")
    return Envelope(
        method=(_text(fields, "method") or "GET").upper(),
        url=url,
        headers=entries,
        body=None if body is None else _utf8(body),
        credential=_text(fields, "credential") or None,
    )


def _members(text: str) -> dict[str, Any]:
    """Return the members of the one JSON object that *text* is; of equal keys the last counts.

    Raises:
        json.JSONDecodeError, RecursionError: it is none.
        ValueError: it has too many members, or too large ones.
    """
    found: dict[str, Any] = {}
    at = _after(text, "{", 0)
    if text.startswith("}", at):
        return _whole(text, at, found)
    for _ in range(_MAX_MEMBERS):
        if not text.startswith('"', at):
            raise json.JSONDecodeError("no key", "", 0)
        key, at = _decode(text, at)
        found[key], at = _value(text, _after(text, ":", at))
        at = _skip(text, at)
        if text.startswith("}", at):
            return _whole(text, at, found)
        at = _after(text, ",", at)
    raise ValueError(f"the request has more than {_MAX_MEMBERS} members")


def _whole(text: str, at: int, found: dict[str, Any]) -> dict[str, Any]:
    """Return *found* if the object that ends at *at* is all there is."""
    if _after(text, "}", at) != len(text):
        raise json.JSONDecodeError("more than one object", "", 0)
    return found


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return the value at *at*, and where it ends."""
    if text.startswith('"', at):
        return _decode(text, at)
    part = text[at : at + _MAX_PART]
    try:
        value, size = _decode(part)
    except json.JSONDecodeError as error:
        if len(part) < _MAX_PART:
            raise
        raise ValueError(f"a part of the request is larger than {_MAX_PART} bytes") from error
    return value, at + size


def _after(text: str, mark: str, at: int) -> int:
    """Return where the next thing begins after *mark*, which has to come next."""
    at = _skip(text, at)
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"no {mark}", "", 0)
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the request's {key} is not a string")
    return value


def _utf8(text: str) -> bytes:
    """Encode *text*; a lone surrogate, which JSON can spell, becomes U+FFFD as in Go."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
