"""What is pasted into the line that an agent will read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.text import escape
from aileron_tui.widgets.line_input import _visible
from tests.support.attacks import ATTACKS, CANARY, Attack, harmless


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_pasted_attack_leaves_one_line_of_what_shows(attack: Attack) -> None:
    kept = _visible(attack.text)
    assert "\n" not in kept
    assert all(harmless(char) and char not in "\ufe0e\ufe0f" for char in kept)
    first = attack.text.splitlines()[0]
    assert kept.count(CANARY[0]) == first.count(CANARY[0])


@given(st.text())
def test_no_paste_brings_what_would_be_a_mark(text: str) -> None:
    assert all(char in "‹›" or escape(char) == char for char in _visible(text))


def test_words_in_any_writing_are_kept() -> None:
    assert _visible("cafe\u0301 \u00a0‹ok› наоборот 漢字\nsecond") == "café  ‹ok› наоборот 漢字"
