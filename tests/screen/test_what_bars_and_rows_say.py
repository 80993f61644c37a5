"""Where there is little room, or little to say: what stays named, and what nobody may take for more."""

import re
from dataclasses import replace

import pytest

from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.bars import top_bar
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.header import approval_head, warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.rows import row_lines
from aileron_tui.draw.text import plain_text
from aileron_tui.input.commands import View
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
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


def row_texts(view: ApprovalView, *, compact: bool, width: int = 120) -> list[str]:
    """Return the lines of the row of *view*."""
    queue = Queue()
    queue.load((view,), ())
    drawn = row_lines(queue.items[0], width, NOW, hidden=False, selected=False, compact=compact)
    return [plain_text(each) for each in drawn]


@pytest.mark.parametrize("compact", [True, False])
def test_an_agent_that_gave_itself_its_name_is_marked_in_its_row(compact: bool) -> None:
    """In every row: the dotted bar before it, as before all that is a claim."""
    own, given = (
        " ".join(row_texts(view, compact=compact, width=60))
        for view in (short(1, agent="claude", self_opened=True), short(2, agent="claude"))
    )
    assert "┊ claude" in own
    assert "claude" in given
    assert "┊ claude" not in given


def test_the_palette_puts_what_is_called_so_before_what_only_contains_it() -> None:
    """`view` means the views, not the preview; `re` means refetch, not every help that holds it."""
    now = situation(start(mail()), rows=2)
    found = [each.id for each in commands(DEFAULT_REGISTRY, now, "view")]
    assert found[0].startswith("view_")
    assert found.index("refresh") > found.index("view_sessions")
    assert commands(DEFAULT_REGISTRY, now, "re")[0].id == "refresh"
    every = commands(DEFAULT_REGISTRY, now, "")
    assert [each.id for each in every] == [
        each.id for each in DEFAULT_REGISTRY.commands if each in every
    ]


@pytest.mark.parametrize("compact", [True, False])
def test_the_bar_of_the_agents_words_is_drawn_before_nothing_else(compact: bool) -> None:
    """Account, host and warning stood behind it where the head is narrow: they are the agent's word in no way."""
    view = short(accounts=(AccountView(name="api_key/mail/work", account="ana@example.com " * 9),))
    failed = replace(view, outcome="It went wrong. " * 20, state="failed")
    warned = warnings(failed, HiddenCharacters(), file_changed=True)
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


@pytest.mark.parametrize("compact", [True, False])
def test_a_row_says_what_a_change_makes_of_it(compact: bool) -> None:
    """A field's old and new value, how many lines of a text come and go; the same of a file's difference. It
    names the action where nothing else says what it does, as of an MCP server's tool.
    """
    lines = FieldView(label="Text", value="one\ntwo\nthree\n", multiline=True)
    field = FieldView(label="To", value="everyone@a.example")
    shown = mail(preview=PreviewView(status="ready", gist="Q3", fields=(lines, field)))
    new = (
        replace(field, value="board@\x1b[2J.example"),
        replace(lines, value="one\nTWO\nthree\nfour\n"),
    )
    plain = mail(effect="ASK", preview=PreviewView(status="unavailable"))
    changed, edited, asked, sent, bare = (
        row_texts(each, compact=compact)[0]
        for each in (
            replace(shown, new_values=new),
            edit(NOW),
            plain,
            replace(plain, effect="SEND"),
            replace(plain, arguments=()),
        )
    )
    assert "To everyone@a.ex… → board@‹ESC›[2…  Q3  Text +2 −1" in changed
    assert "totals.py  +1 −1" in edited
    assert f"ASK    {plain.title}  ┊ " in asked
    assert plain.title not in sent
    assert bare.count(plain.title) == 1
