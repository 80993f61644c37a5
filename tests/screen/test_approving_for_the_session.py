"""`A` approves a call of a built-in tool for the rest of its session, as strictly as `a` approves it once."""

from dataclasses import replace

from aileron_core.console_port.intents import Approve
from tests.screen.driving import console, mail, resting, short, start


async def test_it_is_a_yes_that_covers_identical_calls() -> None:
    view = short(can_be_remembered=True)
    async with resting(start(view)) as shown:
        assert "A  approve for the session" in shown.keys
        await shown.press_alone("A")
        await shown.asks()
        expected = Approve(approval_id=view.approval_id, digest=view.digest, remember=True)
        assert shown.port.intents == [expected]


async def test_another_call_does_not_offer_it() -> None:
    """And it opens nothing: a key that decides somewhere does nothing else elsewhere."""
    async with resting(start(short())) as shown:
        assert "for the session" not in shown.keys
        await shown.press_alone("A")
        assert "only a call of a built-in tool can be approved for the session" in shown.status_line
        assert shown.port.intents == []


async def test_unread_lines_want_the_same_key_twice() -> None:
    """A first `a` and then `A` is no second press; the sentence says what it covers."""
    view = replace(mail(), can_be_remembered=True)
    async with console(start(view), size=(80, 24)) as shown:
        await shown.press_rested("a", "Press a again")
        await shown.press_rested("A", "Press A again")
        assert shown.port.intents == []
        await shown.press_rested("A")
        intent = await shown.asks_for(Approve)
        assert intent.remember
        assert intent.unseen_lines > 0
