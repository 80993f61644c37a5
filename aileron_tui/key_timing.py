"""Judges every key by when it was pressed, and by what came with it; hides the items after `lock_minutes`."""

from collections.abc import Awaitable, Callable, Mapping

from textual import events
from textual.app import App
from textual.message import Message

from aileron_core.clock import Clock
from aileron_tui.input.commands import View
from aileron_tui.screens.console import ConsoleScreen, LockScreen
from aileron_tui.screens.help import HelpScreen
from aileron_tui.state.model import Model
from aileron_tui.terminal.driver import InputReceived

UNREAD_SECONDS = 0.005
"""How soon a press is checked again while input waits unread."""


def _age(event: Message) -> float:
    return max(0.0, events.Event().time - event.time)


class KeyTiming:
    """Every key of the application passes here first. After a time without one the items are hidden."""

    def __init__(self, app: App[int], clock: Clock, *, lock_seconds: float) -> None:
        """Without a key for *lock_seconds* the items are hidden; 0: never."""
        self._app = app
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._last_input_at = clock.monotonic()
        self._late = False
        self.reads = 0
        """How many reads from the terminal have been handled."""

    def pressed_at(self, event: Message) -> float:
        """Return when *event* was made, on our clock, or earlier: it may be handled much later."""
        return self._clock.monotonic() - _age(event)

    def _came_by(self, event: Message) -> float:
        """Return when *event* was made, or later."""
        # Read in this order: a process that stands still in between must not put a burst so long before
        # its key that the key counts as one of a hand at rest.
        age = _age(event)
        return self._clock.monotonic() - age

    async def on_key(
        self,
        event: events.Key,
        model: Model,
        screens: Mapping[View, ConsoleScreen],
        handle: Callable[[events.Event], Awaitable[None]],
    ) -> None:
        """Note when the key was pressed, before *handle* lets anything act on it; it may be dropped."""
        at = self._last_input_at = self.pressed_at(event)
        if self.locked:
            model.begin_key(at, decides=False, moves=False)
            model.end_key()
            self._unlock(model)
            return
        late, self._late = self._late, False
        page = screens[model.view].page
        if page.begin_key(event.key, at, late=late):
            return
        try:
            shown, printable = self._app.screen, event.is_printable
            if isinstance(shown, ConsoleScreen):
                taken = shown.page.take_key(event.key, printable=printable)
            else:
                taken = isinstance(shown, HelpScreen) and shown.take_key(
                    event.key, printable=printable
                )
            if not taken:
                await handle(event)
        finally:
            page.end_key()
        if isinstance(self._app.screen, ConsoleScreen):
            self._app.screen.page.redraw()

    def on_input(self, message: InputReceived, model: Model | None) -> None:
        """Note what came with a key and makes no event; it comes before the events of its read."""
        self.reads += 1
        if model is None:
            return
        at = self._came_by(message)
        if message.kind != "reply" and not self.locked:
            self._last_input_at = at
        self._late = message.kind == "late"
        match message.kind:
            case "burst" | "late":
                model.on_burst(at)
            case "mouse":
                model.arming.on_mouse(at)
            case "key":
                model.arming.on_input()  # its event may come after a press that is about to settle
            case "reply":
                pass

    def settle(self, screen: ConsoleScreen, at: float, *, unread: bool) -> None:
        """Let a press that had its silence until *at* decide, unless input is still *unread*."""
        if unread:
            screen.settle_in(UNREAD_SECONDS)
        else:
            screen.page.settle(at)

    # The lock

    @property
    def locked(self) -> bool:
        """The items are hidden: the next key only shows them again."""
        return isinstance(self._app.screen, LockScreen)

    def lock_if_idle(self, model: Model) -> None:
        """Hide the items once nobody has touched the console for as long as the person set."""
        idle = self._clock.monotonic() - self._last_input_at
        if not self._lock_seconds or idle < self._lock_seconds or self.locked:
            return
        model.arming.reset()
        model.forget_first_press()
        self._app.push_screen(LockScreen(model))

    def _unlock(self, model: Model) -> None:
        """Show the items again; the key that did so does nothing else."""
        model.arming.reset()
        self._app.pop_screen()
