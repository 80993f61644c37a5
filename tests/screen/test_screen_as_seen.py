"""View 3 shows the screen in which a person decided, as it stood there, and says that it is not live."""

import re
from dataclasses import replace

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import PreviewView
from tests.screen.driving import Console, console, mail, short, start


async def decide(shown: Console, key: str, expected: str) -> None:
    await shown.press_rested(key, expected)


async def to_record(shown: Console, event: str) -> None:
    """Go to view 3 and down to the newest record of *event*."""
    shown.clock.advance(60)
    await shown.go("3", "records")
    while event not in shown.row:
        await shown.go("j", "follow")


def other_preview(item: PreviewView) -> PreviewView:
    first = replace(item.fields[0], value="mallory@evil.example")
    return replace(item, fields=(first, *item.fields[1:]))


async def test_what_came_later_does_not_change_it() -> None:
    """The service says something else by now, and the agent is gone: the old screen stands."""
    async with console(start(short(), short(2)), answers=True) as shown:
        view = shown.port.snapshot.approvals[0]
        await decide(shown, "a", "✓ Approved")
        late = replace(view, state="completed", version=view.version + 9, requester_gone=True)
        shown.port.tell(ApprovalUpdated(view=replace(late, preview=other_preview(view.preview))))
        await to_record(shown, "run.completed")
        await shown.go("enter", "not live")
        assert "jonas.weber@northwind.example" in shown.text
        assert "mallory" not in shown.text


async def test_what_was_not_read_is_reported() -> None:
    """A person who approved without reading to the end finds that written above the screen."""
    async with console(start(mail(), mail(2)), (80, 24), answers=True) as shown:
        await shown.press_rested("a", "Press a again")
        before = shown.text
        await decide(shown, "a", "✓ Approved")
        await to_record(shown, "approval.approved")
        unread = re.search(r"(\d+) of \d+ lines not seen", before)
        assert unread is not None
        await shown.go("enter", f"not live, {unread[1]} of ")
        await shown.rest()
        await shown.go("space", f"not live, {unread[1]} of ")
        await shown.rest()
        assert "not seen yet" not in shown.text, "it was read then, or never"
        assert shown.model.reading.unseen == int(unread[1])


async def test_a_denied_call_has_its_screen_and_s_again_shows_the_record() -> None:
    """`s` goes there and back; `esc` goes to the list, where nothing says that it is not live."""
    async with console(start(short(), short(2)), answers=True) as shown:
        await shown.press_rested("d", "Reason (codex will read it):")
        await shown.press_rested("enter", "✗ Denied")
        await to_record(shown, "approval.denied")
        await shown.go("enter", "not live")
        assert "s the record" in shown.keys
        await shown.go("s", "AS STORED")
        assert "not live" not in shown.text
        await shown.go("s", "not live")
        await shown.go("escape", "records")
        assert "not live" not in shown.text


async def test_nothing_can_be_decided_on_an_old_screen() -> None:
    """The keys that decide are not there; pressed all the same they ask nothing of the core."""
    async with console(start(short(), short(2)), answers=True) as shown:
        await decide(shown, "a", "✓ Approved")
        await to_record(shown, "approval.approved")
        await shown.go("enter", "not live")
        asked = list(shown.port.intents)
        for key in ("a", "d", "r", "t"):
            shown.clock.advance(1)
            await shown.press_alone(key)
        assert shown.port.intents == asked
        assert " a " not in shown.keys
