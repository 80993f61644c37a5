"""The list: nothing but a person's key moves the cursor or its order; of very many calls the rest is read
behind the first frame. A filter leaves rows out, and puts the cursor on the first that matches.
"""

from dataclasses import replace
from time import thread_time
from typing import Any

import pytest

from aileron_core.console_port.events import ApprovalsRead, ApprovalUpdated, VaultStatus
from aileron_core.console_port.intents import Approve, ReadApprovals, RefreshPreview
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.bars import banner_lines, startup_warnings
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state.apply_event import apply_event
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.model import Model
from aileron_tui.state.queue import ELSEWHERE_SECONDS, Queue
from tests.screen.driving import resting
from tests.support.screens.calls import drifted
from tests.support.screens.home import not_accepted
from tests.support.screens.play import Play, rested
from tests.support.screens.port import SNAPSHOT_CALLS
from tests.support.screens.states import NOW, key_of, mail, short, snapshot_of

ROUTES = tuple(f"host-{n}.example:443 -> 127.0.0.1:900{n}" for n in range(6))
MANY = [short(number) for number in range(1, 2 * SNAPSHOT_CALLS + 201)]
IDS = [view.approval_id for view in MANY]
READ = ApprovalsRead(views=tuple(MANY[SNAPSHOT_CALLS:]), remaining=0)
LIVES = (300.0, None, 60.0, 900.0, 60.0)
BY_DEADLINE = [3, 5, 1, 4, 2]
"""Of equal deadlines the older first; what has none at the end."""
STORM = 200


def test_no_row_goes_under_a_press_that_is_not_settled() -> None:
    """A filled key decides, also in the moment in which an answered row above it leaves."""
    model = Model(
        snapshot_of(short(1), short(2)), arm_seconds=0.4, registry=DEFAULT_REGISTRY, now=NOW
    )
    model.queue.move(1)
    model.queue.update(replace(short(1), state="withdrawn", ended_at=NOW), NOW)
    model.arming.on_drawn(model.screen_version, 100.0)
    model.begin_key(101.0, decides=True, moves=False)
    assert model.press(101.0)
    model.end_key()
    model.sweep(NOW + ELSEWHERE_SECONDS)
    assert model.arming.take_settled_press(101.03) == model.screen_version
    model.sweep(NOW + ELSEWHERE_SECONDS)
    assert [item.key for item in model.queue.items] == [key_of(2)]


def test_the_cursor_moves_by_every_key_of_the_registry() -> None:
    moves = {"j": 2, "down": 3, "k": 2, "up": 1, "end": 5, "home": 1, "pagedown": 5, "pageup": 1}
    play = Play(snapshot_of(*(short(n) for n in range(1, 6))))
    for pressed, expected in moves.items():
        play.press_alone(pressed)
        assert play.selected == key_of(expected), pressed


@pytest.mark.parametrize("changed_before", [False, True])
def test_a_preview_that_was_fetched_again_and_is_the_same_says_so(*, changed_before: bool) -> None:
    drift = drifted(NOW) if changed_before else None
    view = short(1, drift=drift)
    sentence = f"Fetched again: nothing {'else ' if changed_before else ''}changed."

    def fetch(view: ApprovalView, seconds: float) -> ApprovalView:
        fetching = replace(view.preview, status="fetching", fields=(), updated_at=NOW + seconds - 1)
        preview = replace(view.preview, updated_at=NOW + seconds)
        play.port.intents.clear()
        play.press_rested("r")
        play.asks(RefreshPreview(approval_id=key_of(1)))
        for each in (replace(view, drift=drift, preview=fetching), replace(view, preview=preview)):
            play.port.tell(ApprovalUpdated(view=each))
        play.settled()
        return replace(view, preview=preview)

    play = Play(snapshot_of(view), size=(120, 36))
    view = fetch(view, 10)
    play.shows(sentence)
    other = replace(drifted(NOW), same_count=9)
    fetch(replace(view, drift=other), 20)
    assert "Fetched again" not in play.text


def test_standing_warnings_are_on_screen_all_the_time() -> None:
    """That files were accepted unseen, and that nobody's key unlocked the vault, is never forgotten."""
    vault = VaultStatus(state="unlocked", entries=2, unattended=True)
    play = Play(snapshot_of(short(1), accepted_installed=True, vault=vault), size=(80, 24))
    for view in "123456":
        play.go(view, "(--accept-installed)", "not by your key")


async def test_standing_warnings_that_have_no_row_are_counted_and_the_help_has_them_all() -> None:
    async with resting(
        snapshot_of(short(1), routes=ROUTES, accepted_installed=True), size=(80, 24)
    ) as shown:
        banner = shown.lines[1:4]
        assert "(--accept-installed)" in banner[0]
        assert "host-0.example:443 is answered by 127.0.0.1:9000." in banner[1]
        assert "▲ and 5 more warnings: ? lists them" in banner[2]
        await shown.go("question_mark", "WARNINGS")
        text = " ".join(shown.text.split())
        assert all(f"host-{n}.example:443 is answered by" in text for n in range(6))


def test_what_is_held_leaves_a_count_of_every_standing_warning() -> None:
    """Pause and a storage that fails come first; no warning is dropped for them."""
    standing = startup_warnings(
        snapshot_of(routes=ROUTES, accepted_installed=True), vault=VaultStatus(state="absent")
    )
    given: dict[str, Any] = {"width": 100, "help_key": "?", "paused": "Held."}
    rows = banner_lines(lost=None, storage="disk full", warnings=standing, **given)
    assert plain_text(rows[-1]) == " ▲ 7 warnings: ? lists them"
    rows = banner_lines(lost="x", storage="y", warnings=standing[:1], **given)
    assert "(--accept-installed)" in plain_text(rows[-1])
    assert len(rows) == 4


def test_all_that_wait_are_counted_at_once_and_read_in_order() -> None:
    play = Play(snapshot_of(*MANY))
    play.shows("1 Waiting  700")
    queue = play.model.queue
    assert play.waiting == IDS
    assert (queue.waiting, queue.unread_count) == (700, 0)
    assert [type(read) for read in play.port.reads] == [ReadApprovals]
    assert play.selected == IDS[0]
    play.go("end", "WILL HAPPEN")
    assert play.selected == IDS[-1]


def model_of_the_first() -> Model:
    snapshot = replace(
        snapshot_of(*MANY[:SNAPSHOT_CALLS]), approvals_remaining=len(MANY) - SNAPSHOT_CALLS
    )
    return Model(snapshot, arm_seconds=0.4, registry=DEFAULT_REGISTRY, now=NOW)


def test_what_changes_before_it_was_read_keeps_its_place() -> None:
    """Its news would put it in front of those that came before it. One that the reading passes over, as the
    clock stepped back while it came, stands at the end; one that ended meanwhile is gone.
    """
    model, last = model_of_the_first(), MANY[SNAPSHOT_CALLS - 1]
    odd, over = short(len(MANY) + 7), replace(short(len(MANY) + 8), state="withdrawn")
    for view in (replace(MANY[-1], version=5), odd, over):
        assert apply_event(model, ApprovalUpdated(view=view), NOW, 0.0) is False
        assert model.queue.get(IDS[-1]) is None
        assert model.queue.waiting == len(MANY)
    assert model.next_read() == ReadApprovals(requested_at=last.requested_at, run_id=last.run_id)
    assert apply_event(model, READ, NOW, 0.0) is False, "nothing arrived"
    assert [item.key for item in model.queue.items] == [*IDS, odd.approval_id]
    assert model.queue.waiting == len(MANY) + 1
    assert model.next_read() is None


def test_a_call_that_is_here_changes_while_others_are_read() -> None:
    model = model_of_the_first()
    ended = replace(MANY[0], state="denied", decided_at=NOW, ended_at=NOW, version=9)
    apply_event(model, ApprovalUpdated(view=ended), NOW, 0.0)
    assert model.queue.waiting == len(MANY) - 1
    assert apply_event(model, READ, NOW, 0.0) is False, "nothing arrived"
    new = short(len(MANY) + 1)
    assert apply_event(model, ApprovalUpdated(view=new), NOW, 0.0) is True
    assert model.queue.items[-1].key == new.approval_id


def calls_expiring() -> list[ApprovalView]:
    return [
        short(n, expires_at=None if life is None else NOW + life)
        for n, life in enumerate(LIVES, start=1)
    ]


def test_a_new_order_leaves_the_cursor_on_its_item_and_the_text_where_it_was() -> None:
    """What is read stays under the eye; its row is another one, so the key rests anew. No agent moves a row,
    or makes a key rest anew, by asking with a near deadline: that call comes at the end, and is counted there.
    """
    play = rested(snapshot_of(mail(1, expires_at=NOW + 300), *calls_expiring()[1:]), size=(120, 24))
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
    play.port.tell(ApprovalUpdated(view=short(9, expires_at=NOW + 20)))
    play.shows("1 new at the end")
    assert play.waiting == [*(key_of(n) for n in BY_DEADLINE), key_of(9)]
    assert play.armed


def test_a_filter_keeps_the_order() -> None:
    views = calls_expiring()
    views[3], views[4] = replace(views[3], agent="goose"), replace(views[4], agent="goose")
    queue = Queue()
    queue.load(views, ())
    queue.change_order(NOW)
    queue.set_filter(parse("agent:goose", ITEM_FIELDS), NOW)
    assert [item.key for item in queue.items] == [key_of(5), key_of(4)]


def test_ten_thousand_are_put_in_order_within_a_blink() -> None:
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


def state(play: Play) -> tuple[object, ...]:
    item = [line[45:] for line in play.lines[1:-2]]
    return play.selected, play.armed, play.queue.top, play.document.top, item


def test_two_hundred_arrivals_in_a_second_move_nothing_and_leave_the_key_armed() -> None:
    play = Play(snapshot_of(*(short(n) for n in range(1, 5))))
    play.press_alone("j")
    play.rest()
    before = state(play)
    assert play.armed
    for number in range(10, 10 + STORM):
        play.tell(ApprovalUpdated(view=short(number)))
        assert state(play) == before
    play.shows(f" {STORM + 4} ")
    play.press_alone("a")
    assert play.asks_for(Approve).approval_id == key_of(2)


async def test_arrivals_do_not_scroll_a_list_that_the_wheel_has_moved() -> None:
    """The cursor is out of sight; what the person looks at stays."""
    async with resting(snapshot_of(*(short(n) for n in range(1, 61)))) as shown:
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
    play = rested(snapshot_of(*(short(n) for n in range(1, 61))))
    for _ in range(30):
        play.press("j")
    play.rest()
    place = next(y for y, line in enumerate(play.lines) if line.startswith("▌"))
    for number in range(1, 6):
        play.port.tell(ApprovalUpdated(view=short(number, state="withdrawn", ended_at=NOW)))
    play.shows(" 55 ")
    play.clock.advance(6)
    play.tick()
    assert play.model.queue.length == 60
    play.press_alone("1")
    assert play.model.queue.length == 55
    assert next(y for y, line in enumerate(play.lines) if line.startswith("▌")) == place
    assert play.selected == key_of(31)


def test_at_ten_thousand_a_drawing_asks_for_the_rows_in_view_alone() -> None:
    asked: list[int] = []
    play = Play(snapshot_of(*(short(n) for n in range(1, 10001))))
    play.shows(" 10000 ")
    assert not play.model.queue.unread_count
    play.rest()
    drawn = play.queue.draw_row

    def counted(row: int, width: int, selected: bool) -> object:
        asked.append(row)
        return drawn(row, width, selected)

    play.queue.draw_row = counted  # type: ignore[assignment]
    play.press_alone("end")
    assert play.selected == key_of(10_000)
    asked.clear()
    play.tick()
    assert play.lines
    assert set(asked) <= set(range(9_980, 10_000))
    assert 0 < len(asked) <= 2 * play.queue.height


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
    play = rested(snapshot_of(*CALLS))
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
    play = rested(snapshot_of(*CALLS), answers=True)
    play.go("slash", "Show rows that match:")
    play.type("agent:codex")
    play.asks_nothing()
    play.press_alone("enter")
    assert play.selected == CALLS[0].approval_id
    assert not play.armed
    play.in_vain("a", "Press a again.")
    play.press_rested("a")
    play.asks_for(Approve)
    assert play.selected == CALLS[2].approval_id
    assert not play.armed


def test_a_filter_that_nothing_matches_or_that_is_not_understood_says_so() -> None:
    play = Play(snapshot_of(*CALLS))
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
    play.shows("soon is not a time. Write age:5m or age:>2h", "goose age:soon")
    play.go("enter", "2 of 5 match goose age:soon")
    assert "soon is not a time. Write age:5m or age:>2h" in play.status_line
    play.go("slash", "goose age:soon")
    play.go("escape", "oldest first")


def test_words_find_what_an_item_is_about() -> None:
    for text, matching in (
        ("DO-PI", 1), ("gmail.googleapis", 5), ("r-8842190447", 5), ('state:"not accepted"', 1),
        ("state:waiting", 5), ("age:3s", 3), ("age:>3s", 2), ("nothing like it", 0),
    ):  # fmt: skip
        assert narrowed(text).matching == matching, text
    for text in ("agent:goose", "action:do-goose"):
        items = narrowed(text).items
        assert [each.approval and each.approval.agent for each in items] == ["goose", "goose"]
    queue = narrowed("agent:codex")
    for number, agent, matching in ((6, "goose", 2), (7, "codex", 3)):
        queue.update(call_of(number, agent), NOW)
        assert (queue.matching, queue.total, queue.waiting) == (matching, number + 1, number)
    assert queue.selected == CALLS[0].approval_id


def test_an_age_lets_a_call_through_no_more_once_it_is_older() -> None:
    queue = narrowed("age:3s")
    for later, left, selected in ((2, 1, CALLS[0].approval_id), (60, 0, None)):
        queue.sweep(NOW + later)
        assert queue.matching == left
        assert queue.selected == selected
    assert queue.length == 0


def test_a_call_that_changes_its_state_joins_or_leaves_what_matches() -> None:
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
