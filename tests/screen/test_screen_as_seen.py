"""View 3 shows the screen in which a person decided, as it stood there, and says that it is not live."""

import re
from dataclasses import replace

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import PreviewView
from tests.screen.driving import mail, short, start
from tests.support.screens.play import Play


def decide(play: Play, key: str, expected: str) -> None:
    play.press_rested(key, expected)


def to_record(play: Play, event: str) -> None:
    """Go to view 3 and down to the newest record of *event*."""
    play.clock.advance(60)
    play.go("3", "records")
    while event not in play.row:
        play.go("j", "follow")


def other_preview(item: PreviewView) -> PreviewView:
    first = replace(item.fields[0], value="mallory@evil.example")
    return replace(item, fields=(first, *item.fields[1:]))


def test_what_came_later_does_not_change_it() -> None:
    """The service says something else by now, and the agent is gone: the old screen stands."""
    play = Play(start(short(), short(2)), answers=True)
    view = play.port.snapshot.approvals[0]
    decide(play, "a", "✓ Approved")
    late = replace(view, state="completed", version=view.version + 9, requester_gone=True)
    play.port.tell(ApprovalUpdated(view=replace(late, preview=other_preview(view.preview))))
    to_record(play, "run.completed")
    play.go("enter", "not live")
    assert "jonas.weber@northwind.example" in play.text
    assert "mallory" not in play.text


def test_what_was_not_read_is_reported() -> None:
    """A person who approved without reading to the end finds that written above the screen."""
    play = Play(start(mail(), mail(2)), (80, 24), answers=True)
    play.press_rested("a", "Press a again")
    before = play.text
    decide(play, "a", "✓ Approved")
    to_record(play, "approval.approved")
    unread = re.search(r"(\d+) of \d+ lines not seen", before)
    assert unread is not None
    play.go("enter", f"not live, {unread[1]} of ")
    play.rest()
    play.go("space", f"not live, {unread[1]} of ")
    play.rest()
    assert "not seen yet" not in play.text, "it was read then, or never"
    assert play.model.reading.unseen == int(unread[1])


def test_a_denied_call_has_its_screen_and_s_again_shows_the_record() -> None:
    """`s` goes there and back; `esc` goes to the list, where nothing says that it is not live."""
    play = Play(start(short(), short(2)), answers=True)
    play.press_rested("d", "Reason (codex will read it):")
    play.press_rested("enter", "✗ Denied")
    to_record(play, "approval.denied")
    play.go("enter", "not live")
    assert "s the record" in play.keys
    play.go("s", "AS STORED")
    assert "not live" not in play.text
    play.go("s", "not live")
    play.go("escape", "records")
    assert "not live" not in play.text


def test_nothing_can_be_decided_on_an_old_screen() -> None:
    """The keys that decide are not there; pressed all the same they ask nothing of the core."""
    play = Play(start(short(), short(2)), answers=True)
    decide(play, "a", "✓ Approved")
    to_record(play, "approval.approved")
    play.go("enter", "not live")
    asked = list(play.port.intents)
    for key in ("a", "d", "r", "t"):
        play.clock.advance(1)
        play.press_alone(key)
    assert play.port.intents == asked
    assert " a " not in play.keys
