"""A terminal of 256 colours, such as tmux without true colour: what must be told apart still is.

Computed with what Rich makes of a colour, which is what the console sends there.
"""

import itertools

import pytest
from rich.color import Color, ColorSystem

from aileron_tui.styles.choosing import true_colour
from aileron_tui.styles.tokens import DARK, LIGHT, variables
from tests.screen.test_contrast import GROUNDS, ON_THEIR_OWN, READABLE, WORDS, contrast

BESIDE = (
    *itertools.combinations((*GROUNDS, "chip"), 2),
    *itertools.combinations(("fact", "claim", "attn", "danger", "ok", "chip"), 2),
    *itertools.combinations(("ground", "add", "del", "add-word", "del-word"), 2),
    ("field", "bar"),
)
"""Panes, the selected row, chips and keys by what they say, the lines of a difference."""
AMBER_ON_A_BAR = 4.4
"""There is no darker amber among the 256, and the bar must differ from the list."""


def drawn(name: str, token: str) -> str:
    """The colour of *token* that such a terminal draws."""
    given = variables(name, dark=name == DARK, true_colour=False)[f"a-{token}"]
    reduced = Color.parse(given).downgrade(ColorSystem.EIGHT_BIT)
    return reduced.get_truecolor().hex


@pytest.mark.parametrize("name", [DARK, LIGHT])
@pytest.mark.parametrize(("one", "two"), BESIDE)
def test_what_stands_side_by_side_is_told_apart(name: str, one: str, two: str) -> None:
    assert drawn(name, one) != drawn(name, two)


@pytest.mark.parametrize("name", [DARK, LIGHT])
@pytest.mark.parametrize(("word", "ground"), [*itertools.product(WORDS, GROUNDS), *ON_THEIR_OWN])
def test_every_word_is_readable(name: str, word: str, ground: str) -> None:
    least = AMBER_ON_A_BAR if (word, ground) == ("attn", "bar") else READABLE
    assert contrast(drawn(name, word), drawn(name, ground)) >= least


@pytest.mark.parametrize(
    ("environment", "true"),
    [
        ({"TERM": "tmux-256color"}, False),
        ({"TERM": "screen-256color", "COLORTERM": ""}, False),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, True),
    ],
)
def test_a_terminal_has_true_colour_if_it_says_so(
    environment: dict[str, str], *, true: bool
) -> None:
    assert true_colour(environment) is true
