"""Reads TOML for people: its first fault, and the line and column of each key, which `tomllib` does not keep.

Keys are located only in a file that has a problem. That is not a second parser: it follows keys, tables
and nesting, skips every scalar up to the next separator, and where it cannot follow the text it
stops and returns what it has found so far.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aileron_core.actions.problems import KeyPath
from aileron_core.errors import FileProblems, Problem
from aileron_core.text import escape

_MAX_DEPTH = 80
_MAX_KEYS = 100_000

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_LITERAL = re.compile(r"'[^'\n]*'")
_MULTI_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}', re.DOTALL)
_MULTI_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*+'{3,5}")
_STRINGS = (('"""', _MULTI_BASIC), ("'''", _MULTI_LITERAL), ('"', _BASIC), ("'", _LITERAL))
_SCALAR = re.compile(r"[^,\]}#\n]+")
_LINE_REST = re.compile(r"[^\n]*")
MAX_KEY_PARTS = 64
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"]*+"|'[^']*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:{_KEY_PART}){{{MAX_KEY_PARTS}}}")
_ERROR_PLACE = re.compile(r"line (\d+), column (\d+)\)")
_LONGEST = 200
"""Characters of a message: `tomllib` repeats keys in some."""


def locate(text: str) -> Mapping[KeyPath, tuple[int, int]]:
    """Return line and column (both from 1) of each key, table and array element in *text*."""
    scanner = _Scanner(text)
    with suppress(_Lost):
        scanner.document()
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return {path: _line_column(offset, starts) for path, offset in scanner.offsets.items()}


def nearest(path: KeyPath, places: Mapping[KeyPath, tuple[int, int]]) -> tuple[int, int]:
    """Return the place of *path*, or of the nearest table that contains it; zeros if neither has one."""
    ends = range(len(path), 0, -1)
    return next((places[path[:end]] for end in ends if path[:end] in places), (0, 0))


def _refuse_long_keys(text: str, file: str, first_line: int) -> None:
    """Refuse what tomllib takes time and memory for that grow with the square of a key's parts."""
    if text.count(".") < MAX_KEY_PARTS:
        return
    for number, line in enumerate(text.split("\n"), first_line):
        if line.count(".") >= MAX_KEY_PARTS and _LONG_KEY.search(line):
            message = f"has a dotted key of more than {MAX_KEY_PARTS} parts"
            raise FileProblems(
                [Problem(file=file, message=message, class_="parse_error", line=number, column=1)]
            )


def load_toml(text: str, file: str, *, first_line: int = 1) -> dict[str, Any]:
    """Return what *text* states; *first_line* is the line of *file*, from 1, that it begins on.

    Raises:
        FileProblems: it is not TOML: the first fault, with line and column; or has a key of too many parts.
    """
    _refuse_long_keys(text, file, first_line)
    line, column = 1, 1
    try:
        return tomllib.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
    except ValueError as error:
        # Before Python 3.14 the place is in the message alone.
        message, _, place = str(error).rpartition(" (at ")
        if found := _ERROR_PLACE.fullmatch(place):
            line, column = int(found[1]), int(found[2])
        elif place == "end of document)":
            last = text.rpartition("\n")[2]
            line, column = text.count("\n") + 1, len(last) + 1
        else:  # int() says so, without a place
            message = "a number has too many digits"
    problem = Problem(
        file=file,
        message=f"invalid TOML: {escape(message[:_LONGEST])}",
        class_="parse_error",
        line=first_line + line - 1,
        column=column,
    )
    raise FileProblems([problem])


def _line_column(offset: int, starts: list[int]) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


class _Lost(Exception):
    """The text is not what the scanner expected; what was found so far remains valid."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.offsets: dict[KeyPath, int] = {}
        self.at = 0
        self._text = text
        self._elements: dict[KeyPath, int] = {}
        """Of each array of tables, how many elements it has so far."""

    def document(self) -> None:
        table: KeyPath = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self._text):
                return
            if self._text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table, depth=0)
            self._skip(_LINE_REST)

    def _header(self) -> KeyPath:
        start = self.at
        array = self._text.startswith("[[", start)
        self.at += 2 if array else 1
        keys = self._keys()
        path: KeyPath = ()
        for position, (key, _) in enumerate(keys):
            path = (*path, key)
            self._remember(path, start)
            if array and position == len(keys) - 1:
                self._elements[path] = self._elements.get(path, 0) + 1
            if count := self._elements.get(path, 0):
                path = (*path, count - 1)
                self._remember(path, start)
        return path

    def _pair(self, table: KeyPath, *, depth: int) -> None:
        path = table
        for key, offset in self._keys():
            path = (*path, key)
            self._remember(path, offset)
        self._skip(_SPACE)
        if not self._text.startswith("=", self.at):
            raise _Lost
        self.at += 1
        self._skip(_SPACE)
        self._value(path, depth=depth + 1)

    def _keys(self) -> list[tuple[str, int]]:
        keys: list[tuple[str, int]] = []
        while len(keys) < _MAX_DEPTH:
            self._skip(_SPACE)
            start = self.at
            keys.append((self._key(), start))
            self._skip(_SPACE)
            if not self._text.startswith(".", self.at):
                return keys
            self.at += 1
        raise _Lost

    def _key(self) -> str:
        for pattern in (_BARE_KEY, _BASIC, _LITERAL):
            match = pattern.match(self._text, self.at)
            if match is not None:
                self.at = match.end()
                return _unquoted(match[0])
        raise _Lost

    def _value(self, path: KeyPath, *, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise _Lost
        first = self._text[self.at : self.at + 1]
        if first == "[":
            self._array(path, depth=depth)
        elif first == "{":
            self._inline_table(path, depth=depth)
        elif first in ('"', "'"):
            self._string()
        elif not self._skip(_SCALAR):
            raise _Lost

    def _array(self, path: KeyPath, *, depth: int) -> None:
        self.at += 1
        index = 0
        while not self._closes("]"):
            self._remember((*path, index), self.at)
            self._value((*path, index), depth=depth + 1)
            index += 1
            self._separator("]")

    def _inline_table(self, path: KeyPath, *, depth: int) -> None:
        self.at += 1
        while not self._closes("}"):
            self._pair(path, depth=depth)
            self._separator("}")

    def _closes(self, bracket: str) -> bool:
        self._skip(_BLANK)
        if not self._text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def _separator(self, bracket: str) -> None:
        self._skip(_BLANK)
        if self._text.startswith(",", self.at):
            self.at += 1
        elif not self._text.startswith(bracket, self.at):
            raise _Lost

    def _string(self) -> None:
        for quotes, pattern in _STRINGS:
            if self._text.startswith(quotes, self.at):
                if not self._skip(pattern):
                    raise _Lost
                return

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self._text, self.at)
        if match is None or match.end() == self.at:
            return False
        self.at = match.end()
        return True

    def _remember(self, path: KeyPath, offset: int) -> None:
        if len(self.offsets) >= _MAX_KEYS:
            raise _Lost
        self.offsets.setdefault(path, offset)


def _unquoted(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] != '"':
        return key
    if "\\" not in key:
        return key[1:-1]
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except ValueError:  # no problem is about a key that tomllib refuses
        return key[1:-1]
