"""The lines of one value; of a change before it happens, as it is and as the agent wants it; and of two readings that differ.

A value begins with its kind or number as a mark (`‹text›`, `‹list of 2›`). Outside text can never write `‹` or
`›`, so no text can pass for an object, a list or several values. The old value has the bar of what was
fetched, the new one the bar of what the agent says. What differs outside the fields, by path, is found in
`aileron_core.runs.preview.resolve`.
"""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.field_views import DriftView, FieldChangeView, FieldView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import Rendered
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Gutter, Layout, blank, value
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text
from aileron_tui.draw.text_diff import (
    GROUNDS,
    BoundedDiff,
    Opcode,
    drawn_opcodes,
    signed_block,
    signed_lines,
    tinted,
)
from aileron_tui.draw.times import clock_seconds

_OPENINGS = ("{", "[")


def field_text(field: FieldView, *, unfold: bool = False) -> Rendered:
    """Render the value of *field*; blanks at its end are marked as well."""
    return render_foreign(field.value, unfold=unfold, end=True)


def value_lines(field: FieldView, text: Rendered, role: Role = "text") -> Iterator[Line]:
    """Yield the lines of *field*, which is not missing; *text* is its `field_text`."""
    if field.spellings:
        yield several_line(field)
    kind = value_kind(field)
    lines = rendered_lines(text, role)
    if kind and field.shape == "lines":
        yield (Piece(kind, "muted"),)
    elif kind:
        lines = (line(Piece(kind, "attn"), " ", *lines[0]), *lines[1:])
    yield from lines


def several_line(field: FieldView) -> Line:
    """Return the line that names the labels of the values."""
    pieces: list[Piece] = [Piece(words.item.value_start(field.count), "attn")]
    for index, name in enumerate(field.spellings):
        pieces += [Piece(", " if index else "", "attn"), *foreign_text(name, "attn")]
    return line(*pieces, Piece(words.item.VALUE_END, "attn"))


def value_kind(field: FieldView) -> str:
    """Return the mark that names the kind of value; empty where the value itself shows it."""
    if field.shape == "lines":
        return words.item.list_of(field.value.count("\n") + 1)
    if field.shape == "text" and field.value.lstrip().startswith(_OPENINGS):
        return words.item.VALUE_TEXT
    return ""


def is_same(old: FieldView, new: FieldView) -> bool:
    """Tell whether *new* leaves the field as it is."""
    as_shown = (old.value, old.shape, old.count) == (new.value, new.shape, new.count)
    return as_shown and not old.missing and not new.missing


def changed_fields(view: ApprovalView) -> tuple[tuple[FieldView, FieldView], ...]:
    """Return the old and the new value of every field that gets another one, in the file's order."""
    if not view.is_compared:
        return ()
    new = {field.label: field for field in view.new_values}
    both = ((old, new[old.label]) for old in view.preview.fields if old.label in new)
    return tuple((old, wanted) for old, wanted in both if not is_same(old, wanted))


def change_blocks(view: ApprovalView, *, unfold: bool) -> Iterator[Block]:
    """Yield the lines of every field that gets another value, without the section's heading.

    *unfold*: marks with their code points, and the whole of every text.
    """
    found, compare = HiddenCharacters(), BoundedDiff()
    changed = changed_fields(view)
    for row, (old, new) in enumerate(changed):
        if row and (old.multiline or new.multiline):
            yield blank()
        yield from field_change_blocks(old, new, found, compare, unfold=unfold)
    if not changed:
        yield value("", (Piece(words.item.NOTHING_CHANGES, "attn"),))
    rows = tuple(found.blocks())
    if rows:
        yield blank()
        yield from rows


def field_change_blocks(
    old: FieldView,
    new: FieldView,
    found: HiddenCharacters,
    compare: BoundedDiff,
    *,
    before: Gutter = "fact",
    after: Gutter = "claim",
    unfold: bool,
) -> Iterator[Block]:
    """Yield the lines of one field that has two values, *old* behind the bar *before*, *new* behind *after*.

    Hidden characters of both are added to *found*.
    """
    was, becomes = _lines(old, found, unfold=unfold), _lines(new, found, unfold=unfold)
    # Where nothing is there on one side, no line is called equal.
    whole: list[Opcode] = [("replace", 0, len(was), 0, len(becomes))]
    ops = whole if old.missing or new.missing else drawn_opcodes(was, becomes, compare)
    label = foreign_text(old.label, "muted")
    gutters: dict[str, Gutter] = {"−": before, "+": after}
    stays: Gutter = "fact" if "fact" in (before, after) else before
    for _, sign, pieces in signed_lines(was, becomes, ops, compare, unfold=unfold):
        yield signed_block(label, sign, pieces, gutters.get(sign, stays))
        label = ()


def _lines(field: FieldView, found: HiddenCharacters, *, unfold: bool) -> tuple[Line, ...]:
    if field.missing:
        return ((Piece(words.item.MISSING, "muted"),),)
    if not field.value:
        return ((Piece(words.item.EMPTY, "muted"),),)
    text = field_text(field, unfold=unfold)
    found.add(text)
    return tuple(value_lines(field, text))


def edit_blocks(old: FieldView, new: FieldView, *, unfold: bool = False) -> Iterator[Block]:
    """Yield the lines of an argument that a person changed; what is hidden in it is counted where it is shown whole."""
    found, compare = HiddenCharacters(), BoundedDiff()
    return field_change_blocks(
        old, new, found, compare, before="claim", after="record", unfold=unfold
    )


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
    before = _read_lines(change.before, hidden, unfold=unfold)
    after = _read_lines(change.after, hidden, unfold=unfold)
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
    for row, pieces in enumerate(_read_lines(change.before, hidden, unfold=unfold)):
        label = foreign_text(change.label, "muted") if row == 0 else ()
        yield signed_block(label, "−", tinted(pieces, "del"))


def _read_lines(text: str | None, hidden: HiddenCharacters, *, unfold: bool) -> tuple[Line, ...]:
    if text is None:
        return ((Piece(words.item.MISSING),),)
    result = render_foreign(text, unfold=unfold, end=True)
    hidden.add(result)
    return rendered_lines(result)
