"""Lists and opened rows of a console without a screen, as lines: no text of others begins one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port import FieldView, RecordView
from aileron_tui.draw.drift import full_preview_row
from aileron_tui.draw.text import Line, Piece, cell_width, plain_text
from aileron_tui.items import Item
from aileron_tui.plain.lines import (
    item_page,
    row_list,
    row_page,
    rows_width,
    sentence_lines,
    text_of,
    whole_preview,
)
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.model import Model
from aileron_tui.state.tables.activity import ActivityTable
from aileron_tui.state.tables.audit import AuditTable
from aileron_tui.state.tables.library import LibraryTable
from aileron_tui.state.tables.sessions import SessionsTable
from aileron_tui.state.tables.table import Table
from tests.fast.tui.test_plain_lines import cells_at_most
from tests.support.attacks import ATTACKS
from tests.support.screens.calls import approval, drifted, snapshot
from tests.support.variants import variants

NOW = 1_790_000_000.0
WIDTHS = (40, 80, 120, 200)


def tables(text: str) -> tuple[Table, ...]:
    """One row in each view that says *text* wherever others can."""
    start = snapshot(NOW)
    record = RecordView(
        seq=1, at=NOW, event=text, run_id=text, session_id=text, action=text, actor="agent",
        agent=text, summary=text,
    )  # fmt: skip
    field = FieldView(label=text, value=text)
    session = replace(start.sessions[0], agent=text, label=text, cwd=text, claims=(field,))
    file = replace(
        start.library[0], name=text, reason=text, hosts=(text,), file=text, connector=text
    )
    model = Model(replace(start, records=(record,)), arm_seconds=0.4, now=NOW)
    activity, audit = model.activity, model.audit
    assert isinstance(activity, ActivityTable)
    assert isinstance(audit, AuditTable)
    library, people = LibraryTable((file,), (), NOW), SessionsTable((session,), NOW)
    return activity, audit, library, people


def pages(text: str, columns: int) -> tuple[Line, ...]:
    made: list[Line] = []
    for table in tables(text):
        width = rows_width(columns)
        row = table.row(0, width, NOW, selected=False)
        number = 1 if table.keys else None
        made += row_list(table.header(width, NOW), [(number, row)], columns)
        table.opened = True
        made += row_page(DocumentCache(), table, NOW, columns, unfold=False)
    return tuple(made)


def holds(made: tuple[Line, ...], columns: int) -> None:
    for pieces in made:
        text = text_of(pieces)
        assert not text or text.startswith(" ")
        assert cells_at_most(pieces) <= columns
        assert cell_width(pieces) <= columns


@pytest.mark.parametrize("columns", variants(WIDTHS, 2))
def test_no_attack_begins_a_line_of_a_list_or_of_an_opened_row(columns: int) -> None:
    """There it could imitate a question of ours; nor does the terminal break a line of it."""
    for attack in ATTACKS:
        holds(pages(attack.text[:3_000], columns), columns)


@given(st.text(max_size=300), st.sampled_from(WIDTHS))
def test_no_text_begins_a_line_of_a_list_or_of_an_opened_row(text: str, columns: int) -> None:
    """The same of any text."""
    holds(pages(text, columns), columns)


def test_the_whole_new_preview_ends_where_the_next_section_begins() -> None:
    """Nothing of what was read before, and nothing of what the agent sent."""
    view = approval(1, NOW, drift=drifted(NOW))
    printer = DocumentCache()
    item_page(printer, Item(key="a", approval=view), NOW, 80, file_changed=False)
    row = full_preview_row(printer.blocks, printer.current)
    assert row is not None
    section = [plain_text(each) for each in whole_preview(printer, row)]
    assert section[0].startswith(" WILL HAPPEN")
    assert any("q3-final.xlsx" in each for each in section)
    assert not any("SENT" in each or "CHANGED" in each for each in section)


def test_a_long_sentence_of_ours_uses_the_whole_width() -> None:
    """Only what a terminal may draw wider than it is counts double."""
    rows = sentence_lines((Piece("word " * 25 + "end"),), 80)
    assert len(rows) == 2
    assert all(cells_at_most(each) <= 80 for each in rows)


def test_a_session_that_named_itself_is_told_in_a_word_not_a_bar() -> None:
    """A screen reader spells a bar out, or leaves it out."""
    session = replace(snapshot(NOW).sessions[0], agent="mallory", self_opened=True)
    people = SessionsTable((session,), NOW)
    width = rows_width(120)
    rows = [(1, people.row(0, width, NOW, selected=False))]
    told = [text_of(each) for each in row_list(people.header(width, NOW), rows, 120)]
    assert "says mallory" in told[-1]
    assert not set("┃│┊▌") & set("".join(told))
