"""What the service held after approved runs, in the list of decisions and after them."""

from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import ReadBack
from aileron_core.console_port.view_models import ApprovalView, CallView
from aileron_tui.draw.call_page import outcome_blocks
from aileron_tui.draw.read_back import DEFAULT_KEYS
from aileron_tui.draw.text import plain_text
from tests.support.screens.drawn import Drawn
from tests.support.screens.states import AS_APPROVED, NOW, TO, change, differing, short, start

ODD = differing("eve@evil.example")


def done(number: int, read_back: ReadBack | None, **changes: object) -> ApprovalView:
    """Return a change that ran, the higher its *number* the later."""
    view, ended = change(TO), NOW - 60 + number
    view = replace(view, approval_id=short(number).approval_id, run_id=short(number).run_id)
    view = replace(view, state="completed", decided_at=ended - 1, decided_by="person")
    return replace(view, **{"ended_at": ended, "read_back": read_back, **changes})


def test_a_difference_is_first_in_the_list_of_decisions_until_it_was_seen() -> None:
    views = [done(number, AS_APPROVED) for number in range(2, 9)]
    drawn = Drawn(start(done(1, ODD), *views, short(20)))
    drawn.model.decided.enter()
    first, second, *_ = drawn.rows
    assert "▲" in first
    assert "1 field differs" in first
    assert "as approved" in second
    drawn.tell(ApprovalUpdated(view=done(1, replace(ODD, seen=True), version=10)))
    assert "as approved" in drawn.rows[0]


def test_more_decisions_than_are_kept_push_out_none_that_was_not_seen() -> None:
    odd = done(1, ODD)
    queue = Drawn(start(odd, *(done(number, None) for number in range(2, 250)))).model.queue
    assert queue.decided[0] == odd
    assert len(queue.decided) == 201


@pytest.mark.parametrize(("read_back", "said"), [(AS_APPROVED, "now holds"), (ODD, "not hold")])
def test_where_nothing_waits_the_last_call_says_what_the_service_holds(
    read_back: ReadBack, said: str
) -> None:
    calm = Drawn(start(done(1, read_back))).calm
    assert "Last:" in calm
    assert f"{said} what was approved" in calm


def test_a_row_stays_until_its_reading_was_shown() -> None:
    """Its end may come a second before, and would else take it away just then."""
    drawn = Drawn(start(done(1, None, state="executing", ended_at=None)))
    drawn.tell(ApprovalUpdated(view=done(1, replace(AS_APPROVED, status="reading"), version=9)))
    before = drawn.model.queue.items[0].remove_at
    drawn.now += 1.9
    drawn.tell(ApprovalUpdated(view=done(1, AS_APPROVED, version=10)))
    after = drawn.model.queue.items[0].remove_at
    assert before is not None
    assert after is not None
    assert after > before


def test_what_the_service_holds_comes_before_a_result_of_any_length() -> None:
    for read_back in (AS_APPROVED, ODD):
        call = CallView(approval=done(1, read_back), gated=True, records=())
        made = outcome_blocks(call, NOW, keys=DEFAULT_KEYS, unfold=False)
        headings = [plain_text(each.label) for each in made if each.kind == "heading"]
        assert headings == ["AFTER THE RUN", "OUTCOME"]
