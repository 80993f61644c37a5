"""The console without a screen: one item at a time, line by line, for screen readers and dumb terminals.

State, texts and conditions are the screen's; only the drawing differs. An answer is about what was
printed last. Here: the turns, the lock, what changes too fast to ask about.
"""

import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from aileron_core.clock import Clock
from aileron_core.console_port.events import CoreEvent
from aileron_core.console_port.intents import ConsolePort, TouchVault
from aileron_tui import words
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.pages.keymap import SettingsInForce
from aileron_tui.plain.answers import Answers
from aileron_tui.plain.output import Output
from aileron_tui.plain.state import PlainState
from aileron_tui.state.model import Model, Version
from aileron_tui.state.printed_pages import is_fetching
from aileron_tui.terminal.line_terminal import EndOfInput, LineTerminal, SeveralLines
from aileron_tui.terminal.notifications import Notifier

EXIT_CORE_LOST = 70
MAX_INTERRUPTIONS, INTERRUPTION_SECONDS = 6, 10.0
"""An item whose question is interrupted so often in so many seconds is not asked about any more."""


class PlainConsole:
    """Prints the core's state and passes the person's answers to it. It decides nothing itself."""

    def __init__(
        self,
        port: ConsolePort,
        terminal: LineTerminal,
        *,
        clock: Clock,
        arm_seconds: float,
        registry: CommandRegistry,
        glyphs: Glyphs,
        notifier: Notifier,
        first_frame: Callable[[], object],
        lock_seconds: float = 0.0,
    ) -> None:
        """Subscribe to *port*; *first_frame* is called once, after the first item was printed.

        A printed item rests for *arm_seconds* before it can be answered. After *lock_seconds* without
        a line the next one only unlocks; 0: never.

        Raises:
            Unavailable: the core has ended.
        """
        self._port, self._terminal, self._clock, self._notifier = port, terminal, clock, notifier
        self._in_force = SettingsInForce(registry, arm_seconds, has_command=notifier.runs_command)
        self._lock_seconds, self._touched_at = lock_seconds, clock.monotonic()
        self._first_frame: Callable[[], object] | None = first_frame
        events: deque[CoreEvent] = deque()

        def receive(event: CoreEvent) -> None:
            events.append(event)
            terminal.wake()

        snapshot, registry = port.subscribe(receive), self._in_force.registry
        notifier.review_url = f"{snapshot.url}/review"
        model = Model(snapshot, arm_seconds=arm_seconds, registry=registry, now=clock.now())
        model.account_panel.has_browser = False  # it opens none
        self._model = model
        self._state = PlainState(model, events, clock, notifier)
        self._output = Output(terminal, clock, glyphs, self._state)
        self._say = self._output.say
        self._answers = Answers(port, self._output)
        self._follow_settings()
        self._shown: Version = ()
        self._interruptions: deque[float] = deque(maxlen=MAX_INTERRUPTIONS)  # since the last answer
        if (rest := model.next_read()) is not None:
            port.submit(rest)

    def run(self) -> int:
        """Ask until the person quits or a signal ends it; return the exit code. For the main thread."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._end)
        with suppress(EndOfInput), self._terminal:
            self._say(words.plain.STARTS)
            self._say(words.plain.REST)
            self._output.say_startup_warnings()
            while not self._state.is_over:
                if self._is_idle:
                    self._stay_locked()
                else:
                    self._run_turn()
            self._output.say_news()
            self._say(words.plain.ENDS if self._model.core_lost is None else self._output.status())
        return 0 if self._model.core_lost is None else EXIT_CORE_LOST

    def _end(self, _number: int, _frame: object) -> None:
        self._state.ended = True
        self._terminal.wake()

    def _run_turn(self) -> None:
        """Print the news and the item, let it rest, ask, take the answer."""
        self._state.take_events()
        self._follow_settings()
        self._output.say_news()
        self._shown = self._output.show()
        if self._first_frame is not None:
            self._first_frame()
            self._first_frame = None
        if not self._terminal.wait_quietly(self._in_force.arm_seconds, self._interrupted):
            self._note_interruption()
            return
        item, panel = self._state.item, self._model.panel
        asked = panel != "pair" and (
            panel != "none" or (item is not None and not is_fetching(item))
        )
        try:
            typed = self._terminal.read_line(words.plain.PROMPT, self._interrupted)
        except SeveralLines:
            self._touched_at = self._clock.monotonic()
            self._model.close_panel()
            self._say(words.plain.SEVERAL_LINES)
            return
        if typed is None or self._interrupted():
            if asked and not self._state.ended and not self._is_idle:
                self._say(words.plain.CHANGED_MEANWHILE)
            self._note_interruption()
            return
        self._interruptions.clear()
        self._touched_at = self._clock.monotonic()
        if typed:
            if self._model.vault.state == "unlocked":
                self._port.submit(TouchVault())
            self._answers.give(typed)

    def _follow_settings(self) -> None:
        """Have the person's keys hold once they are known to be theirs.

        Between two questions alone: an answer means what its key meant when the question was printed.
        """
        in_force, model, withheld = self._in_force, self._model, self._model.settings_withheld
        changed = in_force.follow(accepted=model.settings_accepted)
        self._notifier.runs_command = in_force.runs_command
        model.arming.rest_seconds = in_force.arm_seconds
        model.settings_withheld = in_force.withheld
        if changed and model.settings_accepted:
            self._say(words.vault.settings_in_force(withheld))

    def _interrupted(self) -> bool:
        """Apply new events; return whether what was printed is out of date."""
        self._state.take_events()
        return self._state.ended or self._is_idle or self._state.question_version != self._shown

    def _note_interruption(self) -> None:
        """Ask no more about what changes faster than it can be asked about, so that `stop` can be typed.

        An agent that makes its calls come and go must not keep a person from stopping it.
        """
        at, before = self._clock.monotonic(), self._interruptions
        before.append(at)
        if len(before) == MAX_INTERRUPTIONS and at - before[0] <= INTERRUPTION_SECONDS:
            before.clear()
            self._state.asks_nothing = True

    # The lock

    @property
    def _is_idle(self) -> bool:
        """Nobody has typed a line for as long as the person set."""
        return 0 < self._lock_seconds <= self._clock.monotonic() - self._touched_at

    def _stay_locked(self) -> None:
        """Print only a count until a line is typed, which does nothing but unlock."""
        state, model = self._state, self._model

        def ends() -> bool:
            state.take_events()
            return state.is_over

        state.take_events()
        model.close_panel()
        model.forget_first_press()
        state.print_again()
        self._say(words.bars.locked(model.queue.waiting))
        self._say(words.plain.LOCKED)
        with suppress(SeveralLines):
            if self._terminal.read_line(words.plain.PROMPT, ends) is None:
                return
        self._touched_at = self._clock.monotonic()
