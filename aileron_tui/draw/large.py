"""Items with so much text that laying it out would hold up a key: how much, and how they begin."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from aileron_core.console_port.port import ApprovalView, FieldView
from aileron_tui.draw.blocks import Block, blank, value
from aileron_tui.draw.document import approval_blocks, first_heading
from aileron_tui.draw.text import Piece
from aileron_tui.words import large as large_words

__all__ = ["LARGE", "Same", "start_blocks", "weight"]

LARGE = 40_000
"""Characters that are laid out at once: about a twentieth of a second on a slow machine."""
SHOWN = 6_000
"""Characters of a larger text that are shown until the whole is there: more than a pane holds."""


class Same:
    """Is equal to itself alone: comparing large values would take as long as what it saves."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def weight(view: ApprovalView | None) -> int:
    """Return how many characters of *view* come from outside."""
    if view is None:
        return 0
    changed = view.drift.changed if view.drift is not None else ()
    inputs = [field for step in view.steps for field in step.inputs]
    sizes = [len(field.value) for field in (*view.preview.fields, *view.sent, *inputs)]
    sizes += [len(each.before or "") + len(each.after or "") for each in changed]
    return sum(sizes)


def start_blocks(view: ApprovalView, now: float) -> tuple[Block, ...]:
    """Return how *view*'s document begins, and that there is more; none of it counts as read."""
    told = large_words.laying_out(weight(view))
    note = (value("", (Piece(told, "attn"),), "record"), blank())
    if view.drift is not None or view.steps:
        return (first_heading(view, now), *note)
    fetched = tuple(_starts(view.preview.fields))
    begin = replace(view, preview=replace(view.preview, fields=fetched), sent=())
    blocks = approval_blocks(begin, now)
    end = next((at for at, block in enumerate(blocks) if block.kind == "blank"), len(blocks))
    return (blocks[0], *note, *blocks[1:end])


def _starts(fields: Iterable[FieldView]) -> Iterator[FieldView]:
    """Yield *fields* up to `SHOWN` characters in all."""
    left = SHOWN
    for field in fields:
        if left <= 0:
            return
        yield replace(field, value=field.value[:left])
        left -= len(field.value)
