"""`z` at the opened call of a built-in tool takes back what it wrote."""

from dataclasses import replace

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.events import ApprovalUpdated, Recorded
from aileron_core.console_port.intents import UndoRun
from tests.screen.driving import NOW, short, start
from tests.support.screens.calls import snapshot
from tests.support.screens.play import Play

WROTE = replace(
    short(2), action="builtin.write", title="Write a file", state="completed", ended_at=NOW - 5
)


def undoable() -> Recorded:
    record = replace(
        snapshot(NOW).records[-1],
        seq=4000,
        at=NOW - 5,
        run_id=WROTE.run_id,
        action=WROTE.action,
        event=AuditEvent.RUN_COMPLETED,
        summary="builtin.write completed",
    )
    return Recorded(record=record, head_words=("olive", "pixel"))


def to_its_row(play: Play) -> None:
    play.port.tell(undoable())
    play.go("2", "builtin.write")
    play.rest()


@pytest.mark.parametrize("size", [(120, 36), (160, 45)])
def test_it_is_undone_by_one_key_where_it_is_opened(size: tuple[int, int]) -> None:
    """Not where its page only stands beside the list, whose rows may move."""
    play = Play(start(short(), WROTE), size=size, answers=True)
    to_its_row(play)
    play.press_alone("z")
    assert "z did nothing" in play.status_line
    assert "z  undo" not in play.keys
    play.go("enter", "OUTCOME")
    play.press_alone("z")
    play.passes(1)
    assert not play.asked(UndoRun), "no rest before"
    play.rest()
    assert "z  undo" in play.keys
    play.press_alone("z", "✓ Undone: builtin.write.")
    assert UndoRun(run_id=WROTE.run_id) in play.port.intents
    play.until(lambda: "z  undo" not in play.keys)


def test_another_opened_call_starts_the_rest_anew() -> None:
    """A key that was pressed for one call must not take back another."""
    play = Play(start(short(), WROTE), answers=True)
    to_its_row(play)
    play.go("enter", "OUTCOME")
    model = play.model
    key, before = model.activity.key, model.screen_version
    play.press_alone("j")
    assert model.activity.key != key
    assert model.screen_version != before


def test_what_an_approved_call_wrote_is_undone_in_the_row_that_it_leaves() -> None:
    """It stays for a moment, and says so; a call that wrote nothing offers nothing."""
    waits = short(1, action="builtin.write")
    play = Play(start(waits, short(2)), answers=True)
    ended = replace(waits, state="completed", ended_at=NOW, version=waits.version + 1)
    play.port.tell(ApprovalUpdated(view=ended))
    play.rest()
    assert "can undo" not in play.text
    assert "z  undo" not in play.keys
    play.port.tell(ApprovalUpdated(view=replace(ended, can_undo=True, version=ended.version + 1)))
    play.rest()
    assert "✓ done, can undo" in play.text
    assert "z  undo" in play.keys
    play.press_alone("z")
    play.until(lambda: UndoRun(run_id=waits.run_id) in play.port.intents)
