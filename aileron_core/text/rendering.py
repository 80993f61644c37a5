"""Foreign text as spans of lines: what is drawn as it is, as a mark (a long run of blanks too), as a look-alike.

The rules are those of the package; this is the one pass over the characters.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from aileron_core.text.characters import glyph_kind, is_combining, mark_name, selects_emoji
from aileron_core.text.lookalikes import Lookalike, has_punycode, lookalikes

MAX_BLANK_LINES = 3
MAX_BLANKS = 8
MAX_COMBINING = 3
"""Combining marks on one base; living languages need no more, "Zalgo" text does."""

MAX_JOINING = 2
"""Parts that join one base: a Hangul syllable has a vowel and an end, an emoji one skin."""

SpanKind = Literal["plain", "mark", "lookalike"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of one line, drawn in one style; `size` is the code points of the input it stands for."""

    text: str
    kind: SpanKind
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Text that is safe to draw, and what was found in it."""

    lines: tuple[tuple[Span, ...], ...]
    hidden: Mapping[str, int]
    """How many characters of each name were drawn as marks (folded blanks are not among them)."""
    lookalikes: tuple[Lookalike, ...]
    blank_lines: int
    """How many blank lines stand folded in marks."""

    @property
    def text(self) -> str:
        """The same as plain text, marks included."""
        return "\n".join("".join(span.text for span in line) for line in self.lines)


def render(text: str, *, unfold: bool = False, end: bool = False) -> Rendered:
    """Return *text* as a block of lines.

    Args:
        text: foreign text; any `str`, lone surrogates included.
        unfold: show every mark with its code point, and no runs folded.
        end: draw blanks at the very end as a mark; on screen they would be no part of the text.
    """
    page = _Page(unfold=unfold)
    blank: list[str] = []
    kept = text.rstrip(" ") if end else text
    for line in kept.split("\n"):
        if not line.strip(" \t\r"):
            blank.append(line)
            continue
        page.add_blank_lines(blank)
        blank = []
        page.add_line(line)
    page.add_blank_lines(blank)
    page.add_blanks_at_the_end(len(text) - len(kept))
    return page.rendered()


def inline(text: str, *, unfold: bool = False) -> Rendered:
    """Return *text* as one line, for rows and cells; a newline is a mark too."""
    page = _Page(unfold=unfold)
    page.add_line(text)
    return page.rendered()


def escape(text: str) -> str:
    """Return *text* as one line of plain text, for logs and messages."""
    if _is_plain(text):
        return text
    return inline(text).text


def from_marks(text: str) -> str:
    """Return the text that `render` with *unfold* gave as *text*: for each mark the character that it names."""
    return _UNFOLDED.sub(lambda mark: chr(int(mark[1], 16)), text)


_UNFOLDED = re.compile(r"‹U\+(10[0-9A-F]{4}|[0-9A-F]{4,5})(?: [^‹›\n]*)?›")


class _Page:
    """Collects rendered lines and the counts over them."""

    def __init__(self, *, unfold: bool) -> None:
        self._unfold = unfold
        self._lines: list[tuple[Span, ...]] = []
        self._hidden: Counter[str] = Counter()
        self._lookalikes: dict[Lookalike, None] = {}
        self._blank_lines = 0

    def add_blank_lines(self, lines: list[str]) -> None:
        if self._unfold or len(lines) <= MAX_BLANK_LINES:
            for line in lines:
                self.add_line(line)
            return
        for line in lines:
            for char in line.replace(" ", ""):  # tabs and carriage returns
                self._hidden[mark_name(char)] += 1
        self._blank_lines += len(lines)
        size = sum(map(len, lines)) + len(lines) - 1
        self._lines.append((Span(text=f"‹{len(lines)} blank lines›", kind="mark", size=size),))

    def add_line(self, line: str) -> None:
        if _is_plain(line):
            self._lines.append((Span(text=line, kind="plain", size=len(line)),) if line else ())
            return
        found = lookalikes(line, escape=_plain_escape)
        self._lookalikes.update(dict.fromkeys(found.entries))
        spans = _spans(line, found.letters, self._hidden, unfold=self._unfold)
        self._lines.append(tuple(spans))

    def add_blanks_at_the_end(self, count: int) -> None:
        if count:
            last = self._lines.pop()
            self._lines.append((*last, *_marks(" ", count, unfold=self._unfold)))

    def rendered(self) -> Rendered:
        return Rendered(
            lines=tuple(self._lines),
            hidden=dict(self._hidden),
            lookalikes=tuple(self._lookalikes),
            blank_lines=self._blank_lines,
        )


def _is_plain(line: str) -> bool:
    """Tell the common case quickly: printable ASCII without long runs of blanks."""
    return (
        line.isascii()
        and line.isprintable()
        and " " * (MAX_BLANKS + 1) not in line
        and not has_punycode(line)
    )


def _plain_escape(text: str) -> str:
    """Return *text* with marks, without looking for look-alikes (used for their own spelling)."""
    return "".join(span.text for span in _spans(text, frozenset(), Counter(), unfold=False))


def _spans(
    line: str, letters: frozenset[int], hidden: Counter[str], *, unfold: bool
) -> Iterator[Span]:
    """Yield the spans of one line; *letters* are the places of look-alikes; counts into *hidden*."""
    start = 0  # of the plain or look-alike stretch that is being gathered
    kind: SpanKind = "plain"
    for begin, end, folded in _runs(line, unfold=unfold):
        char = line[begin]
        if folded:
            if begin > start:
                yield Span(text=line[start:begin], kind=kind, size=begin - start)
            start, kind = end, "plain"
            if char != " ":
                hidden[_counted_name(char)] += end - begin
            yield from _marks(char, end - begin, unfold=unfold)
            continue
        now: SpanKind = "lookalike" if begin in letters else "plain"
        # A combining mark stays with its base: between two spans it would join the wrong cell.
        if now != kind and not is_combining(char):
            if begin > start:
                yield Span(text=line[start:begin], kind=kind, size=begin - start)
            start, kind = begin, now
    if start < len(line):
        yield Span(text=line[start:], kind=kind, size=len(line) - start)


def _marks(char: str, count: int, *, unfold: bool) -> Iterator[Span]:
    """Yield the mark of a run of *char*: one with the count, or one for each with its code point."""
    if char == " ":
        blanks = "blank" if count == 1 else "blanks"
        yield Span(text=f"‹{count} {blanks}›", kind="mark", size=count)
        return
    name = mark_name(char)
    if not unfold:
        times = f"×{count}" if count > 1 else ""
        yield Span(text=f"‹{name}{times}›", kind="mark", size=count)
        return
    point = f"U+{ord(char):04X}"
    shown = point if name == point else f"{point} {name}"
    for _ in range(count):
        yield Span(text=f"‹{shown}›", kind="mark", size=1)


def _runs(line: str, *, unfold: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield (begin, end, drawn as a mark) over the whole line.

    What is drawn as a mark comes in runs of one character, what is drawn as it is one by one.
    """
    known: dict[str, str] = {}
    # At the start of a line there is no base to combine with.
    stacked, joined = MAX_COMBINING, MAX_JOINING
    index, length = 0, len(line)
    while index < length:
        char = line[index]
        if char not in known:
            known[char] = glyph_kind(char)
        drawn = known[char]
        end = index + 1
        if drawn == "selector" and selects_emoji(line, index):
            yield index, end, False
        elif drawn == "blank":
            end = _run_end(line, index)
            if end - index > MAX_BLANKS and not unfold:
                yield index, end, True
                stacked, joined = MAX_COMBINING, MAX_JOINING
            else:
                yield from ((at, at + 1, False) for at in range(index, end))
                stacked, joined = 0, MAX_JOINING
        elif drawn == "letter":
            yield index, end, False
            stacked = joined = 0
        elif drawn == "combining" and stacked < MAX_COMBINING:
            yield index, end, False
            stacked += 1
        elif drawn == "joining" and joined < MAX_JOINING:
            yield index, end, False
            joined += 1
        else:
            end = _run_end(line, index)
            yield index, end, True
            # A combining mark must not join the end of our mark.
            stacked, joined = MAX_COMBINING, MAX_JOINING
        index = end


def _run_end(line: str, index: int) -> int:
    char, end = line[index], index + 1
    while end < len(line) and line[end] == char:
        end += 1
    return end


def _counted_name(char: str) -> str:
    return "TAG" if 0xE0000 <= ord(char) <= 0xE007F else mark_name(char)
