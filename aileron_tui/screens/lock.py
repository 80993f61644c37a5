"""The screen of a console that nobody has touched for long: a count, and nothing else."""

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from aileron_tui import words
from aileron_tui.draw.bars import centred
from aileron_tui.draw.text import Line, Piece
from aileron_tui.state.model import Model
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines


class LockScreen(Screen[None]):
    """Covers everything. The key that ends it is the application's to take."""

    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    def compose(self) -> ComposeResult:
        yield Lines(id="locked")

    def on_resize(self, event: events.Resize) -> None:
        self.redraw()

    def redraw(self) -> None:
        if not self.query("#locked"):
            return  # an update came between its mounting and that of its lines, or as it closes
        rows: list[Line] = [
            (Piece(words.panels.locked(self._model.queue.waiting), "strong"),),
            (),
            (Piece(words.panels.LOCKED_KEY, "muted"),),
        ]
        self.query_one("#locked", Lines).show(*centred(rows, *self.size))
