"""Two readings compared: right where it is quick, whole where it would not be."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port.field_views import FieldChangeView
from aileron_tui.draw.drift import _change
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import plain_text
from aileron_tui.draw.text_diff import BoundedDiff, Opcode
from tests.support.counting import calls

LINES = st.lists(st.sampled_from(["a", "b", "", "c c"]), max_size=12)


def applied(ops: Sequence[Opcode], old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return what *ops* make of *old*; what is called equal has to be."""
    made: list[str] = []
    for tag, a0, a1, b0, b1 in ops:
        if tag == "equal":
            assert old[a0:a1] == new[b0:b1]
        made += new[b0:b1]
    return made


@given(LINES, LINES, st.integers(0, 2000))
def test_what_is_reported_leads_from_old_to_new(old: list[str], new: list[str], work: int) -> None:
    assert applied(BoundedDiff(work).opcodes(old, new), old, new) == new


def test_a_crafted_pair_is_shown_whole_instead_of_holding_the_screen() -> None:
    """2,000 lines of two kinds took 43 s; so did many such lines one after the other."""
    old = ["a" if row % 2 else "b" for row in range(2_000)]
    new = ["a" if row // 2 % 2 else "b" for row in range(2_000)]
    compare = BoundedDiff()
    assert compare.opcodes(old, new) == [("replace", 0, 2_000, 0, 2_000)]
    short = compare.opcodes(old[:100], new[:100])
    assert len(short) > 1
    for _ in range(200):
        compare.opcodes(old[:100], new[:100])
    assert compare.opcodes(old[:100], new[:100]) == [("replace", 0, 100, 0, 100)]


def steps(before: str, after: str) -> int:
    """Count the function calls that drawing the change takes."""
    change = FieldChangeView(label="Body", before=before, after=after, multiline=True)
    return calls(lambda: list(_change(change, HiddenCharacters(), unfold=False)))


@pytest.mark.parametrize(
    ("old", "new"), [("x", "y"), ("a b ", "b a "), ("ж", "\x1b"), ("a\n", "b\n")]
)
def test_drawing_a_change_takes_time_with_its_length_alone(old: str, new: str) -> None:
    """One line of a megabyte took 20 s."""
    assert steps(old * 1_600, new * 1_600) <= 9 * steps(old * 200, new * 200) + 3_000


def test_the_words_that_differ_are_marked_and_the_others_are_not() -> None:
    """Bounding the work took nothing from what an honest change shows."""
    change = FieldChangeView(label="Total", before="pay 10 EUR now", after="pay 99 EUR now")
    blocks = list(_change(change, HiddenCharacters(), unfold=False))
    assert [plain_text(block.pieces) for block in blocks] == [
        "− pay 10 EUR now",
        "+ pay 99 EUR now",
    ]
    strong = [p.text for b in blocks for p in b.pieces if p.role in ("del-word", "add-word")]
    assert strong == ["10", "99"]


def test_each_group_of_lines_that_differ_begins_with_its_first_lines_number() -> None:
    """What stays between two of them is left out, and nothing else is."""
    before, after = "a\nb\nc\nd\ne\nf\n", "a\nX\nY\nd\ne\nf\nz\n"
    change = FieldChangeView(label="Body", before=before, after=after, multiline=True)
    blocks = _change(change, HiddenCharacters(), unfold=False)
    assert [(plain_text(each.label), plain_text(each.pieces)) for each in blocks] == [
        ("Body  2", "− b"),
        ("", "− c"),
        ("", "+ X"),
        ("", "+ Y"),
        ("Body  7", "+ z"),
    ]
