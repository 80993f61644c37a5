"""A JSON object written again with changes: what did not change keeps the text that it was read from."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, TypeVar, cast

from aileron_core.models.json_values import (
    DECODER,
    JsonDict,
    Refused,
    check_depth,
    count_values,
    dump,
    parse_object,
    read_text,
)

_T = TypeVar("_T")
_OPENING = re.compile(r"[ \t\n\r]*([\[{])[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_NEXT = re.compile(r"[ \t\n\r]*([,\]}])[ \t\n\r]*")


class SplicedObject:
    """An object that was read, and the text of each of its members, and of each element of those that are lists.

    Args:
        data: the object.
        what: names it in an error.
        previous: one that was read before. An element with the text that it has there, at the same place
            in its list, is not read again: it is the same Python object.

    Raises:
        ModelFormatError: as `parse_object`.
    """

    def __init__(
        self, data: bytes | bytearray, what: str, previous: "SplicedObject | None" = None
    ) -> None:
        self._members: dict[str, tuple[int, int]] = {}
        """Begin and end of each member with its name."""
        self._elements: dict[int, tuple[int, int]] = {}
        """Likewise by the id of an element that is an object or a list: it lives as long as `value`,
        and unlike a text or a number, no other element is the same Python object."""
        self._data = data
        self._text = ""
        self._previous = previous
        try:
            self._text = read_text(data)
            pairs, end = self._parts(0, "{}", self._member)
            value = dict(pairs)
            if end != len(self._text) or len(value) != len(pairs):
                raise Refused
        except (ValueError, IndexError, RecursionError):
            self._members.clear()
            self._elements.clear()
            value = parse_object(data, what)  # says what is wrong
        self._previous = None  # else each would keep all before it
        self.value: JsonDict = value
        """Neither it nor anything in it may be changed."""

    def write(self, changed: JsonDict) -> bytes:
        """Return *changed*, which has parts of `value` and others, as JSON."""
        return b"".join(self._pieces(changed))

    @property
    def most_values(self) -> int:
        """How many values it has at most: they take its memory, not its characters."""
        return count_values(self._text)

    def elements(self, key: str) -> Iterator[tuple[Any, str]]:
        """Yield the elements of a list, each with its text; without one if it is no object and no list."""
        found: object = self.value.get(key)
        for element in cast("list[object]", found) if isinstance(found, list) else ():
            begin, end = self._elements.get(id(element), (0, 0))
            yield element, self._text[begin:end]

    def _pieces(self, changed: JsonDict) -> Iterator[bytes | memoryview]:
        before = b"{"
        for key, value in changed.items():
            yield before
            before = b","
            if key in self._members and value is self.value[key]:
                yield self._source(*self._members[key])
                continue
            yield dump(key) + b":"
            if isinstance(value, list):
                yield from self._list_pieces(cast("list[object]", value))
            else:
                yield dump(value)
        yield b"}" if changed else b"{}"

    def _list_pieces(self, elements: list[object]) -> Iterator[bytes | memoryview]:
        """Give a list; elements that follow each other in the source are one piece of it."""
        before = b"["
        for is_read, run in groupby(elements, lambda element: id(element) in self._elements):
            yield before
            before = b","
            if not is_read:
                yield dump([*run])[1:-1]
                continue
            begin = end = -1
            for element in run:
                span = self._elements[id(element)]
                if begin < 0:
                    begin = span[0]
                elif self._following(end) != span[0]:
                    yield self._source(begin, end)
                    yield b","
                    begin = span[0]
                end = span[1]
            yield self._source(begin, end)
        yield b"]" if elements else b"[]"

    def _following(self, end: int) -> int:
        """Return where the element after the one that ends at *end* begins; -1 if there is none."""
        mark = _NEXT.match(self._text, end)
        return mark.end() if mark is not None and mark[1] == "," else -1

    def _source(self, begin: int, end: int) -> bytes | memoryview:
        if self._text.isascii():
            return memoryview(self._data)[begin:end]
        return self._text[begin:end].encode()

    def _member(self, at: int) -> tuple[tuple[str, Any], int]:
        key, end = DECODER.raw_decode(self._text, at)
        colon = _COLON.match(self._text, end)
        if colon is None or not isinstance(key, str):
            raise Refused
        begin = colon.end()
        if self._text.startswith("[", begin):
            known = iter(self._previous.elements(key) if self._previous is not None else ())
            value, end = self._parts(begin, "[]", lambda at: self._element(at, next(known, None)))
        else:
            value, end = self._value(begin, within=1)
        self._members[key] = (at, end)
        return (key, value), end

    def _element(self, at: int, known: tuple[Any, str] | None) -> tuple[Any, int]:
        if known is not None and known[1] and self._text.startswith(known[1], at):
            value = known[0]
            end = at + len(known[1])  # it ends at its own bracket, whatever follows
        else:
            value, end = self._value(at, within=2)
        if type(value) in (dict, list):
            self._elements[id(value)] = (at, end)
        return value, end

    def _value(self, at: int, *, within: int) -> tuple[Any, int]:
        value, end = DECODER.raw_decode(self._text, at)
        check_depth(value, self._text, at, end, within=within)
        return value, end

    def _parts(
        self, at: int, brackets: str, part: Callable[[int], tuple[_T, int]]
    ) -> tuple[list[_T], int]:
        """Read what stands between *brackets*; return it, and where the text goes on."""
        found: list[_T] = []
        mark = _OPENING.match(self._text, at)
        if mark is None or mark[1] != brackets[0]:
            raise Refused
        if self._text[mark.end()] == brackets[1]:
            mark = _NEXT.match(self._text, mark.end())
        while mark is not None and mark[1] in (brackets[0], ","):
            value, end = part(mark.end())
            found.append(value)
            mark = _NEXT.match(self._text, end)
        if mark is None or mark[1] != brackets[1]:
            raise Refused
        return found, mark.end()
