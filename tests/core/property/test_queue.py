"""The waiting list against the plainest list there is, and calls that come together in one row."""

from dataclasses import dataclass, replace
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui.items import batch_shape
from aileron_tui.state.filter import ITEM_FIELDS, parse
from aileron_tui.state.list_parts import OrderedKeys
from aileron_tui.state.queue import DECIDED_HERE_SECONDS, ELSEWHERE_SECONDS, Item, Queue
from tests.support.making import calls
from tests.support.screens.calls import approval, drifted

STATES = ("pending", "checking", "awaiting_vault", "approved", "executing")
ENDS = ("completed", "failed", "unknown", "denied", "expired", "withdrawn")
LATEST = 8
"""Keys come from so few numbers that most updates meet an item that is there."""


@dataclass
class Row:
    """A row of the plain list."""

    view: ApprovalView
    remove_at: float | None = None
    came: int = 0
    """Its place in order of arrival."""

    @property
    def ends(self) -> float:
        ends = self.view.expires_at if self.view.state in WAITING_STATES else None
        return inf if ends is None else ends


def unaccepted(name: int, kind: str) -> NotAcceptedView:
    return NotAcceptedView(
        kind="action" if kind == "action" else "connector", name=str(name), file="f", digest="d",
        change="new", gated=True, connector="c", hosts=(),
    )  # fmt: skip


def part_of(key: str) -> int:
    parts = ("held:connector", "held:action", "problem")
    return [key.startswith(part) for part in parts].index(True)


class Lists(RuleBasedStateMachine):
    """Does everything to the real list and to a plain one."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue()
        self.queue.load((), ())
        self.rows: list[Row] = []
        self.files: list[str] = []
        """Keys of files and problems, in the list's order; those that are over are among them."""
        self.arrived: list[str] = []
        """What would move the row under the cursor stands at the end until a key is handled."""
        self.over: set[str] = set()
        self.mine: set[str] = set()
        self.ended: set[str] = set()
        self.selected: str | None = None
        self.now = 1000.0
        self.arrivals = 0
        self.sorted_at: int | None = None

    @property
    def keys(self) -> list[str]:
        keys = [row.view.approval_id for row in self.rows] + self.files
        return [key for key in keys if key not in self.arrived] + self.arrived

    @property
    def file_keys(self) -> list[str]:
        held = [key for key in self.keys if key.startswith("held:")]
        return [key for key in held if key not in self.over]

    def arrive(self, key: str) -> None:
        """Note where *key*, a call or in `files`, stands for now."""
        if self.selected in self.keys:
            behind = self.keys.index(key) > self.keys.index(self.selected)
            if not behind or self.selected in self.arrived:
                self.arrived.append(key)

    def place_arrived(self) -> None:
        """What stood at the end of all goes to the end of its part, also behind what came later."""
        late = {key: place for place, key in enumerate(self.arrived)}
        self.rows.sort(key=lambda row: late.get(row.view.approval_id, -1))
        self.files.sort(key=lambda key: (part_of(key), late.get(key, -1)))
        self.arrived = []

    def find(self, key: str) -> Row | None:
        return next((row for row in self.rows if row.view.approval_id == key), None)

    def settle(self) -> None:
        if self.selected not in self.keys:
            self.selected = self.keys[0] if self.keys else None

    def go_on(self) -> None:
        """The next waiting call below, at the end the one above; then files."""
        keys, row = self.keys, self.keys.index(self.selected) if self.selected in self.keys else 0
        if self.selected not in keys:
            return
        calls = {each.view.approval_id for each in self.rows if each.view.state in WAITING_STATES}
        files = set(self.file_keys)
        below, above = keys[row + 1 :], keys[:row][::-1]
        for wanted in (calls, files):
            for each in [*below, *above]:
                if each in wanted:
                    self.selected = each
                    return

    @rule(
        number=st.integers(0, LATEST),
        state=st.sampled_from([*STATES, *ENDS]),
        life=st.none() | st.integers(1, 100),
    )
    def update(self, number: int, state: str, life: int | None) -> None:
        ends = None if life is None else 1000.0 + life
        decided = None if state in WAITING_STATES else self.now
        at = {"requested_at": float(number), "expires_at": ends, "decided_at": decided}
        view = approval(number, self.now, state=state, **at)
        key = view.approval_id
        if key in self.ended:
            return  # what has ended does not live again
        row = self.find(key)
        came = self.queue.update(view, self.now)
        if state in ENDS:
            self.ended.add(key)
            assert not came
            if row is not None:
                row.view = view
                stays = DECIDED_HERE_SECONDS if key in self.mine else ELSEWHERE_SECONDS
                row.remove_at = self.now + stays
            return
        assert came is (row is None)
        if row is None:
            self.arrivals += 1
            self.rows.append(Row(view, came=self.arrivals))
            self.arrive(key)
        else:
            row.view = view
        if self.selected is None:
            self.selected = key

    @rule(seconds=st.sampled_from([0.0, 1.0, 2.0, 5.0, 60.0]))
    def sweep(self, seconds: float) -> None:
        self.now += seconds
        due = [row for row in self.rows if row.remove_at is not None and row.remove_at <= self.now]
        gone = {row.view.approval_id for row in due} | self.over
        gone -= {self.selected}
        assert self.queue.sweep(self.now) is bool(gone)
        self.rows = [row for row in self.rows if row.view.approval_id not in gone]
        self.files = [key for key in self.files if key not in gone]
        self.over -= gone
        self.mine -= gone
        self.place_arrived()
        self.settle()

    @rule(rows=st.integers(-50, 50))
    def move(self, rows: int) -> None:
        self.queue.move(rows)
        if self.keys:
            row = self.keys.index(self.selected) if self.selected in self.keys else 0
            self.selected = self.keys[min(max(row + rows, 0), len(self.keys) - 1)]

    @rule(row=st.integers(-3, LATEST + 5))
    def select(self, row: int) -> None:
        self.queue.select(row)
        if 0 <= row < len(self.keys):
            self.selected = self.keys[row]

    @rule()
    def change_order(self) -> None:
        """What is selected stays so; the rest is sorted now and never by itself."""
        self.queue.change_order(self.now)
        self.place_arrived()
        self.rows.sort(key=lambda row: row.came)
        if self.sorted_at is None:
            self.rows.sort(key=lambda row: row.ends)
        self.sorted_at = self.arrivals if self.sorted_at is None else None

    @precondition(lambda self: self.selected in {r.view.approval_id for r in self.rows})
    @rule()
    def decide(self) -> None:
        self.queue.mark_decided_here(self.selected or "")
        self.mine.add(self.selected or "")

    @rule()
    def advance(self) -> None:
        self.queue.advance()
        self.go_on()

    @rule(
        held_back=st.lists(
            st.builds(unaccepted, st.integers(0, 4), st.sampled_from(["action", "connector"])),
            max_size=5,
            unique_by=lambda each: (each.kind, each.name),
        ),
        broken=st.lists(st.integers(0, 3), max_size=3, unique=True),
    )
    def change_files(self, held_back: list[NotAcceptedView], broken: list[int]) -> None:
        """Those that are gone keep their rows; new ones stand at the end of their part."""
        problems = [Problem(file=str(each), message="m") for each in broken]
        self.queue.set_files(held_back, problems)
        ordered = sorted(held_back, key=lambda each: each.kind != "connector")
        fresh = [f"held:{each.kind}:{each.name}" for each in ordered]
        fresh += [f"problem:{each}" for each in problems]
        self.over = set(self.files) - set(fresh)
        for key in fresh:
            if key not in self.files:
                self.files.append(key)
                self.files.sort(key=part_of)
                self.arrive(key)
        self.settle()

    @invariant()
    def both_hold_the_same(self) -> None:
        queue, keys = self.queue, self.keys
        assert [item.key for item in queue.items] == keys
        assert (len(queue.items), queue.selected) == (len(keys), self.selected)
        assert queue.by_deadline is (self.sorted_at is not None)
        newer = [row for row in self.rows if row.came > (self.sorted_at or 0)]
        assert queue.newer_count == (0 if self.sorted_at is None else len(newer))
        assert queue.waiting == sum(row.view.state in WAITING_STATES for row in self.rows)
        problems = {key for key in self.files if key.startswith("problem:")} - self.over
        assert (queue.not_accepted, queue.problems) == (len(self.file_keys), len(problems))
        ends = min((row.ends for row in self.rows), default=inf)
        assert queue.nearest_deadline() == (None if ends == inf else ends)
        for row, key in enumerate(keys):
            assert (queue.index(key), queue.get(key).key) == (row, key)


TestLists = Lists.TestCase
TestLists.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def queue_of(count: int) -> Queue:
    queue = Queue()
    queue.load((approval(n, 1000.0, expires_at=2000.0 + n) for n in range(count)), ())
    return queue


def test_nothing_per_key_arrival_or_second_walks_over_all_that_wait() -> None:
    """The work at 2,000 is the work at 100, but for a few steps of a search by halves."""

    def work(queue: Queue, count: int) -> None:
        queue.sweep(1001.0)
        queue.move(7)
        queue.select(count - 1)
        queue.index(queue.selected)
        queue.advance()
        queue.update(approval(count, 1000.0), 1000.0)
        queue.update(approval(3, 1000.0, state="executing", decided_at=1000.0), 1000.0)
        queue.nearest_deadline()
        assert (queue.waiting, len(queue.items)) == (count, count + 1)
        assert isinstance(queue.items[count // 2], Item)
        queue.update(approval(3, 1000.0, state="completed", ended_at=1000.0), 1000.0)
        queue.sweep(1100.0)

    small, large = queue_of(100), queue_of(2_000)
    assert calls(lambda: work(large, 2_000)) <= calls(lambda: work(small, 100)) + 10


def test_an_answered_call_under_the_cursor_stays_until_a_key_leaves_it() -> None:
    queue = queue_of(1)
    queue.mark_decided_here(queue.selected or "")
    queue.update(approval(0, 1000.0, state="denied", ended_at=1000.0), 1000.0)
    assert not queue.sweep(1000.0 + 100 * DECIDED_HERE_SECONDS)
    assert queue.selected_is_over
    assert not queue.leave_row()
    assert queue.selected is None
    assert not queue.items


def test_a_thousand_that_end_at_once_are_passed_over_without_a_walk() -> None:
    """After `stop everything` the cursor goes to the one that still waits, wherever it stands."""
    queue = queue_of(1_000)
    for number in range(999):
        queue.update(approval(number, 1000.0, state="denied", ended_at=1000.0), 1000.0)
    assert calls(queue.advance) < 20
    assert queue.selected == approval(999, 0.0).approval_id


def test_numbers_are_found_by_row_and_by_neighbour() -> None:
    """Also where some were taken out, and where one is put back in the middle."""
    arrivals = OrderedKeys()
    for number in range(0, 100, 10):
        arrivals.add(number, str(number))
    arrivals.discard(50)
    arrivals.discard(51)
    assert (arrivals.key(5), arrivals.row(60), len(arrivals)) == ("60", 5, 9)
    assert (arrivals.after(45), arrivals.before(60), arrivals.after(90)) == ("60", "40", None)
    assert arrivals.before(0) is None
    arrivals.add(50, "50")
    arrivals.add(50, "other")
    assert arrivals.key(5) == "50"
    assert 50 in arrivals


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
        state=st.sampled_from(["pending"] * 3 + ["checking", "executing", "completed", "expired"]),
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
