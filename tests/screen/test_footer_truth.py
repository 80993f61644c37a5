"""The footer is never wrong about the selected item, and the registry never contradicts itself."""

import dataclasses
import re
from itertools import product

from aileron_core.console_port.field_views import PreviewView
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.commands import VIEWS
from aileron_tui.pages.command import availability
from aileron_tui.pages.registry import COMMANDS, DEFAULT_REGISTRY
from aileron_tui.pages.status_line import footer_line
from aileron_tui.state.situation import Situation
from tests.screen.driving import NOW, mail, start
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
    """Filled means: at rest, nothing in the way, nothing left to say first."""
    for now in situations():
        blind = now.approval is not None and now.approval.preview.status == "unavailable"
        may_decide = now.pressed_once or not (now.unseen or blind)
        state = availability(DEFAULT_REGISTRY.command("approve"), now)
        assert state.decides_now == (now.blocked_by == "none" and now.armed and bool(may_decide))
        assert state.shown == (now.blocked_by == "none")


def test_the_footer_fits_and_always_offers_help() -> None:
    """What does not fit drops from the right; `? help` never drops."""
    for now in situations():
        for width in (60, 80, 120, 200):
            pieces = footer_line("waiting", now, width)
            assert cell_width(pieces) == width
            assert plain_text(pieces).endswith("? help ")


def test_the_footer_names_only_keys_that_do_something() -> None:
    """No dead keys: what is not possible is not in the footer."""
    for now in situations():
        text = plain_text(footer_line("waiting", now, 300))
        for each in DEFAULT_REGISTRY.footer_order("waiting"):
            if each.id in ("help", "view_waiting"):
                continue
            shown = (
                re.search(
                    rf"(^|\s){re.escape(DEFAULT_REGISTRY.key_labels(each))}\s+{each.label}", text
                )
                is not None
            )
            assert shown == availability(each, now).shown, (each.id, text)


def test_no_decide_key_is_shared_has_a_modifier_or_is_escape() -> None:
    """One key decides one thing, and leaving never decides."""
    for context in (*VIEWS, "deny", "help"):
        keys = [key for each in COMMANDS if context in each.contexts for key in each.keys]
        # A pause and its end share a key, filter and search, and what is done to a session and to a
        # device: never is each of them there.
        shared = [key for key in ("P", "slash") if key in keys]
        shared += ["t", "x"] if context == "sessions" else []
        assert sorted(keys) == sorted([*set(keys), *shared]), context
    deciding = [key for each in COMMANDS if each.decides for key in each.keys]
    # Where a reason is typed no character alone can decide: there the spec has `ctrl+s`.
    assert sorted(set(deciding)) == [
        "A", "P", "R", "T", "a", "ctrl+s", "enter", "m", "o", "t", "x", "y", "z",
    ]  # fmt: skip


def test_every_command_does_something() -> None:
    """A key that the footer may name is never dead; what decides asks the core."""
    for each in COMMANDS:
        if not set(each.contexts) <= {"palette", "help"}:
            asks = "intents" if each.decides or each.do is None else "do"
            fields = {field.name: field.default for field in dataclasses.fields(each)}
            assert getattr(each, asks) is not fields[asks], each.id
