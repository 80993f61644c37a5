"""The line and column of each key in a TOML text, for error messages; `tomllib` does not keep them.

It runs only on a file that has a problem, valid TOML or not. It is not a second parser: it follows
keys, tables and nesting, skips every scalar up to the next separator, and where it cannot follow
the text it stops and returns what it has found so far.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aileron_core.actions.problems import KeyPath

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
_ERROR_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One `key = value`, `[table]` or `[[array]]`, as far as it could be followed."""

    start: int
    path: KeyPath
    """Of the pair's key, or of the table; empty where it could not be read."""
    key_offset: int
    """The offset of the key's last part; of a header, where it starts."""
    is_header: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The positions of everything in a text, as offsets in characters."""

    offsets: Mapping[KeyPath, int]
    """Where each key, table and array element first appears."""
    statements: Sequence[Statement]
    keys: Sequence[tuple[int, KeyPath]]
    """Every key in the order of the text, duplicates included."""
    stopped_at: int | None
    """Where the text could not be followed any further; None: it was followed to its end."""


def outline(text: str) -> Outline:
    """Return the positions of everything in *text*, as far as it can be followed."""
    scanner = _Scanner(text)
    stopped: int | None = None
    try:
        scanner.document()
    except _Lost:
        stopped = scanner.at
    return Outline(
        offsets=scanner.offsets,
        statements=scanner.statements,
        keys=scanner.keys,
        stopped_at=stopped,
    )


def locate(text: str) -> Mapping[KeyPath, tuple[int, int]]:
    """Return line and column (both from 1) of each key, table and array element in *text*."""
    starts = line_starts(text)
    offsets = outline(text).offsets
    return {path: line_column(offset, starts) for path, offset in offsets.items()}


def key_line(text: str, dotted: str) -> int:
    """Return the line, from 1, of the key *dotted*, or of the nearest table or key that contains it.

    0 if the text has neither. Keys that contain a dot are not told apart from nested ones.
    """
    starts = line_starts(text)
    lines: dict[str, int] = {}
    for statement in outline(text).statements:
        name = ".".join(part for part in statement.path if isinstance(part, str))
        lines.setdefault(name, line_column(statement.start, starts)[0])
    parts = dotted.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((lines[name] for name in names if name in lines), 0)


def syntax_position(message: str) -> tuple[int, int]:
    """Return the line and column in an error message of `tomllib`; zeros where it has none."""
    found = _ERROR_POSITION.search(message)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def line_starts(text: str) -> list[int]:
    """Return the offset of each line of *text*, for `line_column`."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def line_column(offset: int, starts: list[int]) -> tuple[int, int]:
    """Return line and column (both from 1, in characters) of *offset*."""
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


class _Lost(Exception):
    """The text is not what the scanner expected; what was found so far remains valid."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.offsets: dict[KeyPath, int] = {}
        self.statements: list[Statement] = []
        self.keys: list[tuple[int, KeyPath]] = []
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
            if len(self.statements) >= _MAX_KEYS:
                raise _Lost
            header = self._text.startswith("[", self.at)
            # Noted before it is read: one that cannot be read is the one that people ask about.
            start = self.at
            self.statements.append(
                Statement(start=start, path=(), key_offset=start, is_header=header)
            )
            if header:
                table = self._header()
                self._note_statement(table, start)
            else:
                self._pair(table, depth=0, statement=True)
            self._skip(_LINE_REST)

    def _note_statement(self, path: KeyPath, key: int) -> None:
        last = self.statements[-1]
        self.statements[-1] = Statement(
            start=last.start, path=path, key_offset=key, is_header=last.is_header
        )

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

    def _pair(self, table: KeyPath, *, depth: int, statement: bool = False) -> None:
        path, offset = table, self.at
        for key, offset in self._keys():
            path = (*path, key)
            self._remember(path, offset)
        self.keys.append((offset, path))
        if statement:
            self._note_statement(path, offset)
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
            self.keys.append((self.at, (*path, index)))
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
