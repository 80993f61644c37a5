"""The footer is never wrong about the selected item, before its lines are known and while a view is on its
way; the registry never contradicts itself. Nor do bars and rows say more than is so.
"""

import asyncio
import dataclasses
import re
from dataclasses import replace
from itertools import product

import pytest
from textual.events import Key, Resize
from textual.geometry import Size

from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.bars import top_bar
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.header import approval_head, warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.rows import row_lines
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.commands import VIEWS
from aileron_tui.pages.command import availability
from aileron_tui.pages.keymap import COMMANDS, DEFAULT_REGISTRY
from aileron_tui.pages.status_line import footer_line, status_line
from aileron_tui.screens.palette import commands
from aileron_tui.state.filter import call_fields, parse
from aileron_tui.state.model import Model
from aileron_tui.state.queue import Queue
from aileron_tui.state.situation import Situation
from tests.screen.driving import Console
from tests.support.screens.calls import drifted, snapshot
from tests.support.screens.drawn import situation
from tests.support.screens.home import sessions
from tests.support.screens.states import NOW, mail, short, snapshot_of
from tests.support.screens.tool_calls import edit


def situations() -> list[Situation]:
    blind = PreviewView(status="unavailable", reason="timed out", updated_at=NOW)
    views = (mail(), mail(preview=blind))
    blocks = ("none", "lost", "storage", "small", "sending", "checking", "fetching", "deadline")
    return [
        situation(
            snapshot_of(view), blocked_by=block, deny_blocked_by=block, armed=armed, unseen=unseen,
            total=9, pressed_once="approve" if confirmed else "", rows=2,
        )
        for view, block, armed, unseen, confirmed in product(
            views, blocks, (True, False), (0, 4), (True, False)
        )
    ]  # fmt: skip


def test_approve_is_filled_exactly_when_the_next_press_decides() -> None:
    for now in situations():
        blind = now.approval is not None and now.approval.preview.status == "unavailable"
        may_decide = now.pressed_once or not (now.unseen or blind)
        state = availability(DEFAULT_REGISTRY.command("approve"), now)
        assert state.decides_now == (now.blocked_by == "none" and now.armed and bool(may_decide))
        assert state.shown == (now.blocked_by == "none")


def test_the_footer_fits_names_only_keys_that_do_something_and_always_offers_help() -> None:
    for now in situations():
        for width in (60, 80, 120, 200):
            pieces = footer_line("waiting", now, width)
            assert cell_width(pieces) == width
            assert plain_text(pieces).endswith("? help ")
        text = plain_text(footer_line("waiting", now, 300))
        for each in DEFAULT_REGISTRY.footer_order("waiting"):
            if each.id not in ("help", "view_waiting"):
                key = re.escape(DEFAULT_REGISTRY.key_labels(each))
                shown = re.search(rf"(^|\s){key}\s+{each.label}", text) is not None
                assert shown == availability(each, now).shown, (each.id, text)


def test_no_decide_key_is_shared_has_a_modifier_or_is_escape() -> None:
    for context in (*VIEWS, "deny", "grant", "help"):
        keys = [key for each in COMMANDS if context in each.contexts for key in each.keys]
        # A pause and its end share a key, filter and search, what is done to a session and to a device, and
        # what is done to an offered key, to a preview and to a call of a batch: never are two of them there.
        shared = [key for key in ("P", "slash") if key in keys]
        # And a row is opened before its calls are.
        of = {"sessions": ["t", "x"], "waiting": ["x", "x"], "rules": ["enter"]}
        shared += of.get(context, [])
        assert sorted(keys) == sorted([*set(keys), *shared]), context
    deciding = [key for each in COMMANDS if each.decides for key in each.keys]
    # Where a reason is typed no character alone can decide: there the spec has `ctrl+s`.
    assert sorted(set(deciding)) == [
        "P", "R", "T", "a", "ctrl+s", "enter", "m", "o", "t", "x", "y", "z",
    ]  # fmt: skip
    for each in COMMANDS:  # and none is dead: what decides asks the core
        if not set(each.contexts) <= {"palette", "help"}:
            asks = "intents" if each.decides or each.do is None else "do"
            fields = {field.name: field.default for field in dataclasses.fields(each)}
            assert getattr(each, asks) is not fields[asks], each.id


def test_nothing_is_offered_or_called_seen_before_the_items_lines_are_laid_out() -> None:
    """With no lines laid out none are unseen; that must not read as all of them seen."""
    model = Model(snapshot(0.0), arm_seconds=0.4, registry=DEFAULT_REGISTRY)
    item = model.queue.current
    assert item is not None
    model.arming.on_drawn(model.screen_version, 0.0)

    before = Situation(model, 0.0, 10.0)
    assert not availability(DEFAULT_REGISTRY.command("approve"), before).shown
    assert "".join(piece.text for piece in status_line(before, None, width=80)) == ""

    model.laid_out_version = item.version
    after = Situation(model, 0.0, 10.0)
    assert availability(DEFAULT_REGISTRY.command("approve"), after).decides_now
    (intent,) = DEFAULT_REGISTRY.command("approve").intents(after)
    assert isinstance(intent, Approve)


@pytest.mark.parametrize("key", ["j", "slash"])
async def test_a_key_before_a_view_has_widgets_ends_no_console(shown: Console, key: str) -> None:
    unmounted = [each for each in shown.app._screens.values() if not each.is_mounted]
    assert len(unmounted) == 6
    for each in unmounted:  # due while the console ended, it looked for the audit's list
        each.page.redraw()
    page = shown.app._screens["audit"]
    shown.app.post_message(Key("3", "3"))
    while shown.app.screen is not page:
        await asyncio.sleep(0)
    assert not page.is_mounted
    shown.clock.advance(0.5)
    shown.app.post_message(Key(key, key if len(key) == 1 else None))
    shown.app.post_message(Resize(Size(100, 30), Size(100, 30)))
    await shown.until(lambda: page.is_mounted, "its widgets")
    assert shown.app.is_running
    assert shown.port.intents == []


@pytest.mark.parametrize("width", [80, 90, 100, 110, 120, 160, 200])
@pytest.mark.parametrize(("held", "problems"), [(0, 0), (1, 0), (12, 3)])
def test_the_top_bar_keeps_the_views_named_and_what_is_wrong_counted(
    width: int, held: int, problems: int
) -> None:
    drawn = plain_text(
        top_bar(
            view="waiting", waiting=7, not_accepted=held, problems=problems, sessions=sessions(NOW),
            now=NOW, width=width, registry=DEFAULT_REGISTRY,
        )
    )  # fmt: skip
    assert len(drawn) == width
    for name in ("1 Waiting", "2 Activity", "3 Audit"):
        assert name in drawn
    assert (f"▲ {held}" in drawn) == bool(held)
    assert (f"! {problems}" in drawn) == bool(problems)
    assert drawn.endswith("14:02 ")
    assert "…" not in drawn


def row_texts(view: ApprovalView, *, compact: bool, width: int = 120) -> list[str]:
    queue = Queue()
    queue.load((view,), ())
    drawn = row_lines(queue.items[0], width, NOW, hidden=False, selected=False, compact=compact)
    return [plain_text(each) for each in drawn]


@pytest.mark.parametrize("compact", [True, False])
def test_an_agent_that_gave_itself_its_name_is_marked_in_its_row(compact: bool) -> None:
    own, given = (
        " ".join(row_texts(view, compact=compact, width=60))
        for view in (short(1, agent="claude", self_opened=True), short(2, agent="claude"))
    )
    assert "┊ claude" in own
    assert "claude" in given
    assert "┊ claude" not in given


def test_the_palette_puts_what_is_called_so_before_what_only_contains_it() -> None:
    now = situation(snapshot_of(mail()), rows=2)
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
    tool = replace(edit(NOW), drift=drifted(NOW), state="pending")
    for given in ({"pressed_once": "approve", "unseen": 12_345}, {}):
        now = situation(snapshot_of(tool), rows=3, scrollable=True, **given)
        now.model.has_marks, now.model.preview_row = True, 5
        drawn = plain_text(footer_line("waiting", now, width))
        assert re.search(r" d  ?deny", drawn), drawn
        assert drawn.endswith("? help ")
        assert len(drawn) == width


def test_a_built_in_tool_has_the_name_that_agents_see() -> None:
    view = edit(NOW)
    text = "\n".join(plain_text((*each.label, *each.pieces)) for each in approval_blocks(view, NOW))
    assert "ActionEdit" in text
    assert "builtin." not in text
    for typed in ("action:edit", "action:builtin.edit"):
        assert parse(typed, ("action",)).query.matches(call_fields(view), NOW)


@pytest.mark.parametrize("compact", [True, False])
def test_a_row_says_what_a_change_makes_of_it(compact: bool) -> None:
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
