"""A value is drawn as what it is, and nothing in its source is lost in silence."""

import re
import time
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_tui.draw import blocks, formats
from aileron_tui.draw.blocks import COMPACT_GUTTER, GUTTER, Gutter, blank, heading, lay_out, value
from aileron_tui.draw.changes import field_text, value_lines
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import MAX_LINE, coloured, field_lines, hidden_characters_of
from aileron_tui.draw.header import warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.markup import MAX_CHARACTERS, convert
from aileron_tui.draw.text import Line, Piece, Role, plain_text
from tests.support.screens.calls import approval, later_steps

LANGUAGES = sorted({*formats._LANGUAGES.values()})  # pyright: ignore[reportPrivateUsage]
NOW = 1_790_000_000.0
BCC = FieldView(label="x", value="a\nb", count=2, spellings=("Bcc", "BCC"))
FORGED = "WILL HAPPEN  checked by Aileron"


def field_rows(
    value: str, form: str = "", *, label: str = "Body", unfold: bool = False
) -> list[str]:
    field = FieldView(label=label, value=value, format=form)
    return [plain_text(each) for each in field_lines(field, HiddenCharacters(), unfold=unfold)]


def pieces(value: str, form: str = "", label: str = "Body") -> list[Line]:
    return list(field_lines(FieldView(label=label, value=value, format=form), HiddenCharacters()))


def roles(line: Line) -> list[tuple[str, Role]]:
    return [(piece.text, piece.role) for piece in line]


def html(body: str) -> list[str]:
    first, *rest = field_rows(body, "html")
    assert first == "‹HTML, shown as text›"
    return rest


def test_a_mail_in_html_is_drawn_as_readable_text() -> None:
    body = (
        "<h1>Invoice</h1><p>Dear <b>Ana</b>,\n please &lt;pay&gt;.</p>"
        "<table><tr><th>Item</th><th>EUR</th></tr><tr><td>Tea</td><td>3</td></tr></table>"
        "<ol start=3><li>three<li>four</ol><blockquote>old<br>mail</blockquote><pre>a  b\n c</pre>"
    )
    assert html(body) == [
        "Invoice", "", "Dear Ana, please <pay>.", "", "Item | EUR", "Tea | 3", "",
        "3. three", "4. four", "", "> old", "> mail", "", "a  b", " c",
    ]  # fmt: skip
    assert html("<s>100</s> 10<sup>6</sup> H<sub>2</sub>O") == ["‹struck out: 100› 10^6 H_2O"]
    assert html("a" + "<br>" * 200 + "b") == ["a", "‹199 blank lines›", "b"]


COLOUR = "same colour as its background"
INVISIBLE = (
    ("hidden", ["display: NONE", "display:/* */none !important", "visibility:hidden", "zoom:0"]),
    (COLOUR, ["opacity:0", "color:#fefefe", "color:snow", "color:rgba(255, 255, 255, 1)"]),
    (COLOUR, ["background:#000;color:black", "color:#fff;background:rgba(0,0,0,0)"]),
    (COLOUR, ["color:transparent", "color:rgba(0,0,0,0)", "color:#00000000"]),
    (COLOUR, ["color:rgb(100%, 100%, 100%)", "color:hsl(0, 0%, 100%)"]),
    ("too small", ["font-size:1px", "font: 0px/0 serif", "font-size:10%"]),
    ("too small", ["max-height:0;overflow:hidden", "height:0;overflow-y:hidden"]),
    ("out of view", ["position:absolute;left:-9999px", "position:absolute;right:-9999px"]),
    ("out of view", ["text-indent:-999em", "clip:rect(0,0,0,0)"]),
    ("its style is written in escapes", ["d\\69splay:none"]),
    # Readers differ in which of several values they take; nothing here depends on that.
    ("hidden", ["mso-hide:all", "display:none;display:bogus", "display:none/* not closed"]),
    (COLOUR, ["color:white;color:bogus(1);color:black"]),
    ("too small", ["font-size:0;font-size:bogus"]),
)


@pytest.mark.parametrize(
    ("why", "style"), [(w, each) for w, styles in INVISIBLE for each in styles]
)
def test_what_its_reader_would_not_see_is_shown_as_that(why: str, style: str) -> None:
    body = f'<p>Hello<p><span style="{style}">then <i>pay</i></span> Ana'
    assert html(body)[2] == f"‹invisible: {why}›then pay‹visible again› Ana"
    fields = (FieldView(label="Body", value=body, format="html"),)
    view = approval(1, NOW, preview=PreviewView(status="ready", fields=fields))
    assert hidden_characters_of(view).warnings() == ["1 invisible passage"]
    texts = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert any(text.startswith("1 invisible passage, marked in the text") for text in texts)


def test_a_plain_style_hides_nothing() -> None:
    """A warning that is always there warns of nothing."""
    plain = "color:#333;font-size:12px;line-height:1;width:100%;overflow:hidden"
    assert html(f'<div style="{plain}">Hi</div>') == ["Hi"]


def test_where_a_link_leads_is_said_and_what_is_no_text_is_counted() -> None:
    body = (
        '<a href="https://evil.example/x">https://bank.example/pay</a> <a href="https://a.example/">'
        'here</a> <a href="https://a.example/">https://a.example/</a> '
        '<a href="https://bank.example@evil.example/">ok</a> <a href="javascript:alert(1)">go</a> '
        '<a href="mailto:a@b.example">a@b.example</a> <a href="https://c.example/"></a>'
    )
    assert html(body) == [
        "https://bank.example/pay‹leads to evil.example› here‹a.example› https://a.example/ ok‹leads to evil.example› go‹javascript:alert(1)› a@b.example ‹c.example›"
    ]
    found = HiddenCharacters()
    list(field_lines(FieldView(label="x", value=body, format="html"), found))
    assert found.warnings() == ["2 misleading links"]
    body = (
        "<!doctype html><title>T</title><style>p{}</style>Hi<!-- one --><!-- two -->"
        "<script>x</script><iframe src=x></iframe><input type=hidden value=v>"
        '<img src="cid:1" alt="a logo"><span title="tip">!</span><bdo dir=rtl>abc</bdo>'
    )
    assert html(body) == [
        "Hi‹image: a logo›!abc",
        "‹only in the source: 1 × title, 1 × style sheet, 2 × comment, 1 × script, 1 × frame, 1 × hidden field, 1 × attribute with text, 1 × change of direction›",
    ]
    lines = html('<p><span style="unicode-bidi:bidi-override;direction:rtl">0001</span>')
    assert lines[1:] == ["‹only in the source: 1 × change of direction›"]


@pytest.mark.parametrize("name", ["object", "video", "audio", "canvas", "svg", "math", "map"])
def test_what_a_mail_reader_may_show_in_place_of_an_object_is_drawn(name: str) -> None:
    """A recipient whose mail reader plays no video reads what stands in it."""
    lines = html(f"<p>Hello<{name}>pay <b>now</b></{name}>")
    assert "pay now" in " ".join(lines[0].replace("Hello", "").split())
    assert "only in the source: 1 × " in lines[-1]


def test_hidden_characters_and_look_alikes_are_found_across_elements() -> None:
    line = html("p<b>&#x430;</b>ypal.com&#x202e; <i>x&#x200b;</i>&lsaquo;HTML&rsaquo;")[0]
    assert line == "pаypal.com‹RLO› x‹ZWSP›‹U+2039›HTML‹U+203A›"
    found = HiddenCharacters()
    field = FieldView(label="x", value="p<b>&#x430;</b>ypal.com&#x202e;", format="html")
    list(field_lines(field, found))
    assert found.warnings() == ["1 hidden character", "1 look-alike name"]


def test_markdown_is_drawn_as_readable_text() -> None:
    text = (
        '# Plan\n\nSee [the page](https://a.example/ "tip"), **now**.\n\n* one\n* two\n\n'
        "```python x y\ncode  1\n```\n\n<span hidden>psst</span> [b](javascript:x)\n\n"
        "[unused]: https://evil.example 'words'\n"
    )
    first, *rest = field_rows(text, "markdown")
    assert first == "‹Markdown, shown as text›"
    assert rest == [
        "Plan", "", "See the page‹a.example›, now.", "", "- one", "- two", "", "code  1", "",
        "‹invisible: hidden›psst‹visible again› b‹javascript:x›", "",
        "‹only in the source› https://evil.example words",
        "‹only in the source› python x y",
        "‹only in the source: 1 × attribute with text›",
    ]  # fmt: skip


def test_one_key_shows_the_source_and_a_text_that_is_too_long_does_by_itself() -> None:
    source = "<p>a<!-- b -->‹U+200B ZWSP›</p>"
    assert field_rows("<p>a<!-- b -->\u200b</p>", "html", unfold=True) == [source]
    assert field_rows('{"a":1}', unfold=True) == ['‹text› {"a":1}']
    body = "<b>" + "x" * MAX_CHARACTERS["html"]
    said = "‹HTML, too large to show as text: this is the source›"
    assert field_rows(body, "html") == [said, body]


@pytest.mark.parametrize(
    "part", ["<div>", "<b>", "<a", "<!--", "<p><b>", "&", "<table><b>", "<a href='x'>", "<", "*a_",
             "[", "![", "> ", "- ", "`", "<li>", "<q>", "&#", "\n\n"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["html", "markdown"])
def test_no_text_takes_long_to_convert(part: str, form: str) -> None:
    """Whoever writes a mail must not stop the console: 10,000 characters in a second or two at most."""
    began = time.process_time()
    convert(part * (10_000 // len(part)), form)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        '<p style="' + "/*" * 50_000,
        '<p style="font:' + "1" * 2_000 + '">x',
        '<p style="background:' + "rgb( " * 30_000 + '">x',
        '<a href="https://a.example">' + "a" * 100_000 + "</a>",
        "<blockquote>a" * 6_000,
        "<ul><li>a" * 6_000,
        "".join(f"<b a{number}>" for number in range(2_000)) + "<p>a" * 2_000,
        "".join(f"<b a=\">{number}\">" for number in range(2_000)) + "<p>a" * 2_000,
        "".join(f"<b a\"b=\"x>{number}\">" for number in range(2_000)) + "<p>a" * 2_000,
        "http://a.example " * 8_000,
        "http://a" + ")" * 100_000,
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_no_mail_takes_long_to_draw(text: str) -> None:
    """Nor does what looks harmless, but is not: each of these took from ten seconds to hours."""
    began = time.process_time()
    field_rows(text, "html")
    assert time.process_time() - began < 4


def test_json_is_laid_out_and_loses_no_key() -> None:
    """A key that is there twice is shown twice: which one counts, the service decides."""
    value = '{"a":[1,{"b":"x, y"},[],{}],"a":null,"u":"\\u202e"}'
    assert field_rows(value) == [
        "‹text›, formatted as JSON", "{", '  "a": [', "    1,", "    {", '      "b": "x, y"',
        "    },", "    [],", "    {}", "  ],", '  "a": null,', '  "u": "\\u202e"', "}",
    ]  # fmt: skip
    assert ('"b"', "syntax-name") in roles(pieces(value)[5])
    assert ('"x, y"', "syntax-value") in roles(pieces(value)[5])
    assert field_rows("{not json}") == ["‹text› {not json}"]
    assert field_rows('{"a": 1} ') == ['‹text› {"a": 1}‹1 blank›']
    assert len(field_rows("[" * 5000 + "]" * 5000)) == 1
    field = FieldView(label="Body", value='{"a": 1}', shape="json")
    lines = list(field_lines(field, HiddenCharacters()))
    assert plain_text(lines[0]) == '{"a": 1}'
    assert ("1", "syntax-value") in roles(lines[0])


def test_code_in_a_difference_has_the_colours_of_its_language_and_keeps_its_marks() -> None:
    text = '--- /dev/null\n+++ b/a.py\n@@ -1 +1 @@\n-def f():\n+  return "a\u202eb"\n def'
    lines = pieces(text, "diff")
    assert [roles(line) for line in lines[3:]] == [
        [("-", "del"), ("def", "del-name"), (" f():", "del")],
        [("+", "add"), ("  ", "add"), ("return", "add-name"), (" ", "add"), ('"a', "add-value"),
         ("‹RLO›", "mark"), ('b"', "add-value")],
        [(" ", "text"), ("def", "syntax-name")],
    ]  # fmt: skip
    plain = text.replace("a.py", "a.txt")
    assert [*map(plain_text, pieces(plain, "diff"))][3:] == [*map(plain_text, lines)][3:]
    assert roles(pieces(plain, "diff")[3])[0] == ("-def f():", "del")


@given(name=st.sampled_from(LANGUAGES), text=st.text(max_size=80))
def test_colouring_neither_changes_nor_loses_a_character(name: str, text: str) -> None:
    assert "".join(part for part, _ in coloured(text, name)) == text


def test_a_line_that_its_language_reads_otherwise_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lossy:
        def get_tokens_unprocessed(self, text: str) -> list[tuple[int, str, str]]:
            return [(0, "", text[2:])]

    monkeypatch.setattr(formats, "_lexer", {"python": Lossy()}.get)
    assert [*coloured("def f", "python")] == [("def f", None)]


@pytest.mark.parametrize("name", LANGUAGES)
def test_colouring_a_line_takes_no_long_time(name: str) -> None:
    """Whatever an agent writes: a slow expression would stop the console."""
    began = time.process_time()
    signs = ("\\", '"', "/*", "(", "{", " ", "`", "@", "#{", "${")
    for part in (*signs, "a", "<a ", "0", "- ", "a.", "[a", "((a "):
        assert list(coloured((part * MAX_LINE)[:MAX_LINE], name))
    assert time.process_time() - began < 2


def test_addresses_stand_one_a_line() -> None:
    value = '"Doe, Ana" <ana@a.example>, bob@b.example;c@c.example'
    assert field_rows(value, label="Cc") == [
        "‹list of 3›", '"Doe, Ana" <ana@a.example>,', "bob@b.example;", "c@c.example"
    ]  # fmt: skip
    assert field_rows("a@a.example, b@b.example", "addresses") == [
        "‹list of 2›", "a@a.example,", "b@b.example"
    ]  # fmt: skip
    for other in ("a@a.example", "hello, world", '"open, a@a.example, b@b.example'):
        assert field_rows(other, label="To") == [other]
    assert field_rows("a@a.example, b@b.example") == ["a@a.example, b@b.example"]


@dataclass(frozen=True)
class Element:
    tag: str
    style: str
    inner: "list[Element | str]"

    def __str__(self) -> str:
        return f'<{self.tag} style="{self.style}">{"".join(map(str, self.inner))}</{self.tag}>'


TAGS = st.sampled_from(
    ["p", "b", "span", "div", "td", "table", "li", "ul", "a", "blockquote", "pre", "font", "h1",
     "s"]
)  # fmt: skip
STYLES = st.sampled_from(
    ["", "display:none", "color:white", "font-size:0", "position:absolute;left:-999px",
     "float:left"]
)  # fmt: skip
TREES: st.SearchStrategy[Element | str] = st.recursive(
    st.integers(0, 10**6).map(" w{} ".format),
    lambda inner: st.builds(Element, TAGS, STYLES, st.lists(inner, max_size=4)),
    max_leaves=25,
)


@given(st.lists(TREES, max_size=5))
def test_no_word_of_a_document_is_lost(trees: list[Element | str]) -> None:
    source, words = "".join(map(str, trees)), re.compile(r"w\d+")
    shown = "\n".join(field_rows(source, "html"))
    assert sorted(words.findall(shown)) == sorted(words.findall(source))


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        (FieldView(label="x", value='{"all": 1}'), ['‹text› {"all": 1}']),
        (FieldView(label="x", value='\n  ["a"]'), ["‹text› ", '  ["a"]']),
        (FieldView(label="x", value='{"all": 1}', shape="json"), ['{"all": 1}']),
        (FieldView(label="x", value="a\nb"), ["a", "b"]),
        (FieldView(label="x", value="a\nb", shape="lines"), ["‹list of 2›", "a", "b"]),
        (FieldView(label="x", value="rm -rf x "), ["rm -rf x‹1 blank›"]),
        (FieldView(label="x", value="   "), ["‹3 blanks›"]),
        (FieldView(label="x", value="a\n  "), ["a", "‹2 blanks›"]),
        (FieldView(label="x", value="‹list of 2›\na"), ["‹U+2039›list of 2‹U+203A›", "a"]),
        (BCC, ["‹2 values, under Bcc, BCC›", "a", "b"]),
        (FieldView(label="x", value="a", spellings=("B›c",)), ["‹found at B‹U+203A›c›", "a"]),
    ],
)
def test_a_value_is_drawn_as_what_it_is(field: FieldView, lines: list[str]) -> None:
    assert [plain_text(each) for each in value_lines(field, field_text(field))] == lines


def test_arguments_steps_and_fetched_fields_are_drawn_alike() -> None:
    looks_like = FieldView(label="where", value='{"id": 5} ')
    step = replace(later_steps()[0], inputs=(looks_like,))
    view = approval(1, NOW)
    preview = replace(view.preview, fields=(looks_like,))
    view = replace(view, arguments=(looks_like,), steps=(step,), preview=preview)
    texts = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert texts.count('‹text› {"id": 5}‹1 blank›') == 3


def test_several_values_of_one_name_are_a_warning_of_the_head() -> None:
    """One Bcc more is worth a look before any other line."""
    view = approval(1, NOW)
    twice = FieldView(label="Bcc", value="a\nb", count=2, spellings=("Bcc",))
    view = replace(view, preview=replace(view.preview, fields=(twice,)))
    found = [plain_text(w) for w in warnings(view, HiddenCharacters(), file_changed=False)]
    assert "Bcc: 2 values" in found


def drawn_blocks(shown: tuple[blocks.Block, ...], width: int, gutter: int) -> list[str]:
    return [plain_text(each) for each in lay_out(shown, width, gutter).lines]


@pytest.mark.parametrize("gutter", [GUTTER, COMPACT_GUTTER])
@pytest.mark.parametrize("bar", ["┃", "┊", "│"])
@pytest.mark.parametrize(
    "label", [FORGED, "Estimated delivery", "見積もりの納期と送料", "e\u0301" * 20, "x" * 5_000]
)
@pytest.mark.parametrize("lines", [1, 2, 9])
def test_a_files_label_stays_in_its_column(gutter: int, bar: str, label: str, lines: int) -> None:
    kind: Gutter = {"┃": "fact", "┊": "claim", "│": "record"}[bar]  # type: ignore[assignment]
    named = value(foreign_text(label), (Piece("0"),), kind)
    more = (value("", (Piece(str(number)),), kind) for number in range(1, lines))
    layout = lay_out((named, *more, heading("NEXT")), 80, gutter)
    *rows, last = (plain_text(each) for each in layout.lines)
    assert (last, layout.blocks[-1]) == (" NEXT", lines)
    split = [row.partition(bar) for row in rows]
    assert [text for _, found, text in split if found] == [f" {n}" for n in range(lines)]
    assert all(cell_len(before) == gutter for before, found, _ in split if found)
    column = [before.rstrip() for before, _, _ in split]
    assert all(row.startswith("   ") for row in column[1:] if row)
    shown = "".join(column).replace(" ", "")
    assert shown == label.replace(" ", "") or (shown.endswith("…") and len(label) > 60)


@pytest.mark.parametrize("gutter", [GUTTER, COMPACT_GUTTER])
def test_a_long_label_that_nobody_accepted_stands_behind_the_bar(gutter: int) -> None:
    """An agent's own word for itself, say: in the label's column it could name a section."""
    labelled = value(foreign_text(FORGED), (Piece("x"),), "claim", label_outside=True)
    first, second = drawn_blocks((labelled,), 80, gutter)
    assert (first[:gutter].strip(), first[gutter]) == ("", "┊")
    assert first[gutter + 2 :] == FORGED
    assert second[gutter + 2 :] == "x"


def test_what_is_left_of_a_label_has_no_bar_and_one_of_ours_has_a_line_of_its_own() -> None:
    label = value(foreign_text("Estimated delivery"), (Piece("x"),))
    rows = drawn_blocks((label, blank()), 80, GUTTER)
    assert rows == [" Estimated   ┃ x", "   delivery", ""]
    first, _ = drawn_blocks((value("Look-alike names", (Piece("x"),)),), 80, COMPACT_GUTTER)
    assert first == " Look-alike names"
