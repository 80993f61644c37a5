"""JSON values and their one canonical text (JCS, RFC 8785), the base of digest and audit."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from json.encoder import encode_basestring_ascii
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


SLICE = 8 * 1024


def dumped(value: object, *, in_turns: bool = False) -> str | None:
    """Return *value* as JSON in ASCII, as it is stored; None of None. No step holds the interpreter lock for long.

    Args:
        in_turns: whether other threads have their turn meanwhile, even where this one is a busy one.
    """
    encode = _encode_in_turns if in_turns else _encode
    return None if value is None else "".join(encode(value, 0))


def _encoded(text: str, parts: Callable[[str], Iterator[str]]) -> str:
    if len(text) <= SLICE:
        return encode_basestring_ascii(text)
    return f'"{"".join(encode_basestring_ascii(each)[1:-1] for each in parts(text))}"'


def _slices(text: str) -> Iterator[str]:
    return (text[at : at + SLICE] for at in range(0, len(text), SLICE))


def slices_in_turns(text: str) -> Iterator[str]:
    """Yield *text* in parts, and let other threads have their turn before each."""
    for each in _slices(text):
        time.sleep(0)
        yield each


def json_encoder(
    encoded: Callable[[str], str], key_separator: str, item_separator: str
) -> Callable[[object, int], Sequence[str]]:
    """Return what `json.dumps` calls, with *encoded* as what writes a text: `json.dumps` lets nobody say that."""
    make: Any = vars(json.encoder)["c_make_encoder"]
    default = json.JSONEncoder().default
    return make(None, default, encoded, None, key_separator, item_separator, False, False, True)


_encode = json_encoder(partial(_encoded, parts=_slices), ":", ",")
_encode_in_turns = json_encoder(partial(_encoded, parts=slices_in_turns), ":", ",")


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
