"""Values of a document, and labels longer than their column: each is drawn as what it is, and nothing from
outside can say otherwise.
"""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from aileron_core.console_port.field_views import FieldView
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
from aileron_tui.draw.changes import field_text, value_lines
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.header import warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Piece, plain_text
from tests.support.screens.calls import approval, later_steps

NOW = 1_790_000_000.0


def value_rows(field: FieldView) -> list[str]:
    return [plain_text(each) for each in value_lines(field, field_text(field))]


BCC = FieldView(label="x", value="a\nb", count=2, spellings=("Bcc", "BCC"))


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        (FieldView(label="x", value='{"all": 1}'), ['‹text› {"all": 1}']),
        (FieldView(label="x", value='\n  ["a"]'), ["‹text› ", '  ["a"]']),
        (FieldView(label="x", value='{"all": 1}', shape="json"), ['{"all": 1}']),
        (FieldView(label="x", value="a\nb"), ["a", "b"]),
        (FieldView(label="x", value="a\nb", shape="lines"), ["‹list of 2›", "a", "b"]),
        (FieldView(label="x", value="rm -rf x "), ["rm -rf x‹1 blank›"]),
        (FieldView(label="x", value="   "), ["‹3 blanks›"]),
        (FieldView(label="x", value="a\n  "), ["a", "‹2 blanks›"]),
        (FieldView(label="x", value="‹list of 2›\na"), ["‹U+2039›list of 2‹U+203A›", "a"]),
        (BCC, ["‹2 values, under Bcc, BCC›", "a", "b"]),
        (FieldView(label="x", value="a", spellings=("B›c",)), ["‹found at B‹U+203A›c›", "a"]),
    ],
)
def test_a_value_is_drawn_as_what_it_is(field: FieldView, lines: list[str]) -> None:
    assert value_rows(field) == lines


def test_arguments_steps_and_fetched_fields_are_drawn_alike() -> None:
    looks_like = FieldView(label="where", value='{"id": 5} ')
    step = replace(later_steps()[0], inputs=(looks_like,))
    view = approval(1, NOW)
    preview = replace(view.preview, fields=(looks_like,))
    view = replace(view, arguments=(looks_like,), steps=(step,), preview=preview)
    texts = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert texts.count('‹text› {"id": 5}‹1 blank›') == 3


def test_several_values_of_one_name_are_a_warning_of_the_head() -> None:
    """One Bcc more is worth a look before any other line."""
    view = approval(1, NOW)
    twice = FieldView(label="Bcc", value="a\nb", count=2, spellings=("Bcc",))
    view = replace(view, preview=replace(view.preview, fields=(twice,)))
    found = [plain_text(w) for w in warnings(view, HiddenCharacters(), file_changed=False)]
    assert "Bcc: 2 values" in found


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


def test_what_is_left_of_a_label_has_no_bar_and_one_of_ours_has_a_line_of_its_own() -> None:
    label = value(foreign_text("Estimated delivery"), (Piece("x"),))
    rows = drawn_blocks((label, blank()), 80, GUTTER)
    assert rows == [" Estimated   ┃ x", "   delivery", ""]
    first, _ = drawn_blocks((value("Look-alike names", (Piece("x"),)),), 80, COMPACT_GUTTER)
    assert first == " Look-alike names"
