"""Where there is little room, or little to say: what stays named, and what nobody may take for more."""

import re
from dataclasses import replace

import pytest

from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.bars import empty_lines, top_bar
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.header import approval_head, warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.rows import decided_header, row_lines
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.situation import View
from aileron_tui.pages.registry import DEFAULT_REGISTRY
from aileron_tui.pages.status_line import footer_line
from aileron_tui.screens.palette import commands
from aileron_tui.state.filter import call_fields, parse
from aileron_tui.state.queue import Queue
from tests.screen.driving import NOW, mail, short, start
from tests.support.screens.calls import drifted
from tests.support.screens.drawn import situation
from tests.support.screens.home import sessions
from tests.support.screens.tool_calls import edit


def bar(width: int, *, held: int = 1, problems: int = 0, view: View = "waiting") -> str:
    return plain_text(
        top_bar(
            view=view, waiting=7, not_accepted=held, problems=problems, sessions=sessions(NOW),
            now=NOW, width=width, registry=DEFAULT_REGISTRY,
        )
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 90, 100, 110, 120, 160, 200])
@pytest.mark.parametrize(("held", "problems"), [(0, 0), (1, 0), (12, 3)])
def test_the_top_bar_keeps_the_views_named_and_what_is_wrong_counted(
    width: int, held: int, problems: int
) -> None:
    """Names of agents and long words go first; what is not accepted and invalid never goes."""
    drawn = bar(width, held=held, problems=problems)
    assert len(drawn) == width
    for name in ("1 Waiting", "2 Activity", "3 Audit"):
        assert name in drawn
    assert (f"▲ {held}" in drawn) == bool(held)
    assert (f"! {problems}" in drawn) == bool(problems)
    assert drawn.endswith("14:02 ")
    assert "…" not in drawn


def test_the_top_bar_says_all_of_it_where_there_is_room() -> None:
    """Agents by name, and what a sign counts."""
    assert "▲ 1 not accepted  ! 2 file problems: press end  ● codex  ● claude  14:02" in bar(
        160, problems=2
    )
    for width in (60, 80, 120):
        drawn = bar(width, problems=2, view="activity")
        assert "press 1, end" in drawn or ": 1 end" in drawn, "in another view the list comes first"


@pytest.mark.parametrize("compact", [True, False])
def test_an_agent_that_gave_itself_its_name_is_marked_in_its_row(compact: bool) -> None:
    """In every row: the dotted bar before it, as before all that is a claim."""
    queue = Queue()
    queue.load((short(1, agent="claude", self_opened=True), short(2, agent="claude")), ())
    own, given = (
        " ".join(
            plain_text(each)
            for each in row_lines(item, 60, NOW, hidden=False, selected=False, compact=compact)
        )
        for item in queue.items
    )
    assert "┊ claude" in own
    assert "claude" in given
    assert "┊ claude" not in given


def test_a_call_that_is_looked_at_once_more_says_so_in_its_row() -> None:
    """In the compact layout as well, in place of its time."""
    queue = Queue()
    queue.load((short(1, state="checking"),), ())
    (row,) = row_lines(queue.items[0], 80, NOW, hidden=False, selected=False, compact=True)
    assert plain_text(row).rstrip().endswith("… checking")


def test_the_outcome_of_a_failed_call_is_said_once_in_its_document() -> None:
    """Above all; the record does not say it again."""
    drawn = "Nothing ran: the action file changed after you looked."
    view = mail(1, state="failed", outcome=drawn, decided_at=NOW, decided_by="person")
    warned = warnings(view, HiddenCharacters(), file_changed=False)
    assert drawn in [plain_text(each) for each in warned]
    rows = [plain_text(each.pieces) for each in approval_blocks(view, NOW, warned)]
    assert rows.count(drawn) == 1
    assert any(row.endswith("  you") for row in rows)


def test_a_list_of_decisions_without_one_says_so() -> None:
    """A heading over nothing would look broken."""
    assert plain_text(decided_header(0)).split() == ["DECIDED", "nothing", "yet"]
    assert "newest first" in plain_text(decided_header(1))


def test_the_calm_screen_of_an_empty_home_is_read_whole_in_a_narrow_pane() -> None:
    """Its commands are wrapped, not cut."""
    rows = empty_lines(last=None, connected=0, actions_ready=0, now=NOW, width=60, height=12)
    assert all(cell_width(row) <= 60 for row in rows)
    drawn = " ".join(" ".join(plain_text(row) for row in rows).split())
    assert "`aileron init --example` or `aileron action add PATH`." in drawn


def test_the_palette_puts_what_is_called_so_before_what_only_contains_it() -> None:
    """`view` means the views, not the preview; `re` means refetch, not every help that holds it."""
    now = situation(start(mail()), rows=2)
    found = [each.id for each in commands(DEFAULT_REGISTRY, now, "view")]
    assert found[0].startswith("view_")
    assert found.index("refresh") > found.index("view_sessions")
    assert commands(DEFAULT_REGISTRY, now, "re")[0].id == "refresh"
    assert [each.id for each in commands(DEFAULT_REGISTRY, now, "")] == [
        each.id for each in DEFAULT_REGISTRY.commands if each in commands(DEFAULT_REGISTRY, now, "")
    ]


@pytest.mark.parametrize("compact", [True, False])
def test_the_bar_of_the_agents_words_is_drawn_before_nothing_else(compact: bool) -> None:
    """Account, host and warning stood behind it where the head is narrow: they are the agent's word in no way."""
    view = short(accounts=(AccountView(name="api_key/mail/work", account="ana@example.com " * 9),))
    warned = warnings(
        replace(view, outcome="It went wrong. " * 20, state="failed"),
        HiddenCharacters(),
        file_changed=True,
    )
    head = [plain_text(each) for each in approval_head(view, warned, NOW, 60, compact=compact)]
    assert any(text.lstrip().startswith("↳ ") for text in head)
    assert not any("┊" in text for text in head)


@pytest.mark.parametrize("width", range(60, 130))
def test_deny_never_leaves_a_narrow_footer(width: int) -> None:
    """Whatever else there is to press, and however long the label of the first key."""
    tool = replace(edit(NOW), drift=drifted(NOW), state="pending")
    for given in ({"pressed_once": "approve", "unseen": 12_345}, {}):
        now = situation(start(tool), rows=3, scrollable=True, **given)
        now.model.has_marks, now.model.preview_row = True, 5
        drawn = plain_text(footer_line("waiting", now, width))
        assert re.search(r" d  ?deny", drawn), drawn
        assert drawn.endswith("? help ")
        assert len(drawn) == width


def test_a_built_in_tool_has_the_name_that_agents_see() -> None:
    """Nobody knows it as builtin.edit; what it is called on the wire stays."""
    view = edit(NOW)
    text = "\n".join(plain_text((*each.label, *each.pieces)) for each in approval_blocks(view, NOW))
    assert "ActionEdit" in text
    assert "builtin." not in text
    for typed in ("action:edit", "action:builtin.edit"):
        assert parse(typed, ("action",)).query.matches(call_fields(view), NOW)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("one\ntwo\n", "one\nTWO\nthree\n", "+2 −1"),
        ("one\ntwo\n", "two\none\n", "…"),
        ("one\n", "long\n" * 5_000, "…"),
    ],
)
def test_a_row_counts_lines_only_where_that_says_what_changes(
    old: str, new: str, counts: str
) -> None:
    """Of a text that is too long to be counted, or whose lines only change places, it says no number."""
    text = FieldView(label="Text", value=old, multiline=True)
    preview = PreviewView(status="ready", fields=(text,))
    view = replace(mail(preview=preview), new_values=(replace(text, value=new),))
    assert f"Text {counts}" in first_line(view, compact=True)


def test_lines_that_look_like_names_of_files_are_counted() -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1,3 @@\n one\n--- two\n+++ two\n+three\n--- c\n+++ c\n@@ -1 +1 @@\n-x\n+y\n"
    field = FieldView(label="Diff", value=diff, multiline=True, format="diff")
    view = edit(NOW)
    view = replace(view, preview=replace(view.preview, fields=(field,)))
    assert "+3 −2" in first_line(view, compact=True)


def first_line(view: ApprovalView, *, compact: bool) -> str:
    """Return the first line of the row of *view*."""
    queue = Queue()
    queue.load((view,), ())
    (item,) = queue.items
    drawn = row_lines(item, 120, NOW, hidden=False, selected=False, compact=compact)
    return plain_text(drawn[0])


@pytest.mark.parametrize("compact", [True, False])
def test_a_row_says_what_a_change_makes_of_it(compact: bool) -> None:
    """A field's old and new value, how many lines of a text come and go; the same of a file's difference."""
    lines = FieldView(label="Text", value="one\ntwo\nthree\n", multiline=True)
    field = FieldView(label="To", value="everyone@a.example")
    shown = mail(preview=PreviewView(status="ready", gist="Q3", fields=(lines, field)))
    changed = replace(
        shown,
        new_values=(
            replace(field, value="board@\x1b[2J.example"),
            replace(lines, value="one\nTWO\nthree\nfour\n"),
        ),
    )
    said = first_line(changed, compact=compact)
    assert "To everyone@a.ex… → board@‹ESC›[2…  Q3  Text +2 −1" in said
    assert "totals.py  +1 −1" in first_line(edit(NOW), compact=compact)
