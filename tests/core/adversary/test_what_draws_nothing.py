"""Characters that draw nothing, whatever Unicode says of their category."""

import pytest

from aileron_core.text import escape


@pytest.mark.parametrize(
    "char",
    ["\u2800", "\u3164", "\uffa0", "\u115f", "\u17b4", "\U0001d159", "\U00016fe4", "\U000e0041"],
)
def test_a_character_that_draws_nothing_is_a_mark(char: str) -> None:
    """Nothing between two letters goes unseen."""
    assert char not in escape(f"a{char}b")
    assert escape(f"a{char}b") != "ab"


def test_a_mark_cannot_be_imitated() -> None:
    """An agent that writes a mark itself is shown as having written one."""
    assert escape("\u2039RLO\u203a") != escape("\u202e")
