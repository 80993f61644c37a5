"""View 2: what was recorded, newest first."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical

from aileron_core.clock import Clock
from aileron_tui.actions import Context
from aileron_tui.messages import RowClicked
from aileron_tui.presenters import chrome
from aileron_tui.presenters.activity import (
    activity_detail,
    activity_header,
    activity_row,
    activity_voice,
)
from aileron_tui.presenters.lines import Line
from aileron_tui.presenters.model import Model
from aileron_tui.screens.base import ConsoleScreen, Submit
from aileron_tui.widgets.linework import Lines
from aileron_tui.widgets.rows import RowList

__all__ = ["ActivityScreen"]


class ActivityScreen(ConsoleScreen):
    """The list of committed records. The cursor belongs to a record: new ones do not move it."""

    CONTEXTS: ClassVar[tuple[Context, ...]] = ("activity",)

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__(model, clock, submit)
        self._selected: int | None = None

    def compose(self) -> ComposeResult:
        """Lay out the list between top bar and keys."""
        yield Lines(id="topbar")
        yield Lines(id="banner", grows=True)
        with Vertical(id="activity"):
            yield Lines(id="listhead")
            yield RowList(id="list", draw=self._row)
            yield Lines(id="detail")
        yield Lines(id="sentence")
        with Vertical(id="foot"):
            yield Lines(id="voice")
            yield Lines(id="keys")

    @property
    def _index(self) -> int:
        """The row of the selected record; the newest while the person has not moved."""
        if self._selected is None:
            return 0
        newest = self.model.records[-1].seq if self.model.records else 0
        return min(max(newest - self._selected, 0), max(len(self.model.records) - 1, 0))

    def redraw(self) -> None:
        """Draw everything from the model."""
        super().redraw()
        width, records = self.size.width, self.model.records
        if self.model.small:
            self._draw_sentence()
            return
        self.query_one("#listhead", Lines).show((), activity_header(width))
        self.query_one("#list", RowList).show(len(records), 1, self._index)
        chosen = records[len(records) - 1 - self._index] if records else None
        detail = activity_detail(chosen, width) if chosen is not None else ()
        self.query_one("#detail", Lines).show(*detail)
        said = activity_voice(tuple(records)[-1:], self.model.head_words)
        self.query_one("#voice", Lines).show(chrome.voice_line(said, None, width))
        self.query_one("#keys", Lines).show(chrome.footer_line("activity", self.situation, width))

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        records = self.model.records
        if row >= len(records):
            return ()
        return (activity_row(records[len(records) - 1 - row], width, selected=selected),)

    def _go(self, row: int) -> None:
        records = self.model.records
        if records:
            row = min(max(row, 0), len(records) - 1)
            self._selected = records[len(records) - 1 - row].seq if row else None
        self.redraw()

    def action_next(self) -> None:
        """Select the next older record."""
        self._go(self._index + 1)

    def action_previous(self) -> None:
        """Select the next newer record."""
        self._go(self._index - 1)

    def action_first(self) -> None:
        """Select the newest record, and follow."""
        self._go(0)

    def action_last(self) -> None:
        """Select the oldest record that is kept."""
        self._go(len(self.model.records))

    def action_page_down(self) -> None:
        """Select the record one page below."""
        self._go(self._index + self.query_one("#list", RowList).page)

    def action_page_up(self) -> None:
        """Select the record one page above."""
        self._go(self._index - self.query_one("#list", RowList).page)

    def on_row_clicked(self, message: RowClicked) -> None:
        """Select the clicked row."""
        self._go(message.row)
