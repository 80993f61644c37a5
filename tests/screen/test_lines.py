"""Wrapping, cutting and reading, for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_tui.draw.blocks import lay_out, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Piece, cell_width, plain_text, truncate, truncate_start, wrap
from aileron_tui.state.decision_screens import ReadingProgress
from tests.support.counting import calls

TEXT = st.text(alphabet=st.sampled_from("ab  漢é·‹x❤\ufe0f🏽\u0903"), max_size=120)


@given(TEXT, st.integers(min_value=2, max_value=40))
def test_wrapped_lines_fit_and_cover_the_text_without_a_gap(text: str, width: int) -> None:
    """No character is lost, but blanks where a line breaks, and no line is too wide."""
    lines = wrap((Piece(text),), width)
    at = 0
    for each in lines:
        assert each.start == at
        assert cell_width(each.pieces) <= width
        drawn = plain_text(each.pieces)
        assert text[each.start : each.start + len(drawn)] == drawn
        assert not text[each.start + len(drawn) : each.end].strip(" ")
        at = each.end
    assert at == len(text)


@given(TEXT, st.integers(min_value=1, max_value=40))
def test_a_cut_is_visible_and_fits(text: str, width: int) -> None:
    """What was shortened ends in `…`."""
    pieces = (Piece(text),) if text else ()
    shown = truncate(pieces, width)
    assert cell_width(shown) <= width
    assert shown == pieces or plain_text(shown).endswith("…")


@given(TEXT, st.integers(min_value=1, max_value=40))
def test_a_cut_at_the_start_is_visible_and_keeps_the_end(text: str, width: int) -> None:
    """What was left out stands for `…` in front; what is left is the end, no wider than its room."""
    pieces = (Piece(text[: len(text) // 2]), Piece(text[len(text) // 2 :])) if text else ()
    shown = truncate_start(pieces, width)
    assert cell_width(shown) <= width
    kept = plain_text(shown)
    assert shown == pieces or (kept.startswith("…") and text.endswith(kept.removeprefix("…")))


@given(st.lists(TEXT, min_size=1, max_size=8), st.integers(40, 100), st.integers(40, 100))
def test_what_was_read_stays_read_at_another_width(texts: list[str], one: int, two: int) -> None:
    """A resize keeps what was seen, by place in the text."""
    blocks = [value("Body", foreign_text(text)) for text in texts]
    reading = ReadingProgress()
    first = lay_out(blocks, one, 11)
    reading.set_lines(first.ranges)
    reading.mark_seen(range(len(first.lines)))
    assert reading.unseen == 0
    reading.set_lines(lay_out(blocks, two, 11).ranges)
    assert reading.unseen == 0
    assert reading.total > 0


def test_a_line_of_which_a_part_was_not_seen_counts_as_unseen() -> None:
    """Half of a line is not the line."""
    blocks = [value("Body", (Piece("word " * 40),))]
    reading = ReadingProgress()
    narrow = lay_out(blocks, 40, 11)
    reading.set_lines(narrow.ranges)
    reading.mark_seen([0])
    reading.set_lines(lay_out(blocks, 100, 11).ranges)
    assert reading.unseen == reading.total


@pytest.mark.parametrize("unit", ["\x1ba", "ж\x1b", "漢\u200b ", "a b", "❤\ufe0f"])
def test_breaking_a_text_takes_time_with_its_length_alone(unit: str) -> None:
    """Counted in calls: a text of marks alone took time with its square, and the screen stood still."""

    def cost(times: int) -> int:
        pieces = foreign_text(unit * times)
        return calls(lambda: wrap(pieces, 60))

    cost(10)
    assert cost(800) <= 8.5 * cost(100) + 500
