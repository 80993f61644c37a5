"""Hosts that are written in ASCII and stand for something else; parts of a glyph that terminals may draw as cells."""

import pytest

from aileron_core.text import escape, inline, render


@pytest.mark.parametrize(
    ("text", "written", "decoded", "resembles"),
    [
        ("xn--pypal-4ve.com", "xn--pypal-4ve.com", "pаypal.com", "paypal.com"),
        ("see https://XN--PYPAL-4VE.com:443/x", "XN--PYPAL-4VE.com", "PаYPAL.com", "PaYPAL.com"),
        ("ana@xn--northwnd-yhh.example", "xn--northwnd-yhh.example", "northwіnd.example",
         "northwind.example"),
        ("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai", "пример.рф", ""),
        ("xn--bcher-kva.example.", "xn--bcher-kva.example", "bücher.example", "bucher.example"),
    ],
)  # fmt: skip
def test_a_name_in_punycode_is_shown_in_both_spellings(
    text: str, written: str, decoded: str, resembles: str
) -> None:
    (entry,) = render(text).lookalikes
    assert (entry.written, entry.decoded, entry.resembles) == (written, decoded, resembles)
    assert "".join(s.text for s in inline(text).lines[0] if s.kind == "lookalike") in text
    assert inline(text).text == text


def test_what_a_forged_label_stands_for_is_itself_drawn_safely() -> None:
    """Decoding must not bring back what the renderer keeps out."""
    (entry,) = render("xn--abc.com").lookalikes
    assert entry.decoded == "‹BPH›‹HOP›‹PAD›.com"


@pytest.mark.parametrize(
    "text",
    ["xn--", "xn--.com", "axn--b.com", "xn--99999999999.com", "xn--" + "9" * 59 + ".com",
     "xn--plain-.com", "xn--" + "a" * 400, "xn--a." * 200],
)  # fmt: skip
def test_what_is_no_punycode_is_text_like_any_other(text: str) -> None:
    assert render(text).lookalikes == ()
    assert escape(text) == text


@pytest.mark.parametrize(
    "text",
    ["각", "ᄀ\u1161\u11a8", "क्षि", "मिट्टी", "မြို့", "ស្ត្រី", "👍🏽", "👩🏽 👩🏿", "கொ", "ก็", "བསྒྲུབས"],
)
def test_honest_writing_has_no_marks(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("char", ["\u0903", "\u093e", "\u1161", "\u11a8", "🏽", "\ud7b0"])
def test_a_flood_of_parts_is_one_mark_with_its_count(char: str) -> None:
    """A thousand cells that count as none would push text into columns that are ours."""
    rendered = inline(f"a{char * 1000}b")
    assert rendered.text == f"a{char * 2}‹U+{ord(char):04X}×998›b"
    assert rendered.hidden == {f"U+{ord(char):04X}": 998}


@pytest.mark.parametrize("char", ["\u0903", "\u1161", "🏽"])
def test_a_part_without_a_base_is_a_mark(char: str) -> None:
    mark = f"‹U+{ord(char):04X}›"
    assert escape(char) == mark
    assert escape(f"a {char}") == f"a {mark}"
    assert escape(f"\x1b{char}") == f"‹ESC›{mark}"
