"""Our signs in ASCII: the same widths, and not a letter of anybody else's."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import aileron_tui
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.glyphs import ASCII, ELLIPSIS, Glyphs
from aileron_tui.draw.text import Line, Piece, cell_width, justify, line, plain_text, truncate

OURS = "".join(chr(each) for each in ASCII) + ELLIPSIS
PLAIN = Glyphs(ascii=True)

own = st.text(alphabet=st.sampled_from("ab  …●┃→·"), max_size=12).map(Piece)
foreign = st.text(alphabet=st.sampled_from("xy  …●漢é"), max_size=12).map(
    lambda text: Piece(text, "text", foreign=True)
)
lines = st.lists(own | foreign, max_size=8).map(tuple)


def test_every_sign_in_our_source_has_its_form_in_ascii_and_is_one_cell_wide() -> None:
    """A new sign without one would not be drawn in such a terminal, a wide one would push what stands right
    of it into a column that is not its own. But for what `connector new` copies.
    """
    home = Path(aileron_tui.__file__).parent
    files = {*home.rglob("*.py")} - {*(home / "suite").rglob("*.py")}
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert {*re.findall(r"[^\x00-\x7f]", text)} <= {*OURS}
    assert all(len(each) == 1 and each.isascii() for each in ASCII.values())
    assert {each for each in OURS if cell_len(each) != 1} == set()


@given(lines, st.integers(0, 80))
def test_no_sign_changes_the_width_of_its_line_nor_a_letter_from_outside(
    pieces: Line, width: int
) -> None:
    """Only the free end of a line may be used; the last letter before a cut may make room for the second dot."""
    drawn = PLAIN.draw(pieces, width)
    assert cell_width(pieces) <= cell_width(drawn) <= max(cell_width(pieces), width)
    assert all(each.foreign or each.text.isascii() for each in drawn)
    before = "".join(each.text for each in pieces if each.foreign)
    after = "".join(each.text for each in PLAIN.draw(pieces, 200) if each.foreign)
    rest = iter(before)
    assert all(letter in rest for letter in after)
    ours = "".join(each.text for each in pieces if not each.foreign)
    assert len(before) - len(after) <= ours.count(ELLIPSIS)


def test_a_cut_shows_two_dots_and_a_letter_that_is_lacking_a_mark_as_wide_as_it_is() -> None:
    row = justify(truncate(foreign_text("abcdefgh"), 5), (Piece("4:31"),), 10)
    assert plain_text(PLAIN.draw(row, 10)) == "abc.. 4:31"
    footer = line("a approve…   d deny…")
    assert plain_text(PLAIN.draw(footer, 30)) == "a approve..  d deny.."
    latin = Glyphs(ascii=True, charset="latin-1")
    drawn = latin.draw((Piece("né 漢 e\u0301", "text", foreign=True), Piece("✓")), 40)
    assert plain_text(drawn) == "né ?? ?+"
    assert [each.text for each in drawn if each.role == "mark"] == ["??", "?"]
