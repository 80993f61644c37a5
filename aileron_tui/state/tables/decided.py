"""The list of decisions in view 1: the newest first; the selected call is shown whole beside it."""

from collections.abc import Sequence

from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.rows import decided_header, decided_row
from aileron_tui.draw.text import Line
from aileron_tui.items import Item
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.tables.table import KeyedTable


class DecidedTable(KeyedTable[ApprovalView]):
    """The calls that were decided or ended. The cursor belongs to a call: later ones come in above it."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        """It has the cursor; else the list of what waits has it."""

    def enter(self) -> None:
        """Put the cursor on the first row."""
        self.select(0)
        self.active = self.opened = bool(len(self))

    def leave(self) -> None:
        self.active = self.opened = False

    def update(self, calls: Sequence[ApprovalView], now: float) -> None:
        """Take the decisions, newest first; without any the cursor leaves."""
        self.set_items(calls, now)
        self.opened = self.active = self.active and bool(calls)

    def key_of(self, item: ApprovalView) -> str:
        return item.call_id

    def fields_of(self, item: ApprovalView) -> FilterFields:
        return FilterFields(text=item.title, fields={}, at=item.requested_at)

    @property
    def version(self) -> tuple[object, ...]:
        return (self.key,)

    def header(self, width: int, now: float) -> tuple[Line, ...]:
        return (decided_header(len(self)),)

    def row(self, number: int, width: int, now: float, *, selected: bool) -> Line:
        item = self.item(number)
        return () if item is None else decided_row(item, width, now, selected=selected)

    @property
    def current_item(self) -> Item | None:
        """The selected call as the waiting list would show it: its page until it was read whole."""
        view = self.current
        return None if view is None else Item(key=view.call_id, approval=view)
