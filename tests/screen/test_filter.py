"""The filter of a list: it leaves rows out, and puts the cursor on the first that matches."""

from dataclasses import replace

from aileron_core.console_port.intents import Approve
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.queue import Queue
from tests.screen.driving import NOW, console, resting, short, start
from tests.support.screens.home import not_accepted


def call(number: int, agent: str, **changes: object):
    return short(number, agent=agent, action=f"do-{agent}", requested_at=NOW - number, **changes)


CALLS = (call(1, "codex"), call(2, "goose"), call(3, "codex"), call(4, "goose"), call(5, "pi"))


def narrowed(text: str, *calls: object, now: float = NOW) -> Queue:
    queue = Queue()
    queue.load(calls or CALLS, (not_accepted(),))
    queue.set_filter(parse(text, ITEM_FIELDS), now)
    return queue


def agents(queue: Queue) -> list[str]:
    return [item.approval.agent if item.approval else item.key for item in queue.items]


async def test_the_list_follows_every_key_and_the_cursor_goes_to_the_first_match() -> None:
    """Two goose calls; the others are counted, not shown, and none of them is under the cursor."""
    async with resting(start(*CALLS)) as shown:
        await shown.go("slash", "Show rows that match:")
        await shown.type("agent:goose")
        await shown.shows("2 of 5 match")
        assert shown.selected == CALLS[1].approval_id
        assert len([line for line in shown.lines if "● SEND" in line[:20]]) == 2
        await shown.go("enter", "esc shows all")
        await shown.press_alone("j")
        await shown.until(lambda: shown.selected == CALLS[3].approval_id)
        await shown.press_alone("escape")
        await shown.until(lambda: len([line for line in shown.lines if "● SEND" in line[:20]]) == 5)
        assert shown.selected == CALLS[3].approval_id


def test_a_filter_puts_the_cursor_on_the_first_match_although_another_one_matches() -> None:
    """Without a filter again it stays where it is."""
    queue = Queue()
    queue.load(CALLS, (not_accepted(),))
    queue.select(3)
    queue.set_filter(parse("agent:goose", ITEM_FIELDS), NOW)
    assert queue.selected == CALLS[1].approval_id
    queue.move(1)
    queue.set_filter(parse("", ITEM_FIELDS), NOW)
    assert queue.selected == CALLS[3].approval_id


async def test_a_filter_makes_the_keys_rest_although_the_item_stays() -> None:
    """Rows moved under the hand: `enter` and `a` in one breath decide nothing, nor do letters of a filter."""
    async with resting(start(*CALLS)) as shown:
        await shown.go("slash", "Show rows that match:")
        await shown.type("agent:codex")
        await shown.asks_nothing()
        await shown.press_alone("enter")
        assert shown.selected == CALLS[0].approval_id
        assert not shown.armed
        await shown.press_alone("a", "Press a again.")
        assert shown.port.intents == []


async def test_a_filter_that_nothing_matches_or_that_is_not_understood_says_so() -> None:
    """Nothing is under the cursor: an `a` has nothing to decide, and says so. No text is lost, and the other words filter."""
    async with console(start(*CALLS)) as shown:
        await shown.go("slash", "Show rows that match:")
        await shown.type("agent:codex effect:pay")
        await shown.press_alone("enter", "No item matches agent:codex effect:pay. esc shows all 5.")
        assert shown.selected is None
        assert "WILL HAPPEN" not in shown.text
        await shown.go("a", "a did nothing: no item is selected.")
        assert shown.port.intents == []
        await shown.press_alone("escape")
        await shown.until(lambda: shown.selected == CALLS[0].approval_id)
        await shown.go("slash", "Show rows that match:")
        await shown.type("goose age:soon")
        await shown.shows("soon is not a time. Write age:5m or age:>2h")
        assert "goose age:soon" in shown.text
        await shown.go("enter", "2 of 5 match goose age:soon")
        assert "soon is not a time. Write age:5m or age:>2h" in shown.status_line
        await shown.go("slash", "goose age:soon")
        await shown.go("escape", "oldest first")


async def test_after_a_decision_the_cursor_goes_on_among_what_matches() -> None:
    """Who filtered for one agent goes on with that agent."""
    async with console(start(*CALLS), answers=True) as shown:
        await shown.go("slash", "Show rows that match:")
        await shown.type("agent:codex")
        await shown.press_alone("enter")
        await shown.press_rested("a")
        await shown.asks_for(Approve)
        await shown.until(lambda: shown.selected == CALLS[2].approval_id)
        assert not shown.armed


def test_a_call_that_comes_and_does_not_match_is_counted_above_and_stays_out() -> None:
    """Nothing moves."""
    queue = narrowed("agent:codex")
    for number, agent, matching in ((6, "goose", 2), (7, "codex", 3)):
        queue.update(call(number, agent), NOW)
        assert (queue.matching, queue.total, queue.waiting) == (matching, number + 1, number)
    assert queue.selected == CALLS[0].approval_id


def test_words_find_what_an_item_is_about() -> None:
    """Title, gist, agent, action, host, arguments, state; ages count from the asking."""
    assert agents(narrowed("agent:goose")) == ["goose", "goose"]
    assert agents(narrowed("DO-PI")) == ["pi"]
    assert agents(narrowed("action:do-goose")) == ["goose", "goose"]
    assert narrowed("gmail.googleapis").matching == 5
    assert narrowed("r-8842190447").matching == 5
    assert narrowed('state:"not accepted"').matching == 1
    assert narrowed("state:waiting").matching == 5
    assert narrowed("age:3s").matching == 3
    assert narrowed("age:>3s").matching == 2
    assert narrowed("nothing like it").matching == 0


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
    gone = replace(CALLS[2], state="denied", decided_at=NOW, ended_at=NOW)
    queue.update(gone, NOW)
    own = replace(CALLS[1], state="denied", decided_at=NOW, ended_at=NOW)
    queue.update(own, NOW)
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
