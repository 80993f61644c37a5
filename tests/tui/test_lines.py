"""Wrapping, cutting and reading, for any text."""

from hypothesis import given
from hypothesis import strategies as st

from aileron_tui.presenters.blocks import lay_out, value
from aileron_tui.presenters.lines import Piece, cells, cut, plain, wrap
from aileron_tui.presenters.outside import outside
from aileron_tui.presenters.reading import Reading

TEXT = st.text(alphabet=st.sampled_from("ab  漢é·‹x"), max_size=120)


@given(TEXT, st.integers(min_value=2, max_value=40))
def test_wrapped_lines_fit_and_cover_the_text_without_a_gap(text: str, width: int) -> None:
    """No character is lost, but blanks where a line breaks, and no line is too wide."""
    lines = wrap((Piece(text),), width)
    at = 0
    for each in lines:
        assert each.start == at
        assert cells(each.pieces) <= width
        drawn = plain(each.pieces)
        assert text[each.start : each.start + len(drawn)] == drawn
        assert not text[each.start + len(drawn) : each.end].strip(" ")
        at = each.end
    assert at == len(text)


@given(TEXT, st.integers(min_value=1, max_value=40))
def test_a_cut_is_visible_and_fits(text: str, width: int) -> None:
    """What was shortened ends in `…`."""
    pieces = (Piece(text),) if text else ()
    shown = cut(pieces, width)
    assert cells(shown) <= width
    assert shown == pieces or plain(shown).endswith("…")


@given(st.lists(TEXT, min_size=1, max_size=8), st.integers(40, 100), st.integers(40, 100))
def test_what_was_read_stays_read_at_another_width(texts: list[str], one: int, two: int) -> None:
    """A resize keeps what was seen, by place in the text."""
    blocks = [value("Body", outside(text)) for text in texts]
    reading = Reading()
    first = lay_out(blocks, one, 11)
    reading.lay_out(first.places)
    reading.mark(range(len(first.lines)))
    assert reading.unseen == 0
    reading.lay_out(lay_out(blocks, two, 11).places)
    assert reading.unseen == 0
    assert reading.total > 0


def test_a_line_of_which_a_part_was_not_seen_counts_as_unseen() -> None:
    """Half of a line is not the line."""
    blocks = [value("Body", (Piece("word " * 40),))]
    reading = Reading()
    narrow = lay_out(blocks, 40, 11)
    reading.lay_out(narrow.places)
    reading.mark([0])
    reading.lay_out(lay_out(blocks, 100, 11).places)
    assert reading.unseen == reading.total
