"""Parses front matter that is not valid TOML: finds every fault with its place and key, and reads the rest.

`tomllib` stops at the first fault and says where it noticed it. Here the faulty statement is
removed and the rest parsed again, so that a person sees everything that is wrong at once. A problem
counts only if no removed statement may have caused it (see `ParsedToml.is_certain`).
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from aileron_core.actions.positions import Statement, line_column, line_starts, outline
from aileron_core.actions.problems import KeyPath, KeyProblem, key_text, quoted

MAX_SYNTAX_PROBLEMS = 20
"""Faults that are looked for in one file."""

_MAX_RECOVERED = 64 * 1024
"""Characters of a text in which more than one fault is looked for: each look parses it again."""

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_LONG_NUMBER = re.compile(r"(?<=[=\[, \t+-])[0-9_]{4300,}")
_STRING = re.compile(r""""(?:[^"\\\n]|\\.)*+"|'[^'\n]*'|#[^\n]*""")
_TRIPLE = re.compile(r""""{3}|'{3}""")
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*')"""
_DOTTED = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*+[ \t]*"
_HEADER = re.compile(rf"[ \t]*\[\[?[ \t]*{_DOTTED}\]\]?[ \t]*(?:$|#)")
_PAIR = re.compile(rf"[ \t]*{_DOTTED}=")

_TWICE = ("Cannot declare", "Cannot overwrite", "Cannot redefine", "Cannot mutate")
_TWICE_INLINE = "Duplicate inline table key"
_DEEP = "nested too deeply"
_AFTER = "Expected newline or end of document"
_QUOTES = "; strings need quotes"
_OPEN_LINE = ("Illegal character '\\n'", "Found invalid character '\\n'", 'Expected "\'"')
_OPEN = ("Unterminated string", "Expected \"'''\"")
_ESCAPE = ("Unescaped '\\'", "Invalid hex value", "Escaped character")
_BEGINS = "the string that begins here is not closed"
_HINTS = (
    *(
        (beginning, f"{_BEGINS} on its line; use triple quotes for several lines")
        for beginning in _OPEN_LINE
    ),
    *((beginning, f"{_BEGINS} before the closing +++") for beginning in _OPEN),
    ("Invalid value", f"Invalid value{_QUOTES}"),
    (_AFTER, f"{_AFTER} after a statement{_QUOTES}"),
    (_ESCAPE[0], "Unescaped '\\' in a string; write \\\\, or the text in 'single quotes'"),
)
"""What `tomllib` says, by its beginning, and what teaches more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxProblem:
    """One place that is not valid TOML, or that states a key twice; *path* as far as it is known."""

    message: str
    line: int
    column: int
    path: KeyPath = ()
    first_line: int = 0
    """The line of the first statement of a key that is defined twice; 0 if unknown or another fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedToml:
    """What could be read of a text, and what could not."""

    document: Mapping[str, object]
    problems: tuple[SyntaxProblem, ...] = ()
    text: str
    """The text without its faulty statements; the rest keeps its line and column."""
    incomplete_tables: frozenset[str] = frozenset()
    """The top-level keys from which a statement was removed; "" where the key is not known."""

    def is_certain(self, finding: KeyProblem) -> bool:
        """Whether *finding* is a problem even though statements were removed.

        A key that seems to be missing may be in a removed statement, and so may what a reference names.
        """
        if not self.problems:
            return True
        place = tuple(part for part in finding.path if isinstance(part, str))[:2]
        needs = _NEEDS.get(place, frozenset[str]())
        return _states(self.document, finding.path) and not (
            needs and self.incomplete_tables & {*needs, ""}
        )


_NEEDS: Mapping[tuple[str, ...], frozenset[str]] = {
    ("execute", "inputs"): frozenset({"inputs", "execute"}),
    ("execute", "connector"): frozenset({"requires"}),
    ("execute", "op"): frozenset({"requires"}),
    ("approval", "preview"): frozenset({"inputs", "approval"}),
}
"""Key of a finding -> the other top-level keys that it depends on."""


def parse(text: str) -> ParsedToml:
    """Return what *text* states as TOML, and every fault in it up to `MAX_SYNTAX_PROBLEMS`.

    Of a long text, and of one whose statements cannot be followed, only the first fault is named
    and nothing is read.
    """
    faults: list[SyntaxProblem] = []
    tables: set[str] = set()
    rest = text
    while True:
        try:
            document = tomllib.loads(rest)
        except (RecursionError, ValueError) as error:
            # ValueError: TOMLDecodeError, and what int() says of thousands of digits.
            seen = _Seen(rest, error)
            faults.append(seen.fault())
            if (
                len(text) > _MAX_RECOVERED
                or len(faults) == MAX_SYNTAX_PROBLEMS
                or seen.statement is None
            ):
                return ParsedToml(
                    document={}, problems=tuple(faults), text="", incomplete_tables=frozenset({""})
                )
            path = seen.statement.path
            tables.add(str(path[0]) if path else "")
            rest, whole = seen.without_statement()
            if not whole:
                tables.add("")
            continue
        return ParsedToml(
            document=document,
            problems=tuple(faults),
            text=rest,
            incomplete_tables=frozenset(tables),
        )


class _Seen:
    """One fault: where `tomllib` noticed it, and the statement that it is in."""

    def __init__(self, text: str, error: RecursionError | ValueError) -> None:
        self._text = text
        self._starts = line_starts(text)
        self._outline = outline(text)
        self._message, self._noticed = self._of(error)
        statements = self._outline.statements
        index = bisect_right(statements, self._noticed, key=lambda each: each.start)
        self.statement: Statement | None = statements[index - 1] if index else None

    def _of(self, error: RecursionError | ValueError) -> tuple[str, int]:
        if isinstance(error, RecursionError):
            return _DEEP, self._outline.stopped_at or 0
        text = str(error)
        place = _PLACE.search(text)
        if place is None:
            number = _LONG_NUMBER.search(self._text)
            return "a number with too many digits", number.start() if number else 0
        if place[1] is None:
            return text[: place.start()], len(self._text)
        return text[: place.start()], self._starts[int(place[1]) - 1] + int(place[2]) - 1

    def fault(self) -> SyntaxProblem:
        """Return the fault with the place and the key that a person has to look at."""
        offset, path, first = self._place()
        line, column = line_column(offset, self._starts)
        message = self._message
        if message.startswith((*_TWICE, _TWICE_INLINE)):
            message = f"{quoted(key_text(path))} is defined twice"
        for beginning, hint in _HINTS:
            if message.startswith(beginning):
                message = hint
        first_line = 0 if first is None else line_column(first, self._starts)[0]
        return SyntaxProblem(
            message=message, line=line, column=column, path=path, first_line=first_line
        )

    def _place(self) -> tuple[int, KeyPath, int | None]:
        """Return offset and key of the fault, and where the same key stands first."""
        statement, message, stopped = self.statement, self._message, self._outline.stopped_at
        if statement is None:
            return self._noticed, (), None
        if message.startswith(_TWICE):
            path = statement.path
            if path and isinstance(path[-1], int):
                path = path[:-1]  # it is the [[array]] that collides, not this element
            first = self._outline.offsets.get(path)
            return statement.key_offset, path, None if first == statement.key_offset else first
        if message.startswith(("Unclosed", _DEEP)):
            return statement.key_offset, statement.path, None
        offset, path = self._last_key(statement)
        if message.startswith(_TWICE_INLINE):
            return offset, path, None
        if message.startswith((*_OPEN, *_OPEN_LINE)) and stopped is not None:
            return stopped, path, None
        if message.startswith(_ESCAPE):
            return self._text.rfind("\\", 0, self._noticed), path, None
        return self._noticed, statement.path if message.startswith(_AFTER) else path, None

    def _last_key(self, statement: Statement) -> tuple[int, KeyPath]:
        """Return the last key of *statement* before the place where the fault was noticed."""
        keys = self._outline.keys
        index = bisect_right(keys, self._noticed, key=lambda each: each[0])
        if index and keys[index - 1][0] >= statement.start:
            return keys[index - 1]
        return statement.key_offset, statement.path

    def without_statement(self) -> tuple[str, bool]:
        """Return the text without the statement, and whether nothing else went with it.

        What is left keeps its place. A header that is only written wrongly is put right: what
        stands below it belongs to its table.
        """
        statement = self.statement
        assert statement is not None
        start = statement.start
        end, whole = self._end(start)
        put = ""
        if statement.is_header:
            names = [part for part in statement.path if isinstance(part, str)]
            if names and not self._message.startswith(_TWICE):
                brackets = 2 if self._text.startswith("[[", start) else 1
                put = "[" * brackets + key_text(names) + "]" * brackets
            else:
                end = self._next_header(end)
                whole = whole and bool(names)
        blank = "\n" * self._text.count("\n", start, end)
        return self._text[:start] + put + blank + self._text[end:], whole

    def _end(self, start: int) -> tuple[int, bool]:
        """Return where the statement ends, and whether that is sure."""
        opened: re.Match[str] | None = None
        for quotes in _TRIPLE.finditer(self._text, start):
            if opened is None:
                if quotes.start() >= self._noticed:
                    break
                opened = quotes
            elif quotes[0] == opened[0]:
                if quotes.end() > self._noticed:
                    return self._line_end(quotes.end()), True
                opened = None
        if opened is not None:
            return len(self._text), False
        return self._end_of_brackets(start), True

    def _end_of_brackets(self, start: int) -> int:
        """Return the end of the line in which the statement's brackets are closed, if they are."""
        first = at = self._line_end(start)
        line = self._text[start:first]
        if _HEADER.match(line) or line.startswith("["):
            return first
        squares, braces = _depths(line)
        while squares + braces > 0 and at < len(self._text):
            end = self._line_end(at + 1)
            line = self._text[at + 1 : end]
            if braces <= 0 and (_HEADER.match(line) or _PAIR.match(line)):
                return at  # what stood between are the elements of an array that nothing closed
            if _HEADER.match(line):
                return first
            more = _depths(line)
            squares, braces, at = squares + more[0], braces + more[1], end
        return at if squares + braces <= 0 else first

    def _next_header(self, at: int) -> int:
        while at < len(self._text):
            end = self._line_end(at + 1)
            if _HEADER.match(self._text[at + 1 : end]):
                return at
            at = end
        return at

    def _line_end(self, offset: int) -> int:
        end = self._text.find("\n", offset)
        return len(self._text) if end < 0 else end


def _depths(line: str) -> tuple[int, int]:
    """Return how many square brackets and braces *line* leaves open."""
    bare = _STRING.sub("", line)
    return bare.count("[") - bare.count("]"), bare.count("{") - bare.count("}")


def _states(document: Mapping[str, object], path: KeyPath) -> bool:
    value: object = document
    for part in path:
        if isinstance(part, int):
            items = cast("list[object]", value if isinstance(value, list) else [])
            if part >= len(items):
                return False
            value = items[part]
        else:
            table = cast("Mapping[str, object]", value if isinstance(value, Mapping) else {})
            if part not in table:
                return False
            value = table[part]
    return True
