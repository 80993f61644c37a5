"""The corpus of attacks over every surface of the screen: what stands in each cell, and what is sent."""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
from rich.cells import split_graphemes
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tests.screen.driving import Console, drive_console
from tests.screen.hostile_views import hostile_snapshot
from tests.support.attacks import ATTACKS, CANARY, cut_to, everything, harmless
from tests.support.screens.states import NOW
from tests.support.variants import variants

MARK = CANARY[0]
TALL = 260
"""Rows: every line of every document stands on one screen, and nothing has to be scrolled to."""
WIDTHS = (80, 120, 200)
TURNS = variants(range(6))
"""Each says the attacks in other fields than the turn before; `make test-all` takes more turns."""
SELECTORS = "\ufe0e\ufe0f"
"""Kept where they follow an emoji."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what stands in it, where in its widget, and what stands left of it there."""

    text: str
    widget: str
    x: int
    y: int
    before: str


def _outside_text(topmost: Screen[Any], strips: list[Strip]) -> Iterator[Cell]:
    every = _widgets(topmost)
    for y, strip in enumerate(strips):
        if not any(MARK in segment.text for segment in strip):
            continue
        row = _cells(strip)
        widgets = [(w, r) for w, r in every if r.y <= y < r.bottom]
        for x, text in enumerate(row):
            if MARK in text:
                inside = ((w, r) for w, r in widgets if r.x <= x < r.right)
                owner, region = next(inside, (topmost, Region(0, 0)))
                name, before = owner.id or type(owner).__name__, "".join(row[region.x : x])
                yield Cell(text, name, x - region.x, y - region.y, before)


def _widgets(topmost: Screen[Any]) -> list[tuple[Widget, Region]]:
    found: list[tuple[Widget, Region]] = []
    for screen in reversed(topmost.app.screen_stack):
        drawing = [
            (widget, widget.region)
            for widget in screen.walk_children(Widget)
            if widget.region and widget.display and not widget.children
        ]
        found += sorted(drawing, key=lambda pair: pair[1].area)
    return found


def _cells(strip: Strip) -> list[str]:
    row: list[str] = []
    for segment in strip:
        if segment.text.isascii() and segment.text.isprintable():
            row += segment.text
            continue
        spans, _ = split_graphemes(segment.text)
        for start, end, size in spans:
            glyph = segment.text[start:end]
            if size == 0 and row:
                row[-1] += glyph
            else:
                row += [glyph, *[""] * (size - 1)]
    return row


Rule = Callable[[Cell, int], bool]


def _after(pattern: str) -> Rule:
    return lambda cell, _: re.search(pattern, cell.before) is not None


def _from(column: int) -> Rule:
    return lambda cell, _: cell.x >= column


def _document(cell: Cell, width: int) -> bool:
    """Right of the bar; a name of the agent's own choice also left of the dotted one."""
    gutter = 11 if width < 110 else 13
    return cell.x > gutter + 1 and cell.before[gutter : gutter + 1] in ("┃", "┊", "│")


RULES: dict[str, Rule] = {
    "document": _document,
    "queue": _from(10),
    "decided": _from(9),
    "head": _after(
        r"^ +[A-Z?]+  |^ (?:the agent|agent|opened|file|via|by|[Rr]ecord \d+|(?:action|connector) · file) |^ [·✓✗?▶●▲–←◇○!][ a-z]*  |▲ | [┊↳] "
    ),
    "rail": _from(3),
    "status": _after(r"Press \S+ (?:again )?to "),
    "topbar": _after(r"aileron .*[●?] "),
    "banner": _after(r"▲ |✗ "),
    "helptext": _after(r"▲ |^ {4}"),
    "list": _from(2),
    "detail": _from(2),
    "question": _after(r'Deny "'),
    "empty": _after("Last: "),
}
"""Where outside text may stand; in a widget that is not named here it may not stand at all."""
_NOWHERE: Rule = lambda _, __: False  # noqa: E731


def check_cells(shown: Console, width: int) -> int:
    """Check every cell of the screen; return how many held outside text."""
    strips = shown.app.screen._compositor.render_strips()
    cells = [*_outside_text(shown.app.screen, strips)]
    assert not [each for each in cells if not RULES.get(each.widget, _NOWHERE)(each, width)]
    assert {strip.cell_length for strip in strips} == {width}
    characters = {char for strip in strips for segment in strip for char in segment.text}
    assert [char for char in characters if not harmless(char) and char not in SELECTORS] == []
    return len(cells)


async def walk_items(shown: Console, width: int) -> None:
    await shown.shows("fetched by Aileron")
    model = shown.model
    seen = 0
    for _ in range(len(model.queue.items)):
        seen += check_cells(shown, width)
        await shown.press("j")
    await shown.press("home")
    shown.clock.advance(60)  # this screen takes seconds to draw, and a key's time is when it came
    await shown.press_alone("d", 'Deny "')
    check_cells(shown, width)
    await shown.press_alone("escape")
    assert seen > 200


async def walk_pages(shown: Console, width: int) -> None:
    await shown.shows("fetched by Aileron")
    seen = 0
    for page in ("2", "3", "4", "5"):
        for key in (page, "enter", "escape", "question_mark", "escape"):
            shown.clock.advance(60)
            await shown.press_alone(key)
            seen += check_cells(shown, width)
    assert seen > 50


def turned(turn: int) -> Callable[[], str]:
    order = cycle(range(turn * 7, turn * 7 + len(ATTACKS)))
    return lambda: cut_to(ATTACKS[next(order) % len(ATTACKS)], 400)


@pytest.mark.parametrize("walk", [walk_items, walk_pages])
@pytest.mark.parametrize("turn", TURNS)
async def test_no_attack_leaves_the_cells_of_outside_text(
    turn: int, walk: Callable[[Console, int], Awaitable[None]]
) -> None:
    width = WIDTHS[turn % len(WIDTHS)]

    async with drive_console(hostile_snapshot(NOW, turned(turn)), size=(width, TALL)) as shown:
        await walk(shown, width)


@pytest.mark.parametrize("width", variants(WIDTHS[::-1]))
async def test_a_text_of_all_attacks_leaves_nothing_in_any_width(width: int) -> None:
    text = everything(400)

    async with drive_console(hostile_snapshot(NOW, lambda: text), size=(width, TALL)) as shown:
        await walk_items(shown, width)
