"""Takes a picture of the console in one state, at one size and in one look, and compares it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aileron_core.console_port.events import Snapshot
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN
from tests.screen.driving import NOW, Console, app_on
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.calls import snapshot
from tests.support.screens.port import RecordingPort

Scenario = Callable[[Console], Awaitable[None]]

_SIZES = {"80x24": (80, 24), "120x36": (120, 36), "200x60": (200, 60)}
_THEMES = {"": DARK, "light": LIGHT, "plain": PLAIN}


def picture_of(
    state: Snapshot | None = None, looks: str = "120x36", *, answers: bool = False, **options: Any
) -> Callable[[Scenario], Callable[..., None]]:
    """Make a scenario a test that compares what it leaves on the screen with its stored picture.

    *state*: what it starts from, the fixtures unless given. *looks*: size and theme of each picture.
    *answers*: what is asked of the core happens. *options*: the App's.
    """

    def as_test(scenario: Scenario) -> Callable[..., None]:
        def test(snap_compare: Callable[..., bool], look: str) -> None:
            size, _, theme = look.partition("-")
            clock = FrozenClock()
            start = state if state is not None else snapshot(NOW)
            port = RecordingPort(start, clock=clock, answers=answers)
            app = app_on(clock, port, start_theme=_THEMES[theme], **options)
            shown = Console(app, port, clock)

            async def before(pilot: Any) -> None:
                shown.pilot = pilot
                await shown.settled()
                await scenario(shown)
                await shown.settled()
                shown.clock.advance(0.2)
                await shown.quiet()

            try:
                assert snap_compare(app, terminal_size=_SIZES[size], run_before=before)
            finally:
                port.close()

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        test.__module__, test.__qualname__ = scenario.__module__, scenario.__qualname__
        return pytest.mark.parametrize("look", looks.split())(test)

    return as_test


async def to_row(shown: Console, name: str) -> None:
    """Go down a list of view 2 to 6 until the selected row has *name*."""
    while name not in shown.row:
        before = shown.row
        await shown.go("j", "")
        await shown.until(lambda: shown.row != before, f"a row below {before!r}")  # noqa: B023


def select(number: int) -> Scenario:
    """Return the way to row *number* of the waiting list, counted from 0."""

    async def scenario(shown: Console) -> None:
        for _ in range(number):
            await shown.press_alone("j")
        shown.clock.advance(0.5)
        await shown.quiet()

    return scenario
