"""What comes while a view is on its way to the screen, or from it."""

import asyncio

import pytest
from textual.events import Key, Resize
from textual.geometry import Size

from tests.screen.driving import Console, console, short, start


@pytest.mark.parametrize("key", ["j", "slash"])
async def test_a_key_before_a_view_has_its_widgets_does_not_end_the_console(
    shown: Console, key: str
) -> None:
    """It is handled once they are there."""
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
        assert len(pages) == 5
        for page in pages:
            page.page.redraw()
