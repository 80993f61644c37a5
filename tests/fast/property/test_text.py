"""For any text: nothing dangerous is drawn, and nothing is lost."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.text import Rendered, escape, inline, render
from aileron_core.text.rendering import from_marks
from tests.support.attacks import harmless

HOSTILE = (
    "\x00\x07\x08\t\r\x1b\x7f\x85\x9b\u00a0\u00ad\u034f\u061c\u115f\u17b4\u180b\u180e\u2000\u200b"
    "\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u202f\u2060\u2066\u2069\u2800\u3000\u3164\ue000"
    "\ud800\udfff\ufdd0\ufe0e\ufe0f\ufeff\uffa0\ufff9\ufffc\uffff\U0001d173\U000e0001\U000e0041"
    "\U000e007f\U000e0100\U000e01ef\U0010ffff‹›×❤1#\u20e3👩🏽\u0301\u0302аοе.p。"
)
PARTS = [*HOSTILE, " " * 9, "\n" * 5, "e", "\u0301" * 9, "p\u0430ypal.com"]
JOINED = st.lists(st.sampled_from(PARTS)).map("".join)
TEXT = st.text() | st.text(st.characters()) | st.text(HOSTILE + " \n ab") | JOINED
SHORT_NAMES = ("LF", "CR", "TAB", "ESC", "NUL", "RLO", "ZWSP")
MARK = re.compile(r"‹(?P<body>[^‹›]+)›")
UNFOLDED = re.compile(r"U\+([0-9A-F]{4,6})(?: .+)?")


def check_safe(rendered: Rendered) -> None:
    for line in rendered.lines:
        stacked = 99
        for span in line:
            assert span.text
            if span.kind == "mark":
                assert MARK.fullmatch(span.text)
                assert all(map(harmless, span.text))
                stacked = 99
                continue
            assert "‹" not in span.text
            assert "›" not in span.text
            for char in span.text:
                assert harmless(char)
                if char in "\ufe0e\ufe0f":
                    continue
                combining = unicodedata.category(char) in ("Mn", "Me")
                stacked = stacked + 1 if combining else 0
                assert stacked <= 3
    for entry in rendered.lookalikes:
        assert all(map(harmless, entry.written + entry.punycode + entry.resembles))
        assert (entry.punycode + entry.resembles).isascii()


@given(TEXT)
def test_no_character_that_moves_or_hides_is_ever_drawn(text: str) -> None:
    for rendered in (render(text), render(text, unfold=True), inline(text)):
        check_safe(rendered)
    assert all(map(harmless, escape(text)))


@given(TEXT)
def test_every_code_point_of_the_input_is_accounted_for_and_hidden_are_counted(text: str) -> None:
    for rendered in (render(text), render(text, unfold=True)):
        sizes = sum(span.size for line in rendered.lines for span in line)
        assert sizes + len(rendered.lines) - 1 == len(text)
    (line,) = inline(text).lines
    assert sum(span.size for span in line) == len(text)
    rendered = inline(text)
    for name, char in zip(SHORT_NAMES, "\n\r\t\x1b\x00\u202e\u200b", strict=True):
        assert rendered.hidden.get(name, 0) == text.count(char)
    marks = [span for span in rendered.lines[0] if span.kind == "mark"]
    marked = sum(span.size for span in marks if not span.text.endswith(" blanks›"))
    assert sum(rendered.hidden.values()) == marked


@given(TEXT)
def test_with_its_marks_undone_the_unfolded_text_is_exactly_the_input(text: str) -> None:
    lines = []
    for line in render(text, unfold=True).lines:
        undone = ""
        for span in line:
            if span.kind == "mark":
                match = UNFOLDED.fullmatch(span.text[1:-1])
                assert match is not None
                undone += chr(int(match[1], 16))
            else:
                undone += span.text
        lines.append(undone)
    assert "\n".join(lines) == text
    assert from_marks(render(text, unfold=True).text) == text


@given(st.text(alphabet=HOSTILE + " \n ab"), st.integers(1, 20))
def test_a_log_line_can_be_read_back(text: str, times: int) -> None:
    text = "".join(char * times for char in text)
    chars = {escape(char): char for char in HOSTILE if escape(char) != char}

    def undo(match: re.Match[str]) -> str:
        body, _, count = match["body"].partition("×")
        if body.endswith(" blanks"):
            return " " * int(body.removesuffix(" blanks"))
        point = UNFOLDED.fullmatch(body)
        char = chr(int(point[1], 16)) if point else chars.get(f"‹{body}›", "\n")
        return char * int(count or 1)

    assert MARK.sub(undo, escape(text)) == text


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_printable_ascii_stays_as_it_is(text: str) -> None:
    if " " * 9 not in text:
        assert escape(text) == text
