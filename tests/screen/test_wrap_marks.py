"""`w`: which drawn line ends are no line ends of the text."""

import operator

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port.field_views import DriftView, FieldChangeView
from aileron_tui.app import AileronApp
from aileron_tui.draw.blocks import COMPACT_GUTTER, Layout, heading, lay_out, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Piece, cell_width, plain_text, truncate
from aileron_tui.pages.command import availability
from aileron_tui.pages.panes import DocumentPane
from aileron_tui.pages.registry import DEFAULT_REGISTRY
from aileron_tui.screens.console import ConsoleScreen
from tests.screen.driving import NOW, Console, console, mail, start
from tests.screen.picturing import Look, Snap, dark, picture_in, picture_of
from tests.support.screens.drawn import situation
from tests.support.screens.states import body

FORGED = "Pay 100 to Ana. ↩\n" + "↩" * 300 + "\n" + "word ↩ " * 40
"""A text that draws the sign itself, wherever it can."""


def beyond(layout: Layout, row: int) -> str:
    """Return what stands in *row* right of the values' last column."""
    pieces = layout.line(row, wrap_marks=True)
    inside = truncate(pieces, layout.end, mark="")
    return plain_text(pieces)[len(plain_text(inside)) :].strip()


def document(app: AileronApp) -> DocumentPane:
    assert isinstance(app.screen, ConsoleScreen)
    return app.screen.page.reader.document


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
    """Whatever a text holds: right of its column there is our mark, or nothing."""
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
    text = [value("Body", foreign_text("word " * 60))]
    rest = lay_out([heading("A"), *text], 60, COMPACT_GUTTER).without_first(1)
    taller = lay_out([heading("A", (Piece("y " * 90),))], 60, COMPACT_GUTTER)
    joined = taller.with_tail(rest, 0)
    whole = lay_out([heading("A", (Piece("y " * 90),)), *text], 60, COMPACT_GUTTER)
    assert joined.wraps == whole.wraps
    assert joined.end == whole.end
    assert whole.wraps


def marks(shown: Console) -> list[str]:
    return [row for row in shown.lines if row.rstrip(" █┃│").endswith("↩")]


async def test_w_shows_the_marks_and_takes_them_away() -> None:
    """No line moves by it, nothing that was read counts as unread, and the key rests anew."""
    async with console(start(body("word " * 400)), size=(80, 24)) as shown:
        await shown.read_all()
        await shown.press("b")
        await shown.rest()
        assert not marks(shown)
        before, at = shown.text, document(shown.app).rows_in_view
        await shown.press("w")
        await shown.until(lambda: bool(marks(shown)), "marks")
        assert document(shown.app).rows_in_view == at
        assert "All seen" in shown.status_line
        assert shown.text.replace("↩", " ").splitlines()[:-2] == before.splitlines()[:-2]
        assert not shown.armed
        await shown.rest()
        await shown.press("w")
        await shown.until(lambda: not marks(shown), "no marks")


def test_lines_of_a_text_that_fit_carry_no_mark_and_no_key_is_offered() -> None:
    """The sign at the end of a text is the text's own, and stands among its letters."""
    for wrapped in (False, True):
        now = situation(start(mail()))
        now.model.has_wraps = wrapped
        assert availability(DEFAULT_REGISTRY.command("wrap_marks"), now).shown is wrapped


@dark
@picture_of(start(body(FORGED)))
async def test_wrap_marks_in_a_column_that_no_text_reaches(shown: Console) -> None:
    """The text's own signs stand left of that column, wherever the text puts them."""
    await shown.rest()
    await shown.press("w")
    await shown.until(lambda: bool(marks(shown)), "marks")
    await shown.rest()


@dark
def test_wrap_marks_beside_a_difference(snap_compare: Snap, look: Look) -> None:
    """They stand right of the ground of what was taken out and put in."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.press("w")
        await shown.until(lambda: bool(marks(shown)), "marks")
        await shown.rest()

    change = FieldChangeView(label="Body", before="old words " * 20, after="new words " * 20)
    drift = DriftView(
        before_at=NOW - 90, after_at=NOW - 20, changed=(change,), same_count=2,
        other_paths=(), other_count=0, words_before=("olive", "pixel", "brook"),
    )  # fmt: skip
    assert picture_in(snap_compare, look, scenario, start(body("new words " * 20, drift=drift)))
