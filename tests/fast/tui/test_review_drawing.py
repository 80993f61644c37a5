"""What the review page is sent of a call: the console's own document and rules, harmless whatever it says."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from aileron_core.console_port.events import VaultStatus
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.server.review_items import SentItem
from aileron_tui.draw.text import ROLES
from aileron_tui.pages.command import availability
from aileron_tui.review import PageDrawing
from aileron_tui.state.situation import Situation
from tests.screen.hostile_views import hostile_snapshot
from tests.support.attacks import ATTACKS, LONG, Attack, harmless
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.calls import approval, fixtures, snapshot
from tests.support.screens.play import Play
from tests.support.screens.states import Undrawable, body

CLOCK = FrozenClock()
DRAWING = PageDrawing(CLOCK, SimpleNamespace(not_accepted=(), vault=VaultStatus(state="absent")))


def sent_item(view: ApprovalView, **around: bool) -> SentItem:
    given = {"paused": False, "writable": True, **around}
    return SentItem.draw(view, DRAWING, more={}, **given)


def texts(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif found is not None and not isinstance(found, int | float):
        for each in found.values() if isinstance(found, dict) else found:
            yield from texts(each)


def shows(view: ApprovalView) -> None:
    drawn = sent_item(view)
    whole = [json.loads(each) for each in (drawn.body, *drawn.parts)]
    for text in texts([whole, *DRAWING.rows([view])]):
        assert all(map(harmless, text)), text[:200]
    for block in (block for part in whole for block in part["blocks"]):
        roles = {each[1] for each in block.get("text", ()) if isinstance(each, list)}
        assert roles <= set(ROLES)


@pytest.mark.parametrize("turn", range(3))
def test_no_text_from_outside_hides_or_acts(turn: int) -> None:
    attacks = itertools.cycle(ATTACKS[turn * 7 :] + ATTACKS[: turn * 7])
    for view in hostile_snapshot(CLOCK.now(), lambda: next(attacks).text).approvals:
        shows(view)


@pytest.mark.parametrize("attack", [each for each in LONG if len(each.text) < 100_000], ids=str)
def test_a_long_text_hides_nothing(attack: Attack) -> None:
    shows(body(attack.text))


@pytest.mark.parametrize("view", fixtures(CLOCK.now()), ids=lambda view: view.title)
def test_the_page_offers_and_asks_what_the_console_does(view: ApprovalView) -> None:
    play = Play(replace(snapshot(CLOCK.now()), approvals=(view,), not_accepted=()), size=(200, 60))
    play.passes(2)
    while play.model.reading.unseen:
        play.press("space")
        play.passes(2)
    now = Situation(play.model, play.clock.now(), play.clock.monotonic())
    drawn = json.loads(sent_item(view).body)
    for verdict in ("approve", "deny"):
        console = availability(play.model.registry.command(verdict), now)
        assert drawn[verdict]["offered"] == console.shown, drawn[verdict]
    asks = availability(play.model.registry.command("approve"), now).asks
    assert bool(drawn["approve"]["ask"]) == asks


def test_a_long_preview_goes_on_in_parts_that_count_once_they_were_sent() -> None:
    """20,000 lines: the first part is small, and what was not asked for was not seen."""
    text = "\n".join(f"line {number}" for number in range(20_000))
    drawn = sent_item(body(text))
    assert len(drawn.body) < 100_000
    total = sum(part.lines for part in drawn.drawn.parts)
    assert total == 20_001
    assert drawn.unseen([[0, total - 1]]) == total - drawn.drawn.parts[0].lines
    for number in range(1, len(drawn.parts) + 1):
        drawn.part(number)
    assert drawn.unseen([[0, total - 1]]) == 0
    shown = [block for each in (drawn.body, *drawn.parts) for block in json.loads(each)["blocks"]]
    lines = [block["text"][0] for block in shown if block.get("bar") == "fact"]
    assert lines == text.split("\n")


def test_what_cannot_be_drawn_is_not_answered() -> None:
    drawn = sent_item(body(Undrawable("x")))
    answer = json.loads(drawn.body)
    assert not answer["approve"]["offered"]
    assert not answer["deny"]["offered"]
    assert "because of a bug" in drawn.body.decode()


def test_on_hold_nothing_is_approved() -> None:
    answer = json.loads(sent_item(approval(1, CLOCK.now()), paused=True).body)
    assert "P in the console resumes them" in answer["approve"]["why_not"]
    assert answer["deny"]["offered"]
