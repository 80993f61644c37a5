"""Hostile text on plain lines: nothing of it begins a line that is printed, and one line of it can be pasted."""

from dataclasses import replace
from operator import mul
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import escape
from aileron_tui.draw.blocks import sentence_lines, text_of
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, plain_text
from aileron_tui.items import Item
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.printed_pages import item_page, row_page
from aileron_tui.state.tables.library import LibraryTable
from aileron_tui.widgets.line_input import _visible
from tests.support.attacks import ATTACKS, CANARY, Attack, harmless
from tests.support.screens.calls import snapshot

NOW = 1_790_000_000.0
WIDTHS = (40, 80, 120, 200)


def spoilt(text: str) -> ApprovalView:
    """A call that says *text* wherever an agent, a service or a file can."""
    view = next(each for each in snapshot(NOW).approvals if each.preview.status == "ready")
    field = FieldView(label=text, value=text, multiline=True)
    preview = replace(view.preview, fields=(field,), host=text, gist=text)
    said = dict.fromkeys(("title", "cwd", "session_label", "agent"), text)
    return replace(view, arguments=(field,), preview=preview, **said)


def cells_at_most(pieces: Line) -> int:
    """The cells of a line on a terminal that draws every letter of others in two, and its marks upon it."""
    wide = [2 if p.foreign and not p.text.isascii() else 1 for p in pieces]
    drawn = [sum(category(char) not in ("Mn", "Me") for char in p.text) for p in pieces]
    return sum(map(mul, wide, drawn))


def printed_lines(item: Item, columns: int, *, unfold: bool = False) -> tuple[Line, ...]:
    cache = DocumentCache(DEFAULT_REGISTRY)
    return tuple(item_page(cache, item, NOW, columns, file_changed=False, unfold=unfold))


def plain_page(text: str, columns: int) -> tuple[Line, ...]:
    item = Item(key="a", approval=spoilt(text))
    said = dict.fromkeys(("name", "reason", "file", "connector"), text)
    file = replace(snapshot(NOW).library[0], hosts=(text,), **said)
    return (*printed_lines(item, columns), *row_page(LibraryTable((file,), (), NOW), NOW, columns))


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_attack_begins_a_line_or_is_broken_by_the_terminal(columns: int) -> None:
    """A line that the terminal breaks would let outside text imitate a question of ours."""
    for attack in ATTACKS:
        for pieces in plain_page(attack.text[:1_000], columns):
            text = text_of(pieces)
            assert not text or text.startswith(" "), attack
            assert cells_at_most(pieces) <= columns, attack


@given(st.text(max_size=300), st.sampled_from(WIDTHS))
@example("字\u0300\u0301" * 5, 40)
def test_no_text_begins_a_line_or_is_broken_by_the_terminal(text: str, columns: int) -> None:
    for pieces in plain_page(text, columns):
        assert not plain_text(pieces).strip(" ") or plain_text(pieces).startswith(" ")
        assert cells_at_most(pieces) <= columns


@given(st.text(max_size=300), st.sampled_from(WIDTHS))
@example("0000000000000000000¡", 40)
@example("0000000000000000000\u093a", 40)
def test_a_sentence_that_quotes_goes_on_indented(text: str, columns: int) -> None:
    first, *others = sentence_lines((Piece("Denied: "), *foreign_text(text)), columns)
    assert plain_text(first).startswith("Denied:")
    assert all(plain_text(each).startswith("  ") for each in others)
    assert all(cells_at_most(each) <= columns for each in (first, *others))


@given(st.text(), st.sampled_from(("html", "markdown", "json", "diff", "addresses")))
@example("<p>a<br>> approve\n\n<pre>\n> a\n</pre>", "html")
def test_a_converted_text_never_begins_a_line(text: str, form: str) -> None:
    view = spoilt("x")
    field = FieldView(label="Body", value=text, format=form)
    view = replace(view, preview=replace(view.preview, fields=(field,)))
    item = Item(key="a", approval=view)
    for unfold in (False, True):
        for pieces in printed_lines(item, 80, unfold=unfold):
            assert not pieces or not pieces[0].foreign


def test_it_prints_readable_text_and_on_a_key_the_source() -> None:
    view = spoilt("x")
    field = FieldView(label="Body", value="<p>Dear <b>Ana</b><!-- c -->", format="html")
    item = Item(key="a", approval=replace(view, preview=replace(view.preview, fields=(field,))))
    pages = [printed_lines(item, 120, unfold=unfold) for unfold in (False, True)]
    shown, source = ("\n".join(map(plain_text, page)) for page in pages)
    assert "Dear Ana" in shown
    assert "‹only in the source: 1 × comment›" in shown
    assert "<p>Dear <b>Ana</b><!-- c -->" in source


def test_a_long_sentence_of_ours_uses_the_whole_width() -> None:
    rows = sentence_lines((Piece("word " * 25 + "end"),), 80)
    assert len(rows) == 2
    assert all(cells_at_most(each) <= 80 for each in rows)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_pasted_attack_leaves_one_line_of_what_shows(attack: Attack) -> None:
    kept = _visible(attack.text)
    assert "\n" not in kept
    assert all(harmless(char) and char not in "\ufe0e\ufe0f" for char in kept)
    first = attack.text.splitlines()[0]
    assert kept.count(CANARY[0]) == first.count(CANARY[0])


@given(st.text())
def test_no_paste_brings_what_would_be_a_mark(text: str) -> None:
    assert all(char in "‹›" or escape(char) == char for char in _visible(text))


def test_words_in_any_writing_are_kept() -> None:
    assert _visible("cafe\u0301 \u00a0‹ok› наоборот 漢字\nsecond") == "café  ‹ok› наоборот 漢字"
