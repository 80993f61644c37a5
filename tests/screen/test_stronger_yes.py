"""What was found in an item wants a second press that names it; equal calls are counted in their rows."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.intents import Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.screen.driving import NOW, mail, short, start
from tests.support.screens.calls import drifted
from tests.support.screens.play import Play


def with_subject(subject: str, **changes: object) -> ApprovalView:
    view = short()
    fields = (view.preview.fields[0], FieldView(label="Subject", value=subject))
    return short(preview=replace(view.preview, fields=fields), **changes)


@pytest.mark.parametrize(
    ("view", "finding"),
    [
        (with_subject("Invoice\u202e 881"), "▲ Hidden text in Subject: RLO."),
        (short(drift=drifted(NOW)), "▲ Changed after you looked: To, Body."),
    ],
)
def test_the_first_yes_names_what_was_found_and_the_second_decides(
    view: ApprovalView, finding: str
) -> None:
    """Although every line was read: one press is for plain items."""
    play = Play(start(view), size=(80, 24))
    play.read_all()
    assert "approve…" in play.keys
    play.press_alone("a", finding)
    assert "Press a again" in play.status_line
    assert play.port.intents == []
    play.press_rested("a")
    play.asks_for(Approve)


def test_a_drift_between_two_presses_begins_anew() -> None:
    """The second press was for what stood there before."""
    play = Play(start(with_subject("Invoice\u202e 881")))
    play.read_all()
    play.press_alone("a", "Press a again")
    changed = with_subject("Invoice\u202e 99", drift=drifted(NOW), version=2, digest="7" * 64)
    play.port.tell(ApprovalUpdated(view=changed))
    play.read_all()
    play.press_alone("a", "▲ Changed after you looked: To, Body (and 1 more).")
    assert play.port.intents == []


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
def test_the_three_words_stand_once_with_what_they_are_for(size: tuple[int, int]) -> None:
    """In the record once it is in view, till then at the end of the status line where there is room."""
    play = Play(start(mail()), size=size)
    play.read_all()
    for _ in range(2):
        words = play.text.count("amber · canoe · violet")
        assert words == play.text.count("compare when the agent answers") <= 1
        assert words == 1 or size[0] == 80
        for _ in range(9):
            play.press("b")
        play.rest()
    remark = "compare when the agent answers: amber"
    assert remark in play.status_line or size != (120, 36)


@pytest.mark.parametrize("state", ["completed", "failed", "denied", "expired", "withdrawn"])
def test_the_words_of_an_ended_call_can_be_compared_now(state: Any) -> None:
    """Each end is an answer that has them; while the call waits the agent has nothing to compare."""
    ended = replace(mail(), state=state, ended_at=NOW)
    for view, said in ((ended, True), (mail(), False)):
        text = "\n".join(plain_text(each.pieces) for each in approval_blocks(view, NOW))
        assert ("amber · canoe · violet  compare with the agent's answer" in text) == said
    tool = replace(ended, action="builtin.bash")  # its answer is the tool's output alone
    text = "\n".join(plain_text(each.pieces) for each in approval_blocks(tool, NOW))
    assert "amber · canoe · violet" in text
    assert "compare" not in text
