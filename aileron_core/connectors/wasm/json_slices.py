"""Parsing large JSON of a guest's in slices, so that no step holds the interpreter lock for long.

One call of `json.loads` is one step to the interpreter, in whatever thread: 2 MiB of `{}` stop
every other thread for 40 to 70 ms, and 32 MiB of escapes for seconds. So long strings are extracted
first, in slices; the rest is small enough to be parsed at once.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from enum import Enum
from io import BytesIO
from json import scanner
from typing import Any, Final, NoReturn, TypeAlias

MAX_STRUCTURE_BYTES: Final = 256 * 1024
"""What everything but the long texts of a JSON value may take; read at once in about 3 ms."""
LONG_STRING_BYTES: Final = 64
"""From this many bytes on a text is long. Shorter ones cost about what a number does."""
SLICE_BYTES: Final = 8 * 1024
"""A slice takes about 0.2 ms, whatever the guest wrote."""
_SLICE_TOKENS: Final = 100

YieldControl: TypeAlias = Callable[[], None]
"""Called between two slices; what it raises ends the reading."""

_INSIDE_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_ENDS_KEY: Final = re.compile(rb"[ \t\n\r]*+:")
_UNITS: Final = re.compile(
    rb"(?:[^\\]++"
    rb'|\\["\\/bfnrt]'
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*+"
)
"""Characters and escapes, each whole: a pair of surrogates is one, half a pair is none."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]|NaN', re.DOTALL)
_COLON: Final = re.compile(rb"[ \t\n\r]*+:[ \t\n\r]*+")
_MOST_SPARED: Final = 4 * 1024 * 1024
_PLACEHOLDER: Final = b"NaN"
"""Replaces a string that was taken out: no JSON value, so the parser asks what it means."""
_scan = json.JSONDecoder().decode


class _LeftOut(Enum):
    TOO_LARGE = "too large"


LEFT_OUT: Final = _LeftOut.TOO_LARGE
"""In a value that was read: what was left out of it, since the whole would be too large."""


class MalformedString(ValueError):
    """A string in it is malformed; the message says how, and quotes nothing."""


class StructureTooLarge(ValueError):
    """Everything except the long strings is larger than the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it is larger than {limit} bytes, not counting long strings")


class _SlowDecoder(json.JSONDecoder):
    """Ten times slower than the usual one, and never one long step: it is no C but for one short string."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.scan_once: Any = vars(scanner)["py_make_scanner"](self)


class LongString:
    """A long JSON string, not decoded until it is needed."""

    def __init__(self, data: bytes | bytearray, start: int, end: int) -> None:
        self._data = data
        self._start = start
        self._end = end

    def __len__(self) -> int:
        """Return its encoded size in bytes, escapes included."""
        return self._end - self._start

    def text(self, yield_control: YieldControl, errors: str = "strict") -> str:
        """Decode it.

        Raises:
            ValueError: it holds an unknown escape, half a surrogate pair or a control character.
        """
        return "".join(self._parts(yield_control, errors))

    def utf8(self, yield_control: YieldControl, errors: str = "strict") -> bytes:
        """Decode it to UTF-8; see `text`. The buffer grows in place: joining 16 MiB would be one long step."""
        buffer = BytesIO()
        for part in self._parts(yield_control, errors):
            buffer.write(part.encode())
        return buffer.getvalue()

    def _parts(self, yield_control: YieldControl, errors: str) -> Iterator[str]:
        for start, end in _slices(self._data, self._start, self._end):
            yield_control()
            yield _scan(f'"{self._data[start:end].decode("utf-8", errors)}"')


def load_json(
    data: bytes | bytearray,
    yield_control: YieldControl,
    *,
    convert_long_string: Callable[[LongString], Any],
    parse_float: Callable[[str], Any] = float,
    errors: str = "strict",
    max_structure: int = MAX_STRUCTURE_BYTES,
    spare: str = "",
    shorten: str = "",
) -> Any:
    """Return the JSON value in *data*.

    Args:
        data: UTF-8.
        convert_long_string: converts a long string that is not a key.
        errors: how to handle invalid UTF-8, as in `bytes.decode`.
        max_structure: bytes of everything but the long strings. What is larger than
            `MAX_STRUCTURE_BYTES` is parsed slowly.
        spare: the name of an object or array two levels deep that is left out where the whole would be too large.
        shorten: the name of an array two levels deep of which then as many of the last objects are left out
            as it takes. `LEFT_OUT` is in the place of both.

    Raises:
        StructureTooLarge: see there.
        ValueError: it is not JSON, or holds an infinity, a NaN or half a surrogate pair.
        RecursionError: it is nested too deeply.
    """
    structure, extracted = (
        (data, [])
        if len(data) <= SLICE_BYTES
        else _extract_long_strings(
            data, yield_control, _MOST_SPARED if spare or shorten else max_structure
        )
    )
    for name, whole in ((spare, True), (shorten, False)):
        if name and len(structure) > max_structure:
            structure = _shortened(
                structure, extracted, name, yield_control, whole=whole, limit=max_structure
            )
    if len(structure) > max_structure:
        raise StructureTooLarge(max_structure)
    following = iter(extracted)

    def constant(name: str) -> Any:
        if name == _PLACEHOLDER.decode() and (text := next(following, None)) is not None:
            return text if text is LEFT_OUT else convert_long_string(text)
        raise ValueError(f"{name} is not JSON")

    if rb"\ud" in structure.lower():
        for _ in _slices(structure, 0, len(structure)):
            pass  # each was held against what an escape may be
    text = structure.decode("utf-8", errors)
    try:
        decoder = _SlowDecoder if len(structure) > MAX_STRUCTURE_BYTES else json.JSONDecoder
        return decoder(parse_constant=constant, parse_float=parse_float).decode(text)
    except json.JSONDecodeError as error:
        if structure is data:
            raise
        raise ValueError(error.msg) from error  # its position is one in what was left


def finite(digits: str) -> float:
    """Return a number, as `parse_float`.

    Raises:
        ValueError: it is too large to be one.
    """
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("it contains a number that is too large")
    return number


def _extract_long_strings(
    data: bytes | bytearray, yield_control: YieldControl, max_structure: int
) -> tuple[bytes | bytearray, list[LongString | _LeftOut]]:
    """Return *data* with each long string that is not a key replaced by `_PLACEHOLDER`, and those strings in order."""
    pieces: list[bytes | bytearray] = []
    extracted: list[LongString | _LeftOut] = []
    at = copied = removed = 0
    while (quote := data.find(b'"', at)) >= 0:
        yield_control()
        _check_between(data, at, quote)
        end = _text_end(data, quote + 1, yield_control)
        at = end + 1
        if (
            end - quote > LONG_STRING_BYTES
            and _ENDS_KEY.match(data, at, at + MAX_STRUCTURE_BYTES) is None
        ):
            pieces += data[copied:quote], _PLACEHOLDER
            extracted.append(LongString(data, quote + 1, end))
            removed += at - quote
            copied = at
        elif end - quote > MAX_STRUCTURE_BYTES:
            raise StructureTooLarge(max_structure)  # a key, which no later step takes apart
        if at - removed > max_structure:
            raise StructureTooLarge(max_structure)
    if len(data) - removed > max_structure:
        raise StructureTooLarge(max_structure)
    _check_between(data, at, len(data))
    pieces.append(data[copied:])
    return b"".join(pieces), extracted


def _shortened(
    structure: bytes | bytearray,
    extracted: list[LongString | _LeftOut],
    name: str,
    yield_control: YieldControl,
    *,
    whole: bool,
    limit: int,
) -> bytes | bytearray:
    """Return *structure* without the member *name* two levels deep, or the last objects in it; see `load_json`.

    Args:
        extracted: the strings taken out of it, of which those in what is left out go too.
        limit: what the result should not be larger than.
    """
    key = f'"{name}"'.encode()
    depth = seen = start = 0
    cuts: list[tuple[int, int]] = []
    """Where it may be cut, and how many strings were taken out before that; none outside of the member."""
    for count, found in enumerate(_TOKEN.finditer(structure)):
        if count % _SLICE_TOKENS == 0:
            yield_control()
        token = found[0]
        if token in (b"{", b"["):
            if depth == 2 and cuts and (found.start() != start or not (whole or token == b"[")):
                cuts = []
            elif depth == 2 and cuts and not whole:
                cuts = [(found.end(), seen)]
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 3 and cuts and not whole and found.end() < limit:
                cuts.append((found.end(), seen))
            elif depth == 2 and cuts:
                rest = structure[found.end() if whole else found.start() :]
                room = limit - len(rest) - len(_PLACEHOLDER) - 1
                at, before = next((each for each in reversed(cuts) if each[0] <= room), cuts[0])
                extracted[before:seen] = [LEFT_OUT]
                comma = b"," if at > cuts[0][0] else b""
                return b"".join((structure[:at], comma, _PLACEHOLDER, rest))
        elif token == _PLACEHOLDER:
            seen += 1
        elif depth == 2 and token == key and (colon := _COLON.match(structure, found.end())):
            start = colon.end()
            cuts = [(start, seen)]
    return structure


def replace_half_pairs(data: bytes | bytearray, yield_control: YieldControl) -> bytes:
    """Return JSON with U+FFFD for each half of a surrogate pair: no character, but JavaScript writes it.

    Raises:
        ValueError: another escape in it is unknown.
    """
    parts: list[bytes | bytearray] = []
    at = 0
    while at < len(data):
        yield_control()
        match = _UNITS.match(data, at, at + SLICE_BYTES)
        stop = at if match is None else match.end()
        if stop > at:
            parts.append(data[at:stop])
        elif _SURROGATE.match(data, at) is not None:
            parts.append(rb"\ufffd")
            stop = at + 6
        else:
            _refuse_escape(data, at)
        at = stop
    return b"".join(parts)


def _check_between(data: bytes | bytearray, start: int, end: int) -> None:
    """Refuse what could be mistaken for `_PLACEHOLDER`: outside strings no JSON has this letter."""
    if data.find(b"N", start, end) >= 0:
        raise ValueError("NaN is not JSON")


def _text_end(data: bytes | bytearray, at: int, yield_control: YieldControl) -> int:
    """Return the position of the closing quote of the string that begins at *at*."""
    while at < len(data):
        match = _INSIDE_TEXT.match(data, at, at + SLICE_BYTES)
        stop = at if match is None else match.end()
        if data.startswith(b'"', stop):
            return stop
        if stop == at:
            break
        at = stop
        yield_control()
    raise MalformedString("a string in it is not closed")


def _slices(data: bytes | bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the slices of a string; none ends within an escape, a surrogate pair or a character.

    Raises:
        ValueError: an escape is unknown, or half a surrogate pair.
    """
    while start < end:
        match = _UNITS.match(data, start, min(start + SLICE_BYTES, end))
        stop = start if match is None else match.end()
        if stop == start:
            _refuse_escape(data, start)
        if stop < end:
            stop = _character_start(data, start, stop)
        yield start, stop
        start = stop


def _character_start(data: bytes | bytearray, start: int, stop: int) -> int:
    """Return the start of the UTF-8 character around *stop*; *stop* itself if that is not UTF-8."""
    for back in range(4):
        if stop - back > start and data[stop - back] & 0xC0 != 0x80:
            return stop - back
    return stop


def _refuse_escape(data: bytes | bytearray, at: int) -> NoReturn:
    if _SURROGATE.match(data, at) is not None:
        raise MalformedString("a string in it contains a lone surrogate, which is not a character")
    raise MalformedString("a string in it contains an escape that JSON does not define")
