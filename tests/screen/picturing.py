"""Takes a picture of the console in one state, at one size and in one look, and compares it."""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

import pytest

from aileron_core.console_port.events import Snapshot
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN
from tests.screen.driving import NOW, Console, app_on
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.calls import snapshot
from tests.support.screens.port import RecordingPort

Snap = Callable[..., bool]
Scenario = Callable[[Console], Awaitable[None]]
Look = tuple[tuple[int, int], str]
"""Columns and rows, and the theme."""

SMALL, LARGE = (80, 24), (120, 36)
_DARK = pytest.param((LARGE, DARK), id="120x36")
_LIGHT = pytest.param((LARGE, LIGHT), id="120x36-light")
_PLAIN = pytest.param((SMALL, PLAIN), id="80x24-plain")

dark = pytest.mark.parametrize("look", [_DARK])
"""One picture. That a layout holds at other sizes is shown once, in `test_layouts`."""
dark_and_light = pytest.mark.parametrize("look", [_DARK, _LIGHT])
every_look = pytest.mark.parametrize("look", [_DARK, _LIGHT, _PLAIN])
"""Three: without colour as well, in a small terminal, where the layout is another one."""


def picture(
    compare: Snap,
    size: tuple[int, int],
    scenario: Scenario,
    state: Snapshot | None = None,
    *,
    answers: bool = False,
    **options: Any,
) -> bool:
    """Compare the console after *scenario* with its stored picture.

    *state*: what it starts from, the fixtures unless given. *answers*: what is asked of the core
    happens. *options*: the App's.
    """
    clock = FrozenClock()
    start = state if state is not None else snapshot(NOW)
    port = RecordingPort(start, clock=clock, answers=answers)
    app = app_on(clock, port, **options)
    shown = Console(app, port, clock)

    async def before(pilot: Any) -> None:
        shown.pilot = pilot
        await shown.settled()
        await scenario(shown)
        await shown.settled()
        shown.clock.advance(0.2)
        await shown.quiet()

    try:
        return compare(app, terminal_size=size, run_before=before)
    finally:
        port.close()


def picture_in(
    compare: Snap, look: Look, scenario: Scenario, state: Snapshot | None = None, **options: Any
) -> bool:
    """Compare as `picture` does, in one of the looks above."""
    size, theme = look
    return picture(compare, size, scenario, state, start_theme=theme, **options)


def picture_of(
    state: Snapshot | None = None, *, size: tuple[int, int] | None = None, **options: Any
) -> Callable[[Scenario], Callable[..., None]]:
    """Make a scenario a test that compares what it leaves on the screen.

    In each of the looks that it is marked with; of a *size*, in that one and the dark theme.
    """

    def as_test(scenario: Scenario) -> Callable[..., None]:
        @wraps(scenario)
        def test(snap_compare: Snap, look: Look = (size or LARGE, DARK)) -> None:
            assert picture_in(snap_compare, look, scenario, state, **options)

        names = ["snap_compare"] if size else ["snap_compare", "look"]
        shape = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        test.__signature__ = Signature(shape)  # type: ignore[attr-defined]
        return test

    return as_test


async def at_rest(shown: Console) -> None:
    """Do nothing until a key would count."""
    await shown.rest()


def select(number: int) -> Scenario:
    """Return the way to row *number* of the waiting list, counted from 0."""

    async def scenario(shown: Console) -> None:
        for _ in range(number):
            await shown.press_alone("j")
        await shown.settled()
        shown.clock.advance(0.5)
        await shown.quiet()

    return scenario


async def to_row(shown: Console, name: str) -> None:
    """Go down a list of view 2 to 5 until the selected row has *name*."""
    while name not in shown.row:
        before = shown.row
        shown.clock.advance(0.5)
        await shown.press_alone("j")
        await shown.until(lambda: shown.row != before, f"a row below {before!r}")  # noqa: B023


async def opened(shown: Console, text: str) -> None:
    """Open the selected row, and read until nothing of what fits the pane is new."""
    await shown.go("enter", text)
    await shown.rest()
