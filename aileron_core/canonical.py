"""JSON values and their one canonical text (JCS, RFC 8785), the base of digest and audit."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import rfc8785

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

_SAFE = 2**53


def encode_large_integers(value: Json) -> Json:
    """Return *value* with integers that JSON readers disagree on as `{"$int": "<digits>"}`."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if -_SAFE < value < _SAFE else {"$int": str(value)}
    if isinstance(value, Mapping):
        return {str(key): encode_large_integers(item) for key, item in value.items()}
    return [encode_large_integers(item) for item in value]


def canonical(value: Json) -> bytes:
    """Return the JCS text of *value*.

    Raises:
        ValueError: an integer beyond 2^53, a NaN, an infinity or a lone surrogate is in it.
    """
    try:
        return rfc8785.dumps(cast("Any", value))
    except rfc8785.CanonicalizationError as error:
        raise ValueError(str(error)) from error
    except UnicodeEncodeError as error:
        raise ValueError("a string contains a lone surrogate, which UTF-8 cannot encode") from error


def sha256_hex(data: bytes) -> str:
    """Return the lower-case SHA-256 of *data*."""
    return hashlib.sha256(data).hexdigest()


def in_utf8(value: Any) -> Any:
    """Return JSON without what UTF-8 cannot hold: the bytes of a file's name that is none become escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {name: in_utf8(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [in_utf8(each) for each in cast("list[Any]", value)]
    return value
