"""The waiting list as a state: order of arrival, a cursor that belongs to an item, not to a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import overload

from aileron_core.control_plane.port import ApprovalView, HeldBackView, Waiting
from aileron_core.errors import Problem
from aileron_tui.presenters.arrivals import Arrivals

__all__ = ["ELSEWHERE_SECONDS", "MINE_SECONDS", "Item", "Queue", "Rows"]

ELSEWHERE_SECONDS = 5.0
"""How long an item that ended by itself keeps its place, so that nothing vanishes unread."""
MINE_SECONDS = 2.0
"""How long one that you decided keeps its place after its run has ended."""
KEPT = 200
"""Decisions kept for the list of decisions."""

Ended = frozenset({"completed", "failed", "unknown", "denied", "expired", "withdrawn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row: an approval, a held-back file or a problem. `key` stays the same for its life."""

    key: str
    approval: ApprovalView | None = None
    held: HeldBackView | None = None
    problem: Problem | None = None
    leaves_at: float | None = None
    """When the row goes; None while it stays."""

    @property
    def waits(self) -> bool:
        """A person's answer is still out."""
        return self.held is not None or (
            self.approval is not None and self.approval.state in Waiting
        )

    @property
    def version(self) -> tuple[str, ...]:
        """What a person must look at anew when it differs."""
        if self.approval is not None:
            view = self.approval
            return (self.key, str(view.version), view.preview.status, view.digest)
        return (self.key, self.held.digest if self.held is not None else "")


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
    """Items by key. Nothing but `move`, `select` and `advance` changes the selected key.

    What happens per key, arrival, second or drawing never walks over all of them: 10,000 may wait.
    """

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._number: dict[str, int] = {}
        self._next = 0
        self._all = Arrivals()
        self._waiting = Arrivals()
        self._files: tuple[Item, ...] = ()
        """Held-back files, then problems."""
        self._file_row: dict[str, int] = {}
        self._held = 0
        self._decided: list[ApprovalView] = []
        self._mine: set[str] = set()
        self._deadlines: list[tuple[float, str]] = []
        """A heap; what does not hold any more is dropped when it comes up."""
        self._leaving: list[tuple[float, str]] = []
        """A heap of when rows go."""
        self._overdue: set[str] = set()
        """Rows whose time is over; those under the cursor stay until it leaves."""
        self.selected: str | None = None

    def load(
        self,
        approvals: Iterable[ApprovalView],
        held: Iterable[HeldBackView],
        problems: Iterable[Problem] = (),
    ) -> None:
        """Start from a snapshot; the first waiting item is selected."""
        for view in approvals:
            if view.state in Ended:
                self._note_end(view)
            else:
                self._put(Item(key=view.approval_id, approval=view))
        self._decided.sort(key=lambda view: view.decided_at or view.ended_at or view.requested_at)
        self.set_files(held, problems)
        self._select_something()

    @property
    def items(self) -> Rows:
        """All rows: approvals in order of arrival, then held-back files, then problems."""
        return Rows(self)

    @property
    def length(self) -> int:
        """How many rows there are."""
        return len(self._all) + len(self._files)

    def at(self, row: int) -> Item:
        """Return the item at *row*, from 0.

        Raises:
            IndexError: there is no such row.
        """
        calls = len(self._all)
        return self._items[self._all.key(row)] if row < calls else self._files[row - calls]

    def get(self, key: str) -> Item | None:
        """Return the row of *key*, if there is one."""
        row = self._file_row.get(key)
        return self._items.get(key) if row is None else self._files[row]

    @property
    def current(self) -> Item | None:
        """The selected item."""
        return None if self.selected is None else self.get(self.selected)

    @property
    def decided(self) -> tuple[ApprovalView, ...]:
        """The last ended or decided items, newest first."""
        return tuple(reversed(self._decided))

    @property
    def waiting(self) -> int:
        """How many approvals wait for a person."""
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How many files are held back."""
        return self._held

    @property
    def problems(self) -> int:
        """How many problems the files in the home have."""
        return len(self._files) - self._held

    def nearest_deadline(self) -> float | None:
        """Return when the first of those that wait ends; None where none of them does."""
        while self._deadlines:
            ends, key = self._deadlines[0]
            item = self._items.get(key)
            view = item.approval if item is not None and item.waits else None
            if view is not None and view.expires_at == ends:
                return ends
            heappop(self._deadlines)
        return None

    def file_moved(self, item: Item | None) -> bool:
        """Return whether the action file that *item* was asked for is held back in another form."""
        view = item.approval if item is not None else None
        return view is not None and f"held:action:{view.action}" in self._file_row

    def index(self, key: str | None) -> int:
        """Return the row of *key*; 0 where there is none."""
        if key is None:
            return 0
        if key in self._file_row:
            return len(self._all) + self._file_row[key]
        return self._all.row(self._number[key]) if key in self._number else 0

    def decided_here(self, key: str) -> None:
        """Note that the person answered *key* on this screen."""
        self._mine.add(key)

    def was_mine(self, key: str) -> bool:
        """Return whether the person answered *key* on this screen."""
        return key in self._mine

    def apply(self, view: ApprovalView, now: float) -> bool:
        """Take an update; return whether an item came to wait that was not there before."""
        key = view.approval_id
        before = self._items.get(key)
        if view.state in Ended:
            self._note_end(view)
            if before is not None:
                stay = MINE_SECONDS if key in self._mine else ELSEWHERE_SECONDS
                leaves_at = before.leaves_at if before.leaves_at is not None else now + stay
                self._put(replace(before, approval=view, leaves_at=leaves_at))
            return False
        if view.state not in Waiting and view.decided_at is not None:
            self._note_end(view)
        self._put(Item(key=key, approval=view))
        if self.selected is None:
            self.selected = key
        return before is None

    def set_files(self, held: Iterable[HeldBackView], problems: Iterable[Problem]) -> None:
        """Take the held-back files and the problems, whole.

        A connector stands before the actions that use it. A row under the cursor that is gone
        passes the cursor on.
        """
        ordered = sorted(held, key=lambda each: each.kind != "connector")
        lies = {f"held:{each.kind}:{each.name}": each for each in ordered}
        broken = {f"problem:{each}": each for each in problems}
        if self.selected in self._file_row and self.selected not in lies.keys() | broken.keys():
            self.advance()
        self._held = len(lies)
        self._files = (
            *(Item(key=key, held=each) for key, each in lies.items()),
            *(Item(key=key, problem=each) for key, each in broken.items()),
        )
        self._file_row = {item.key: row for row, item in enumerate(self._files)}
        self._select_something()

    def tick(self, now: float) -> bool:
        """Drop rows whose time is over; return whether any went.

        The selected one stays until the cursor leaves it, unless the person decided it here and
        nothing else waits: then there is nothing left to protect it from.
        """
        while self._leaving and self._leaving[0][0] <= now:
            at, key = heappop(self._leaving)
            item = self._items.get(key)
            if item is not None and item.leaves_at == at:
                self._overdue.add(key)
        gone = [key for key in self._overdue if key != self.selected or key in self._mine]
        for key in gone:
            if key == self.selected:
                self.advance()
            self._drop(key)
        self._select_something()
        return bool(gone)

    def move(self, rows: int) -> None:
        """Move the cursor by *rows*; it stops at the ends."""
        if self.length:
            row = min(max(self.index(self.selected) + rows, 0), self.length - 1)
            self.selected = self.at(row).key

    def select(self, row: int) -> None:
        """Put the cursor on row *row*, if there is one."""
        if 0 <= row < self.length:
            self.selected = self.at(row).key

    def advance(self) -> None:
        """After a decision: go to the next waiting item below, at the end to the one above.

        Approvals come before files: a file is never urgent.
        """
        number = self._number.get(self.selected or "", self._next)
        key = self._waiting.after(number) or self._waiting.before(number)
        if key is not None:
            self.selected = key
            return
        row = self._file_row.get(self.selected or "", -1)
        below = [*self._files[row + 1 : self._held], *reversed(self._files[: max(row, 0)])]
        waits = [item for item in below if item.waits]
        if waits:
            self.selected = waits[0].key

    def _select_something(self) -> None:
        if self.current is None:
            self.selected = self.at(0).key if self.length else None

    def _put(self, item: Item) -> None:
        """Keep *item* under its key, and everything that is found by it."""
        before, view = self._items.get(item.key), item.approval
        self._items[item.key] = item
        number = self._number.get(item.key)
        if number is None:
            number = self._number[item.key] = self._next
            self._next += 1
            self._all.add(number, item.key)
        if item.waits:
            self._waiting.add(number, item.key)
        else:
            self._waiting.discard(number)
        ends = view.expires_at if view is not None and item.waits else None
        known = before.approval.expires_at if before and before.approval and before.waits else None
        if ends is not None and ends != known:
            heappush(self._deadlines, (ends, item.key))
        if item.leaves_at is not None and (before is None or before.leaves_at != item.leaves_at):
            heappush(self._leaving, (item.leaves_at, item.key))

    def _drop(self, key: str) -> None:
        del self._items[key]
        number = self._number.pop(key)
        self._all.discard(number)
        self._waiting.discard(number)
        self._overdue.discard(key)
        self._mine.discard(key)

    def _note_end(self, view: ApprovalView) -> None:
        for row, each in enumerate(self._decided):
            if each.approval_id == view.approval_id:
                self._decided[row] = view
                return
        self._decided.append(view)
        del self._decided[:-KEPT]
