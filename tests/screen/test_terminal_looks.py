"""What a real terminal gets: no colour where none is wanted, its own signs, and words that can be read."""

import itertools
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color

from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.text import ROLES
from aileron_tui.styles.choosing import choose_glyphs, choose_theme, true_colour
from aileron_tui.styles.tokens import CONSOLE_THEMES, DARK, LIGHT, PLAIN, variables
from tests.support.terminal import Pty

CHILD = Path(__file__).with_name("fixture_child.py")
SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
COLOURS = {*range(30, 50), *range(90, 108)}
"""SGR's numbers that set a colour, or ask for the default one."""
ascii_of = partial(Glyphs, ascii=True)
READABLE = 4.5
"""WCAG 2.1, 1.4.3: the least for text of ordinary size."""
VISIBLE = 3.0
"""WCAG 2.1, 1.4.11: the least for signs that are no words."""
WORDS = ("strong", "text", "muted", "fact", "claim", "attn", "danger", "ok")
GROUNDS = ("ground", "queue", "bar", "sel")
ON_THEIR_OWN = (
    *itertools.product(("ink",), ("attn", "fact", "danger")),  # marks, a key that decides or denies
    *itertools.product(("strong",), ("chip", "add-word", "del-word", "field")),
    *itertools.product(("text",), ("add", "del")),
    *itertools.product(("syntax-name", "syntax-value"), ("ground", "add", "del")),
    ("muted", "field"),
    ("qr", "qr-paper"),
)
THEMES = {each.name: each for each in CONSOLE_THEMES}
BESIDE = (
    *itertools.combinations((*GROUNDS, "chip"), 2),
    *itertools.combinations(("fact", "claim", "attn", "danger", "ok", "chip"), 2),
    *itertools.combinations(("ground", "add", "del", "add-word", "del-word"), 2),
    ("field", "bar"),
)
"""Panes, the selected row, chips and keys by what they say, the lines of a difference."""
AMBER_ON_A_BAR = 4.4
"""There is no darker amber among the 256, and the bar must differ from the list."""


@contextmanager
def console_with(folder: Path, config: str = "", **environment: str) -> Iterator[Pty]:
    path = folder / "config.toml"
    path.write_text(config, encoding="utf-8")
    # A locale is taken at the start of a process: such a one is not forked.
    isolated = [] if environment.keys() & {"LANG", "LC_ALL"} else ["-I"]
    shown = Pty([sys.executable, *isolated, str(CHILD), str(path)], environment=environment)
    try:
        shown.shows("WILL HAPPEN")
        yield shown
    finally:
        shown.close()


def press_to(shown: Pty, key: bytes, there: str, *, gone: bool = False) -> None:
    shown.press(key, lambda: (there in shown.cells.text) is not gone, there, rest=0.3)


def codes(shown: Pty) -> set[int]:
    found = (part for group in SGR.findall(shown.raw) for part in re.split(rb"[;:]", group))
    return {int(part or b"0") for part in found}


@pytest.mark.parametrize(
    ("config", "environment"), [("", {"NO_COLOR": "1"}), ('[console]\ntheme = "plain"', {})]
)
def test_without_colour_no_code_of_a_colour_is_written(
    tmp_path: Path, config: str, environment: dict[str, str]
) -> None:
    with console_with(tmp_path, config, **environment) as shown:
        press_to(shown, b"?", "fetch the preview again")
        press_to(shown, b"\x1b", "fetch the preview again", gone=True)
        press_to(shown, b"2", "Newest first.")
        press_to(shown, b"1", "Newest first.", gone=True)
        press_to(shown, b"d", "Reason (codex will read it):")
        assert codes(shown) & COLOURS == set()
        assert {1, 3, 4, 7} <= codes(shown)


@pytest.mark.parametrize(
    ("config", "environment"),
    [
        ('[console]\nglyphs = "ascii"', {}),
        ("", {"LANG": "en_US.ISO-8859-1"}),
        ("", {"LC_ALL": "C"}),
    ],
)
def test_in_ascii_nothing_of_ours_is_written_in_other_letters(
    tmp_path: Path, config: str, environment: dict[str, str]
) -> None:
    with console_with(tmp_path, config, **environment) as shown:
        shown.shows("? help")  # in the last line
        if not config:
            shown.shows("each letter it cannot show")
            shown.shows("Q3 numbers, final ? 3 people")
            assert re.findall(rb"[\x80-\xff]+", shown.raw) == []
        else:
            # What was read last may end within a letter.
            text = shown.raw.decode(errors="ignore")
            assert set(re.findall(r"[^\x00-\x7f]+", text)) <= {"→", "·"}  # of the gists
        press_to(shown, b"2", "Newest first.")


def test_the_title_tells_the_count_and_is_given_back(tmp_path: Path) -> None:
    with console_with(tmp_path) as shown:
        assert codes(shown) & COLOURS, "so the test above is known to see them"
        assert re.search(rb"\x1b\[22;2t\x1b\]2;\(\d+\) aileron\x07", shown.raw)
        shown.process.terminate()
        assert shown.ended() == 0
        assert b"\x1b[23;2t" in shown.raw


@pytest.mark.parametrize(
    ("setting", "environment", "expected"),
    [
        ("auto", {"COLORFGBG": "0;15"}, LIGHT),
        ("auto", {"COLORFGBG": "0;default;7"}, LIGHT),
        ("auto", {"COLORFGBG": "0;default"}, DARK),
        ("auto", {"COLORFGBG": "7;8"}, DARK),
        ("light", {"COLORFGBG": "15;0"}, LIGHT),
        ("plain", {}, PLAIN),
        ("nord", {}, "nord"),
        ("light", {"NO_COLOR": "1"}, PLAIN),
        ("light", {"NO_COLOR": ""}, LIGHT),
    ],
)
def test_the_theme_is_the_persons_choice_else_what_the_terminal_says(
    setting: str, environment: dict[str, str], expected: str
) -> None:
    assert choose_theme(setting, environment) == expected


@pytest.mark.parametrize(
    ("setting", "environment", "stream", "expected"),
    [
        ("auto", {"LANG": "de_DE.UTF-8"}, "utf-8", Glyphs()),
        ("auto", {}, "utf-8", Glyphs()),
        ("auto", {"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, "utf-8", ascii_of(charset="ascii")),
        ("auto", {"LANG": "de_DE"}, "iso8859-1", ascii_of(charset="iso8859-1")),
        ("ascii", {"LANG": "C.utf8"}, "utf-8", Glyphs(ascii=True)),
        ("unicode", {"LC_ALL": "C"}, "ascii", Glyphs()),
    ],
)
def test_signs_are_ascii_where_asked_and_where_the_locale_is_not_utf_8(
    setting: str, environment: dict[str, str], stream: str, expected: Glyphs
) -> None:
    assert choose_glyphs(setting, environment, stream) == expected  # type: ignore[arg-type]


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
    colours = THEMES[name].colours
    assert contrast(colours[word], colours[ground]) >= READABLE
    least = AMBER_ON_A_BAR if (word, ground) == ("attn", "bar") else READABLE
    assert contrast(drawn_colour(name, word), drawn_colour(name, ground)) >= least


def test_every_look_names_the_same_tokens_and_every_role_has_a_style() -> None:
    """A token that one look lacks would end the program in that look only. The plain one has no colour at all."""
    for each in CONSOLE_THEMES:
        assert each.colours.keys() == THEMES[DARK].colours.keys()
        assert each.attributes.keys() == THEMES[DARK].attributes.keys()
        assert set(ROLES) <= each.attributes.keys()
    for colours in (THEMES[DARK].colours, THEMES[LIGHT].colours):
        assert contrast(colours["faint"], colours["ground"]) >= VISIBLE
    plain = THEMES[PLAIN]
    assert set(plain.colours.values()) == {"ansi_default"}
    for role in ("danger", "mark", "key", "badge", "add-word", "del-word", "view", "sel", "lost"):
        assert plain.attributes[role] != "none"


def drawn_colour(name: str, token: str) -> str:
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
