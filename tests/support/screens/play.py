"""What the console shows and what a key does, without a terminal: the pages on a surface of plain text."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from rich.cells import cell_len, set_cell_size

from aileron_core.console_port.events import CoreEvent, CoreLost, Snapshot
from aileron_core.console_port.intents import Intent
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.guide import GuideLine
from aileron_tui.draw.searching import mark_line
from aileron_tui.draw.text import Line
from aileron_tui.input.commands import CommandRegistry, View
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.pages.listing import AuditPage, ListPage
from aileron_tui.pages.page import Page
from aileron_tui.pages.panes import DocumentPane, RowsPane
from aileron_tui.pages.reading import SEEN_SECONDS
from aileron_tui.pages.surface import Area
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.state.apply_event import apply_event
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.model import Model
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.port import RecordingPort
from tests.support.screens.watched import T, Watched

CHARACTERS = {
    "space": " ", "colon": ":", "greater_than_sign": ">", "slash": "/", "less_than_sign": "<",
    "quotation_mark": '"', "minus": "-", "question_mark": "?",
}  # fmt: skip
_NAMES = {character: name for name, character in CHARACTERS.items()}
_PAGES: dict[View, Callable[..., Page]] = {
    "waiting": WaitingPage, "activity": partial(ListPage, "activity"), "audit": AuditPage,
    "library": partial(ListPage, "library"), "sessions": partial(ListPage, "sessions"),
    "accounts": partial(ListPage, "accounts"), "rules": partial(ListPage, "rules"),
}  # fmt: skip


class _Field:
    """A line to type in, at its end alone."""

    def __init__(self) -> None:
        self.value = ""
        self._limit = 0

    def ask(self, text: str, placeholder: str, limit: int) -> None:
        del placeholder
        self.value, self._limit = text, limit

    def put(self, text: str) -> None:
        self.value = text

    def edits_by(self, key: str, *, printable: bool) -> bool:
        return printable or key in ("backspace", "delete", "left", "right", "home", "end", "ctrl+u")

    def press(self, key: str, character: str) -> None:
        if key == "backspace":
            self.value = self.value[:-1]
        elif key == "ctrl+u":
            self.value = ""
        else:
            self.value = (self.value + character)[: self._limit]


class Play(Watched):
    """A console's pages: press, tell, let time pass, and read lines.

    It is the `Surface` of its pages; where each area stands is what the stylesheet says.
    """

    def __init__(
        self,
        start: Snapshot,
        size: tuple[int, int] = (120, 36),
        *,
        answers: bool = False,
        registry: CommandRegistry = DEFAULT_REGISTRY,
        start_view: View = "waiting",
        arm_seconds: float = 0.4,
    ) -> None:
        self.clock = FrozenClock()
        self.port = RecordingPort(start, clock=self.clock, answers=answers)
        self._came: list[CoreEvent] = []
        first = self.port.connect(self._came.append)
        self._model = Model(first, arm_seconds=arm_seconds, registry=registry, now=self.clock.now())
        self.model.view = start_view
        self.model.size = size
        self.model.account_panel.has_browser = False
        self.field, self.area = _Field(), _Field()
        self.is_ready = self.is_current = self.is_uncovered = True
        self.lacks_letters = False
        self.rail_size = (50, 0)
        self.asked_of_app: list[tuple[str, ...]] = []
        """What was asked of the application: a command, a text to copy, an address to open."""
        self._areas: dict[str, tuple[Line, ...]] = {}
        self._classes: dict[str, bool] = {}
        self._heights: dict[str, int | None] = {}
        self._painted: list[Callable[[], None]] = []
        self._focused = "document"
        self._pages = {
            view: make(self.model, self.clock, self.port.submit, self)
            for view, make in _PAGES.items()
        }
        for each in self._pages.values():
            each.reader.cache = DocumentCache(registry)  # it lays out large texts at once
        if (rest := self.model.next_read()) is not None:
            self.port.submit(rest)
        self.page.resize(*size)
        self.settled()

    @property
    def model(self) -> Model:
        return self._model

    @property
    def page(self) -> Page:
        return self._pages[self.model.view]

    # What the pages ask of it

    def arrange_as(self, **classes: bool) -> None:
        self._classes = classes

    def show(self, area: Area, *rows: Line) -> None:
        self._areas[area] = rows

    def set_rows(self, pane: Literal["queue", "decided"], rows: int | None) -> None:
        self._heights[pane] = rows

    def focus_on(self, place: str) -> None:
        self._focused = place

    def after_paint(self, callback: Callable[[], None]) -> None:
        self._painted.append(callback)

    def wake_in(self, seconds: float, callback: Callable[[], None]) -> None:
        """`passes` and `rest` look by themselves."""

    def settle_in(self, seconds: float) -> None:
        """`settled` does so by itself."""

    def redraw_soon(self) -> None:
        """Nothing is drawn in the background."""

    def request(self, command: str) -> None:
        views: dict[str, View] = {f"view_{view}": view for view in _PAGES}
        if command not in views:
            self.asked_of_app.append((command,))
        elif views[command] != self.model.view:
            self.page.leave()
            self.model.switch_to(views[command])

    def copy(self, text: str) -> None:
        self.asked_of_app.append(("copy", text))

    def read_in_pager(self, text: str, name: str) -> None:
        self.asked_of_app.append(("pager", text, name))

    def open_link(self, url: str) -> None:
        self.asked_of_app.append(("link", url))

    # What is on screen

    def _place(self) -> bool:
        """Give each pane its size; return whether one has another than before."""
        (width, height), on = self.model.size, self._classes
        page, reader = self.page, self.page.reader.document
        before = [(each.width, each.height) for each in self._panes]
        height -= len(self._rows("banner")) + len(self._foot()) + (not on.get("reader"))
        head, is_compact = len(self._rows("head")), bool(on.get("compact"))
        gap = 0 if is_compact else 1
        padding = 0 if is_compact or on.get("reader") else 1
        gap = 0 if on.get("reader") else gap
        if isinstance(page, WaitingPage) and is_compact:
            queue, decided = self._heights.get("queue") or 5, self._heights.get("decided") or 5
            side = decided + 1 if on.get("decided") else queue + 1
            page.queue.resize(width, queue)
            page.decided.resize(width, decided)
            reader.resize(width, height - head - (0 if on.get("reader") else side))
        elif isinstance(page, WaitingPage):
            side, rail = (52, 50) if on.get("wide") else (45, 0)
            page.queue.resize(side, height - 11)
            page.decided.resize(side, 6)
            self.rail_size = (rail, height)
            taken = 0 if on.get("reader") else side + rail
            reader.resize(width - taken, height - head - gap - padding)
        elif isinstance(page, ListPage):
            beside = width * 45 // 100 if on.get("beside") else 0
            page.list.resize(
                width - beside, height - len(self._rows("listhead")) - (4 if is_compact else 5)
            )
            width = beside if beside and not on.get("opened") else width
            reader.resize(width, height - head - gap - padding)
        return before != [(each.width, each.height) for each in self._panes]

    @property
    def _panes(self) -> list[DocumentPane | RowsPane]:
        page, document = self.page, self.page.reader.document
        if isinstance(page, WaitingPage):
            return [page.queue, page.decided, document]
        assert isinstance(page, ListPage)
        return [page.list, document]

    def _draw(self) -> None:
        """Draw until every area has the size that its neighbours leave, then count it as on screen."""
        for _ in range(6):
            self.page.redraw()
            if not self._place():
                break
        painted, self._painted = self._painted, []
        for each in painted:
            each()

    def _rows(self, area: str) -> tuple[Line, ...]:
        return self._areas.get(area, ())

    def _foot(self) -> list[str]:
        width = self.model.size[0]
        rows = [*self._rows("guide")]
        if not self._classes.get("panel"):
            return [
                _drawn(each, width) for each in (*rows, *self._rows("status"), *self._rows("keys"))
            ]
        above = [_drawn(each, width) for each in (*rows, *self._rows("question"))]
        if self._classes.get("passphrase"):
            above.append(" " + "•" * self.page.panel.secret.characters + "▏")
        elif self._classes.get("field"):
            above.append(" " + self.field.value)
        elif self._classes.get("area"):
            above += [f" {each}" for each in self.area.value.split("\n")]
        return [*above, *(_drawn(each, width) for each in self._rows("panelkeys"))]

    @property
    def lines(self) -> list[str]:
        (width, height), on = self.model.size, self._classes
        if on.get("small"):
            return _padded([_drawn(each, width) for each in self._rows("sentence")], height)
        page, top = self.page, [] if on.get("reader") else [*self._rows("topbar")]
        above = [_drawn(each, width) for each in (*top, *self._rows("banner"))]
        foot = self._foot()
        room = height - len(above) - len(foot)
        if on.get("empty"):
            body = [_drawn(each, width) for each in self._rows("empty")]
        elif isinstance(page, WaitingPage):
            body = self._waiting(page, width, room)
        elif on.get("opened"):
            body = self._item(width)
        else:
            assert isinstance(page, ListPage)
            blank = [] if on.get("compact") else [""]
            rows = [_drawn(each, width) for each in self._rows("listhead")]
            detail = [_drawn(each, width) for each in self._rows("detail")][:3]
            body = [*blank, *rows, *_listed(page.list), "", *_padded(detail, 3)]
            if on.get("beside"):
                item, left = self._item(self.document.width), page.list.width
                body = [
                    set_cell_size(each, left) + more
                    for each, more in zip(_padded(body, room), _padded(item, room), strict=True)
                ]
        return [*above, *_padded(body, room), *foot]

    def _waiting(self, page: WaitingPage, width: int, room: int) -> list[str]:
        on = self._classes
        if on.get("reader"):
            return self._item(width)
        side_width = page.queue.width
        heads = {
            name: [_drawn(each, side_width) for each in self._rows(name)]
            for name in ("sidehead", "sidefoot", "decidedhead")
        }
        if on.get("compact"):
            below = [*heads["decidedhead"], *_listed(page.decided)]
            above = [*_listed(page.queue), *_padded(heads["sidefoot"], 1)]
            return [*(below if on.get("decided") else above), *self._item(width)]
        side = [
            *_padded(heads["sidehead"], 3),
            *_listed(page.queue),
            *_padded(heads["sidefoot"], 1),
        ]
        side += [*heads["decidedhead"], *_listed(page.decided)]
        item_width, rail_width = self.page.reader.document.width, self.rail_size[0]
        rail = [_drawn(each, rail_width) for each in self._rows("rail")] if on.get("wide") else []
        return [
            set_cell_size(left, side_width) + set_cell_size(middle, item_width) + right
            for left, middle, right in zip(
                _padded(side, room), _padded(self._item(item_width), room), _padded(rail, room),
                strict=True,
            )
        ]  # fmt: skip

    def _item(self, width: int) -> list[str]:
        is_plain = self._classes.get("compact") or self._classes.get("reader")
        head = [_drawn(each, width) for each in self._rows("head")]
        pane, rows = self.page.reader.document, list[str]()
        for row in range(*pane.rows_in_view):
            line = pane.layout.line(row, wrap_marks=pane.wrap_marks)
            marked = mark_line(line, pane.found[row]) if row in pane.found else line
            rows.append(
                set_cell_size(_drawn(marked, width - 1), width - 1)
                + _drawn(pane.track(len(rows)), 1)
            )
        return [*head, *rows] if is_plain else ["", *head, "", *rows]

    @property
    def document(self) -> DocumentPane:
        return self.page.reader.document

    @property
    def queue(self) -> RowsPane:
        page = self._pages["waiting"]
        assert isinstance(page, WaitingPage)
        return page.queue

    # What it asked of the core

    def asks_for(self, kind: type[T]) -> T:
        """Return the one thing that was asked of the core, of that *kind*."""
        (intent,) = self.port.intents
        assert isinstance(intent, kind)
        return intent

    def asks(self, *intents: Intent) -> None:
        """Exactly *intents* were asked of the core; without any, something was."""
        self.settled()
        assert self.port.intents
        assert not intents or self.port.intents == [*intents]

    def asks_nothing(self) -> None:
        """Let time pass: nothing is asked of the core, nor was before."""
        self.passes(1)
        assert self.port.intents == []

    # Events and time

    def settled(self) -> None:
        """Handle what came, and whatever time alone does by now."""
        arming = self.model.arming
        self._take_events()
        self._draw()
        while arming.awaits_silence and not arming.in_burst(self.clock.monotonic()):
            self.page.settle(self.clock.monotonic())
            self._take_events()
            self._draw()

    def _take_events(self) -> None:
        self.port.deliver()
        while self._came:
            event = self._came.pop(0)
            apply_event(self.model, event, self.clock.now(), self.clock.monotonic())
            if isinstance(event, CoreLost):
                self.model.arming.reset()
            self._draw()  # and so asks for what is to be read next
            self.port.deliver()

    def tell(self, *events: CoreEvent) -> None:
        """Let the core say *events*, and show what comes of them."""
        self.port.tell(*events)
        self.settled()

    def until(self, holds: Callable[[], bool], what: str = "") -> None:
        self.settled()
        assert holds(), f"never came: {what}\n{self.text}"

    def shows(self, *texts: str) -> None:
        self.settled()
        for each in texts:
            assert each in self.text, f"never came: {each}\n{self.text}"

    def tick(self) -> None:
        self.model.tick(self.clock.monotonic())
        self.settled()

    def passes(self, seconds: float) -> None:
        """Let *seconds* pass, and do whatever time alone does."""
        self.settled()
        self.clock.advance(seconds)
        self.page.reader.look()
        self.tick()

    def rest(self, seconds: float = 2.0) -> None:
        """Let the person rest for *seconds* before what is drawn."""
        self.passes(seconds)
        if not self.armed:
            self.passes(seconds)  # it was drawn only after the clock had moved
        self.quiet()
        assert self.armed, f"never armed\n{self.text}"

    def quiet(self) -> None:
        """Let what is in view count as seen."""
        self.passes(SEEN_SECONDS)

    def read_all(self) -> None:
        """Read to the end, a pane at a time, each for long enough."""
        self.rest()
        while "not seen yet" in self.status_line:
            before = self.document.top
            self.press("space")
            assert self.document.top > before
            self.rest()

    # What a person does

    def press(self, *keys: str) -> None:
        """Press keys in one breath: the clock stands still between them."""
        for each in keys:
            self._press(_NAMES.get(each, each))
            self.settled()

    def _press(self, key: str) -> None:
        page, character = self.page, CHARACTERS.get(key, key if len(key) == 1 else "")
        if page.begin_key(key, self.clock.monotonic(), late=False):
            return
        if not page.take_key(key, printable=bool(character)):
            if self._focused == "secret":
                page.panel.secret.press(key, character or None)
            elif self._focused == "area":
                self.area.press(key, "\n" if key == "enter" else character)
            elif self._focused == "field":
                self.field.press(key, character)
                page.panel.typed(self.field.value)
        page.end_key()

    def press_alone(self, key: str, *texts: str) -> None:
        """Press one key, and be silent after it for long enough; then *texts* are shown."""
        self.press(key)
        self.clock.advance(0.03)
        self.shows(*texts)

    def in_vain(self, key: str, *texts: str) -> None:
        """Press one key alone, which asks the core for nothing; then *texts* are shown."""
        self.press_alone(key, *texts)
        assert self.port.intents == []

    def press_rested(self, key: str, *texts: str) -> None:
        """Rest before what is drawn, and press one key; then *texts* are shown."""
        self.rest()
        self.press_alone(key, *texts)

    def go(self, key: str, *texts: str) -> None:
        """Press one key at rest; then *texts* are shown."""
        self.clock.advance(0.5)
        self.press_alone(key, *texts)

    def to_row(self, name: str) -> None:
        while name not in self.row:
            before = self.row
            self.go("j", "")
            assert self.row != before

    def type(self, text: str) -> None:
        """Type *text* at a person's pace, some time after what asked for it was opened."""
        self.clock.advance(0.1)
        for each in text:
            self.press(each)
            self.clock.advance(0.1)

    def paste(self, text: str) -> None:
        at, model = self.clock.monotonic(), self.model
        dropped = model.drops_paste(at)
        model.arming.on_paste(at)
        if not dropped and self._focused == "secret":
            self.page.panel.secret.append(text.splitlines()[0])
        self.settled()

    def pressed_by_mouse(self, command: str) -> None:
        self.page.click_piece(command)
        self.settled()

    def click_row(self, row: int, pane: str) -> None:
        self.page.click_row(row, pane)
        self.settled()

    def focus(self, focused: bool) -> None:
        """The terminal reports that the pane got or lost the focus."""
        self.model.arming.on_focus(focused, self.clock.monotonic())
        self.model.forget_refusal()
        self.settled()

    def resize(self, columns: int, rows: int) -> None:
        self.page.resize(columns, rows)
        self.settled()

    def guide(self, said: GuideLine) -> None:
        self.model.guide = said
        self.settled()


def _drawn(line: Line, width: int) -> str:
    text = "".join(piece.text for piece in Glyphs().draw(line, width))
    return set_cell_size(text, width) if cell_len(text) > width else text


def _padded(rows: list[str], height: int) -> list[str]:
    return [*rows[:height], *[""] * (height - len(rows))]


def _listed(pane: RowsPane) -> list[str]:
    rows = [
        line for row in pane.rows_in_view for line in (*pane.lines(row), (), ())[: pane.row_height]
    ]
    skipped = pane.top % pane.row_height
    return _padded([_drawn(each, pane.width) for each in rows[skipped:]], pane.height)


def rested(start: Snapshot, size: tuple[int, int] = (120, 36), **options: Any) -> Play:
    """Play a console on which what is selected is at rest: the next key counts."""
    play = Play(start, size, **options)
    play.rest()
    return play
