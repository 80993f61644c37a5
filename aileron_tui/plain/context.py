"""The parts that the console without a screen shares: core, terminal, state and printer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aileron_core.clock import Clock
from aileron_core.console_port import ConsolePort
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.text import Line
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.input.situation import Availability, Situation, availability
from aileron_tui.plain.printing import Printer
from aileron_tui.plain.state import PlainState
from aileron_tui.plain.terminal import LineTerminal
from aileron_tui.state.model import Model
from aileron_tui.state.situation import situation_of

WAIT_SECONDS = 5.0
"""How long an intent's outcome is waited for before the next question."""

_ABOUT_A_ROW = frozenset(
    {
        "accept",
        "withdraw_acceptance",
        "allow_host",
        "end_session",
        "stop_run",
        "undo_run",
        "look_again",
        "show_record",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainContext:
    """The parts that navigation and decisions share."""

    port: ConsolePort
    terminal: LineTerminal
    clock: Clock
    registry: CommandRegistry
    state: PlainState
    printer: Printer
    environment: Mapping[str, str]

    @property
    def model(self) -> Model:
        return self.state.model

    def say(self, message: Line | str) -> None:
        """Print a sentence.

        Raises:
            EndOfInput: the terminal is gone.
        """
        self.printer.say(message)

    def say_unavailable(self, typed: str) -> None:
        self.say(words.plain.no_effect(escape(typed)))

    @property
    def situation(self) -> Situation:
        return situation_of(self.model, self.clock.now(), self.clock.monotonic())

    def availability(self, action: str) -> Availability:
        """Return what the key of *action* does now; it is about no listed row until one is opened."""
        table = self.model.table
        if table is not None and not table.opened and action in _ABOUT_A_ROW:
            return Availability(shown=False)
        return availability(action, self.situation)

    def wait_until(self, over: Callable[[], bool]) -> bool:
        """Wait until *over*, for `FOLLOW_SECONDS` at most; return whether it is.

        Raises:
            EndOfInput: the terminal is gone.
        """
        until = self.clock.monotonic() + WAIT_SECONDS

        def ends() -> bool:
            self.state.take_events()
            late = self.clock.monotonic() >= until
            return late or self.state.ended or self.model.core_lost is not None or over()

        if not ends():
            self.terminal.wait_quietly(WAIT_SECONDS, ends)
        return over()
