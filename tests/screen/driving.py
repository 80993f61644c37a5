"""Drives the real application through Pilot, on a clock that the test owns."""

import asyncio
import unicodedata
from collections.abc import Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from textual.events import Key, Paste
from textual.geometry import Region
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from aileron_core.console_port.events import Snapshot
from aileron_core.console_port.intents import Intent
from aileron_tui.app import AileronApp
from aileron_tui.pages.panes import DocumentPane, RowsPane
from aileron_tui.pages.reading import SEEN_SECONDS
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.screens.console import ConsoleScreen
from aileron_tui.state.model import Model
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.play import CHARACTERS
from tests.support.screens.port import RecordingPort
from tests.support.screens.watched import Watched

_TYPED = {character: name for name, character in CHARACTERS.items()}
PATIENCE = 60.0
QUIET_TURNS = 4
"""How many turns of the loop in a row must find nothing on its way."""
SPINS = 200
"""How many turns go by without a wait."""


def app_on(clock: FrozenClock, port: RecordingPort, **options: Any) -> AileronApp:
    """Return the App on the test's clock alone: how late a busy machine handles a key is not on it."""
    app = AileronApp(port, clock=clock, **options)
    app._key_timing.pressed_at = lambda _: clock.monotonic()
    return app


class Console(Watched):
    """One running console: what it shows, what it asked the core for. A person does in it what one does in a `Play`."""

    def __init__(self, app: AileronApp, port: RecordingPort, clock: FrozenClock) -> None:
        self.app, self.port, self.clock = app, port, clock
        self.pilot: Pilot[int]

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]

    def _line(self, row: int) -> str:
        """Return line *row* alone: to draw all of them for one is most of what a look costs."""
        compositor = self.app.screen._compositor
        row %= compositor.size.height
        region = Region(0, row, compositor.size.width, 1)
        chops = compositor._render_chops(region, lambda y: y == row)
        return Strip.join(chops[row].values()).text

    @property
    def keys(self) -> str:
        return self._line(-1)

    @property
    def status_line(self) -> str:
        return self._line(-2)

    @property
    def model(self) -> Model:
        assert self.app._model is not None
        return self.app._model

    @property
    def document(self) -> DocumentPane:
        assert isinstance(self.app.screen, ConsoleScreen)
        return self.app.screen.page.reader.document

    @property
    def queue(self) -> RowsPane:
        assert isinstance(self.app.screen, ConsoleScreen)
        assert isinstance(self.app.screen.page, WaitingPage)
        return self.app.screen.page.queue

    def region(self, selector: str) -> Region:
        return self.app.screen.query_one(selector).region

    # What comes is handled

    def _unsettled(self) -> str:
        """Return what is still on its way to the screen, or nothing.

        A busy machine changes how long this takes, and nothing else.
        """
        app = self.app
        if app._exit or app._exception is not None:
            return ""
        if not self.port.idle or app._inbox.has_more:
            return "events of the core"
        pumps = (app, *app._registry)
        if busy := next((each for each in pumps if not _is_idle(each)), None):
            return f"messages of {busy}"
        model = app._model
        if model is not None:
            arming = model.arming
            if arming.awaits_silence and not arming.in_burst(self.clock.monotonic()):
                return "a press that has had its silence"
        if app._redraw_due:
            return "drawing events"
        if not _is_painted(app.screen):
            app.screen._on_timer_update()  # as its timer would, 60 times a second
            return "painting"
        return ""

    async def settled(self) -> None:
        """Wait until all that came was handled and painted: nothing more comes by itself."""
        deadline, turns, quiet = monotonic() + PATIENCE, 0, 0
        while quiet < QUIET_TURNS:
            unsettled = self._unsettled()
            assert not unsettled or monotonic() < deadline, f"never settled: {unsettled}"
            quiet = 0 if unsettled else quiet + 1
            turns += 1
            await asyncio.sleep(0 if turns < SPINS else 0.001)

    async def until(self, holds: Callable[[], bool], what: str = "") -> None:
        """Wait until *holds*, which is asked only where everything that came was handled."""
        deadline = monotonic() + PATIENCE
        await self.settled()
        while not holds():
            assert monotonic() < deadline, f"never came: {what}\n{self.text}"
            await asyncio.sleep(0.002)
            await self.settled()

    async def shows(self, *texts: str) -> None:
        await self.until(lambda: all(each in self.text for each in texts), str(texts))

    async def tick(self) -> None:
        self.app._tick()
        await self.settled()

    async def passes(self, seconds: float) -> None:
        await self.settled()
        self.clock.advance(seconds)
        if isinstance(page := self.app.screen, ConsoleScreen):
            page.page.reader.look()
        await self.tick()

    # What a person does

    async def rest(self, seconds: float = 2.0) -> None:
        """Let the person rest for *seconds* before what is drawn, and wait until the screen knows."""
        await self.settled()
        self._pass(seconds)

        def rested() -> bool:
            if self.drawn and not self.armed:
                self._pass(seconds)  # it was drawn only after the clock had moved
            return self.armed

        await self.until(rested, "armed")
        await self.quiet()
        await self.until(rested, "armed")

    def _pass(self, seconds: float) -> None:
        """Move the clock, and do at once what is due by then: later it would disturb a rest."""
        self.clock.advance(seconds)
        self.app._tick()

    async def quiet(self) -> None:
        """Wait until what is in view counts as seen and everything was drawn."""

        def seen() -> bool:
            model = self.model
            page = self.app._screens[model.view]
            if not page.is_current or model.too_small or not model.document_shown:
                return True
            reader = page.page.reader
            in_view = range(*reader.document.rows_in_view)
            if model.reading.frozen or not model.reading.unseen_rows() & frozenset(in_view):
                return True
            if self.clock.monotonic() - reader._in_view_since < SEEN_SECONDS:
                self.clock.advance(SEEN_SECONDS)  # it was drawn only after the clock had moved
            return False

        await self.until(seen, "seen")
        self.app.draw_all()
        await self.settled()

    async def read_all(self) -> None:
        await self.rest()
        while "not seen yet" in self.status_line:
            before = self.status_line
            await self.press("space")
            await self.rest()
            await self.until(lambda b=before: self.status_line != b, "read on")

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.app.post_message(_event_of(key))
            await self.settled()

    async def press_alone(self, key: str, *texts: str) -> None:
        await self.press(key)
        self.clock.advance(0.03)
        await self.shows(*texts)

    async def type(self, text: str) -> None:
        await self.settled()
        self.clock.advance(0.1)
        for char in text:
            await self.press(_TYPED.get(char, char))
            self.clock.advance(0.1)
        await self.settled()

    async def press_rested(self, key: str, *texts: str) -> None:
        await self.rest()
        await self.press_alone(key, *texts)

    async def asks(self, *intents: Intent) -> None:
        """Wait until exactly *intents* were asked of the core; without any, until one was."""
        await self.until(lambda: bool(self.port.intents), "something is asked of the core")
        assert not intents or self.port.intents == [*intents]

    async def asks_nothing(self) -> None:
        await self.passes(1)
        assert self.port.intents == []

    def paste(self, *events: Key | Paste) -> None:
        """Have the terminal's driver read *events* in one breath."""
        driver = self.app._driver
        assert driver is not None
        for event in events:
            driver.process_message(event)

    async def go(self, key: str, *texts: str) -> None:
        self.clock.advance(0.5)
        await self.press_alone(key, *texts)

    async def click(self, *at: Any, **options: Any) -> None:
        await self.settled()
        await self.pilot.click(*at, **options)
        await self.settled()


def _is_idle(pump: MessagePump) -> bool:
    """Whether *pump* waits for a message, and none is on its way to it."""
    came: asyncio.Event = pump._message_queue.ready_event
    return pump._closed or (bool(came._waiters) and not came.is_set() and not pump._next_callbacks)


def _is_painted(screen: Screen[object]) -> bool:
    required = screen._layout_required, screen._scroll_required, screen._repaint_required
    return not (any(required) or screen._dirty_widgets or screen._callbacks)


def _event_of(key: str) -> Key:
    """Return the event of *key*, a character or the name of a key."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    try:
        char = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name)))
    except KeyError:
        char = name if len(name) == 1 else None
    return Key(name, char)


@asynccontextmanager
async def drive_console(
    state: Snapshot, size: tuple[int, int] = (120, 36), *, answers: bool = False, **options: Any
):
    """Run a console. *answers*: what is asked of the core happens. *options*: the App's."""
    clock = FrozenClock()
    port = RecordingPort(state, clock=clock, answers=answers)
    app = app_on(clock, port, **options)
    shown = Console(app, port, clock)
    async with app.run_test(size=size) as pilot:
        shown.pilot = pilot
        await shown.settled()
        yield shown
    port.close()


@asynccontextmanager
async def resting(state: Snapshot, size: tuple[int, int] = (120, 36), **options: Any):
    """Run a console on which what is selected is at rest: the next key counts."""
    async with drive_console(state, size, **options) as shown:
        await shown.rest()
        yield shown
