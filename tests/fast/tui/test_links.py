"""Addresses in text from outside: what opens, and what is only text."""

import pytest

from aileron_core.console_port.field_views import FieldView
from aileron_tui.draw.formats import field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.links import parse_link
from aileron_tui.draw.text import wrap


@pytest.mark.parametrize(
    "written",
    [
        "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "mailto:a@b.example",
        "/path", "example.org", "https://", "https:///x", "https://good.example\\@evil.example/",
        "https://good.example\t.evil.example", "https://a.example/\u202egpj", "https://a.example:x/",
        "https://[::1", "https://a.example/" + "x" * 9000, "https://a b.example/", "-https://a.example",
        "https://\u200b.example/",
    ],
)  # fmt: skip
def test_what_browsers_read_in_other_ways_is_no_link(written: str) -> None:
    assert parse_link(written) is None


@pytest.mark.parametrize(
    ("written", "url", "host"),
    [
        ("https://A.example/x?y=1#z", "https://a.example/x?y=1#z", "a.example"),
        ("HTTP://a.example:8080", "http://a.example:8080", "a.example"),
        ("https://p\u0430ypal.com/\u00e9", "https://xn--pypal-4ve.com/%C3%A9", "xn--pypal-4ve.com"),
        (
            "https://bank.example@evil.example/",
            "https://bank.example@evil.example/",
            "evil.example",
        ),
        ("https://[::1]/", "https://[::1]/", "[::1]"),
        ("https://a.example/%2e%2e/\"'<", "https://a.example/%2e%2e/%22'%3C", "a.example"),
    ],
)
def test_what_opens_is_what_was_shown_in_ascii(written: str, url: str, host: str) -> None:
    target = parse_link(written)
    assert target is not None
    assert (target.url, target.host) == (url, host)
    assert target.url.isascii()
    assert target.has_user == ("@" in written)
    assert target.is_renamed == ("xn--" in host)


def test_a_link_is_found_in_any_text_and_stays_one_where_it_is_wrapped() -> None:
    """Without the signs of the sentence around it; a mark in it is no end of it."""
    text = 'See (https://a.example/b(c)), "http://b.example".\n\n\n\n\n\nhttps://p\u0430ypal.com/x!'
    lines = list(field_lines(FieldView(label="Body", value=text), HiddenCharacters()))
    found = [{piece.href for piece in line if piece.href} for line in lines]
    assert found == [
        {"https://a.example/b(c)", "http://b.example"},
        set(),
        {"https://p\u0430ypal.com/x"},
    ]
    wrapped = wrap(lines[2], 8)
    assert len(wrapped) > 1
    assert all(any(piece.href for piece in each.pieces) for each in wrapped[:-1])
