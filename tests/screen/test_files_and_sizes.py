"""Files that need a person, and what stands on screen where there is little room."""

from dataclasses import replace
from typing import Literal

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui.state.queue import Queue
from tests.screen.driving import mail, short, start
from tests.support.screens.home import not_accepted
from tests.support.screens.play import Play, rested
from tests.support.variants import variants

PROBLEMS = (
    Problem(
        file="actions/pay.md", line=12, key="execute.op", message="The connector has no such op."
    ),
    Problem(file="connectors/billing/manifest.toml", message="It is not valid TOML."),
)


def changed_file(kind: Literal["action", "connector"], name: str) -> NotAcceptedView:
    return replace(not_accepted(), kind=kind, name=name, file=f"{kind}s/{name}", change="changed")


def test_an_unaccepted_connector_stands_before_the_actions_that_use_it() -> None:
    """Calls, then connectors, then actions, then problems."""
    queue = Queue()
    files = (
        changed_file("action", "a"),
        changed_file("connector", "z"),
        changed_file("action", "b"),
    )
    queue.load((short(1),), files, PROBLEMS[:1])
    assert [item.key.rpartition(":")[0] or item.key for item in queue.items][1:4] == [
        "held:connector",
        "held:action",
        "held:action",
    ]
    assert [item.file.name for item in queue.items if item.file] == ["z", "a", "b"]
    assert queue.items[-1].problem == PROBLEMS[0]


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


def test_the_sentence_of_a_pane_that_is_too_small_is_wrapped() -> None:
    """It is read whole at 30 columns."""
    play = Play(start(short(1)))
    play.resize(30, 12)
    sentence = "Make this pane at least 60 x 16. 1 call is waiting."
    play.until(lambda: sentence in " ".join(play.text.split()))


def test_reading_on_is_offered_only_where_there_is_more() -> None:
    """An item that fits its pane has nothing to read on to."""
    play = rested(start(short(1)), size=(120, 60))
    assert "approve" in play.keys
    assert "read on" not in play.keys
    play.resize(80, 20)
    play.until(lambda: "space read on" in play.keys)
    play = rested(start(mail(1)), size=(80, 24))
    assert "space read on" in play.keys


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


@pytest.mark.parametrize("columns", [60, 80])
def test_what_a_small_terminal_says_of_hidden_rows_goes_when_it_grows(columns: int) -> None:
    """A `▾` alone was left above the decisions."""
    play = Play(start(*(short(n) for n in range(1, 12))), size=(columns, 24))
    play.shows("▾ 6 more")
    play.resize(200, 60)
    play.shows("DECIDED")
    assert "▾" not in play.text


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
