"""Two readings that differ: each changed field as `−` and `+` lines, differing words marked.

What differs outside the fields, by path, is found in `aileron_core.runs.preview.resolve`.
"""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.field_views import DriftView, FieldChangeView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Layout, blank, value
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text
from aileron_tui.draw.text_diff import (
    GROUNDS,
    BoundedDiff,
    drawn_opcodes,
    signed_block,
    signed_lines,
    tinted,
)
from aileron_tui.draw.times import clock_seconds

OTHERS_AT_ONCE = 2
"""With more paths than these outside the fields that changed, the new preview comes first."""
_READINGS = (words.item.WILL_HAPPEN, words.item.NOW)
"""Headings over what was fetched."""


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
        if _many_others(drift):
            others = words.item.others_below(drift.other_count)
            yield value("Elsewhere", (Piece(others, "attn"),))
        else:
            yield from _others(drift)
    if not gone:
        yield blank()
        yield value("Same", line(words.item.same(drift.same_count)))
    rows = tuple(hidden.blocks())
    if rows:
        yield blank()
        yield from rows


def others_below(drift: DriftView) -> Iterator[Block]:
    """Yield, for the end of the new preview, the paths outside the shown fields that are too many for the differences."""
    if _many_others(drift):
        yield blank()
        yield from _others(drift)


def _many_others(drift: DriftView) -> bool:
    return bool(drift.changed) and drift.other_count > OTHERS_AT_ONCE


def _others(drift: DriftView) -> Iterator[Block]:
    others = words.item.other_paths(drift.other_count, len(drift.other_paths))
    yield value("Elsewhere", (Piece(others, "attn"),))
    for path in drift.other_paths:
        yield value("", foreign_text(path))


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
    label, compare = foreign_text(change.label, "muted"), BoundedDiff()
    ops = drawn_opcodes(before, after, compare)
    begins = True
    for number, sign, pieces in signed_lines(before, after, ops, compare, unfold=False, context=0):
        if sign in GROUNDS:
            numbered = (*label, Piece(f"  {number}", "muted")) if many else label
            yield signed_block(numbered if begins else (), sign, pieces)
        begins = sign not in GROUNDS


def _gone(change: FieldChangeView, hidden: HiddenCharacters, *, unfold: bool) -> Iterator[Block]:
    """Yield the former lines of a field that the new preview does not have."""
    for row, pieces in enumerate(_lines(change.before, hidden, unfold=unfold)):
        label = foreign_text(change.label, "muted") if row == 0 else ()
        yield signed_block(label, "−", tinted(pieces, "del"))


def _lines(text: str | None, hidden: HiddenCharacters, *, unfold: bool) -> tuple[Line, ...]:
    if text is None:
        return ((Piece(words.item.MISSING),),)
    result = render_foreign(text, unfold=unfold, end=True)
    hidden.add(result)
    return rendered_lines(result)
