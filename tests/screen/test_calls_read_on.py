"""Where very many calls wait the first frame does with some of them; the rest is read behind it."""

from dataclasses import replace

from aileron_core.console_port.events import ApprovalsRead, ApprovalUpdated
from aileron_core.console_port.intents import ReadApprovals
from aileron_tui.pages.registry import DEFAULT_REGISTRY
from aileron_tui.state.apply_event import apply_event
from aileron_tui.state.model import Model
from tests.screen.driving import NOW, short, start
from tests.support.screens.play import Play
from tests.support.screens.port import SNAPSHOT_CALLS

MANY = [short(number) for number in range(1, 2 * SNAPSHOT_CALLS + 201)]
IDS = [view.approval_id for view in MANY]


def test_all_that_wait_are_counted_at_once_and_read_in_order() -> None:
    """One reading brings the rest, each once; the cursor stays."""
    play = Play(start(*MANY))
    play.shows("1 Waiting  700")
    queue = play.model.queue
    play.until(lambda: len(queue.items) == len(MANY), "all calls")
    assert [item.key for item in queue.items] == IDS
    assert (queue.waiting, queue.unread_count) == (700, 0)
    assert [type(read) for read in play.port.reads] == [ReadApprovals]
    assert play.selected == IDS[0]
    play.go("end", "WILL HAPPEN")
    play.until(lambda: play.selected == IDS[-1], "the last call")


def model_of(count: int = SNAPSHOT_CALLS) -> Model:
    snapshot = start(*MANY[:count])
    return Model(
        replace(snapshot, approvals_remaining=len(MANY) - count),
        arm_seconds=0.4,
        registry=DEFAULT_REGISTRY,
        now=NOW,
    )


def test_what_changes_before_it_was_read_keeps_its_place() -> None:
    """Its news would put it in front of those that came before it; it is read in its turn."""
    model = model_of()
    late = ApprovalUpdated(view=replace(MANY[-1], version=5))
    assert apply_event(model, late, NOW, 0.0) is False
    assert model.queue.get(IDS[-1]) is None
    assert model.queue.waiting == len(MANY)
    wanted = model.next_read()
    assert wanted == ReadApprovals(
        requested_at=MANY[SNAPSHOT_CALLS - 1].requested_at, run_id=MANY[SNAPSHOT_CALLS - 1].run_id
    )
    read = ApprovalsRead(views=tuple(MANY[SNAPSHOT_CALLS:]), remaining=0)
    assert apply_event(model, read, NOW, 0.0) is False, "nothing arrived"
    assert [item.key for item in model.queue.items] == IDS
    assert model.next_read() is None


def test_a_call_that_is_here_changes_while_others_are_read() -> None:
    """And one that comes once all were read stands at the end, and is an arrival."""
    model = model_of()
    ended = replace(MANY[0], state="denied", decided_at=NOW, ended_at=NOW, version=9)
    apply_event(model, ApprovalUpdated(view=ended), NOW, 0.0)
    assert model.queue.waiting == len(MANY) - 1
    read = ApprovalsRead(views=tuple(MANY[SNAPSHOT_CALLS:]), remaining=0)
    assert apply_event(model, read, NOW, 0.0) is False, "nothing arrived"
    new = short(len(MANY) + 1)
    assert apply_event(model, ApprovalUpdated(view=new), NOW, 0.0) is True
    assert model.queue.items[-1].key == new.approval_id


def test_a_call_that_the_reading_passes_over_is_not_lost() -> None:
    """The clock stepped back while it came: it stands at the end; one that ended meanwhile is gone."""
    model = model_of()
    odd, over = short(len(MANY) + 7), replace(short(len(MANY) + 8), state="withdrawn")
    for view in (odd, over, replace(MANY[-1], version=5)):
        assert apply_event(model, ApprovalUpdated(view=view), NOW, 0.0) is False
    apply_event(model, ApprovalsRead(views=tuple(MANY[SNAPSHOT_CALLS:]), remaining=0), NOW, 0.0)
    assert [item.key for item in model.queue.items] == [*IDS, odd.approval_id]
    assert model.queue.waiting == len(MANY) + 1
