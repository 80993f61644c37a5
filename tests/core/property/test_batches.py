"""Calls that come together in one row: whatever happens, each is in exactly one row, and counted once."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView
from aileron_tui.items import batch_shape
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.queue import Queue
from tests.support.screens.calls import approval, drifted

STATES = ("pending", "pending", "pending", "checking", "executing", "completed", "expired")


class Rows(RuleBasedStateMachine):
    """Agents call in two sessions, calls change and end, and a person moves, sorts, filters and answers."""

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.now = Queue(), 1000.0
        self.queue.load((), ())
        self.queue.form_batches()
        self.answered: set[str] = set()
        self.ended: set[str] = set()

    @rule(
        number=st.integers(0, 12),
        state=st.sampled_from(STATES),
        changed=st.sampled_from([False, False, False, True]),
        drifts=st.sampled_from([False, False, False, True]),
    )
    def update(self, number: int, state: str, *, changed: bool, drifts: bool) -> None:
        view = approval(
            number, self.now, state=state, action_sha256="ab" * 32, session_id=f"ses-{number % 2}",
            drift=drifted(self.now) if drifts else None,
        )  # fmt: skip
        if view.approval_id in self.ended:
            return
        if state in ("completed", "expired"):
            self.ended.add(view.approval_id)
        if changed:
            view = replace(view, digest="f" * 64)
        selected, calls = self.queue.selected, {e.call_id for e in self.shown()}
        self.queue.update(view, self.now)
        # No agent moves the cursor: it is on the same calls, or on one that is left of them.
        assert selected is None or {each.call_id for each in self.shown()} <= calls

    def shown(self) -> tuple[ApprovalView, ...]:
        item = self.queue.get(self.queue.selected) if self.queue.selected is not None else None
        return item.calls if item is not None else ()

    @rule(seconds=st.sampled_from([0.0, 3.0, 60.0]))
    def sweep(self, seconds: float) -> None:
        self.now += seconds
        self.queue.sweep(self.now)

    @rule(rows=st.integers(-3, 3))
    def move(self, rows: int) -> None:
        self.queue.move(rows)
        self.queue.sweep(self.now)

    @rule(rows=st.integers(0, 3), opened=st.booleans())
    def go_into_the_table(self, rows: int, *, opened: bool) -> None:
        if (batch := self.queue.batch) is not None:
            self.queue.set_batch(replace(batch.moved(0).moved(rows), opened=opened))

    @rule()
    def answer(self) -> None:
        item = self.queue.current
        if item is not None and item.is_waiting:
            self.answered |= {each.call_id for each in item.calls if item.batch is not None}
            for each in item.calls:
                if item.batch is None or each.call_id not in item.batch.left_out:
                    self.queue.mark_decided_here(each.call_id)
            self.queue.sweep(self.now)

    @rule()
    def sort(self) -> None:
        self.queue.change_order(self.now)
        self.queue.sweep(self.now)

    @rule(text=st.sampled_from(["", "state:checking", "agent:codex"]))
    def narrow(self, text: str) -> None:
        self.queue.set_filter(parse(text, ITEM_FIELDS), self.now)
        self.queue.sweep(self.now)

    @invariant()
    def each_call_is_in_one_row(self) -> None:
        queue = self.queue
        rows = [queue._items[queue._all.key(row)] for row in range(queue.total)]
        ids = [each.call_id for row in rows for each in row.calls]
        assert sorted(ids) == sorted(key for key, item in queue._items.items() if item.approval)
        waiting = [each for row in rows for each in row.calls if each.state in WAITING_STATES]
        assert queue.waiting == len(waiting)
        for batch in (row.batch for row in rows if row.batch is not None):
            assert len(batch.calls) > 1
            assert len({batch_shape(each) for each in batch.calls} - {None}) == 1
            assert not self.answered.intersection(batch.ids)
            assert not batch.cursor or batch.cursor in batch.ids

    @invariant()
    def the_cursor_is_on_a_row(self) -> None:
        queue = self.queue
        shown = [item.key for item in queue.items]
        assert queue.selected in (shown or [None]) or not queue.selected_matches
        if queue.selected in shown:
            assert queue.at(queue.index(queue.selected)).key == queue.selected
        assert queue.selected is None or queue.current is not None


Rows.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestRows = Rows.TestCase
