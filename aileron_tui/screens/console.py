"""One view of the console in the terminal: the widgets of a page, and what Textual tells of them."""

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from aileron_core.clock import Clock
from aileron_tui import words
from aileron_tui.draw.bars import centred
from aileron_tui.draw.text import Line, Piece
from aileron_tui.messages import (
    CommandRequested,
    DocumentClicked,
    PagerRequested,
    Painted,
    PieceClicked,
    RowClicked,
    SettleDue,
    SizeChanged,
)
from aileron_tui.pages.listing import ListPage
from aileron_tui.pages.page import Page, Submit
from aileron_tui.pages.surface import Area, Place
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.state.model import Model
from aileron_tui.terminal.handoff import TerminalHandoff
from aileron_tui.widgets.document import Document, RowList
from aileron_tui.widgets.line_input import LineInput, PassphraseField, TextBox
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines, glyphs_of


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
            (Piece(words.bars.locked(self._model.queue.waiting), "strong"),),
            (),
            (Piece(words.bars.LOCKED_KEY, "muted"),),
        ]
        self.query_one("#locked", Lines).show(*centred(rows, *self.size))


MakePage: TypeAlias = Callable[[Model, Clock, Submit, "ConsoleScreen"], Page]


class ConsoleScreen(Screen[None], inherit_bindings=False):
    """Shows a page (`Surface`), and passes to it what a person does."""

    AUTO_FOCUS = "#document"
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(
        self,
        make: MakePage,
        model: Model,
        clock: Clock,
        submit: Submit,
        handoff: TerminalHandoff,
    ) -> None:
        super().__init__()
        self._handoff = handoff
        self.field = LineInput(id="reason")
        self.area = TextBox(id="area", highlight_cursor_line=False)
        self._waker: Timer | None = None
        self._heights: dict[str, int | None] = {}
        self.page = make(model, clock, submit, self)

    def compose(self) -> ComposeResult:
        """Lay the regions out from top to bottom; the stylesheet places them by size class."""
        page, reader = self.page, self.page.reader
        yield Lines(id="topbar")
        yield Lines(id="banner", grows=True)
        if isinstance(page, WaitingPage):
            with Container(id="body"):
                with Vertical(id="side"):
                    yield Lines(id="sidehead")
                    yield RowList(page.queue, id="queue")
                    yield Lines(id="sidefoot")
                    yield Lines(id="decidedhead")
                    yield RowList(page.decided, id="decided")
                with Vertical(id="item"):
                    yield Lines(id="head", grows=True)
                    yield Lines(id="gap")
                    yield Document(reader.document, id="document")
                yield Lines(id="rail")
        elif isinstance(page, ListPage):
            with Container(id="lists"):
                with Vertical(id="table"):
                    yield Lines(id="listhead", grows=True)
                    yield RowList(page.list, id="list")
                    yield Lines(id="detail")
                with Vertical(id="page"):
                    yield Lines(id="head", grows=True)
                    yield Lines(id="gap")
                    yield Document(reader.document, id="document")
        yield Lines(id="empty")
        yield Lines(id="sentence")
        with Vertical(id="foot"):
            yield Lines(id="guide", grows=True)
            yield Lines(id="status")
            yield Lines(id="keys")
            with Vertical(id="panel"):
                yield Lines(id="question", grows=True)
                yield self.field
                yield self.area
                yield PassphraseField(page.panel.secret, id="passphrase")
                yield Lines(id="panelkeys")

    # What the page asks of it (`Surface` says what each does)

    @property
    def is_ready(self) -> bool:
        """Whether its widgets are mounted, first and last: a closing screen outlives them by a moment."""
        try:
            for each in ("#topbar", "#document", "#panelkeys"):
                self.query_one(each)
        except NoMatches:
            return False
        return True

    @property
    def is_uncovered(self) -> bool:
        """Whether nothing stands over it; to Textual the one below a lock is current too."""
        return self.is_active

    @property
    def lacks_letters(self) -> bool:
        return bool(glyphs_of(self).charset)

    @property
    def rail_size(self) -> tuple[int, int]:
        return self.query_one("#rail", Lines).size

    def arrange_as(self, **classes: bool) -> None:
        self.update_classes({f"-{name}": on for name, on in classes.items()})

    def show(self, area: Area, *rows: Line) -> None:
        self.query_one(f"#{area}", Lines).show(*rows)

    def set_rows(self, pane: Literal["queue", "decided"], rows: int | None) -> None:
        if self._heights.get(pane) != rows:  # setting it lays out the whole screen again
            self._heights[pane] = self.query_one(f"#{pane}", RowList).styles.height = rows

    def focus_on(self, place: Place) -> None:
        names = {"field": "reason", "secret": "passphrase"}
        if place == "nothing":
            self.set_focus(None)
        elif self.is_ready:
            self.query_one(f"#{names.get(place, place)}").focus()

    def after_paint(self, callback: Callable[[], None]) -> None:
        # Everything was written by then; on a slow line it may not have arrived yet.
        self.call_after_refresh(lambda: self.post_message(Painted(callback)))

    def wake_in(self, seconds: float, callback: Callable[[], None]) -> None:
        if self._waker is not None:
            self._waker.stop()
        self._waker = self.set_timer(seconds, callback)

    def settle_in(self, seconds: float) -> None:
        # Every key that had arrived is counted before.
        self.set_timer(seconds, lambda: self.post_message(SettleDue()))

    def redraw_soon(self) -> None:
        self.post_message(SizeChanged())

    def request(self, command: str) -> None:
        self.post_message(CommandRequested(command))

    def copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]

    def read_in_pager(self, text: str, name: str) -> None:
        self.post_message(PagerRequested(text, name))

    def open_link(self, url: str) -> None:
        self._handoff.open_link(url)

    # What Textual tells

    def set_first_layout(self, width: int, height: int) -> None:
        """Take the layout of a terminal of *width* by *height* cells before mounting: styles are then found once."""
        self.page.model.size = (width, height)
        classes = {f"-{name}": on for name, on in self.page.arrangement().items()}
        self.update_classes(classes, update=False)

    def on_resize(self, event: events.Resize) -> None:
        self.page.resize(*event.size)

    def on_size_changed(self, message: SizeChanged) -> None:
        """Draw for the size that a widget has now."""
        message.stop()
        self.page.redraw()

    def on_screen_suspend(self) -> None:
        self.page.leave()

    def on_screen_resume(self) -> None:
        """Draw what changed while another screen was shown."""
        # Its own size is known at the next event.
        self.page.resize(*self.app.size)  # pyright: ignore[reportUnknownMemberType]

    def on_piece_clicked(self, message: PieceClicked) -> None:
        message.stop()
        self.page.click_piece(message.action)

    def on_document_clicked(self, message: DocumentClicked) -> None:
        message.stop()
        self.page.click_document(message.href)

    def on_row_clicked(self, message: RowClicked) -> None:
        self.page.click_row(message.row, message.list_id)

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self.page.panel.typed(message.value)
