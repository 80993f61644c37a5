"""A change before it happens: each field that gets another value, as it is and as the agent wants it.

The old value has the bar of what was fetched, the new one the bar of what the agent says.
"""

from collections.abc import Iterator, Sequence

from aileron_core.console_port import ApprovalView, FieldView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Gutter, blank, value
from aileron_tui.draw.drift import BoundedDiff, Opcode, line_opcodes, mark_words
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, plain_text
from aileron_tui.draw.values import field_text, value_lines

CONTEXT_LINES = 2
"""Lines of a long text that are shown before and after those that differ."""


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
        yield from _change(old, new, found, compare, unfold=unfold)
    if not changed:
        yield value("", (Piece(words.item.NOTHING_CHANGES, "attn"),))
    rows = tuple(found.blocks())
    if rows:
        yield blank()
        yield from rows


def _change(
    old: FieldView,
    new: FieldView,
    found: HiddenCharacters,
    compare: BoundedDiff,
    *,
    unfold: bool,
) -> Iterator[Block]:
    before, after = _lines(old, found, unfold=unfold), _lines(new, found, unfold=unfold)
    ops = _opcodes(old, new, before, after, compare)
    label = foreign_text(old.label, "muted")
    for sign, pieces in _signed(before, after, ops, compare, unfold=unfold):
        ground = _GROUNDS.get(sign)
        signed: Line = (Piece(f"{sign} ", ground or "muted"), *pieces)
        gutter: Gutter = "claim" if sign == "+" else "fact"
        yield value(label, signed, gutter, background=ground)
        label = ()


_GROUNDS: dict[str, Role] = {"−": "del", "+": "add"}


def _lines(field: FieldView, found: HiddenCharacters, *, unfold: bool) -> tuple[Line, ...]:
    if field.missing:
        return ((Piece(words.item.MISSING, "muted"),),)
    if not field.value:
        return ((Piece(words.item.EMPTY, "muted"),),)
    text = field_text(field, unfold=unfold)
    found.add(text)
    return tuple(value_lines(field, text))


def _opcodes(
    old: FieldView,
    new: FieldView,
    before: Sequence[Line],
    after: Sequence[Line],
    compare: BoundedDiff,
) -> list[Opcode]:
    a, b = [plain_text(each) for each in before], [plain_text(each) for each in after]
    if old.missing or new.missing or a == b:
        # Nothing is there on one side, or the drawn forms agree and the values do not: both are
        # shown, and no line is called equal.
        return [("replace", 0, len(a), 0, len(b))]
    return line_opcodes(a, b, compare)


def _signed(
    before: Sequence[Line],
    after: Sequence[Line],
    ops: Sequence[Opcode],
    compare: BoundedDiff,
    *,
    unfold: bool,
) -> Iterator[tuple[str, Line]]:
    """Yield (sign, text) of every line that is shown."""
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
            yield from (("−", old) for old, _ in pairs if old is not None)
            yield from (("+", new) for _, new in pairs if new is not None)
            continue
        first = a0 + (CONTEXT_LINES if at else 0)
        last = a1 - (CONTEXT_LINES if at + 1 < len(ops) else 0)
        folded = last - first
        for row in range(a0, a1):
            if unfold or folded < 2 or not first <= row < last:
                yield " ", before[row]
            elif row == first:
                yield " ", (Piece(words.item.lines_stay(folded), "mark"),)
