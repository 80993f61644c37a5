"""The filter of a list: it leaves rows out, and puts the cursor on the first that matches."""

from dataclasses import replace

from aileron_core.console_port.intents import Approve
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.queue import Queue
from tests.screen.driving import NOW, short, start
from tests.support.screens.home import not_accepted
from tests.support.screens.play import Play, rested


def call_of(number: int, agent: str, **changes: object):
    return short(number, agent=agent, action=f"do-{agent}", requested_at=NOW - number, **changes)


CALLS = tuple(
    call_of(number, agent)
    for number, agent in enumerate(("codex", "goose", "codex", "goose", "pi"), start=1)
)


def narrowed(text: str) -> Queue:
    queue = Queue()
    queue.load(CALLS, (not_accepted(),))
    queue.set_filter(parse(text, ITEM_FIELDS), NOW)
    return queue


def test_the_list_follows_every_key_and_the_cursor_goes_to_the_first_match() -> None:
    """Two goose calls; the others are counted, not shown, and none of them is under the cursor."""
    play = rested(start(*CALLS))
    play.go("slash", "Show rows that match:")
    play.type("agent:goose")
    play.shows("2 of 5 match")
    assert play.selected == CALLS[1].approval_id
    assert len([line for line in play.lines if "● SEND" in line[:20]]) == 2
    play.go("enter", "esc shows all")
    play.press_alone("j")
    assert play.selected == CALLS[3].approval_id
    play.press_alone("escape")
    assert len([line for line in play.lines if "● SEND" in line[:20]]) == 5
    assert play.selected == CALLS[3].approval_id


def test_a_filter_makes_the_keys_rest_although_the_item_stays() -> None:
    """Rows moved under the hand: `enter` and `a` in one breath decide nothing, nor do letters of a filter."""
    play = rested(start(*CALLS))
    play.go("slash", "Show rows that match:")
    play.type("agent:codex")
    play.asks_nothing()
    play.press_alone("enter")
    assert play.selected == CALLS[0].approval_id
    assert not play.armed
    play.press_alone("a", "Press a again.")
    assert play.port.intents == []


def test_a_filter_that_nothing_matches_or_that_is_not_understood_says_so() -> None:
    """Nothing is under the cursor: an `a` has nothing to decide, and says so. No text is lost, and the other words filter."""
    play = Play(start(*CALLS))
    play.go("slash", "Show rows that match:")
    play.type("agent:codex effect:pay")
    play.press_alone("enter", "No item matches agent:codex effect:pay. esc shows all 5.")
    assert play.selected is None
    assert "WILL HAPPEN" not in play.text
    play.go("a", "a did nothing: no item is selected.")
    assert play.port.intents == []
    play.press_alone("escape")
    assert play.selected == CALLS[0].approval_id
    play.go("slash", "Show rows that match:")
    play.type("goose age:soon")
    play.shows("soon is not a time. Write age:5m or age:>2h")
    assert "goose age:soon" in play.text
    play.go("enter", "2 of 5 match goose age:soon")
    assert "soon is not a time. Write age:5m or age:>2h" in play.status_line
    play.go("slash", "goose age:soon")
    play.go("escape", "oldest first")


def test_after_a_decision_the_cursor_goes_on_among_what_matches() -> None:
    """Who filtered for one agent goes on with that agent."""
    play = Play(start(*CALLS), answers=True)
    play.go("slash", "Show rows that match:")
    play.type("agent:codex")
    play.press_alone("enter")
    play.press_rested("a")
    play.asks_for(Approve)
    assert play.selected == CALLS[2].approval_id
    assert not play.armed


def test_a_call_that_comes_and_does_not_match_is_counted_above_and_stays_out() -> None:
    queue = narrowed("agent:codex")
    for number, agent, matching in ((6, "goose", 2), (7, "codex", 3)):
        queue.update(call_of(number, agent), NOW)
        assert (queue.matching, queue.total, queue.waiting) == (matching, number + 1, number)
    assert queue.selected == CALLS[0].approval_id


def test_words_find_what_an_item_is_about() -> None:
    """Title, gist, agent, action, host, arguments, state; ages count from the asking."""
    for text, matching in (
        ("DO-PI", 1), ("gmail.googleapis", 5), ("r-8842190447", 5), ('state:"not accepted"', 1),
        ("state:waiting", 5), ("age:3s", 3), ("age:>3s", 2), ("nothing like it", 0),
    ):  # fmt: skip
        assert narrowed(text).matching == matching, text
    for text in ("agent:goose", "action:do-goose"):
        items = narrowed(text).items
        assert [each.approval and each.approval.agent for each in items] == ["goose", "goose"]


def test_an_age_lets_a_call_through_no_more_once_it_is_older() -> None:
    """It leaves at the next key, and the cursor with it."""
    queue = narrowed("age:3s")
    assert queue.matching == 3
    queue.sweep(NOW + 2)
    assert queue.matching == 1
    assert queue.selected == CALLS[0].approval_id
    queue.sweep(NOW + 60)
    assert queue.matching == queue.length == 0
    assert queue.selected is None


def test_a_call_that_changes_its_state_joins_or_leaves_what_matches() -> None:
    """No row leaves before the next key; then the cursor goes on to one that matches."""
    queue = narrowed("state:pending")
    queue.move(1)
    for number in (2, 1):
        gone = replace(CALLS[number], state="denied", decided_at=NOW, ended_at=NOW)
        queue.update(gone, NOW)
    assert queue.selected == CALLS[1].approval_id
    assert queue.length == 5
    assert not queue.selected_matches
    assert queue.sweep(NOW + 1)
    assert queue.selected == CALLS[3].approval_id
    assert queue.length == queue.matching == 3
    queue.set_filter(parse("", ITEM_FIELDS), NOW)
    assert queue.selected == CALLS[3].approval_id
    queue.sweep(NOW + 61)
    assert queue.length == queue.total == 4
