"""What a real terminal gets: no colour where none is wanted, its own signs, its own notification."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.styles.choosing import choose_glyphs, choose_theme
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN
from tests.support.terminal import Pty

CHILD = Path(__file__).with_name("fixture_child.py")
SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


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


COLOURS = {*range(30, 50), *range(90, 108)}
"""SGR's numbers that set a colour, or ask for the default one."""


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
            shown.shows("each letter it cannot show", "Q3 numbers, final ? 3 people")
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


ascii_of = partial(Glyphs, ascii=True)


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
