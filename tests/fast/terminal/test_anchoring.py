"""Columns stay where they are, on terminals that see glyphs wider or narrower than we do."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size, set_cell_size

from aileron_core.text import inline
from aileron_tui.terminal.driver import pin_glyphs
from tests.support.attacks import ATTACKS
from tests.support.terminal import Cells, joins_nothing

LEFT, WIDTH = 40, 100


def narrow_width(char: str) -> int:
    """A terminal that knows no emoji: each has one cell."""
    size = get_character_cell_size(char)
    return min(size, 1) if ord(char) >= 0x1F000 or unicodedata.category(char) == "So" else size


def drawn_row(gist: str, width_of: Callable[[str], int]) -> list[str]:
    """Return the cells of a row as Textual writes it whole: a list, then an item beside it."""
    left = set_cell_size(gist, LEFT - 4)
    frame = f"\x1b[1;1H\x1b[1m▌● {left} \x1b[0mLABEL ┃ value\x1b[2;1Hnext"
    cells = Cells(WIDTH, 2, width_of=width_of)
    cells.feed("\x1b[1;1H" + "¤" * WIDTH + pin_glyphs(frame))
    assert cells.strangers == []
    return cells.row(0)


@pytest.mark.parametrize("width_of", [joins_nothing, narrow_width, get_character_cell_size])
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_what_is_beside_a_text_stays_there(attack: object, width_of: Callable[[str], int]) -> None:
    row = drawn_row(inline(attack.text).text, width_of)
    assert "".join(row[LEFT : LEFT + 13]) == "LABEL ┃ value"
    assert "¤" not in "".join(row[: LEFT + 13])


ODD = st.sampled_from("👍🏽❤\ufe0f🇩🇪\u0903\u1161\u0301aж漢")


@given(st.text(alphabet=st.characters() | ODD))
def test_it_holds_for_any_text(text: str) -> None:
    row = drawn_row(inline(text).text, joins_nothing)
    assert "".join(row[LEFT : LEFT + 13]) == "LABEL ┃ value"


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=("Cc", "Cs"))))
def test_nothing_is_added_but_blanks_and_places(text: str) -> None:
    frame = f"\x1b[1;1H\x1b[38;2;1;2;3m{text}\x1b[0m"
    held = pin_glyphs(frame)
    cells = Cells(max(cell_len(text), 1) + 4, 1)
    cells.feed(held)
    plain = Cells(max(cell_len(text), 1) + 4, 1)
    plain.feed(frame)
    assert cells.strangers == []
    assert cells.text.replace(" ", "") == plain.text.replace(" ", "")
    if text.isascii():
        assert held == frame


def test_text_before_the_first_place_is_left_alone() -> None:
    assert pin_glyphs("\x1b]2;(3) aileron\x07👍🏽") == "\x1b]2;(3) aileron\x07👍🏽"
