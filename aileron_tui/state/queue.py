"""The waiting list as a state: its order, where the cursor goes after a decision, when an ended row leaves."""

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import replace
from heapq import heappop, heappush
from typing import overload

from aileron_core.console_port.file_views import AcceptedBeforeView
from aileron_core.console_port.view_models import (
    FINAL_STATES,
    WAITING_STATES,
    ApprovalView,
    LibraryItemView,
    NotAcceptedView,
)
from aileron_core.errors import Problem
from aileron_tui.items import Batch, Item, batch_shape
from aileron_tui.state.filter import Filter, ParsedFilter, item_fields
from aileron_tui.state.list_parts import OrderedKeys, Part, file_outcome, file_rows, part_of
from aileron_tui.state.pending_intents import ACCEPTED_STATES, file_key

ELSEWHERE_SECONDS = 5.0
"""How long an item that ended by itself keeps its place whatever is pressed, so that nothing vanishes unread."""
DECIDED_HERE_SECONDS = 2.0
"""How long one that you decided keeps its place after its run has ended, whatever is pressed."""
PART_BITS = 40
"""A row's place is a number: above these bits its part, below them its place there."""
DECISIONS_KEPT = 200
"""Decisions kept for the list of decisions."""
BATCH_SIZE = 100
"""Calls of one row at most: more of them form the next one."""


class Rows(Sequence[Item]):
    """All rows of a queue as they are when one looks; nothing is copied."""

    def __init__(self, queue: "Queue") -> None:
        self._queue = queue

    def __len__(self) -> int:
        return self._queue.length

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        """Return one row, or some."""
        if isinstance(index, slice):
            return tuple(self._queue.at(row) for row in range(*index.indices(len(self))))
        row = index + len(self) if index < 0 else index
        if not 0 <= row < len(self):
            raise IndexError(index)
        return self._queue.at(row)


class Queue:
    """Items by key. A person's key alone changes the selected key, and alone makes rows leave (`sweep`).

    What happens per key, arrival, second or drawing never walks over all of them: 10,000 may wait.
    """

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._number: dict[str, int] = {}
        """Each row's place: rows stand by it. That of a batch is one before its first call's."""
        self._next = {part: (part << PART_BITS) + 1 for part in Part}
        self._misplaced: dict[str, None] = {}
        """Rows that belong into another part; they go there at the next key."""
        self._sorted: int | None = None
        """How many calls were put in order of their deadlines; None in order of arrival."""
        self._all = OrderedKeys()
        self._waiting = OrderedKeys()
        """Calls that wait."""
        self._unacknowledged: set[str] = set()
        self.parsed_filter = ParsedFilter(text="")
        """The filter, as it was typed."""
        self._now = 0.0
        self._shown, self._shown_waiting = self._all, self._waiting
        """What the filter lets through; without one the same objects."""
        self._changed: set[str] = set()
        """Rows that the filter let through and that changed since: the next key looks at them again."""
        self._files: set[str] = set()
        """Rows that are no calls: files that are not accepted, and problems."""
        self._changed_files: set[str] = set()
        """Those whose content changed since the last key."""
        self._not_accepted: frozenset[str] = frozenset()
        """Keys of every file that is not accepted, whether it stands alone or not."""
        self._accepted: frozenset[str] = frozenset()
        """SHA-256 of the files of the actions that count."""
        self._accepted_once: set[str] = set()
        """Of those that ever did, while this console was open."""
        self._actions: frozenset[str] = frozenset()
        """The names of the home's actions, whether they count or not."""
        self._problems = 0
        self._decided: list[ApprovalView] = []
        self._decided_here: set[str] = set()
        self._deadlines: list[tuple[float, str]] = []
        """A heap; outdated entries are dropped when they come up."""
        self._leaving: list[tuple[float, str]] = []
        """A heap of when rows are to be removed."""
        self._overdue: set[str] = set()
        """Rows whose time is over; they leave at the next key."""
        self.selected: str | None = None
        self._has_batches = False
        self._batch_of: dict[str, str] = {}
        """The row of each call that has none of its own."""
        self._shapes: dict[str, Hashable] = {}
        """What each call that may stand with others has in common with them."""
        self._shapes_changed = False
        self._alone: set[str] = set()
        """Calls of a batch that was answered: what still waits of them has a row of its own."""
        self._rested_on: str | None = None
        """The row that had the cursor at the last key: while it has, it stays as it is."""
        self.unread_count = 0
        """How many calls wait that were not read yet: they stand behind all of these."""

    def load(
        self,
        approvals: Iterable[ApprovalView],
        not_accepted: Iterable[NotAcceptedView],
        problems: Iterable[Problem] = (),
        more: int = 0,
        library: Iterable[LibraryItemView] = (),
    ) -> None:
        """Start from a snapshot; the first waiting item is selected. *more* wait behind them."""
        for view in approvals:
            if view.state in FINAL_STATES:
                self._note_end(view)
            if view.state not in FINAL_STATES or view.awaits_acknowledgement:
                self._put(Item(key=view.call_id, approval=view))
        self.unread_count = more
        self._decided.sort(key=lambda view: view.decided_at or view.ended_at or view.requested_at)
        self.set_files(not_accepted, problems, library)
        self._select_something()

    def load_more(self, approvals: Iterable[ApprovalView], left: int) -> None:
        """Take calls that wait behind all that are here; *left* more follow."""
        for view in approvals:
            if view.call_id not in self._items:
                self._put(Item(key=view.call_id, approval=view))
        self.unread_count = left
        self._select_something()

    @property
    def items(self) -> Rows:
        """All rows: calls of unknown outcome, the others in the list's order, files that are not accepted, problems."""
        return Rows(self)

    @property
    def length(self) -> int:
        """How many rows there are to move among."""
        return len(self._shown)

    def at(self, row: int) -> Item:
        """Return the item at *row*, from 0.

        Raises:
            IndexError: there is no such row.
        """
        return self._items[self._shown.key(row)]

    def get(self, key: str) -> Item | None:
        """Return the row of *key*, if there is one."""
        return self._items.get(key)

    @property
    def current(self) -> Item | None:
        """The selected item: of a batch the call that is open."""
        batch = self.batch
        key = batch.cursor if batch is not None and batch.opened else self.selected
        return None if key is None else self.get(key)

    @property
    def decided(self) -> tuple[ApprovalView, ...]:
        """The last ended or decided items: first those that differ from what was approved, newest first."""
        newest_first = self._decided[::-1]
        return tuple(sorted(newest_first, key=lambda view: not _is_unseen(view)))

    def is_new_difference(self, view: ApprovalView) -> bool:
        """Return whether *view* is the first to say that the service does not hold what was approved."""
        earlier = next((each for each in self._decided if each.call_id == view.call_id), None)
        return _is_unseen(view) and (earlier is None or not _is_unseen(earlier))

    @property
    def waiting(self) -> int:
        """How many calls wait for a person: for an answer, or to be acknowledged."""
        in_batches = len(self._batch_of) - len({*self._batch_of.values()})
        return len(self._waiting) + in_batches + self.unread_count

    @property
    def unacknowledged(self) -> int:
        """How many of them ended in a way that nobody knows; from the next key on they stand first."""
        return len(self._unacknowledged)

    @property
    def undecided(self) -> int:
        """How many calls wait for an answer."""
        return self.waiting - self.unacknowledged

    @property
    def not_accepted(self) -> int:
        """How many files are not accepted."""
        return len(self._not_accepted)

    @property
    def problems(self) -> int:
        """How many problems the files in the home have."""
        return self._problems

    def nearest_deadline(self) -> float | None:
        """Return when the first of those that wait ends; None where none of them does."""
        while self._deadlines:
            ends, key = self._deadlines[0]
            item = self._items.get(key)
            if item is not None and item.deadline == ends:
                return ends
            heappop(self._deadlines)
        return None

    def file_changed(self, item: Item | None) -> bool:
        """Return whether the file of the call's action, as it was when the call came, is not accepted any more."""
        view = item.calls[0] if item is not None and item.calls else None
        if view is None or not view.action_sha256 or view.action_sha256 in self._accepted:
            return False
        return view.action_sha256 in self._accepted_once or view.action in self._actions

    def calls_under(self, replaced: Iterable[AcceptedBeforeView | None]) -> int:
        """How many calls wait for an answer, of those that were read, under files that are to be *replaced*."""
        digests = {each.digest for each in replaced if each is not None}
        rows = range(len(self._waiting)) if digests else ()
        found = (view for row in rows for view in self._items[self._waiting.key(row)].calls)
        return sum(view.action_sha256 in digests for view in found)

    def index(self, key: str | None) -> int:
        """Return the row of *key*; 0 where there is none."""
        key = key or ""
        return self._shown.row(self._number[key]) if key in self._number else 0

    @property
    def total(self) -> int:
        """How many rows there are without a filter."""
        return len(self._all)

    @property
    def matching(self) -> int:
        """How many rows the filter lets through."""
        return self.length

    @property
    def by_deadline(self) -> bool:
        """The person put the calls in order of their deadlines; else they stand as they came."""
        return self._sorted is not None

    @property
    def newer_count(self) -> int:
        """How many calls came after the person put the others in order; they stand behind them."""
        calls = len(self._all) - len(self._files)
        return 0 if self._sorted is None else calls - self._all.row(self._sorted)

    def change_order(self, now: float) -> None:
        """Put the calls in order of the deadlines that they have now, or again as they came.

        It happens here and nowhere else: a call that comes later stands at the end in both orders,
        so that no agent moves a row under a person's hand by asking with a near deadline.
        """
        self._place_misplaced()
        calls = (key for key, item in self._items.items() if item.approval is not None)
        keys = [key for key in calls if self._number[key] >> PART_BITS == Part.CALLS]
        if self._sorted is None:
            keys.sort(key=lambda key: self._items[key].ends_at)
        self._sorted = 2 * len(keys) if self._sorted is None else None
        self._next[Part.CALLS] = 2 * len(keys) + 1
        self._number |= {key: 2 * number + 1 for number, key in enumerate(keys)}
        for row in {*self._batch_of.values()}:
            self._number[row] = self._place_of(self._items[row].calls)
        self._all, self._waiting = OrderedKeys(), OrderedKeys()
        for key, number in self._number.items():
            if key in self._batch_of:
                continue
            self._all.add(number, key)
            if self._is_waiting_call(self._items[key]):
                self._waiting.add(number, key)
        self._now = now
        self._apply_filter()

    def set_filter(self, parsed: ParsedFilter, now: float) -> None:
        """Show the rows that *parsed* lets through, and select the first; without a filter the selected one stays."""
        self.parsed_filter, self._now = parsed, now
        self._apply_filter()
        if parsed.query:
            self.selected = None
        self._select_something()

    def _apply_filter(self) -> None:
        self._shown, self._shown_waiting = self._all, self._waiting
        self._changed.clear()
        if self.parsed_filter.query:
            self._shown, self._shown_waiting = OrderedKeys(), OrderedKeys()
            for key, item in self._items.items():
                if key not in self._batch_of and self._passes_filter(item):
                    self._show_row(self._number[key], item)

    def _passes_filter(self, item: Item) -> bool:
        """Return whether the filter lets *item* through."""
        query: Filter = self.parsed_filter.query
        return not query or query.matches(item_fields(item), self._now)

    def _show_row(self, number: int, item: Item) -> None:
        """Put *item* among the rows that are shown, while there is a filter."""
        self._shown.add(number, item.key)
        if self._is_waiting_call(item):
            self._shown_waiting.add(number, item.key)
        else:
            self._shown_waiting.discard(number)

    @staticmethod
    def _is_waiting_call(item: Item) -> bool:
        return bool(item.calls) and item.is_waiting

    def _hide(self, key: str) -> None:
        number = self._number.get(key)
        if number is not None:
            self._shown.discard(number)
            self._shown_waiting.discard(number)

    def mark_decided_here(self, key: str) -> None:
        """Record that the person answered *key* on this screen. The rest of its batch then waits alone."""
        self._decided_here.add(key)
        row, batch = self._batch_of.get(key), self.batch
        if row is not None and row == self.selected and batch is not None and not batch.opened:
            self._alone.update(batch.ids)
            self.advance()
            self._release(row, sorted(batch.ids, key=lambda each: each not in batch.left_out))

    def was_decided_here(self, key: str) -> bool:
        """Return whether the person answered *key* on this screen."""
        return key in self._decided_here

    def update(self, view: ApprovalView, now: float) -> bool:
        """Apply an update; return whether it brought a new waiting item."""
        key, self._now = view.call_id, now
        before = self._items.get(key)
        if view.awaits_acknowledgement:
            self._note_end(view)
            self._put(Item(key=key, approval=view))
            self._select_something()
            return before is None or not before.is_waiting
        if view.state in FINAL_STATES:
            self._note_end(view)
            if before is not None:
                stay = DECIDED_HERE_SECONDS if key in self._decided_here else ELSEWHERE_SECONDS
                remove_at = before.remove_at if before.remove_at is not None else now + stay
                if _was_read_back(before.approval, view):
                    remove_at = now + stay
                self._put(replace(before, approval=view, remove_at=remove_at))
            return False
        if view.state not in WAITING_STATES and view.decided_at is not None:
            self._note_end(view)
        self._put(Item(key=key, approval=view))
        self._select_something()
        return before is None

    def set_files(
        self,
        not_accepted: Iterable[NotAcceptedView],
        problems: Iterable[Problem],
        library: Iterable[LibraryItemView] = (),
    ) -> None:
        """Take the files that are not accepted and the problems, whole; *library* says what became of others.

        What is over keeps its row until the next key, and what came stands at the end of its part.
        """
        not_accepted, library = tuple(not_accepted), tuple(library)
        actions = [each for each in library if each.kind == "action"]
        self._actions = frozenset(each.name for each in actions)
        self._accepted = frozenset(e.digest for e in actions if e.state in ACCEPTED_STATES)
        self._accepted_once |= self._accepted
        self._not_accepted = frozenset(file_key(each.kind, each.name) for each in not_accepted)
        items = file_rows(not_accepted, problems)
        self._problems = sum(item.problem is not None for item in items)
        states = {file_key(each.kind, each.name): each.state for each in library}
        for key in self._files.difference(item.key for item in items):
            item = self._items[key]  # once it is over, what comes later is another row
            outcome = item.outcome or file_outcome(item, self._not_accepted, states)
            self._put(replace(item, outcome=outcome))
            self._overdue.add(key)
        for item in items:
            before = self._items.get(item.key)
            if before is not None and before.version != item.version:
                self._changed_files.add(item.key)
            self._overdue.discard(item.key)
            self._put(replace(item, changed_now=item.key in self._changed_files))
        self._select_something()

    def sweep(self, now: float) -> bool:
        """A key was handled: remove rows that may leave by now; return whether there were any.

        Those are ended rows whose time is over, and rows that the filter lets through no more. An ended
        one under the cursor stays until the cursor leaves it, since it may be read. What came out of
        its place goes there.
        """
        self._now = now
        self._place_misplaced()
        self._form_batches()
        for key in self._changed_files:
            self._items[key] = replace(self._items[key], changed_now=False)
        self._changed_files.clear()
        while self._leaving and self._leaving[0][0] <= now:
            at, key = heappop(self._leaving)
            item = self._items.get(key)
            if item is not None and item.remove_at == at:
                self._overdue.add(key)
        gone = [key for key in self._overdue if key != self.selected]
        for key in gone:
            self._drop(key)
        return self._filter_again() or bool(gone)

    def _filter_again(self) -> bool:
        """Leave out what the filter lets through no more; return whether there was any."""
        before = self.length
        self._hide_changed()
        if not self.selected_matches:
            self.leave_row()
        self._select_something()
        return self.length != before

    def _hide_changed(self) -> None:
        if self.parsed_filter.query.ages:
            self._apply_filter()
        for key in self._changed:
            item = self._items.get(key)
            if item is not None and not self._passes_filter(item):
                self._hide(key)
        self._changed.clear()

    @property
    def selected_matches(self) -> bool:
        """Whether the filter lets the selected row through as it is now; true where none is selected."""
        item = self.current
        return item is None or self._passes_filter(item)

    @property
    def selected_is_over(self) -> bool:
        """Whether the selected row was answered, or ended by itself: nothing is left to do about it."""
        return self.current is not None and self.current.is_over

    def leave_row(self) -> bool:
        """Leave the selected row, which is over or no longer matches; return whether another one waits.

        Where none waits, a row that is over leaves the list.
        """
        self._hide_changed()
        left, matches = self.selected, self.selected_matches
        self.advance()
        if self.selected != left:
            return True
        if matches and left in self._items:
            self._drop(left)
        self.selected = None
        self._select_something()
        return False

    def move(self, rows: int) -> None:
        """Move the cursor by *rows*; it stops at the ends."""
        if self.length:
            self.select(min(max(self.index(self.selected) + rows, 0), self.length - 1))

    def select(self, row: int) -> None:
        """Put the cursor on row *row*, if there is one."""
        if 0 <= row < self.length:
            if (batch := self.batch) is not None and self.selected != self.at(row).key:
                self.set_batch(replace(batch, cursor="", opened=False))
            self.selected = self.at(row).key

    def advance(self) -> None:
        """After a decision: go to the next waiting item below, at the end to the one above.

        Approvals come before files: a file is never urgent.
        """
        item = self.current
        number = self._number.get(self.selected or "", self._next[Part.ARRIVED])
        left = [file_key(each.kind, each.name) for each in item.files] if item is not None else []
        key = next((key for key in left if self._is_other_file(key)), None)
        key = key or self._shown_waiting.after(number) or self._shown_waiting.before(number)
        if key is None:
            rows = sorted((self._number[key], key) for key in self._files)
            below = [key for at, key in rows if at > number]
            above = [key for at, key in rows if at < number]
            key = next((key for key in [*below, *above[::-1]] if self._is_other_file(key)), None)
        if key is not None:
            self.selected = self._rested_on = key

    # Batches

    def form_batches(self) -> None:
        """From now on calls of one shape are one row: those that are here at once, others at the next key."""
        self._has_batches, self._rested_on = True, None
        for item in self._items.values():
            self._note_shape(item)
        self._form_batches()

    @property
    def batch(self) -> Batch | None:
        """The selected batch, also while a call of it is open."""
        item = self.get(self.selected) if self.selected is not None else None
        return item.batch if item is not None else None

    @property
    def in_table(self) -> bool:
        """The cursor is in the table of a batch, or in a call that was opened there."""
        return self.batch is not None and bool(self.batch.cursor)

    def set_batch(self, batch: Batch) -> None:
        """Take what the person did in the table of the selected batch."""
        if self.selected is not None and self.batch is not None:
            self._items[self.selected] = replace(self._items[self.selected], batch=batch)

    def leave_table(self) -> None:
        """Give the keys back from a call that is open to the table, and from there to the list."""
        if (batch := self.batch) is not None:
            cursor = batch.cursor if batch.opened else ""
            self.set_batch(replace(batch, cursor=cursor, opened=False))

    def _note_shape(self, item: Item) -> bool:
        """Note with which calls *item* may stand; return whether that is news."""
        may_stand = self._has_batches and item.key not in self._alone
        shape = batch_shape(item.approval) if item.approval is not None and may_stand else None
        before, self._shapes[item.key] = self._shapes.get(item.key), shape
        self._shapes_changed |= shape != before
        return shape != before

    def _form_batches(self) -> None:
        """Let calls of one shape stand together; the row under the cursor stays if it was there at the last key."""
        kept = self.selected if self.selected == self._rested_on else None
        if self._shapes_changed or kept is None:
            self._shapes_changed, left_out = False, set[str]()
            calls: dict[Hashable, list[str]] = {}
            for key, shape in self._shapes.items():
                if shape is not None and kept not in (key, self._batch_of.get(key, key)):
                    calls.setdefault(shape, []).append(key)
            starts = [(e, at) for e in calls.values() for at in range(0, len(e) - 1, BATCH_SIZE)]
            wanted = [each[at : at + BATCH_SIZE] for each, at in starts]
            for row in {*self._batch_of.values()} - {kept}:
                batch = self._items[row].batch
                if batch is not None and batch.ids not in wanted:
                    left_out |= batch.left_out
                    self._release(row, batch.ids)
            for each in wanted:
                if each[0] not in self._batch_of:
                    self._join(each, left_out)
        self._rested_on = self.selected

    def _join(self, keys: Sequence[str], left_out: Set[str]) -> None:
        """Put the calls of *keys*, of one shape, into one row, which stands where the first one stood."""
        row = f"batch {' '.join(keys)}"
        batch = Batch(calls=tuple(self._items[key].calls[0] for key in keys))
        odd = {call_id for _, call_id in batch.alone}
        self._number[row] = self._place_of(batch.calls)
        for key in keys:
            self._batch_of[key] = row
            self._hide(key)
            self._all.discard(self._number[key])
            self._waiting.discard(self._number[key])
        self._put(Item(key=row, batch=replace(batch, left_out=frozenset(odd | left_out))))
        if self.selected in keys:
            self.selected = row

    def _place_of(self, calls: Iterable[ApprovalView]) -> int:
        return min(self._number[each.call_id] for each in calls) - 1

    def _release(self, row: str, keys: Sequence[str]) -> None:
        """Give the calls of *keys* rows of their own, where they stood before, and the last one with them."""
        item = self._items[row]
        rest = [each for each in item.calls if each.call_id not in keys]
        if len(rest) == 1:
            keys, rest = [rest[0].call_id, *keys], []
        for key in keys:
            del self._batch_of[key]
            self._put(self._items[key])
        if item.batch is not None and rest:
            batch = replace(item.batch, calls=tuple(rest))
            if batch.cursor in keys:
                batch = replace(batch, cursor=rest[0].call_id, opened=False)
            self._put(replace(item, batch=batch))
            return
        self._drop(row)
        if self.selected == row:
            self.selected = next((e for e in keys if self._items[e].is_waiting), keys[0])

    def _is_other_file(self, key: str) -> bool:
        """Return whether *key* is another row than the selected one: a file that waits, and is shown."""
        if key == self.selected or key not in self._files or not self._items[key].is_waiting:
            return False
        return self._number[key] in self._shown

    def _select_something(self) -> None:
        if self.current is None:
            self.selected = self._rested_on = self.at(0).key if self.length else None

    def _put(self, item: Item) -> None:
        """Store *item* by its key, and update every index."""
        before = self._items.get(item.key)
        self._items[item.key] = item
        new_shape, row = self._note_shape(item), self._batch_of.get(item.key)
        batch = self._items[row].batch if row is not None else None
        if row is None or batch is None or before is None:
            self._put_row(item, before)
        elif new_shape or item.calls[0].digest != before.calls[0].digest:
            self._release(row, [item.key])
        else:
            calls = tuple(self._items[key].calls[0] for key in batch.ids)
            self._put(replace(self._items[row], batch=replace(batch, calls=calls)))
        if item.remove_at is not None and (before is None or before.remove_at != item.remove_at):
            heappush(self._leaving, (item.remove_at, item.key))

    def _put_row(self, item: Item, before: Item | None) -> None:
        """Have a row for *item*, which was *before*."""
        number = self._number.get(item.key)
        shown = number is not None and number in self._shown
        if number is None:
            number = self._place(item)
        self._all.add(number, item.key)
        if item.is_unacknowledged and number >= 0:
            self._misplaced[item.key] = None
        if self._is_waiting_call(item):
            self._waiting.add(number, item.key)
        else:
            self._waiting.discard(number)
        (self._unacknowledged.add if item.is_unacknowledged else self._unacknowledged.discard)(
            item.key
        )
        if self.parsed_filter.query:
            self._show(number, item, shown=shown)
        ends = item.deadline
        if ends is not None and (before is None or ends != before.deadline):
            heappush(self._deadlines, (ends, item.key))

    def _place(self, item: Item) -> int:
        """Give *item*, which came, the last place of its part; at the end if the cursor's row would move."""
        part = part_of(item)
        if item.approval is None:
            self._files.add(item.key)
        if self._next[part] < self._number.get(self.selected or "", self._next[part]):
            self._misplaced[item.key] = None
            part = Part.ARRIVED
        number, self._next[part] = self._next[part], self._next[part] + 2
        self._number[item.key] = number
        self._all.add(number, item.key)
        return number

    def _place_misplaced(self) -> None:
        """Put into their parts the rows that no key has put there yet."""
        keys, self._misplaced = self._misplaced, {}
        for key in keys:
            item, before = self._items[key], self._number[key]
            part = part_of(item)
            if before >> PART_BITS == part:
                continue
            shown = before in self._shown
            self._hide(key)
            self._all.discard(before)
            self._waiting.discard(before)
            number, self._next[part] = self._next[part], self._next[part] + 2
            self._number[key] = number
            self._all.add(number, key)
            if self._is_waiting_call(item):
                self._waiting.add(number, key)
            if shown:
                self._show_row(number, item)

    def _show(self, number: int, item: Item, *, shown: bool) -> None:
        """Show *item* if the filter lets it through; one that is *shown* already leaves at the next key only."""
        if shown:
            self._changed.add(item.key)
        if shown or self._passes_filter(item):
            self._show_row(number, item)

    def _drop(self, key: str) -> None:
        del self._items[key]
        self._hide(key)
        number = self._number.pop(key)
        self._all.discard(number)
        self._waiting.discard(number)
        self._misplaced.pop(key, None)
        self._shapes.pop(key, None)
        for keys in (
            self._overdue,
            self._decided_here,
            self._unacknowledged,
            self._files,
            self._changed_files,
            self._alone,
        ):
            keys.discard(key)

    def _note_end(self, view: ApprovalView) -> None:
        """Keep *view* for the list of decisions; nobody decided one that is not gated."""
        if not view.approval_id:
            return
        for row, each in enumerate(self._decided):
            if each.call_id == view.call_id:
                self._decided[row] = view
                return
        self._decided.append(view)
        seen = [each for each in self._decided if not _is_unseen(each)]
        for old in seen[:-DECISIONS_KEPT]:
            self._decided.remove(old)


def _was_read_back(before: ApprovalView | None, view: ApprovalView) -> bool:
    """Return whether it is known since *before* what the service holds: its row stays as for an end."""
    read = before.read_back if before is not None else None
    return view.read_back is not None and (read is None or read.status != view.read_back.status)


def _is_unseen(view: ApprovalView) -> bool:
    """Return whether the service does not hold what was approved, and no person has seen how."""
    return view.read_back is not None and view.read_back.waits_to_be_seen
