"""Ten thousand that wait, and hundreds that come at once: nothing moves, nothing is lost."""

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.intents import Approve
from tests.screen.driving import NOW, key_of, resting, short, start
from tests.support.screens.play import Play, rested

STORM = 200


def state(play: Play) -> tuple[object, ...]:
    """Everything that an arrival must leave alone."""
    item = [line[45:] for line in play.lines[1:-2]]
    return play.selected, play.armed, play.queue.top, play.document.top, item


def test_two_hundred_arrivals_in_a_second_move_nothing_and_leave_the_key_armed() -> None:
    """Cursor, both scrolls, the item and the armed key are as before, at every moment."""
    play = Play(start(*(short(n) for n in range(1, 5))))
    play.press_alone("j")
    play.rest()
    before = state(play)
    assert play.armed
    for number in range(10, 10 + STORM):
        play.port.tell(ApprovalUpdated(view=short(number)))
        play.settled()
        assert state(play) == before
    play.shows(f" {STORM + 4} ")
    play.press_alone("a")
    assert play.asks_for(Approve).approval_id == key_of(2)


async def test_arrivals_do_not_scroll_a_list_that_the_wheel_has_moved() -> None:
    """The cursor is out of sight; what the person looks at stays."""
    async with resting(start(*(short(n) for n in range(1, 61)))) as shown:
        shown.app.screen.query_one("#queue").scroll_to(y=20, animate=False, immediate=True)
        await shown.settled()
        shown.app.draw_all()
        await shown.settled()
        region = shown.region("#queue")
        side = [line[:44] for line in shown.lines[region.y : region.bottom]]
        for number in range(100, 130):
            shown.port.tell(ApprovalUpdated(view=short(number)))
        await shown.shows(" 90 ")
        assert shown.queue.top == 20
        assert [line[:44] for line in shown.lines[region.y : region.bottom]] == side
        assert shown.selected == key_of(1)


def test_rows_that_go_above_the_cursor_leave_it_at_its_place_on_the_screen() -> None:
    """The list scrolls by as much as went, so that the eye need not."""
    play = rested(start(*(short(n) for n in range(1, 61))))
    for _ in range(30):
        play.press("j")
    play.rest()
    place = next(y for y, line in enumerate(play.lines) if line.startswith("▌"))
    for number in range(1, 6):
        ended = short(number, state="withdrawn", ended_at=NOW)
        play.port.tell(ApprovalUpdated(view=ended))
    play.shows(" 55 ")
    play.clock.advance(6)
    play.tick()
    assert play.model.queue.length == 60
    play.press_alone("1")
    play.until(lambda: play.model.queue.length == 55)
    assert next(y for y, line in enumerate(play.lines) if line.startswith("▌")) == place
    assert play.selected == key_of(31)


def test_at_ten_thousand_a_drawing_asks_for_the_rows_in_view_alone() -> None:
    """Once for each line that stands there, whatever waits out of sight."""
    asked: list[int] = []

    play = Play(start(*(short(n) for n in range(1, 10001))))
    play.shows(" 10000 ")
    play.until(lambda: not play.model.queue.unread_count, "all of them")
    play.rest()
    drawn = play.queue.draw_row

    def counted(row: int, width: int, selected: bool) -> object:
        asked.append(row)
        return drawn(row, width, selected)

    play.queue.draw_row = counted  # type: ignore[assignment]
    play.press_alone("end")
    play.until(lambda: play.selected == key_of(10_000), "the last")
    asked.clear()
    play.tick()
    assert play.lines
    assert set(asked) <= set(range(9_980, 10_000))
    assert 0 < len(asked) <= 2 * play.queue.height
