"""`A` approves a call of a built-in tool for the rest of its session, as strictly as `a` approves it once."""

from dataclasses import replace

from aileron_core.console_port import Approve
from tests.screen.driving import console, mail, short, start


async def test_it_is_a_yes_that_covers_identical_calls() -> None:
    view = short(can_be_remembered=True)
    async with console(start(view)) as shown:
        await shown.rest()
        assert "A  approve for the session" in shown.keys
        await shown.press_alone("A")
        await shown.until(lambda: bool(shown.port.intents))
        expected = Approve(approval_id=view.approval_id, digest=view.digest, remember=True)
        assert shown.port.intents == [expected]


async def test_it_counts_no_sooner_than_a_single_yes() -> None:
    async with console(start(short(can_be_remembered=True))) as shown:
        await shown.shows("WILL HAPPEN")
        await shown.passes(0.3)
        await shown.press_alone("A")
        await shown.passes(1)
        assert shown.port.intents == []


async def test_another_call_does_not_offer_it() -> None:
    """And it opens nothing: a key that decides somewhere does nothing else elsewhere."""
    async with console(start(short())) as shown:
        await shown.rest()
        assert "for the session" not in shown.keys
        await shown.press_alone("A")
        assert "only a call of a built-in tool can be approved for the session" in shown.status_line
        assert shown.port.intents == []


async def test_unread_lines_want_the_same_key_twice() -> None:
    """A first `a` and then `A` is no second press; the sentence says what it covers."""
    view = replace(mail(), can_be_remembered=True)
    async with console(start(view), size=(80, 24)) as shown:
        await shown.rest()
        await shown.press_alone("a")
        await shown.shows("Press a again")
        await shown.rest()
        await shown.press_alone("A")
        await shown.shows("Press A again")
        assert shown.port.intents == []
        await shown.rest()
        await shown.press_alone("A")
        await shown.until(lambda: bool(shown.port.intents))
        (intent,) = shown.port.intents
        assert isinstance(intent, Approve)
        assert intent.remember
        assert intent.unseen_lines > 0
