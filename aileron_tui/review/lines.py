"""Drawn lines as JSON, in parts that a page can show one after the other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from aileron_core.canonical import Json
from aileron_core.server.review_items import DrawnPart
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.text import Line, plain_text, wrap

PART_LINES = 200
"""Lines of a part, and about as many as a page shows before one has to scroll far."""
PART_CHARACTERS = 40_000
"""Of a part, where its lines are long."""
LINE_CHARACTERS = 400
"""Of one line: a longer one goes on in the next, so that a line fits on a small screen."""


def line_json(pieces: Line) -> list[Json]:
    """Return each piece as its text, or with its role where that is not `text`; no blank at the start."""
    whole = [[p.text, p.role] if p.role != "text" else p.text for p in pieces if p.text]
    if whole and not plain_text(pieces[:1]).strip():
        return [*whole[1:]]
    return [*whole]


def parts_of(blocks: Sequence[Block]) -> tuple[DrawnPart, ...]:
    """Return *blocks* divided into parts, at least one."""
    parts: list[DrawnPart] = []
    lines: list[Json] = []
    to_see = size = 0
    for block in _in_lines(blocks):
        if len(lines) >= PART_LINES or size >= PART_CHARACTERS:
            parts.append(DrawnPart(blocks=lines, lines=to_see))
            lines, to_see, size = [], 0, 0
        lines.append(_block_json(block))
        to_see += block.must_be_seen
        size += sum(len(piece.text) for piece in block.pieces)
    return (*parts, DrawnPart(blocks=lines, lines=to_see))


def _in_lines(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield *blocks*, a long one as several: the further ones have no label."""
    for block in blocks:
        if sum(len(piece.text) for piece in block.pieces) <= LINE_CHARACTERS:
            yield block
            continue
        for row, each in enumerate(wrap(block.pieces, LINE_CHARACTERS)):
            label = block.label if row == 0 else ()
            yield replace(block, label=label, pieces=each.pieces)


def _block_json(block: Block) -> dict[str, Json]:
    drawn: dict[str, Json] = {"kind": block.kind}
    if block.kind == "value":
        drawn["bar"] = block.gutter
    if block.label:
        drawn["label"] = line_json(block.label)
    if block.label and block.label_from == "outside":
        drawn["outside"] = True
    if block.pieces:
        # Blanks at the start of a value are its own.
        drawn["text"] = [[p.text, p.role] if p.role != "text" else p.text for p in block.pieces]
    if block.background:
        drawn["ground"] = block.background
    if block.must_be_seen:
        drawn["see"] = True
    return drawn
