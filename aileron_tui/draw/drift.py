"""Two readings that differ: each changed field as `−` and `+` lines, differing words marked.

What differs outside the fields, by path, is found in `aileron_core.runs.preview.resolve`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import TypeAlias

from aileron_core.console_port import DriftView, FieldChangeView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Layout, blank, value
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text
from aileron_tui.draw.times import clock_seconds

LINES_COMPARED = 2_000
"""Texts with more differing lines are shown whole, old and then new."""
WORDS_COMPARED = 200

_TOKEN = re.compile(r"\s+|\d+(?:[.,:]\d+)+|\w+|[^\w\s]")
"""Blanks, numbers with their points, words, single signs: what is marked is never half a number."""


_READINGS = (words.item.WILL_HAPPEN, words.item.NOW)
"""Headings over what was fetched."""

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


def drift_blocks(drift: DriftView, *, reason_shown: bool, unfold: bool = False) -> Iterator[Block]:
    """Yield the differences, without the section's heading.

    *reason_shown*: the reason for the missing preview is shown above. *unfold*: marks with code points.
    """
    gone = bool(drift.unavailable)
    if gone and not reason_shown:
        reason = Piece(words.item.unavailable(""), "attn")
        yield value("Preview", (reason, *foreign_text(drift.unavailable)))
        yield blank()
    now = words.item.NO_PREVIEW_NOW if gone else words.item.AS_IT_IS_NOW
    yield value("", _moment(words.item.BEFORE, drift.before_at, words.item.WHAT_YOU_SAW, "muted"))
    yield value("", _moment(words.item.AFTER, drift.after_at, now, "strong"))
    hidden = HiddenCharacters()
    for change in drift.changed:
        yield blank()
        changed = _gone if gone else _change
        yield from changed(change, hidden, unfold=unfold)
    if drift.other_count:
        yield blank()
        others = words.item.other_paths(drift.other_count, len(drift.other_paths))
        yield value("Elsewhere", (Piece(others, "attn"),))
        for path in drift.other_paths:
            yield value("", foreign_text(path))
    if not gone:
        yield blank()
        yield value("Same", line(words.item.same(drift.same_count)))
    rows = tuple(hidden.blocks())
    if rows:
        yield blank()
        yield from rows


def full_preview_row(blocks: Sequence[Block], layout: Layout) -> int | None:
    """Return the line of *layout* at which the whole new preview of a changed call begins.

    None if there is none: the preview is gone, or not laid out yet.
    """
    for index, each in enumerate(blocks):
        # A heading's label is ours alone: no text can begin a section.
        if each.kind == "heading" and plain_text(each.label) in _READINGS:
            return layout.blocks.index(index)
    return None


def _moment(name: str, at: float, remark: str, role: Role) -> Line:
    return line(Piece(f"{name:<8}", role), Piece(f"{clock_seconds(at)}, {remark}", "muted"))


def _change(change: FieldChangeView, hidden: HiddenCharacters, *, unfold: bool) -> Iterator[Block]:
    before = _lines(change.before, hidden, unfold=unfold)
    after = _lines(change.after, hidden, unfold=unfold)
    many = max(len(before), len(after)) > 1
    named = ""
    compare = BoundedDiff()
    for number, old, new in _pairs(before, after, compare):
        label = foreign_text(change.label, "muted")
        numbered = (*label, Piece(f"  {number}", "muted")) if many else label
        shown = numbered if plain_text(numbered) != named else ()
        named = plain_text(numbered)
        marked = mark_words(old, new, compare)
        for pieces, sign, role in ((marked[0], "− ", "del"), (marked[1], "+ ", "add")):
            if pieces is None:
                continue
            ground: Role = "del" if role == "del" else "add"
            yield value(shown, (Piece(sign, ground), *pieces), background=ground, hang=2)
            shown = ()


def _gone(change: FieldChangeView, hidden: HiddenCharacters, *, unfold: bool) -> Iterator[Block]:
    """Yield the former lines of a field that the new preview does not have."""
    for row, pieces in enumerate(_lines(change.before, hidden, unfold=unfold)):
        label = foreign_text(change.label, "muted") if row == 0 else ()
        shown = _whole(pieces, "del") or ()
        yield value(label, (Piece("− ", "del"), *shown), background="del", hang=2)


def _lines(text: str | None, hidden: HiddenCharacters, *, unfold: bool) -> tuple[Line, ...]:
    if text is None:
        return ((Piece(words.item.MISSING),),)
    result = render_foreign(text, unfold=unfold, end=True)
    hidden.add(result)
    return rendered_lines(result)


def _pairs(
    before: Sequence[Line], after: Sequence[Line], compare: BoundedDiff
) -> Iterator[tuple[int, Line | None, Line | None]]:
    """Yield differing lines, old beside new, with the line's number from 1."""
    old, new = [plain_text(each) for each in before], [plain_text(each) for each in after]
    if old == new:
        # The drawn forms agree and the texts do not: both are shown, and none is called equal.
        yield 1, before[0], after[0]
        return
    for tag, a0, a1, b0, b1 in line_opcodes(old, new, compare):
        if tag == "equal":
            continue
        for step in range(max(a1 - a0, b1 - b0)):
            i, j = a0 + step, b0 + step
            yield (
                (j if j < b1 else i) + 1,
                before[i] if i < a1 else None,
                after[j] if j < b1 else None,
            )


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


def mark_words(
    old: Line | None, new: Line | None, compare: BoundedDiff
) -> tuple[Line | None, Line | None]:
    """Return both lines, the words that differ in the stronger role."""
    if old is None or new is None:
        return _whole(old, "del-word"), _whole(new, "add-word")
    a, b = _TOKEN.findall(plain_text(old)), _TOKEN.findall(plain_text(new))
    if max(len(a), len(b)) > WORDS_COMPARED:
        return _whole(old, "del-word"), _whole(new, "add-word")
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


def _whole(pieces: Line | None, role: Role) -> Line | None:
    if pieces is None:
        return None
    return tuple(p if p.role == "mark" else replace(p, role=role) for p in pieces)


def _tint(pieces: Line, marked: set[int], ground: Role, word: Role) -> Line:
    tinted: list[Piece] = []
    at = 0
    for piece in pieces:
        if piece.role == "mark":
            tinted.append(piece)
        else:
            places = range(at, at + len(piece.text))
            for differs, run in groupby(places, marked.__contains__):
                stretch = list(run)
                text = piece.text[stretch[0] - at : stretch[-1] - at + 1]
                tinted.append(replace(piece, text=text, role=word if differs else ground))
        at += len(piece.text)
    return tuple(tinted)
