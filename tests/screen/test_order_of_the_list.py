"""`o`: a person puts the waiting list in another order; nothing else ever does."""

from dataclasses import replace
from time import thread_time

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.queue import Queue
from tests.screen.driving import NOW, key_of, mail, short, start
from tests.support.screens.play import Play, rested

LIVES = (300.0, None, 60.0, 900.0, 60.0)
BY_DEADLINE = [3, 5, 1, 4, 2]
"""Of equal deadlines the older first; what has none at the end."""


def calls_expiring(*lives: float | None) -> list[ApprovalView]:
    return [
        short(n, expires_at=None if life is None else NOW + life)
        for n, life in enumerate(lives, start=1)
    ]


def item_keys(queue: Queue) -> list[str]:
    return [item.key for item in queue.items]


def test_a_new_order_leaves_the_cursor_on_its_item_and_the_text_where_it_was() -> None:
    """What is read stays under the eye; its row is another one, so the key rests anew."""

    views = calls_expiring(*LIVES)
    play = rested(start(mail(1, expires_at=NOW + 300), *views[1:]), size=(120, 24))
    play.press("J", "J")
    play.rest()
    at = play.document.rows_in_view
    assert at[0] == 2
    play.press("o")
    play.shows("by deadline")
    assert play.selected == key_of(1)
    assert play.document.rows_in_view == at
    assert not play.armed
    play.rest()


def test_a_call_with_a_near_deadline_comes_at_the_end_and_is_counted_there() -> None:
    """No agent moves a row, or makes a key rest anew, by asking with a near deadline."""
    play = Play(start(*calls_expiring(*LIVES)))
    play.go("o", "by deadline")
    play.rest()
    near = short(9, expires_at=NOW + 20)
    play.port.tell(ApprovalUpdated(view=near))
    play.shows("1 new at the end")
    assert play.waiting == [*(key_of(n) for n in BY_DEADLINE), key_of(9)]
    assert play.armed


def test_a_deadline_that_changes_moves_no_row() -> None:
    """A call that is asked again gets a new deadline; its row stays until a person presses `o`."""
    queue = Queue()
    queue.load(calls_expiring(*LIVES), ())
    queue.change_order(NOW)
    queue.update(short(2, expires_at=NOW + 5), NOW)
    assert item_keys(queue) == [key_of(n) for n in BY_DEADLINE]
    queue.change_order(NOW)
    assert item_keys(queue) == [key_of(n) for n in (1, 2, 3, 4, 5)]
    queue.change_order(NOW)
    assert item_keys(queue)[0] == key_of(2)


def test_a_filter_keeps_the_order() -> None:
    views = calls_expiring(*LIVES)
    views[3], views[4] = replace(views[3], agent="goose"), replace(views[4], agent="goose")
    queue = Queue()
    queue.load(views, ())
    queue.change_order(NOW)
    queue.set_filter(parse("agent:goose", ITEM_FIELDS), NOW)
    assert item_keys(queue) == [key_of(5), key_of(4)]


def test_ten_thousand_are_put_in_order_within_a_blink() -> None:
    """Also with a filter over them that lets half of them through."""
    queue = Queue()
    near = ((n * 7919) % 10_000 for n in range(10_000))
    queue.load((mail(n, expires_at=NOW + life) for n, life in enumerate(near)), ())
    for text in ("", "age:<1h"):
        queue.set_filter(parse(text, ITEM_FIELDS), NOW)
        began = thread_time()
        queue.change_order(NOW)
        took = thread_time() - began
        ends = [item.ends_at for item in queue.items[:9_000]]
        assert (ends == sorted(ends)) is queue.by_deadline
        assert took < 1.0, took
