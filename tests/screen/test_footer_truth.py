"""The footer is never wrong about the selected item, before its lines are known and while a view is on its
way; the registry never contradicts itself.
"""

import asyncio
import dataclasses
import re
from itertools import product

import pytest
from textual.events import Key, Resize
from textual.geometry import Size

from aileron_core.console_port.field_views import PreviewView
from aileron_core.console_port.intents import Approve
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.commands import VIEWS
from aileron_tui.pages.command import availability
from aileron_tui.pages.keymap import COMMANDS, DEFAULT_REGISTRY
from aileron_tui.pages.status_line import footer_line, status_line
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from tests.screen.driving import NOW, Console, console, mail, short, start
from tests.support.screens.calls import snapshot
from tests.support.screens.drawn import situation

BLIND = PreviewView(status="unavailable", reason="timed out", updated_at=NOW)


def situations() -> list[Situation]:
    views = (mail(), mail(preview=BLIND))
    blocks = ("none", "lost", "storage", "small", "sending", "checking", "fetching", "deadline")
    return [
        situation(
            start(view), blocked_by=block, deny_blocked_by=block, armed=armed, unseen=unseen,
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
    """What does not fit drops from the right; `? help` never drops. What is not possible is not there."""
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
    """One key decides one thing, and leaving never decides."""
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


def test_every_command_does_something() -> None:
    """A key that the footer may name is never dead; what decides asks the core."""
    for each in COMMANDS:
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
async def test_a_key_before_a_view_has_its_widgets_does_not_end_the_console(
    shown: Console, key: str
) -> None:
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


async def test_a_view_without_widgets_draws_nothing() -> None:
    """Regression: a drawing that came due while the console ended looked for the audit's list."""
    async with console(start(short(1))) as shown:
        pages = [page for page in shown.app._screens.values() if not page.is_mounted]
        assert len(pages) == 6
        for page in pages:
            page.page.redraw()
