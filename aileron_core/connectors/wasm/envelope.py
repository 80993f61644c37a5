"""Parsing the request that a guest passes to the host (`http_request`), within its bounds of size.

Its body may be large and is read in slices; the rest of it may not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from aileron_core.connectors.http.client import OutgoingRequest
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.wasm.json_slices import (
    MAX_STRUCTURE_BYTES,
    LongString,
    MalformedString,
    StructureTooLarge,
    YieldControl,
    load_json,
)

_MAX_BODY: Final = 16 * MIB
_MAX_REST: Final = MAX_STRUCTURE_BYTES
MAX_ENVELOPE: Final = _MAX_BODY + _MAX_REST
"""Bytes of an envelope; a body counts as it is spelled, escapes and all."""
_MAX_MEMBERS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(OutgoingRequest):
    """An HTTP request as the guest asked for it."""

    credential: str | None


def read_envelope(data: bytes, yield_control: YieldControl) -> Envelope:
    """Parse an envelope; unknown keys are ignored.

    Args:
        data: its bytes; invalid UTF-8 becomes U+FFFD.
        yield_control: called between the slices of a large one; its exceptions propagate.

    Raises:
        ValueError: it is malformed or too large; the message names the part, never its value.
    """
    fields = _members(data, yield_control)
    url = _text(fields, "url", yield_control)
    if not url:
        raise ValueError("the request has no url")
    return Envelope(
        method=(_text(fields, "method", yield_control) or "GET").upper(),
        url=url,
        headers=_headers(fields.get("headers"), yield_control),
        body=_body(fields, yield_control),
        credential=_text(fields, "credential", yield_control) or None,
    )


def _members(data: bytes, yield_control: YieldControl) -> dict[str, Any]:
    """Return the members of the JSON object in *data*; of duplicate keys the last counts."""
    too_large = f"the request without its body is larger than {_MAX_REST} bytes"
    try:
        parsed: object = load_json(
            data, yield_control, convert_long_string=lambda text: text, errors="replace"
        )
    except StructureTooLarge as error:
        raise ValueError(too_large) from error
    except MalformedString as error:
        raise ValueError(f"the request cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is not a JSON object") from error
    if not isinstance(parsed, dict):
        raise ValueError("the request is not a JSON object")
    fields = cast("dict[str, Any]", parsed)
    if len(fields) > _MAX_MEMBERS:
        raise ValueError(f"the request has more than {_MAX_MEMBERS} members")
    body = fields.get("body")
    size = len(body) if isinstance(body, LongString) else 0
    if size > _MAX_BODY:
        raise ValueError(f"the request's body is larger than {_MAX_BODY} bytes")
    if len(data) - size > _MAX_REST:
        raise ValueError(too_large)
    return fields


def _headers(headers: Any, yield_control: YieldControl) -> dict[str, str]:
    entries = cast("dict[str, Any]", {} if headers is None else headers)
    if not isinstance(headers, dict | None) or not all(
        isinstance(value, str | LongString) for value in entries.values()
    ):
        raise ValueError("the request's headers are not an object of strings")
    return {key: _decoded("headers", value, yield_control) for key, value in entries.items()}


def _body(fields: Mapping[str, Any], yield_control: YieldControl) -> bytes | None:
    body = fields.get("body")
    if not isinstance(body, LongString):
        text = _text(fields, "body", yield_control)
        return None if text is None else text.encode()
    try:
        return body.utf8(yield_control, "replace")
    except ValueError as error:
        raise ValueError(f"the request's body cannot be read: {_why(error)}") from error


def _text(fields: Mapping[str, Any], key: str, yield_control: YieldControl) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str | LongString):
        raise ValueError(f"the request's {key} is not a string")
    return None if value is None else _decoded(key, value, yield_control)


def _decoded(key: str, value: str | LongString, yield_control: YieldControl) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.text(yield_control, "replace")
    except ValueError as error:
        raise ValueError(f"the request's {key} cannot be read: {_why(error)}") from error


def _why(error: ValueError) -> str:
    """Return what is wrong with a text, without quoting it."""
    return str(error) if isinstance(error, MalformedString) else "it contains a control character"
