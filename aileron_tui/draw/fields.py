"""The fields of a document as texts of their own, for the clipboard and the pager: always as drawn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aileron_tui import words
from aileron_tui.draw.blocks import Block, Layout
from aileron_tui.draw.text import plain_text

_PLAIN_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9 _.-]{0,23}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One labelled text, marks included: what hides in it is visible, and is copied as a mark."""

    name: str
    """Its label where that may stand in a line of ours, else empty."""
    text: str
    first_block: int
    """Its first block."""
    marks: int
    """How many marks are in it."""

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


def fields_in_view(
    blocks: Sequence[Block], layout: Layout, first: int, last: int
) -> tuple[Field, ...]:
    """Return the fields of which a line stands in the rows `[first, last)`, from above."""
    shown = set(layout.blocks[first:last])
    return tuple(
        _field(blocks, start, end)
        for start, end in _spans(blocks)
        if not shown.isdisjoint(range(start, end))
    )


def shows_words(blocks: Sequence[Block], layout: Layout, first: int, last: int) -> bool:
    """Return whether the record's line of the three words stands in the rows `[first, last)`."""
    shown = (blocks[index] for index in set(layout.blocks[first:last]) if index < len(blocks))
    return any(
        each.gutter == "record" and plain_text(each.label).strip() == words.item.WORDS
        for each in shown
    )


def _spans(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return the blocks `[start, end)` of every field: a labelled line and those that go on with it."""
    spans: list[tuple[int, int]] = []
    start: int | None = None
    for index, block in enumerate(blocks):
        goes_on = block.kind == "value" and not block.label and start is not None
        if goes_on and start is not None and block.gutter == blocks[start].gutter:
            continue
        if start is not None:
            spans.append((start, index))
        start = index if block.kind == "value" else None
    if start is not None:
        spans.append((start, len(blocks)))
    return spans


def _field(blocks: Sequence[Block], start: int, end: int) -> Field:
    label, own = plain_text(blocks[start].label).strip(), blocks[start].gutter != "claim"
    marks = sum(p.role == "mark" for block in blocks[start:end] for p in block.pieces)
    return Field(
        name=label if own and _PLAIN_LABEL.fullmatch(label) else "",
        text="\n".join(plain_text(block.pieces) for block in blocks[start:end]),
        first_block=start,
        marks=marks,
    )
