"""The mouse selects, scrolls and shows; it never decides."""

import pytest
from textual.events import MouseScrollDown

from aileron_core.console_port.intents import RefreshPreview
from tests.screen.driving import Console, resting
from tests.support.screens.play import Play
from tests.support.screens.states import key_of, mail, short, snapshot_of


async def click(shown: Console, x: int, y: int) -> None:
    await shown.click(offset=(x, y))


def cell_of(shown: Console, row: int, text: str) -> tuple[int, int]:
    y = row % len(shown.lines)
    return shown.lines[y].index(text), y


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_click_selects_the_row_under_it_and_decides_nothing(size: tuple[int, int]) -> None:
    async with resting(snapshot_of(*(short(n) for n in range(1, 4))), size=size) as shown:
        region = shown.region("#queue")
        height = 1 if size[0] < 110 else 2
        for number in (3, 1, 2):
            for part in range(height):
                await click(shown, region.x + 5, region.y + (number - 1) * height + part)
                assert shown.selected == key_of(number)
        assert not shown.armed
        await shown.read_all()
        assert " a  approve" in shown.keys
        await click(shown, *cell_of(shown, -1, "approve"))
        assert "Press a to approve. The mouse decides nothing." in shown.status_line
        await shown.asks_nothing()


def test_a_click_on_a_key_that_asks_asks_and_its_answer_wants_a_key() -> None:
    play = Play(snapshot_of(short(1)), size=(80, 24))
    play.read_all()
    play.pressed_by_mouse("deny")
    assert play.model.panel == "deny"
    play.rest()
    play.pressed_by_mouse("deny_enter")
    assert play.model.panel == "deny"
    assert play.port.intents == []
    play.pressed_by_mouse("deny_leave")
    assert play.model.panel == "none"
    play.asks_nothing()


async def test_a_click_on_any_other_key_does_what_it_does_but_nothing_behind_a_question() -> None:
    async with resting(snapshot_of(short(1), short(2)), size=(200, 60)) as shown:
        await click(shown, *cell_of(shown, -1, "refetch"))
        assert shown.port.intents == [RefreshPreview(approval_id=key_of(1))]
        await click(shown, *cell_of(shown, -1, "filter"))
        assert shown.model.panel == "filter"
        await click(shown, *cell_of(shown, -1, "show all"))
        assert shown.model.panel == "none"
        for view in ("Activity", "Waiting"):
            await click(shown, *cell_of(shown, 0, view))
            assert shown.model.view == view.lower()
        await click(shown, *cell_of(shown, -1, "commands"))
        await shown.shows("every command by name")
        await shown.press_alone("escape")
        await click(shown, *cell_of(shown, -1, "help"))
        await shown.shows("fetch the preview again")
        await shown.press_alone("escape")
        await shown.press_rested("d", "Reason (codex will read it):")
        region = shown.region("#queue")
        await click(shown, region.x + 5, region.y + 2)
        await click(shown, *cell_of(shown, 0, "Activity"))
        assert shown.selected == key_of(1), "what the person writes is about what stands there"
        assert (shown.model.view, shown.model.panel) == ("waiting", "deny")


def test_a_click_takes_back_the_first_of_two_presses_and_on_read_on_reads_on() -> None:
    play = Play(snapshot_of(mail(1)), size=(80, 24))
    play.press_rested("a", "Press a again")
    play.pressed_by_mouse("refresh")
    assert play.model.pressed_once == ""
    play.pressed_by_mouse("read_on")
    assert play.document.top == play.document.height - 2


async def test_the_wheel_scrolls_what_is_under_it_and_moves_no_cursor() -> None:
    async with resting(snapshot_of(*(mail(n) for n in range(1, 61)))) as shown:
        rows = shown.queue
        document = shown.document
        for _ in range(4):
            await shown.pilot._post_mouse_events([MouseScrollDown], offset=(10, 10), button=0)
        await shown.settled()
        assert rows.top > 0
        assert document.top == 0
        above = rows.top // 2
        await shown.shows(f"▴ {above} above")
        await shown.pilot._post_mouse_events([MouseScrollDown], offset=(80, 15), button=0)
        await shown.settled()
        assert document.top > 0
        assert shown.selected == key_of(1)
        assert shown.port.intents == []
