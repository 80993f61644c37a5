"""The waiting list as a state: order of arrival, a cursor that belongs to an item, not to a row."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from aileron_core.control_plane.port import ApprovalView, HeldBackView, Waiting
from aileron_core.errors import Problem

__all__ = ["ELSEWHERE_SECONDS", "MINE_SECONDS", "Item", "Queue"]

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


class Queue:
    """Items by key. Nothing but `move`, `select` and `advance` changes the selected key."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._held: dict[str, Item] = {}
        self._problems: dict[str, Item] = {}
        self._decided: list[ApprovalView] = []
        self._mine: set[str] = set()
        self.selected: str | None = None
        self._rows: tuple[Item, ...] | None = None
        self._row_of: dict[str, int] = {}

    def _changed(self) -> None:
        self._rows = None

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
                self._items[view.approval_id] = Item(key=view.approval_id, approval=view)
        self._decided.sort(key=lambda view: view.decided_at or view.ended_at or view.requested_at)
        self._changed()
        self.set_files(held, problems)
        if self.selected is None:
            self.selected = next((item.key for item in self.items), None)

    @property
    def items(self) -> tuple[Item, ...]:
        """All rows: approvals in order of arrival, then held-back files, then problems."""
        if self._rows is None:
            rows = (self._items, self._held, self._problems)
            self._rows = tuple(item for each in rows for item in each.values())
            self._row_of = {item.key: row for row, item in enumerate(self._rows)}
        return self._rows

    def get(self, key: str) -> Item | None:
        """Return the row of *key*, if there is one."""
        return self._items.get(key) or self._held.get(key) or self._problems.get(key)

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
        return sum(item.waits for item in self._items.values())

    @property
    def held(self) -> int:
        """How many files are held back."""
        return len(self._held)

    @property
    def problems(self) -> int:
        """How many problems the files in the home have."""
        return len(self._problems)

    def file_moved(self, item: Item | None) -> bool:
        """Return whether the action file that *item* was asked for is held back in another form."""
        view = item.approval if item is not None else None
        return view is not None and f"held:action:{view.action}" in self._held

    def index(self, key: str | None) -> int:
        """Return the row of *key*; 0 where there is none."""
        return self._row_of.get(key, 0) if self.items and key is not None else 0

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
        self._changed()
        if view.state in Ended:
            self._note_end(view)
            if before is not None:
                stay = MINE_SECONDS if key in self._mine else ELSEWHERE_SECONDS
                leaves_at = before.leaves_at if before.leaves_at is not None else now + stay
                self._items[key] = replace(before, approval=view, leaves_at=leaves_at)
            return False
        if view.state not in Waiting and view.decided_at is not None:
            self._note_end(view)
        self._items[key] = Item(key=key, approval=view)
        if self.selected is None:
            self.selected = key
        return before is None

    def set_files(self, held: Iterable[HeldBackView], problems: Iterable[Problem]) -> None:
        """Take the held-back files and the problems, whole.

        A connector stands before the actions that use it. A row under the cursor that is gone
        passes the cursor on.
        """
        ordered = sorted(held, key=lambda each: each.kind != "connector")
        fresh = {f"held:{each.kind}:{each.name}": each for each in ordered}
        broken = {f"problem:{each}": each for each in problems}
        gone = (self._held.keys() | self._problems.keys()) - fresh.keys() - broken.keys()
        if self.selected in gone:
            self.advance()
        self._held = {key: Item(key=key, held=each) for key, each in fresh.items()}
        self._problems = {key: Item(key=key, problem=each) for key, each in broken.items()}
        self._changed()
        if self.current is None:
            self.selected = next((item.key for item in self.items), None)

    def tick(self, now: float) -> bool:
        """Drop rows whose time is over; return whether any went.

        The selected one stays until the cursor leaves it, unless the person decided it here and
        nothing else waits: then there is nothing left to protect it from.
        """
        over = [i for i in self._items.values() if i.leaves_at is not None and i.leaves_at <= now]
        gone = [i.key for i in over if i.key != self.selected or i.key in self._mine]
        for key in gone:
            if key == self.selected:
                self.advance()
            del self._items[key]
            self._mine.discard(key)
            self._changed()
        if self.current is None:
            self.selected = next((item.key for item in self.items), None)
        return bool(gone)

    def move(self, rows: int) -> None:
        """Move the cursor by *rows*; it stops at the ends."""
        items = self.items
        if items:
            at = min(max(self.index(self.selected) + rows, 0), len(items) - 1)
            self.selected = items[at].key

    def select(self, row: int) -> None:
        """Put the cursor on row *row*, if there is one."""
        items = self.items
        if 0 <= row < len(items):
            self.selected = items[row].key

    def advance(self) -> None:
        """After a decision: go to the next waiting item below, at the end to the one above."""
        items = self.items
        at = self.index(self.selected)
        below = [item for item in items[at + 1 :] if item.waits]
        above = [item for item in reversed(items[:at]) if item.waits]
        # Approvals come before files: a file is never urgent.
        order = (
            [i for i in below if i.approval] or [i for i in above if i.approval] or below or above
        )
        if order:
            self.selected = order[0].key

    def _note_end(self, view: ApprovalView) -> None:
        for row, each in enumerate(self._decided):
            if each.approval_id == view.approval_id:
                self._decided[row] = view
                return
        self._decided.append(view)
        del self._decided[:-KEPT]
