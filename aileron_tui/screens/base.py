"""What every full screen of the console shares: the model, the top bar, the footer, size classes."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.css.query import NoMatches
from textual.screen import Screen

from aileron_core.clock import Clock
from aileron_core.console_port import Intent, SetPause
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.text import Line, Piece, wrap
from aileron_tui.draw.times import clock_minutes, clock_seconds
from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import Situation, availability
from aileron_tui.messages import CommandRequested, PieceClicked, SizeChanged
from aileron_tui.state.model import Model
from aileron_tui.state.situation import situation_of
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines, glyphs_of
from aileron_tui.words import panels, views
from aileron_tui.words.mouse import press_it

__all__ = ["ConsoleScreen", "Submit", "width_class"]

Submit = Callable[[Intent], None]

SMALL = (60, 16)
NORMAL_FROM = 110
WIDE_FROM = 160


def width_class(width: int, height: int) -> str:
    """Return the layout's name for a terminal of *width* by *height* cells."""
    if width < SMALL[0] or height < SMALL[1]:
        return "small"
    if width < NORMAL_FROM:
        return "compact"
    return "normal" if width < WIDE_FROM else "wide"


class ConsoleScreen(Screen[None]):
    """A page of the console. `redraw` draws everything from the model; nothing else changes it."""

    COMPONENT_CLASSES = ROLE_CLASSES
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ()
    """Where its keys come from."""

    def __init__(self, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__()
        self.model = model
        # Not the class's: which keys there are is the person's to say.
        self._bindings = model.registry.bindings_for(*self.CONTEXTS)
        self.clock = clock
        self.submit = submit
        self.drawings = 0
        """How often it was drawn whole."""

    @property
    def stands(self) -> bool:
        """Whether its widgets are there: on the way out a page outlives them by a moment."""
        try:
            self.query_one("#keys", Lines)
        except NoMatches:
            return False
        return True

    @property
    def situation(self) -> Situation:
        """Return what each key would do now."""
        return situation_of(self.model, self.clock.now(), self.clock.monotonic())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let a key through exactly where the footer's function lets it."""
        return availability(action, self.situation).shown

    def action_view_waiting(self) -> None:
        """Show view 1."""
        self.post_message(CommandRequested("view_waiting"))

    def action_view_activity(self) -> None:
        """Show view 2."""
        self.post_message(CommandRequested("view_activity"))

    def action_view_audit(self) -> None:
        """Show view 3."""
        self.post_message(CommandRequested("view_audit"))

    def action_view_library(self) -> None:
        """Show view 4."""
        self.post_message(CommandRequested("view_library"))

    def action_view_sessions(self) -> None:
        """Show view 5."""
        self.post_message(CommandRequested("view_sessions"))

    def action_palette(self) -> None:
        """Show every command by name."""
        self.post_message(CommandRequested("palette"))

    def action_help(self) -> None:
        """Show the keys."""
        self.post_message(CommandRequested("help"))

    def action_quit(self) -> None:
        """Quit, or ask first."""
        self.post_message(CommandRequested("quit"))

    def action_pause(self) -> None:
        """Hold all calls, at once: it takes nothing but time, and going on waits for a rested hand."""
        self.submit(SetPause(on=True))

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout; a new size makes every decide key rest anew."""
        width, height = event.size
        name = width_class(width, height)
        for each in ("small", "compact"):
            self.set_class(name == each, f"-{each}")
        self.set_class(name in ("normal", "wide"), "-normal")
        self.set_class(name == "wide", "-wide")
        self.model.size = (width, height)
        self.model.small = name == "small"
        self.redraw()

    async def on_piece_clicked(self, message: PieceClicked) -> None:
        """Go where a click points. What changes anything wants its key: the mouse decides nothing."""
        message.stop()
        clicked = self.model.registry.action(message.action)
        if clicked.moves or clicked.id == "help" or clicked.id.startswith("view_"):
            if availability(clicked.id, self.situation).works:
                await self.run_action(clicked.id)
            return
        face = self.model.registry.faces(clicked)
        self.model.say(press_it(face, clicked.label), self.clock.monotonic())
        self.redraw()

    def on_size_changed(self, message: SizeChanged) -> None:
        """Draw for the size that a widget has now."""
        message.stop()
        self.redraw()

    def on_screen_resume(self) -> None:
        """Draw what came while another page stood here."""
        self.model.size = (self.size.width, self.size.height)
        self.redraw()

    def redraw(self) -> None:
        """Draw everything from the model. Pages say what that is."""
        self.drawings += 1
        self.set_class(self.model.lost is not None, "-lost")
        self._draw_top()

    def _draw_top(self) -> None:
        model, width = self.model, self.size.width
        self.query_one("#topbar", Lines).show(
            bars.top_bar(
                view=model.view,
                waiting=model.queue.waiting,
                held=model.queue.held,
                problems=model.queue.problems,
                sessions=model.sessions,
                now=self.clock.now(),
                width=width,
                registry=model.registry,
            )
        )
        rows = bars.banner_lines(
            lost=model.lost,
            storage=None if model.health.writable else model.health.message,
            standing=self.standing,
            width=width,
            help_key=model.registry.face("help"),
            paused=self._paused(),
            replayed=self._replayed(),
        )
        banner = self.query_one("#banner", Lines)
        banner.set_class(bool(rows), "-shown")
        banner.show(*rows)

    @property
    def standing(self) -> tuple[Line, ...]:
        """The warnings that stand above all views as long as this console runs."""
        start = self.model.snapshot
        return bars.standing_warnings(
            routes=start.routes,
            accepted_installed=start.accepted_installed,
            lacks_letters=bool(glyphs_of(self).charset),
        )

    def _paused(self) -> str:
        since = self.model.paused_at
        if since is None:
            return ""
        return panels.paused(self.model.registry.face("go_on"), clock_minutes(since))

    def _replayed(self) -> str:
        screen = self.model.replayed
        if screen is None:
            return ""
        return views.as_shown(clock_seconds(screen.at), screen.unseen, screen.total)

    def _draw_sentence(self) -> None:
        """Draw the one sentence of a pane that is too small to decide in."""
        width, height = self.size
        sentence = words.too_small(self.model.queue.waiting)
        wrapped = wrap((Piece(sentence, "strong"),), width - 2)
        rows = bars.centred([each.pieces for each in wrapped], width, height)
        self.query_one("#sentence", Lines).show(*rows)
