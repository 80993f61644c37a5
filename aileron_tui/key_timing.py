"""An application that judges every key by the time at which it came, and by what came with it."""

from abc import abstractmethod

from textual import events
from textual.message import Message

from aileron_core.clock import Clock
from aileron_tui.input.arming import AFTER_SECONDS
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.input.situation import View
from aileron_tui.messages import SettleDue
from aileron_tui.screens.base import ConsoleScreen
from aileron_tui.screens.lock import LockScreen
from aileron_tui.state.model import Model
from aileron_tui.terminal.driver import ConsoleDriver, InputReceived
from aileron_tui.terminal.handoff import TerminalHandoffApp

UNREAD_SECONDS = 0.005
"""How soon a press is looked at again while input waits unread."""


class KeyTimingApp(TerminalHandoffApp, inherit_bindings=False):
    """Every key passes here first. After a time without one the items are hidden."""

    def __init__(
        self,
        clock: Clock,
        registry: CommandRegistry,
        *,
        lock_seconds: float,
        ansi_color: bool | None,
    ) -> None:
        """*lock_seconds* without a key hide the items; 0: never. *ansi_color*: Textual's."""
        super().__init__(driver_class=ConsoleDriver, ansi_color=ansi_color)
        self._clock = clock
        self._keys = registry
        self._deciding = registry.deciding_keys()
        self._moving = registry.moving_keys()
        self._model: Model | None = None
        self._screens: dict[View, ConsoleScreen] = {}
        self._lock_seconds = lock_seconds
        self._touched_at = clock.monotonic()
        self._quit_asked = False
        self._arrivals = 0

    @abstractmethod
    def draw_all(self) -> None:
        """Draw the view, also where something stands over it."""

    async def on_event(self, event: events.Event) -> None:
        """Note when each key was pressed, before anything acts on it."""
        if self._model is None or event.is_forwarded:
            await super().on_event(event)
        elif isinstance(event, events.Key):
            await self._on_first_key(event, self._model)
        elif isinstance(event, events.Paste):
            self._model.arming.on_paste(self._pressed_at(event))
            await super().on_event(event)
        else:
            await super().on_event(event)

    async def _on_first_key(self, event: events.Key, model: Model) -> None:
        at = self._touched_at = self._pressed_at(event)
        if isinstance(self.screen, LockScreen):
            model.begin_key(at, decides=False, moves=False)
            model.end_key()
            self._unlock(model)
            return
        if event.key not in self._keys.command("quit").keys:
            self._quit_asked = False
        decides = event.key in self._deciding
        second = model.is_second_press(event.key)
        if model.begin_key(at, decides=second, moves=event.key in self._moving):
            model.end_key()
            if decides:
                model.arming.on_key_dropped()
                self._settle_in(AFTER_SECONDS)
            return
        judging = self._screens[model.view]
        judging.begin_key(at)
        try:
            await super().on_event(event)
        finally:
            judging.end_key()
        model.end_key()
        if isinstance(self.screen, ConsoleScreen):
            self.screen.redraw()

    def on_input_received(self, message: InputReceived) -> None:
        """Note what came with a key and makes no event; it stands before the events of its read."""
        self._arrivals += 1
        if self._model is None:
            return
        at = self._pressed_at(message)
        if message.kind != "reply" and not isinstance(self.screen, LockScreen):
            self._touched_at = at
        match message.kind:
            case "burst":
                self._model.on_burst(at)
            case "mouse":
                self._model.arming.on_mouse(at)
            case "key":
                self._model.arming.on_input()  # its event may come behind a press that falls due
            case "reply":
                pass

    def _pressed_at(self, event: Message) -> float:
        """Return when *event* was made, on our clock: handling may come much later."""
        return self._clock.monotonic() - max(0.0, events.Event().time - event.time)

    def on_app_focus(self) -> None:
        """The pane has the focus; decide keys rest anew."""
        if self._model is not None:
            self._model.arming.on_focus(True, self._clock.monotonic())
            self.draw_all()

    def on_app_blur(self) -> None:
        """The pane lost the focus: keys that come now were not typed into it."""
        if self._model is not None:
            self._model.arming.on_focus(False, self._clock.monotonic())
            self.draw_all()

    def _settle_in(self, seconds: float) -> None:
        self.set_timer(seconds, lambda: self.post_message(SettleDue()))

    def on_settle_due(self) -> None:
        """A press may have had its silence, unless something waits that nobody has read yet."""
        driver, at = self._driver, self._clock.monotonic()
        if isinstance(driver, ConsoleDriver) and driver.has_unread(self._arrivals):
            self._settle_in(UNREAD_SECONDS)
        elif self._model is not None:
            self._screens[self._model.view].settle(at)

    # The lock

    def _lock_if_idle(self, model: Model) -> None:
        """Hide the items once nobody has touched the console for as long as the person set."""
        idle = self._clock.monotonic() - self._touched_at
        if not self._lock_seconds or idle < self._lock_seconds:
            return
        if not isinstance(self.screen, LockScreen):
            model.arming.reset()
            model.forget_first_press()
            self.push_screen(LockScreen(model))

    def _unlock(self, model: Model) -> None:
        """Show the items again; the key that did so did nothing else."""
        model.arming.reset()
        self.pop_screen()
