"""Hosts that are written in ASCII and stand for something else."""

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
    """A host that is confusable or punycode shows both."""
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
