"""Parts of a glyph that tables of widths count as nothing and terminals may draw as cells."""

import pytest

from aileron_core.text import escape, inline


@pytest.mark.parametrize(
    "text",
    ["각", "ᄀ\u1161\u11a8", "क्षि", "मिट्टी", "မြို့", "ស្ត្រី", "👍🏽", "👩🏽 👩🏿", "கொ", "ก็", "བསྒྲུབས"],
)
def test_honest_writing_has_no_marks(text: str) -> None:
    """Vowel signs, decomposed Hangul and skins stand as they are."""
    assert escape(text) == text


@pytest.mark.parametrize("char", ["\u0903", "\u093e", "\u1161", "\u11a8", "🏽", "\ud7b0"])
def test_a_flood_of_parts_is_one_mark_with_its_count(char: str) -> None:
    """A thousand cells that count as none would push text into columns that are ours."""
    rendered = inline(f"a{char * 1000}b")
    assert rendered.text == f"a{char * 2}‹U+{ord(char):04X}×998›b"
    assert rendered.hidden == {f"U+{ord(char):04X}": 998}


@pytest.mark.parametrize("char", ["\u0903", "\u1161", "🏽"])
def test_a_part_without_a_base_is_a_mark(char: str) -> None:
    """At the start of a line, after a blank, after a mark."""
    mark = f"‹U+{ord(char):04X}›"
    assert escape(char) == mark
    assert escape(f"a {char}") == f"a {mark}"
    assert escape(f"\x1b{char}") == f"‹ESC›{mark}"
