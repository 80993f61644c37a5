"""Wrapping, its marks, cutting and reading, for any text; our signs in ASCII."""

import operator
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import aileron_tui
from aileron_core.console_port.field_views import FieldChangeView
from aileron_tui.draw import text as draw_text
from aileron_tui.draw.blocks import COMPACT_GUTTER, Layout, heading, lay_out, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.glyphs import ASCII, ELLIPSIS, Glyphs
from aileron_tui.draw.text import Line, Piece, cell_width, justify, line, plain_text, truncate, wrap
from aileron_tui.state.decision_screens import ReadingProgress
from tests.support.making import calls
from tests.support.screens.calls import drifted
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, body, snapshot_of

TEXT = st.text(alphabet=st.sampled_from("ab  漢é·‹x❤\ufe0f🏽\u0903"), max_size=120)
FORGED = "Pay 100 to Ana. ↩\n" + "↩" * 300 + "\n" + "word ↩ " * 40
"""A text that draws the sign itself, wherever it can."""
OURS = "".join(chr(each) for each in ASCII) + ELLIPSIS
PLAIN = Glyphs(ascii=True)
own = st.text(alphabet=st.sampled_from("ab  …●┃→·"), max_size=12).map(Piece)
foreign = st.text(alphabet=st.sampled_from("xy  …●漢é"), max_size=12).map(
    lambda text: Piece(text, "text", foreign=True)
)
lines = st.lists(own | foreign, max_size=8).map(tuple)


@given(TEXT, st.integers(min_value=2, max_value=40))
def test_wrapped_lines_fit_and_cover_the_text_without_a_gap(text: str, width: int) -> None:
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
    pieces = (Piece(text[: len(text) // 2]), Piece(text[len(text) // 2 :])) if text else ()
    shown, end = truncate(pieces, width), draw_text.truncate_start(pieces, width)
    assert max(cell_width(shown), cell_width(end)) <= width
    assert shown == pieces or plain_text(shown).endswith("…")
    kept = plain_text(end)
    assert end == pieces or (kept.startswith("…") and text.endswith(kept.removeprefix("…")))


@given(st.lists(TEXT, min_size=1, max_size=8), st.integers(40, 100), st.integers(40, 100))
def test_what_was_read_stays_read_at_another_width(texts: list[str], one: int, two: int) -> None:
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


def beyond(layout: Layout, row: int) -> str:
    pieces = layout.line(row, wrap_marks=True)
    inside = truncate(pieces, layout.end, mark="")
    return plain_text(pieces)[len(plain_text(inside)) :].strip()


@given(
    st.lists(
        # Hypothesis seldom writes a text that is longer than a line.
        st.builds(operator.mul, st.text("ab ↩界é", max_size=20), st.integers(1, 60)),
        min_size=1,
        max_size=5,
    ),
    st.integers(40, 160),
)
def test_a_mark_stands_behind_a_line_exactly_when_it_goes_on(texts: list[str], width: int) -> None:
    blocks = [
        heading("X", (Piece("y" * 500),)),
        *(value("Body", foreign_text(each)) for each in texts),
    ]
    layout = lay_out(blocks, width, COMPACT_GUTTER)
    for row, block in enumerate(layout.blocks):
        last = row + 1 == len(layout.blocks) or layout.blocks[row + 1] != block
        goes_on = blocks[block].kind == "value" and not last
        marked = layout.line(row, wrap_marks=True)
        if blocks[block].kind == "value":
            assert beyond(layout, row) == ("↩" if goes_on else "")
        if marked != layout.lines[row]:
            assert cell_width(marked[:-1]) == layout.end
        assert marked[: len(layout.lines[row])] == layout.lines[row]
        assert cell_width(marked) <= width - 1


def test_a_heading_in_front_that_grows_moves_the_marks_with_the_lines() -> None:
    """The age in the first line may take one line more; the marks stay at their own lines."""
    text, head = [value("Body", foreign_text("word " * 60))], heading("A", (Piece("y " * 90),))
    rest = lay_out([heading("A"), *text], 60, COMPACT_GUTTER).without_first(1)
    joined = lay_out([head], 60, COMPACT_GUTTER).with_tail(rest, 0)
    whole = lay_out([head, *text], 60, COMPACT_GUTTER)
    assert joined.wraps == whole.wraps
    assert joined.end == whole.end
    assert whole.wraps


def marks(play: Play) -> list[str]:
    return [row for row in play.lines if row.rstrip(" █┃│").endswith("↩")]


def test_w_shows_the_marks_and_takes_them_away() -> None:
    play = Play(snapshot_of(body("word " * 400)), size=(80, 24))
    play.read_all()
    play.press("b")
    play.rest()
    assert not marks(play)
    before, at = play.text, play.document.rows_in_view
    play.press("w")
    assert marks(play)
    assert play.document.rows_in_view == at
    assert "All seen" in play.status_line
    assert play.text.replace("↩", " ").splitlines()[:-2] == before.splitlines()[:-2]
    assert not play.armed
    play.rest()
    play.press("w")
    assert not marks(play)


def test_the_texts_own_signs_stand_left_of_the_column_of_the_marks() -> None:
    change = FieldChangeView(label="Body", before="old words " * 20, after="new words " * 20)
    drift = replace(drifted(NOW), changed=(change,))
    for view in (body(FORGED), body("new words " * 20, drift=drift)):
        play = rested(snapshot_of(view))
        layout = play.document.layout
        unmarked = play.lines
        play.press("w")
        assert marks(play)
        for before, after in zip(unmarked[:-2], play.lines[:-2], strict=True):
            marked = [n for n in range(120) if after[n] != before[n]]
            assert marked in ([], [46 + layout.end - 1])


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
