"""The document of a batch: what all of its calls have in common, then a table of what differs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from aileron_core.console_port.field_views import FieldView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Cell, Gutter, blank, heading
from aileron_tui.draw.columns import edge
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import field_blocks, field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece
from aileron_tui.draw.times import age
from aileron_tui.items import Batch

_BARS = re.compile("[┃┊]")


def batch_blocks(batch: Batch, now: float, *, unfold: bool) -> tuple[Block, ...]:
    """Return the whole document of *batch*; only its first heading depends on *now*."""
    found = HiddenCharacters()
    odd = len({call_id for _, call_id in batch.alone})
    remark: Line = (Piece(words.item.alone(odd), "attn"),) if odd else ()
    rows = tuple(_rows(batch, found, unfold=unfold))
    hidden = tuple(found.blocks())
    return (
        same_heading(batch, now),
        *field_blocks(_same(batch, "fact"), "fact", unfold=unfold),
        *field_blocks(_same(batch, "claim"), "claim", unfold=unfold),
        blank(),
        heading(words.item.DIFFER, remark),
        *rows,
        *((blank(), *hidden) if hidden else ()),
    )


def same_heading(batch: Batch, now: float) -> Block:
    """Return the first line of the document, with the age of the oldest preview."""
    oldest = min(batch.calls, key=lambda each: each.preview.updated_at).preview
    text = words.item.fetched(
        escape(oldest.host),
        age(now - oldest.updated_at),
        by_server=batch.calls[0].is_of_reaching_server,
    )
    if oldest.status == "none":
        text = words.item.NO_PREVIEW_DECLARED
    return heading(words.item.SAME, (Piece(text, "muted"),))


def _same(batch: Batch, gutter: Gutter) -> list[FieldView]:
    return [field for (whose, _), field in batch.same.items() if whose == gutter]


def _rows(batch: Batch, found: HiddenCharacters, *, unfold: bool) -> Iterator[Block]:
    differing = {key: each for key, each in batch.fields.items() if key not in batch.same}
    titles = (Cell(key[0], (foreign_text(key[1], "muted"),)) for key in differing)
    yield Block(kind="row", cells=tuple(titles))
    for number, call in enumerate(batch.calls):
        left_out = call.call_id in batch.left_out
        cells: list[Cell] = []
        for key, values in differing.items():
            lines = [_marked(each) for each in _lines(values[number], key[0], found, unfold)]
            if (key, call.call_id) in batch.alone:
                lines[0] = (Piece("▲ ", "attn"), *(replace(p, role="attn") for p in lines[0]))
            cells.append(Cell(key[0], tuple(lines)))
        sign = Piece(words.item.LEFT_OUT if left_out else words.item.PUT_IN, "strong")
        label = (edge(batch.cursor == call.call_id), sign)
        yield Block(kind="row", label=label, cells=tuple(cells), must_be_seen=not left_out)


def _lines(
    field: FieldView, gutter: Gutter, found: HiddenCharacters, unfold: bool
) -> tuple[Line, ...]:
    if field.missing or not field.value:
        return ((Piece(words.item.MISSING if field.missing else words.item.EMPTY, "muted"),),)
    role = "text" if gutter == "fact" else "claim"
    return tuple(field_lines(field, found, role, unfold=unfold))


def _marked(text: Line) -> Line:
    """Return *text* with a mark for each sign that would pass for the bar of another column."""
    return tuple(replace(p, text=_BARS.sub("‹bar›", p.text)) if p.foreign else p for p in text)
