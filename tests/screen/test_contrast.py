"""Every word can be read: contrast on every ground, in every look, computed from the tokens."""

import itertools

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color

from aileron_tui.draw.text import ROLES
from aileron_tui.styles.choosing import true_colour
from aileron_tui.styles.tokens import CONSOLE_THEMES, DARK, LIGHT, PLAIN, ConsoleTheme, variables

READABLE = 4.5
"""WCAG 2.1, 1.4.3: the least for text of ordinary size."""
VISIBLE = 3.0
"""WCAG 2.1, 1.4.11: the least for signs that are no words."""

WORDS = ("strong", "text", "muted", "fact", "claim", "attn", "danger", "ok")
GROUNDS = ("ground", "queue", "bar", "sel")
ON_THEIR_OWN = (
    ("ink", "attn"),  # marks, the badge
    ("ink", "fact"),  # a key that decides
    ("ink", "danger"),  # a key that denies
    ("strong", "chip"),
    ("text", "add"),
    ("text", "del"),
    *itertools.product(("syntax-name", "syntax-value"), ("ground", "add", "del")),
    ("strong", "add-word"),
    ("strong", "del-word"),
    ("strong", "field"),
    ("muted", "field"),
    ("qr", "qr-paper"),
)


def theme_named(name: str) -> ConsoleTheme:
    return next(each for each in CONSOLE_THEMES if each.name == name)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    parts = [part / 255 for part in Color.parse(colour).rgb]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", [DARK, LIGHT])
@pytest.mark.parametrize(("word", "ground"), [*itertools.product(WORDS, GROUNDS), *ON_THEIR_OWN])
def test_every_word_is_readable_on_each_of_its_grounds(name: str, word: str, ground: str) -> None:
    """4.5 to 1 at least, wherever a role that carries words may be drawn, and in 256 colours too."""
    colours = theme_named(name).colours
    assert contrast(colours[word], colours[ground]) >= READABLE
    least = AMBER_ON_A_BAR if (word, ground) == ("attn", "bar") else READABLE
    assert contrast(drawn_colour(name, word), drawn_colour(name, ground)) >= least


def test_every_look_names_the_same_tokens_and_every_role_has_a_style() -> None:
    """A token that one look lacks would end the program in that look only. The plain one has no colour at all."""
    for each in CONSOLE_THEMES:
        assert each.colours.keys() == theme_named(DARK).colours.keys()
        assert each.attributes.keys() == theme_named(DARK).attributes.keys()
        assert set(ROLES) <= each.attributes.keys()
    for colours in (theme_named(DARK).colours, theme_named(LIGHT).colours):
        assert contrast(colours["faint"], colours["ground"]) >= VISIBLE
    plain = theme_named(PLAIN)
    assert set(plain.colours.values()) == {"ansi_default"}
    for role in ("danger", "mark", "key", "badge", "add-word", "del-word", "view", "sel", "lost"):
        assert plain.attributes[role] != "none"


# A terminal of 256 colours, such as tmux without true colour


BESIDE = (
    *itertools.combinations((*GROUNDS, "chip"), 2),
    *itertools.combinations(("fact", "claim", "attn", "danger", "ok", "chip"), 2),
    *itertools.combinations(("ground", "add", "del", "add-word", "del-word"), 2),
    ("field", "bar"),
)
"""Panes, the selected row, chips and keys by what they say, the lines of a difference."""
AMBER_ON_A_BAR = 4.4
"""There is no darker amber among the 256, and the bar must differ from the list."""


def drawn_colour(name: str, token: str) -> str:
    """The colour of *token* that such a terminal draws: what Rich makes of it, which is sent there."""
    given = variables(name, dark=name == DARK, true_colour=False)[f"a-{token}"]
    reduced = RichColor.parse(given).downgrade(ColorSystem.EIGHT_BIT)
    return reduced.get_truecolor().hex


@pytest.mark.parametrize("name", [DARK, LIGHT])
@pytest.mark.parametrize(("one", "two"), BESIDE)
def test_what_is_side_by_side_is_told_apart_in_256_colours(name: str, one: str, two: str) -> None:
    assert drawn_colour(name, one) != drawn_colour(name, two)


@pytest.mark.parametrize(
    ("environment", "true"),
    [
        ({"TERM": "tmux-256color"}, False),
        ({"TERM": "screen-256color", "COLORTERM": ""}, False),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, True),
    ],
)
def test_a_terminal_says_if_it_has_true_colour(environment: dict[str, str], *, true: bool) -> None:
    assert true_colour(environment) is true
