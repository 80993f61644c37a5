"""Hostile text, drawn: what becomes a mark, what is pointed at, names written in ASCII, and what stays as it is."""

import pytest

from aileron_core.text import Lookalike, Rendered, escape, inline, render
from tests.support.making import calls

WORDS = ("Привет, мир. Это письмо.", "naïve café über Straße", "iPhone用 の test", "т.е. и т.д.")
OTHERS = ("你好。再见", "5µs at 20°C, 3×4", "example.com, user@example.org", "Ωμέγα")
SIGNS = ("a", "\x1b", "\x1b[", "\n", "\nx", " ", "         x", "‹", "\U000e0041\U000e0042")
MARKED = ("e\u0301\u0302\u0303\u0304\u0305", "p\u0430ypal.com ", "❤\ufe0f\u200d")


def span_kinds(rendered: Rendered) -> list[list[tuple[str, str]]]:
    return [[(span.kind, span.text) for span in line] for line in rendered.lines]


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("plain text, ¿qué? 中文 한국어 עברית", "plain text, ¿qué? 中文 한국어 עברית"),
        ("\x1b[2K\r\x08\x07\x00\x7f", "‹ESC›[2K‹CR›‹BS›‹BEL›‹NUL›‹DEL›"),
        ("a\x9b31m\x85b", "a‹CSI›31m‹NEL›b"),
        ("\u202eRUE\u202c \u2066x\u2069 \u200e\u061c", "‹RLO›RUE‹PDF› ‹LRI›x‹PDI› ‹LRM›‹ALM›"),
        ("a\u200b\u200b\u200bb\u200dc\ufeff", "a‹ZWSP×3›b‹ZWJ›c‹BOM›"),
        ("co\u00adop\u2060 \u2028\u2029", "co‹SHY›op‹WJ› ‹LS›‹PS›"),
        ("x\u00a0y\u3000z\u2009", "x‹NBSP›y‹IDSP›z‹THSP›"),
        ("\U000e0001\U000e0068\U000e0069\U000e007f", "‹TAG LANG›‹TAG h›‹TAG i›‹TAG END›"),
        ("\ud800\udfff\ufffe\U0010ffff\ufdd0", "‹U+D800›‹U+DFFF›‹U+FFFE›‹U+10FFFF›‹U+FDD0›"),
        ("\ue000\U000f0000\u0378", "‹U+E000›‹U+F0000›‹U+0378›"),
        ("\u3164\u115f\uffa0\u2800", "‹HF›‹HCF›‹HWHF›‹BRBL›"),
        ("\u2061\U0001d173\u0600", "‹U+2061›‹U+1D173›‹U+0600›"),
        ("a\tb\t\tc ‹ESC› [bold]x[/]", "a‹TAB›b‹TAB×2›c ‹U+2039›ESC‹U+203A› [bold]x[/]"),
        ("❤\ufe0f 1\ufe0f\u20e3 a\ufe0f \U000e0100", "❤\ufe0f 1\ufe0f\u20e3 a‹VS16› ‹VS17›"),
        ("👩\u200d💻", "👩‹ZWJ›💻"),
        ("e\u0301\u0302\u0303", "e\u0301\u0302\u0303"),
        ("e" + "\u0301" * 3 + "\u0301" * 9 + "\u0302x", "e" + "\u0301" * 3 + "‹U+0301×9›‹U+0302›x"),
        ("\u0301a", "‹U+0301›a"),
        ("\u200b\u0301", "‹ZWSP›‹U+0301›"),
        (" " * 8 + "x", " " * 8 + "x"),
        (" " * 9 + "\u0301x", "‹9 blanks›‹U+0301›x"),
    ],
)
def test_what_moves_hides_or_imitates_is_a_mark(text: str, drawn: str) -> None:
    assert render(text).text == drawn
    assert inline(text).text == drawn
    assert escape(text) == drawn


def test_marks_are_spans_of_their_own_counted_by_name_and_show_their_code_point_unfolded() -> None:
    (line,) = span_kinds(inline("a\x1b‹b"))
    assert line == [("plain", "a"), ("mark", "‹ESC›"), ("mark", "‹U+2039›"), ("plain", "b")]
    rendered = render("a\x1b\x1b\u200bb\n\x1b\U000e0041\U000e0042\tx\ue000")
    assert rendered.hidden == {"ESC": 3, "ZWSP": 1, "TAG": 2, "TAB": 1, "U+E000": 1}
    rendered = render("\u202e\u200b\u200b" + " " * 12 + "\ue000\n" + "\n" * 5 + "x", unfold=True)
    marks = "‹U+202E RLO›‹U+200B ZWSP›‹U+200B ZWSP›"
    assert rendered.text == marks + " " * 12 + "‹U+E000›\n" + "\n" * 5 + "x"
    assert rendered.blank_lines == 0


def test_long_runs_of_blank_lines_fold_and_the_text_after_them_or_in_a_long_line_stays() -> None:
    """Nothing is pushed off the screen, however the lines are made blank."""
    rendered = render("top\n" + "\n" * 412 + "bottom")
    assert rendered.text == "top\n‹412 blank lines›\nbottom"
    assert rendered.blank_lines == 412
    assert rendered.hidden == {}
    assert render("a" + "\n" * 4 + "b").text == "a\n\n\n\nb"
    sly = render("a\n" + " \t\r\n" * 5 + "b")
    assert sly.text == "a\n‹5 blank lines›\nb"
    assert sly.hidden == {"TAB": 5, "CR": 5}
    assert render("a\n\n\n\n").text == "a\n‹4 blank lines›"
    text = "x" * 500_000 + "\x1b" + "y" * 500_000
    (line,) = render(text).lines
    assert [span.size for span in line] == [500_000, 1, 500_000]


def test_a_row_is_one_line_and_shows_its_line_breaks() -> None:
    """A newline in a gist cannot start a second row."""
    rendered = inline("a\nb\r\n\n")
    assert rendered.text == "a‹LF›b‹CR›‹LF×2›"
    assert len(rendered.lines) == 1
    assert rendered.hidden == {"LF": 3, "CR": 1}


def test_an_imitating_name_is_pointed_at_in_its_spellings_which_are_themselves_safe() -> None:
    """Marks too many to draw do not come back through the list."""
    rendered = render("see https://p\u0430ypal.com/i/881 now")
    (line,) = span_kinds(rendered)
    assert line == [("plain", "see https://p"), ("lookalike", "а"), ("plain", "ypal.com/i/881 now")]
    found = Lookalike(written="pаypal.com", punycode="xn--pypal-4ve.com", resembles="paypal.com")
    assert rendered.lookalikes == (found,)
    assert rendered.hidden == {}
    (entry,) = render("p\u0430ypal" + "\u0301" * 20).lookalikes
    assert entry.written == "pаypal" + "\u0301" * 3 + "‹U+0301×17›"
    # Decoding must not bring back what the renderer keeps out.
    (entry,) = render("xn--abc.com").lookalikes
    assert entry.decoded == "‹BPH›‹HOP›‹PAD›.com"


@pytest.mark.parametrize(
    ("text", "written", "resembles"),
    [
        ("archive@northw\u0456nd.example", "northwіnd.example", "northwind.example"),
        ("аррӏе.com", "аррӏе.com", "apple.com"),
        ("café.com", "café.com", "cafe.com"),
        ("pay\u0440al", "payрal", "paypal"),
        ("ΟK", "ΟK", "OK"),
        ("раypal。com", "раypal。com", "paypal.com"),
        ("example․com is fine", "example․com", "example.com"),
        ("ｐaypal", "ｐaypal", "paypal"),
        ("\u0261oogle", "ɡoogle", "google"),
        ("ᏢᎪᎩᏢᎪᏞ.com", "ᏢᎪᎩᏢᎪᏞ.com", "PAYPAL.com"),
        ("ꓑay\u0440al", "ꓑayрal", "Paypal"),
        ("почта.рф", "почта.рф", ""),
        ("pa\u0301y\u0440al", "pa\u0301y\u0440al", "paypal"),
    ],
)
def test_mixed_words_and_foreign_hosts_are_found(text: str, written: str, resembles: str) -> None:
    (entry,) = render(text).lookalikes
    assert (entry.written, entry.resembles) == (written, resembles)
    assert entry.punycode.isascii()
    assert entry.punycode != ""
    assert any(kind == "lookalike" for kind, _ in span_kinds(render(text))[0])


@pytest.mark.parametrize("text", [*WORDS, *OTHERS, "", "\n", "\n\n"])
def test_honest_words_of_any_language_are_left_alone(text: str) -> None:
    """A warning that comes on every Russian mail is read by nobody."""
    rendered = render(text)
    assert rendered.lookalikes == ()
    assert rendered.text == text


@pytest.mark.parametrize("unit", [*SIGNS, *MARKED, "p\u0430", "\u0430.", "\u0430.bc", "。a"])
def test_time_grows_with_the_length_alone(unit: str) -> None:
    """Counted in calls, eight times the text takes no more than eight times the work."""
    small = calls(lambda: render(unit * 100))
    large = calls(lambda: render(unit * 800))
    assert large <= 8.5 * small + 200


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
def test_punycode_is_shown_both_ways(text: str, written: str, decoded: str, resembles: str) -> None:
    (entry,) = render(text).lookalikes
    assert (entry.written, entry.decoded, entry.resembles) == (written, decoded, resembles)
    assert "".join(s.text for s in inline(text).lines[0] if s.kind == "lookalike") in text
    assert inline(text).text == text


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
