"""One timezone, so that times of day on screen are the same everywhere; nothing made that nobody looks at."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

from tests.screen.driving import Console, drive_console
from tests.support.screens.play import Play, rested
from tests.support.screens.states import short, snapshot_of


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="session", autouse=True)
def _each_style_sheet_is_parsed_once() -> Iterator[None]:
    """Hundreds of consoles read the same styles: what Textual made of them once is what it makes again."""
    parsed: dict[object, list[RuleSet]] = {}
    parse = Stylesheet._parse_rules

    def parse_once(
        sheet: Stylesheet, css: str, read_from: CSSLocation, *rest: Any, **named: Any
    ) -> list[RuleSet]:
        variables = frozenset(sheet._variables.items())
        key = (css, read_from, rest, frozenset(named.items()), variables)
        if key not in parsed:
            parsed[key] = parse(sheet, css, read_from, *rest, **named)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _a_screen_is_painted_where_somebody_looks_at_it() -> Iterator[None]:
    """Without a terminal Textual paints each change and throws it away: a third of a test's time."""
    paint = Compositor.render_update

    def paint_if_asked(
        compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False
    ) -> Any:
        if full:
            return paint(compositor, full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        compositor._dirty_regions.clear()
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", paint_if_asked)
        yield


@pytest.fixture
def play() -> Play:
    return rested(snapshot_of(short()))


@pytest.fixture
async def shown() -> AsyncIterator[Console]:
    async with drive_console(snapshot_of(short())) as running:
        await running.rest()
        yield running
