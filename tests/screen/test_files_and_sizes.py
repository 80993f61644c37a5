"""Files that need a person, and what stands on screen where there is little room."""

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from tests.screen.driving import mail, short, start
from tests.support.screens.play import Play, rested
from tests.support.variants import variants


@pytest.mark.parametrize("waiting", [1, 9])
def test_the_document_keeps_five_rows_in_the_smallest_pane(waiting: int) -> None:
    """With two banners and warnings in the head; the list has no more rows than calls."""

    views = [mail(n, requester_gone=True, self_opened=True) for n in range(1, waiting + 1)]
    routes = ("gmail.googleapis.com:443 -> 127.0.0.1:9001",)
    state = start(*views, routes=routes, accepted_installed=True)
    play = rested(state, size=(60, 16))
    assert play.document.height >= 5
    queue = play.queue
    assert 1 <= queue.height <= min(waiting, 3)


def test_a_list_that_grows_above_the_item_makes_the_key_rest() -> None:
    """In the compact layout an arrival moves the item down by a row; up to five, then no more."""
    play = rested(start(short(1)), size=(80, 40))
    queue = play.queue
    assert queue.height == 1
    play.port.tell(ApprovalUpdated(view=short(2)))
    play.until(lambda: queue.height == 2)
    assert not play.armed
    play.port.tell(*(ApprovalUpdated(view=short(n)) for n in range(3, 9)))
    play.until(lambda: queue.height == 5)
    play.rest()
    play.resize(120, 36)
    play.until(lambda: queue.height > 5)


def test_another_width_of_the_same_layout_makes_the_key_rest_anew(play: Play) -> None:
    """Every line may stand elsewhere now; a hand that was on its way decides nothing."""
    play.resize(130, 36)
    play.until(lambda: play.model.size == (130, 36), "the new size")
    assert not play.armed
    play.press_alone("a")
    assert play.port.intents == []
    play.press_rested("a")
    play.asks()


def test_lines_that_only_passed_by_do_not_count_as_seen() -> None:
    """A line counts once it stood there for 100 ms, however fast one scrolls."""
    play = rested(start(mail()), size=(80, 24))
    model = play.model
    before = model.reading.unseen
    assert before > 0
    play.press("space")
    play.passes(0)
    assert model.reading.unseen == before
    play.passes(0.2)
    assert model.reading.unseen < before


@pytest.mark.parametrize("rows", variants([35, 36, 37]))
@pytest.mark.parametrize("wander", [["end", "k"], ["pagedown", "pagedown", "k"]])
def test_a_list_begins_with_a_whole_row(rows: int, wander: list[str]) -> None:
    """Rows have two lines there; half of one on top had no glyph, no effect and no name."""
    play = rested(start(*(short(n) for n in range(1, 40))), size=(120, rows))
    for key in wander:
        play.go(key, "▴")
    play.resize(120, rows - 1)
    assert play.queue.top % 2 == 0
    play.resize(120, rows)
    queue = play.queue
    drawn = [line[:45] for line in play.lines[4 : 4 + queue.height]]
    assert drawn[0].startswith((" ● SEND", "▌● SEND"))
    assert any(line.startswith("▌● SEND") for line in drawn)
    assert any(line.startswith("▌         codex") for line in drawn)
