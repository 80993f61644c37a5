"""Labels that are longer than their column."""

import pytest
from rich.cells import cell_len

from aileron_tui.draw.blocks import (
    COMPACT_GUTTER,
    GUTTER,
    Block,
    Gutter,
    blank,
    heading,
    lay_out,
    value,
)
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Piece, plain_text

FORGED = "WILL HAPPEN  checked by Aileron"


def drawn_blocks(blocks: tuple[Block, ...], width: int, gutter: int) -> list[str]:
    return [plain_text(each) for each in lay_out(blocks, width, gutter).lines]


@pytest.mark.parametrize("gutter", [GUTTER, COMPACT_GUTTER])
@pytest.mark.parametrize("bar", ["┃", "┊", "│"])
@pytest.mark.parametrize(
    "label", [FORGED, "Estimated delivery", "見積もりの納期と送料", "e\u0301" * 20, "x" * 5_000]
)
@pytest.mark.parametrize("lines", [1, 2, 9])
def test_a_long_label_from_a_file_goes_on_in_its_own_column(
    gutter: int, bar: str, label: str, lines: int
) -> None:
    """Indented: one must not stand where headings do. And it shares no cell with a value."""
    kind: Gutter = {"┃": "fact", "┊": "claim", "│": "record"}[bar]  # type: ignore[assignment]
    named = value(foreign_text(label), (Piece("0"),), kind)
    more = (value("", (Piece(str(number)),), kind) for number in range(1, lines))
    layout = lay_out((named, *more, heading("NEXT")), 80, gutter)
    *rows, last = (plain_text(each) for each in layout.lines)
    assert (last, layout.blocks[-1]) == (" NEXT", lines)
    split = [row.partition(bar) for row in rows]
    assert [text for _, found, text in split if found] == [f" {n}" for n in range(lines)]
    assert all(cell_len(before) == gutter for before, found, _ in split if found)
    column = [before.rstrip() for before, _, _ in split]
    assert all(row.startswith("   ") for row in column[1:] if row)
    shown = "".join(column).replace(" ", "")
    assert shown == label.replace(" ", "") or (shown.endswith("…") and len(label) > 60)


@pytest.mark.parametrize("gutter", [GUTTER, COMPACT_GUTTER])
def test_a_long_label_that_nobody_accepted_stands_behind_the_bar(gutter: int) -> None:
    """An agent's own word for itself, say: in the label's column it could name a section."""
    labelled = value(foreign_text(FORGED), (Piece("x"),), "claim", label_outside=True)
    first, second = drawn_blocks((labelled,), 80, gutter)
    assert (first[:gutter].strip(), first[gutter]) == ("", "┊")
    assert first[gutter + 2 :] == FORGED
    assert second[gutter + 2 :] == "x"


def test_what_is_left_of_a_label_has_no_bar_beside_it() -> None:
    """The value has ended: an empty line of it would be another value."""
    rows = drawn_blocks(
        (value(foreign_text("Estimated delivery"), (Piece("x"),)), blank()), 80, GUTTER
    )
    assert rows == [" Estimated   ┃ x", "   delivery", ""]


def test_a_long_label_of_ours_stands_on_a_line_of_its_own() -> None:
    """Nobody else can write one."""
    first, _ = (
        plain_text(each)
        for each in lay_out((value("Look-alike names", (Piece("x"),)),), 80, COMPACT_GUTTER).lines
    )
    assert first == " Look-alike names"
