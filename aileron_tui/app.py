"""The console's application: its screens, subscription, theme, the terminal's title, quitting."""

import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.types import AnimationLevel

from aileron_core.actions.model import shown_name
from aileron_core.clock import Clock, SystemClock
from aileron_core.console_port.events import ApprovalUpdated, CoreLost, SessionsUpdated
from aileron_core.console_port.intents import ConsolePort, TouchVault
from aileron_core.errors import Unavailable
from aileron_core.home.layout import Home
from aileron_core.settings import NotifySettings
from aileron_core.tasks import type_and_places
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.guide import Guide, GuideLine
from aileron_tui.draw.text import Piece
from aileron_tui.input.commands import CommandRegistry, View
from aileron_tui.key_timing import KeyTiming
from aileron_tui.messages import (
    CommandRequested,
    CoreEventArrived,
    CoreEventsReady,
    EventQueue,
    NotificationFailed,
    PagerRequested,
    Painted,
)
from aileron_tui.pages.keymap import DEFAULT_REGISTRY, SettingsInForce
from aileron_tui.pages.listing import AuditPage, ListPage
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.screens.console import ConsoleScreen, LockScreen, MakePage
from aileron_tui.screens.help import HelpScreen
from aileron_tui.screens.palette import PaletteScreen
from aileron_tui.state.apply_event import apply_event, newly_around
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from aileron_tui.styles.choosing import Colourless
from aileron_tui.styles.tokens import DARK, PLAIN, themes, variables
from aileron_tui.terminal.browser import browser_command
from aileron_tui.terminal.driver import ConsoleDriver, InputReceived
from aileron_tui.terminal.handoff import TerminalHandoff, clipboard_through_multiplexer
from aileron_tui.terminal.notifications import NotificationScheduler, Notifier

_log = logging.getLogger(__name__)

EXIT_CORE_LOST = 70
TOUCH_SECONDS = 10.0
"""The vault hears of keys at most so often."""
EVENTS_PAUSE_SECONDS = 0.01
"""Between taking some of the core's events and taking the next."""
REDRAW_SECONDS = 0.05
"""Events are drawn at most so often: a storm of them must not take the time of the agents' calls."""


_PAGES: Mapping[View, MakePage] = {
    "waiting": WaitingPage,
    "activity": partial(ListPage, "activity"),
    "audit": AuditPage,
    "library": partial(ListPage, "library"),
    "sessions": partial(ListPage, "sessions"),
    "accounts": partial(ListPage, "accounts"),
    "rules": partial(ListPage, "rules"),
}
_VIEWS: Mapping[str, View] = {f"view_{view}": view for view in _PAGES}


class AileronApp(App[int], inherit_bindings=False):
    """Shows the core's state and passes the person's decisions to it. It decides nothing itself."""

    CSS_PATH = "styles/app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        port: ConsolePort,
        *,
        clock: Clock | None = None,
        arm_seconds: float = 0.4,
        start_theme: str = DARK,
        glyphs: Glyphs = Glyphs(),  # noqa: B008 - a frozen value
        bell: bool = True,
        notify: NotifySettings = NotifySettings(),  # noqa: B008 - a frozen value
        environment: Mapping[str, str] = os.environ,
        registry: CommandRegistry = DEFAULT_REGISTRY,
        start_view: View = "waiting",
        lock_seconds: float = 0.0,
        true_colour: bool = True,
        first_frame: Callable[[], object] | None = None,
        guide: Guide | None = None,
    ) -> None:
        """Connect to the core by *port*; *first_frame* is called once, after the first screen was drawn.

        *environment* says what terminal this is. After *lock_seconds* without a key the items are
        hidden; 0: never. Without *true_colour* the looks are those of a terminal with 256 colours.
        """
        clock = clock if clock is not None else SystemClock()
        self._true_colour = true_colour
        colourless = True if start_theme == PLAIN else None
        super().__init__(driver_class=ConsoleDriver, ansi_color=colourless)
        for theme in themes():
            self.register_theme(theme)
        # Before the stylesheet is parsed for the first time, so that it is parsed once.
        self.set_reactive(AileronApp.theme, start_theme)
        self._css_variables = self.get_css_variables()
        self.stylesheet.set_variables(self._css_variables)
        self._clock = clock
        self._in_force = SettingsInForce(registry, arm_seconds, has_command=bool(notify.command))
        self._keys = self._in_force.registry
        self._model: Model | None = None
        self._screens: dict[View, ConsoleScreen] = {}
        self._quit_asked = False
        self._key_timing = KeyTiming(self, clock, lock_seconds=lock_seconds)
        self._handoff = TerminalHandoff(self, environment, say=self.say)
        self.glyphs = glyphs
        self.title = "aileron"
        self._port = port
        self._first_frame = first_frame
        self._guide = guide
        self._environment = environment
        self._start_view: View = start_view
        self._notifier = Notifier(
            notify,
            environment,
            bell=bell,
            ring=self.bell,
            write=self.send,
            failed=lambda why: self.post_message(NotificationFailed(why)),
        )
        self._attention = NotificationScheduler(
            self._notifier.deliver,
            waiting=lambda: self._model.queue.waiting if self._model is not None else 0,
            clock=clock,
            later=self.set_timer,
        )
        self._inbox = EventQueue(lambda: self.post_message(CoreEventsReady()))
        self._redraw_due = False
        self._drawn_at = float("-inf")
        self._title_shown = ""
        self._vault_touched_at = float("-inf")
        self.animation_level: AnimationLevel = "none"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the `$a-*` variables, so that any theme of Textual's works as well."""
        theme = self.current_theme
        return variables(theme.name, dark=theme.dark, true_colour=self._true_colour)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters over every drawn line; in the plain theme they remove all colour."""
        return [Colourless()] if self.theme == PLAIN else super().get_line_filters()

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the stylesheet again if a theme changed its variables; Textual does so at each start."""
        variables = self.get_css_variables()
        if variables != self._css_variables or self.css_monitor is not None:
            self._css_variables = variables
            super().refresh_css(animate)

    def on_mount(self) -> None:
        """Subscribe to the core, show the first screen."""
        self._inbox.open()
        try:
            snapshot = self._port.subscribe(self._inbox.put)
        except Unavailable as gone:
            self.exit(
                EXIT_CORE_LOST, return_code=EXIT_CORE_LOST, message=Text(escape(gone.message))
            )
            return
        self._in_force.follow(accepted=snapshot.settings_accepted)
        self._notifier.runs_command = self._in_force.runs_command
        self._notifier.review_url = f"{snapshot.url}/review"
        model = Model(
            snapshot,
            arm_seconds=self._in_force.arm_seconds,
            registry=self._keys,
            now=self._clock.now(),
        )
        model.settings_withheld = self._in_force.withheld
        model.view = self._start_view
        model.account_panel.has_browser = (
            browser_command(self._environment) is not None and not snapshot.elsewhere
        )
        self._model = model
        self._screens = {
            view: ConsoleScreen(make, model, self._clock, self._port.submit, self._handoff)
            for view, make in _PAGES.items()
        }
        for view, screen in self._screens.items():
            # Textual removes a screen that is switched away from, unless it is installed; one that
            # was removed and comes back is mounted, but its timer is dead: it is never drawn again.
            self.install_screen(screen, view)  # pyright: ignore[reportUnknownMemberType]
            screen.set_first_layout(*self.size)
        self.push_screen(self._screens[self._start_view])
        if self._first_frame is not None:
            self.call_after_refresh(self._first_frame)
        if self._guide is not None:
            self._guide.begin(lambda said: self.call_later(self._show_guide, said))
        if (rest := model.next_read()) is not None:
            self.call_after_refresh(self._port.submit, rest)
        self.theme_changed_signal.subscribe(self, lambda _: self.rearm_and_redraw())
        self.set_interval(1.0, self._tick)
        self._show_title()

    def _handle_exception(self, error: Exception) -> None:
        """End with a sentence. A traceback would print what agents and services said, and to whom."""
        _log.critical("the screen ended: %s", type_and_places(error))
        super()._handle_exception(error)
        self._return_code = EXIT_CORE_LOST

    def _fatal_error(self) -> None:
        self.panic()

    def panic(self, *renderables: RenderableType) -> None:
        """Leave the screen with a sentence; *renderables*, Textual's tracebacks, are not shown."""
        self._exit_renderables.append(Text(words.status.SCREEN_FAILED))
        self._close_messages_no_wait()

    def on_terminal_gone(self) -> None:
        """End: nobody can see the screen or press a key any more."""
        code = 128 + signal.SIGHUP
        self.exit(code, return_code=code)

    # Events and time

    def on_core_events_ready(self) -> None:
        """Apply some of the queued events; keys and drawing get their turn before the rest.

        Textual draws when its message queue is empty, so the rest is scheduled by a timer.
        """
        for event in self._inbox.take():
            self.on_core_event_arrived(CoreEventArrived(event))
        if self._inbox.has_more:
            self.set_timer(EVENTS_PAUSE_SECONDS, self.on_core_events_ready)

    def on_core_event_arrived(self, message: CoreEventArrived) -> None:
        model = self._model
        if model is None:
            return
        at = self._clock.monotonic()
        if isinstance(message.event, SessionsUpdated) and newly_around(
            model.sessions, message.event.sessions
        ):
            self._notifier.warn(words.terminal.WENT_AROUND)
        arrived = apply_event(model, message.event, self._clock.now(), at)
        if isinstance(message.event, CoreLost):
            model.arming.reset()
        self._follow_settings(model, at)
        self._follow_link(model)
        if arrived and isinstance(message.event, ApprovalUpdated) and model.paused_at is None:
            self._attention.on_arrival(shown_name(message.event.view.action))
        if arrived and self._guide is not None and isinstance(message.event, ApprovalUpdated):
            # The person asked for the next scene; the one before has ended.
            model.queue.select(model.queue.index(message.event.view.approval_id))
        if not self._redraw_due:
            # After every event that is queued already: a storm of arrivals is drawn once.
            self._redraw_due = True
            wait = self._drawn_at + REDRAW_SECONDS - at
            if wait > 0:
                self.set_timer(wait, self.draw_all)
            else:
                self.call_later(self.draw_all)

    def _follow_settings(self, model: Model, at: float) -> None:
        """Put the person's keys in force once they are known to be theirs; a key decides only after a rest."""
        in_force, withheld = self._in_force, model.settings_withheld
        if not in_force.follow(accepted=model.settings_accepted):
            return
        self._notifier.runs_command = in_force.runs_command
        model.settings_withheld = in_force.withheld
        model.arming.rest_seconds = in_force.arm_seconds
        model.arming.reset()
        model.forget_first_press()
        if isinstance(self.screen, HelpScreen | PaletteScreen):
            self.screen.dismiss(None)  # it has the keys of before
        if now := tuple(each for each in withheld if each not in in_force.withheld):
            model.say((Piece(words.vault.settings_in_force(now), "ok"),), at)

    def _follow_link(self, model: Model, *, over: bool = False) -> None:
        """Have the browser open the link that pairs a device; afterwards nothing of it stays."""
        address = "" if over else model.pairing.address(self._clock.now())
        file = Home(Path(model.snapshot.home)).sockets / "link.html"
        self._handoff.follow_link(address, file, self._link_opened)

    def _link_opened(self, worked: bool) -> None:
        if self._model is not None:
            self._model.pairing.browser = worked
            self.draw_all()

    def on_notification_failed(self, message: NotificationFailed) -> None:
        if self._model is not None:
            self._model.say(foreign_text(message.reason, "attn"), self._clock.monotonic())
            self.draw_all()

    def _show_guide(self, said: GuideLine) -> None:
        if self._model is not None:
            self._model.guide = said
            self.draw_all()

    def _tick(self) -> None:
        if self._model is not None:
            self._model.tick(self._clock.monotonic())
            self._follow_link(self._model)
            self._key_timing.lock_if_idle(self._model)
            self.draw_all()

    def draw_all(self) -> None:
        """Draw the view, also below help or the palette."""
        self._redraw_due, self._drawn_at = False, self._clock.monotonic()
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen):
                screen.page.redraw()
            elif isinstance(screen, LockScreen):
                screen.redraw()
        self._show_title()

    def _show_title(self) -> None:
        """Show the count in the terminal's title, which has no text from outside."""
        title = words.terminal.title(self._model.queue.waiting if self._model else 0)
        if title != self._title_shown:
            # The first time, the terminal saves its own title, which is restored at the end.
            keep = "" if self._title_shown else "\x1b[22;2t"
            self._title_shown = title
            self.send(f"{keep}\x1b]2;{title}\x07")

    def on_unmount(self) -> None:
        """Restore the terminal's title, where it saved one."""
        if self._model is not None:
            self._follow_link(self._model, over=True)
        self.send("\x1b]2;\x07\x1b[23;2t")

    def send(self, sequence: str) -> None:
        """Write *sequence*, which has no text from outside, to the terminal."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    # Keys

    async def on_event(self, event: events.Event) -> None:
        """Let every key be judged before anything acts on it."""
        model = self._model
        if model is None or event.is_forwarded:
            await super().on_event(event)
        elif isinstance(event, events.Key):
            if not self._key_timing.locked and event.key not in self._keys.command("quit").keys:
                self._quit_asked = False
            self._touch_vault(model)
            await self._key_timing.on_key(event, model, self._screens, super().on_event)
        else:
            if isinstance(event, events.Paste):
                at = self._key_timing.pressed_at(event)
                dropped = model.drops_paste(at)
                model.arming.on_paste(at)
                if dropped:
                    return
            await super().on_event(event)

    def _touch_vault(self, model: Model) -> None:
        """Tell the vault that somebody is here, now and then: it locks after a time without a key."""
        at = self._clock.monotonic()
        if model.vault.state == "unlocked" and at - self._vault_touched_at >= TOUCH_SECONDS:
            self._vault_touched_at = at
            self._port.submit(TouchVault())

    def on_input_received(self, message: InputReceived) -> None:
        """Note what was read from the terminal, before the events made of it."""
        self._key_timing.on_input(message, self._model)

    def on_settle_due(self) -> None:
        """Let a press decide that had its silence, unless input waits that nobody has read yet."""
        driver, at = self._driver, self._clock.monotonic()
        reads = self._key_timing.reads
        unread = isinstance(driver, ConsoleDriver) and driver.has_unread(reads)
        if self._model is not None:
            self._key_timing.settle(self._screens[self._model.view], at, unread=unread)

    def on_app_focus(self) -> None:
        """The pane has the focus: the rest before a key decides starts over."""
        self._set_focused(True)

    def on_app_blur(self) -> None:
        """The pane lost the focus: keys that come now were not typed into it."""
        self._set_focused(False)

    def _set_focused(self, focused: bool) -> None:
        if self._model is not None:
            self._model.arming.on_focus(focused, self._clock.monotonic())
            self._model.forget_refusal()
            self.draw_all()

    # Other programs

    def copy_to_clipboard(self, text: str) -> None:
        """Hand *text* to the terminal's clipboard (OSC 52), to that around tmux or screen as well."""
        super().copy_to_clipboard(text)
        if wrapped := clipboard_through_multiplexer(text, self._environment):
            self.send(wrapped)

    async def on_pager_requested(self, message: PagerRequested) -> None:
        """Lend the terminal to the pager; afterwards the rest before a key decides starts over."""
        self.say(await self._handoff.show_in_pager(message.text, message.name))
        self.rearm_and_redraw()

    def exit(
        self,
        result: int | None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """End; a pager that has the terminal ends first."""
        self._handoff.end_pager()
        super().exit(result, return_code, message)

    # Views

    def _show_view(self, view: View) -> None:
        if self._model is None or self._model.view == view:
            return
        self._model.switch_to(view)
        self.switch_screen(self._screens[view])  # pyright: ignore[reportUnknownMemberType]

    async def on_command_requested(self, message: CommandRequested) -> None:
        """Carry out an application-wide command of a screen's key."""
        if (view := _VIEWS.get(message.action)) is not None:
            self._show_view(view)
            return
        match message.action:
            case "help":
                self.action_help()
            case "palette":
                self._show_palette()
            case "next_scene":
                if self._guide is not None:
                    self._guide.go_on()
            case _:
                await self.action_quit()

    # What is on screen

    def say(self, message: str) -> None:
        """Show *message*, a sentence of the console's own, in the status line."""
        if self._model is not None:
            self._model.say(message, self._clock.monotonic())
            self.draw_all()

    def on_painted(self, message: Painted) -> None:
        """Call the screen back once the terminal has drawn what was written."""
        driver = self._driver
        if isinstance(driver, ConsoleDriver):
            driver.call_when_drawn(message.callback, self._clock.monotonic(), self.cursor_position)
        else:
            message.callback()

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        """Pass the terminal's answer to the driver: how much it has drawn."""
        if isinstance(self._driver, ConsoleDriver):
            self._driver.on_cursor_reply(event.x, event.y)

    def rearm_and_redraw(self) -> None:
        """Redraw after a change of theme or after another program had the terminal; keys rest anew."""
        if self._model is not None:
            self._model.arming.reset()
            self.draw_all()

    def action_help(self) -> None:
        """Show the keys of this view; afterwards the rest before a key decides starts over."""
        if self._model is not None:
            self._model.arming.reset()
            view = self._model.view
            warnings = self._screens[view].page.startup_warnings
            page = HelpScreen(self._keys, view, self._in_force.arm_seconds, warnings)
            self.push_screen(page, self._after_help)

    def _show_palette(self) -> None:
        """Show every command by name; afterwards the rest before a key decides starts over."""
        model = self._model
        if model is not None:
            now = Situation(model, self._clock.now(), self._clock.monotonic())
            model.open_panel("palette")
            model.arming.reset()
            self.push_screen(PaletteScreen(self._keys, now), self._after_palette)

    def _after_palette(self, action: str | None) -> None:
        model = self._model
        if model is None:
            return
        model.close_panel()
        model.arming.reset()
        self.draw_all()
        if action:
            self._screens[model.view].page.do(action)

    def _after_help(self, _: None) -> None:
        if self._model is not None:
            self._model.arming.reset()

    async def action_quit(self) -> None:
        """Quit; while anything waits, the first press only says so."""
        model = self._model
        if model is None or model.core_lost is not None:
            code = EXIT_CORE_LOST if model is not None else 0
            self.exit(code, return_code=code)
            return
        if model.queue.undecided and not self._quit_asked:
            self._quit_asked = True
            model.say(
                words.status.confirm_quit(model.queue.undecided, self._keys.key_label("quit")),
                self._clock.monotonic(),
            )
            self.draw_all()
            return
        self.exit(0)
