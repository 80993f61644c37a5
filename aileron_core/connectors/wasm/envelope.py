"""The request envelope that a guest hands to the host (FACTS C.2)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["Envelope", "read_envelope"]


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
        parsed: object = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is not JSON") from error
    if not isinstance(parsed, dict):
        raise ValueError("the request is not a JSON object")
    fields = cast("dict[str, Any]", parsed)
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


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the request's {key} is not a string")
    return value


def _utf8(text: str) -> bytes:
    """Encode *text*; a lone surrogate, which JSON can spell, becomes U+FFFD as in Go."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
