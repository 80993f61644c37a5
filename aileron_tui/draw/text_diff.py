"""Two texts compared: the lines that go, come and stay, and the words in which they differ."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import TypeAlias

from aileron_tui import words
from aileron_tui.draw.blocks import Block, Gutter, value
from aileron_tui.draw.text import Line, Piece, Role, plain_text

LINES_COMPARED = 2_000
"""Texts with more differing lines are shown whole, old and then new."""
WORDS_COMPARED = 200

_TOKEN = re.compile(r"\s+|\d+(?:[.,:]\d+)+|\w+|[^\w\s]")
"""Blanks, numbers with their points, words, single signs: what is marked is never half a number."""

CONTEXT_LINES = 2
"""Lines of a long text that are shown before and after those that differ."""

GROUNDS: dict[str, Role] = {"−": "del", "+": "add"}
"""The ground of a line by its sign; one that stays has none."""

MAX_WORK = 50_000_000
"""Steps in all, at the worst: half a second. Honest drafts of a thousand lines stay far below."""


Opcode: TypeAlias = tuple[str, int, int, int, int]
"""As `difflib` has it: what is done, and the ranges `[start, end)` of the old and the new."""


class BoundedDiff:
    """Compares several pairs of sequences until its work is used up; then each is one replacement.

    `difflib` takes time with the number of equal pairs times the number of blocks between them:
    2,000 lines of two kinds took 43 s.
    """

    def __init__(self, work: int = MAX_WORK) -> None:
        self._left = work

    def opcodes(self, old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
        counts = Counter(old)
        pairs = sum(counts[each] * times for each, times in Counter(new).items())
        work = pairs * min(len(old), len(new))
        if work > self._left:
            return [("replace", 0, len(old), 0, len(new))]
        self._left -= work
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def drawn_opcodes(
    before: Sequence[Line], after: Sequence[Line], compare: BoundedDiff
) -> list[Opcode]:
    """Return how the drawn lines *before* become *after*, of two texts that differ."""
    old, new = [plain_text(each) for each in before], [plain_text(each) for each in after]
    if old == new:
        # The drawn forms agree and the texts do not: both are shown, and no line is called equal.
        return [("replace", 0, len(old), 0, len(new))]
    return line_opcodes(old, new, compare)


def line_opcodes(old: Sequence[str], new: Sequence[str], compare: BoundedDiff) -> list[Opcode]:
    """Return how the lines *old* become *new*; what begins and ends them alike costs nothing."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if not a and not b:
        found: Sequence[Opcode] = ()
    elif max(len(a), len(b)) > LINES_COMPARED:
        found = [("replace", 0, len(a), 0, len(b))]
    else:
        found = compare.opcodes(a, b)
    ops = [(tag, a0 + start, a1 + start, b0 + start, b1 + start) for tag, a0, a1, b0, b1 in found]
    if start:
        ops.insert(0, ("equal", 0, start, 0, start))
    if end:
        ops.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return ops


def signed_lines(
    before: Sequence[Line],
    after: Sequence[Line],
    ops: Sequence[Opcode],
    compare: BoundedDiff,
    *,
    unfold: bool,
    context: int = CONTEXT_LINES,
) -> Iterator[tuple[int, str, Line]]:
    """Yield (number, sign, text) of every line that is shown.

    The number counts from 1, of a removed line in *before*, of others in *after*; 0 for a mark in
    place of lines that stay.

    Args:
        ops: how *before* becomes *after*.
        unfold: show all of them.
        context: how many lines that stay are shown around those that differ.
    """
    for at, (tag, a0, a1, b0, b1) in enumerate(ops):
        if tag != "equal":
            pairs = [
                mark_words(
                    before[a0 + step] if a0 + step < a1 else None,
                    after[b0 + step] if b0 + step < b1 else None,
                    compare,
                )
                for step in range(max(a1 - a0, b1 - b0))
            ]
            olds, news = (
                [old for old, _ in pairs if old is not None],
                [new for _, new in pairs if new is not None],
            )
            yield from ((a0 + row, "−", old) for row, old in enumerate(olds, 1))
            yield from ((b0 + row, "+", new) for row, new in enumerate(news, 1))
            continue
        first = a0 + (context if at else 0)
        last = a1 - (context if at + 1 < len(ops) else 0)
        folded = last - first
        for row in range(a0, a1):
            if unfold or folded < 2 or not first <= row < last:
                yield b0 + row - a0 + 1, " ", before[row]
            elif row == first:
                yield 0, " ", (Piece(words.item.lines_stay(folded), "mark"),)


def signed_block(label: str | Line, sign: str, pieces: Line, gutter: Gutter = "fact") -> Block:
    """Return one line of a comparison; *sign*: `−` gone, `+` new, blank for one that stays."""
    ground = GROUNDS.get(sign)
    signed: Line = (Piece(f"{sign} ", ground or "muted"), *pieces)
    return value(label, signed, gutter, background=ground, hang=2)


def mark_words(
    old: Line | None, new: Line | None, compare: BoundedDiff
) -> tuple[Line | None, Line | None]:
    """Return both lines, the words that differ in the stronger role."""
    if old is None or new is None:
        return old and tinted(old, "del-word"), new and tinted(new, "add-word")
    a, b = _TOKEN.findall(plain_text(old)), _TOKEN.findall(plain_text(new))
    if max(len(a), len(b)) > WORDS_COMPARED:
        return old and tinted(old, "del-word"), new and tinted(new, "add-word")
    gone: set[int] = set()
    come: set[int] = set()
    for tag, a0, a1, b0, b1 in compare.opcodes(a, b):
        if tag != "equal":
            gone.update(_characters(a, a0, a1))
            come.update(_characters(b, b0, b1))
    return _tint(old, gone, "del", "del-word"), _tint(new, come, "add", "add-word")


def _characters(tokens: list[str], start: int, end: int) -> range:
    at = sum(len(token) for token in tokens[:start])
    return range(at, at + sum(len(token) for token in tokens[start:end]))


def tinted(pieces: Line, role: Role) -> Line:
    """Return *pieces* in *role*, but for marks."""
    return tuple(p if p.role == "mark" else replace(p, role=role) for p in pieces)


def _tint(pieces: Line, marked: set[int], ground: Role, word: Role) -> Line:
    divided: list[Piece] = []
    at = 0
    for piece in pieces:
        if piece.role == "mark":
            divided.append(piece)
        else:
            places = range(at, at + len(piece.text))
            for differs, run in groupby(places, marked.__contains__):
                stretch = list(run)
                text = piece.text[stretch[0] - at : stretch[-1] - at + 1]
                divided.append(replace(piece, text=text, role=word if differs else ground))
        at += len(piece.text)
    return tuple(divided)
