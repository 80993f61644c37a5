"""The screen of view 3, and its keys; what it says is in `state/tables/audit.py`."""

from aileron_core.clock import Clock
from aileron_core.console_port.intents import ExportAudit, VerifyAudit
from aileron_tui.input.commands import CommandHandlers
from aileron_tui.screens.base import Submit
from aileron_tui.screens.listing import ListScreen
from aileron_tui.state.model import Model
from aileron_tui.widgets.rows import RowList


class AuditScreen(ListScreen):
    """One row for each record; older ones are read as the cursor nears them."""

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__("audit", model, clock, submit)

    def view_handlers(self) -> CommandHandlers:
        """Return what every list does, and what is done with records alone."""
        return {
            **super().view_handlers(),
            "show_record": self._show_record,
            "verify": self._verify,
            "export": lambda: self.submit(ExportAudit()),
        }

    def redraw(self) -> None:
        """Draw everything, and ask for what is to be drawn next."""
        super().redraw()
        if not self.has_widgets:
            return
        rows = self.query_one("#list", RowList)
        self.model.audit.set_viewport(round(rows.scroll_offset.y), rows.size.height)
        if not self.is_current or self.model.core_lost is not None:
            return
        wanted = self.model.audit.next_read()
        if wanted is not None:
            self.submit(wanted)

    def _show_record(self) -> None:
        """Show the selected record itself, or again its call."""
        self.model.audit.show_record()
        self.reader.document.focus()

    def _verify(self) -> None:
        self.model.audit.verifying = True
        self.submit(VerifyAudit())
