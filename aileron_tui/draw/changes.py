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
    ops = _opcodes(old, new, was, becomes, compare)
    label = foreign_text(old.label, "muted")
    gutters: dict[str, Gutter] = {"−": before, "+": after}
    for _, sign, pieces in signed_lines(was, becomes, ops, compare, unfold=unfold):
        ground = GROUNDS.get(sign)
        signed: Line = (Piece(f"{sign} ", ground or "muted"), *pieces)
        yield value(label, signed, gutters.get(sign, "fact"), background=ground, hang=2)
        label = ()


GROUNDS: dict[str, Role] = {"−": "del", "+": "add"}
"""The ground of a line by its sign; one that stays has none."""


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
