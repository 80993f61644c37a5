"""The console without a screen: one item at a time, line by line, for screen readers and dumb terminals.

State, texts and conditions are the screen's; only the drawing differs. An item is printed whole,
then, after a pause, the question. What is typed too early is for `terminal` to tell. An answer
is about what was printed last: `Navigation` turns to something, `Output` prints it, `Decisions`
hands the answer over. Here: which typed word is which key, the lock, what changes too fast to ask about.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from aileron_core.clock import Clock
from aileron_core.console_port import ConsolePort, CoreEvent, TouchVault
from aileron_tui import words
from aileron_tui.draw.bars import startup_warnings
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.text import line
from aileron_tui.input.commands import Command, CommandRegistry, key_label
from aileron_tui.plain.context import PlainContext
from aileron_tui.plain.deciding import LineDecisions
from aileron_tui.plain.navigation import VIEWS, Navigation
from aileron_tui.plain.output import NEXT_KEY, Output, is_fetching
from aileron_tui.plain.printing import Printer
from aileron_tui.plain.state import PlainState
from aileron_tui.plain.terminal import EndOfInput, LineTerminal, SeveralLines
from aileron_tui.plain.vault import IN_SHELL, PlainVault
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.model import Model, Version
from aileron_tui.state.settings_in_force import SettingsInForce
from aileron_tui.terminal.notifications import Notifier

EXIT_CORE_LOST = 70
_COMMANDS = (
    "go_on", "approve", "approve_session", "accept", "accept_rest", "withdraw_acceptance", "allow_host", "end_session", "deny", "whole", "refresh",
    "look_again", "acknowledge", "show_record", "unfold", "open_review", "filter", "back", "page_down", "page_up", "verify",
    "stop_run", "undo_run", "export", "unlock_vault", "lock_vault", "choose_account", *IN_SHELL, *VIEWS, "pause", "stop_everything", "quit", "help",
)  # fmt: skip
"""The registry's commands that this console has, in the order of its help."""
_WITH_TEXT = frozenset({"deny", "filter", "choose_account", *VIEWS}) - {"view_waiting"}
"""Those whose key may be followed by text."""

MAX_INTERRUPTIONS, INTERRUPTION_SECONDS = 6, 10.0
"""An item whose question is interrupted so often in so many seconds is not asked about any more."""
_CONTROLS = {"escape": "\x1b"}
"""The keys that send an invisible character."""


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
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Subscribe to *port*.

        Args:
            arm_seconds: how long a printed item rests before it can be answered.
            first_frame: called once, after the first item was printed.
            lock_seconds: after so long without a line the next one only unlocks; 0: never.

        Raises:
            Unavailable: the core has ended.
        """
        self._terminal, self._clock, self._notifier = terminal, clock, notifier
        self._in_force = SettingsInForce(registry, arm_seconds, has_command=notifier.runs_command)
        self._registry = registry = self._in_force.registry
        self._lock_seconds = lock_seconds
        self._first_frame: Callable[[], object] | None = first_frame
        self._events: deque[CoreEvent] = deque()
        snapshot = port.subscribe(self._receive)
        model = Model(snapshot, arm_seconds=arm_seconds, registry=registry, now=clock.now())
        self._model = model
        self._follow_settings()
        self._state = PlainState(model, self._events, clock, notifier, port.submit)
        context = PlainContext(
            port=port,
            terminal=terminal,
            clock=clock,
            registry=registry,
            state=self._state,
            printer=Printer(terminal, glyphs, DocumentCache(registry)),
            environment=environment,
        )
        self._context, self._say = context, context.say
        self._output = Output(context)
        self._navigation, self._deciding = Navigation(context, self._output), LineDecisions(context)
        self._vault = PlainVault(context)
        self._shown: Version = ()
        self._touched_at = clock.monotonic()
        self._quit_asked = False
        self._interruptions: deque[float] = deque(maxlen=MAX_INTERRUPTIONS)
        """When questions were interrupted, since the last answer."""

    def run(self) -> int:
        """Ask until the person quits or a signal ends it; return the exit code. For the main thread."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._end)
        with suppress(EndOfInput), self._terminal:
            self._say(words.plain.STARTS)
            self._say(words.plain.REST)
            self._say_startup_warnings()
            while not self._state.ended and self._model.core_lost is None:
                if self._is_idle:
                    self._stay_locked()
                else:
                    self._run_turn()
            self._say_news()
            self._say(words.plain.ENDS if self._model.core_lost is None else self._output.status())
        return 0 if self._model.core_lost is None else EXIT_CORE_LOST

    def _end(self, _number: int, _frame: object) -> None:
        self._state.ended = True
        self._terminal.wake()

    def _receive(self, event: CoreEvent) -> None:
        """Queue an event, on the core's thread."""
        self._events.append(event)
        self._terminal.wake()

    def _say_news(self) -> None:
        for message in self._state.take_messages():
            self._say(message)

    def _say_startup_warnings(self) -> None:
        """Print the warnings that the screen shows above everything else."""
        start = self._model.snapshot
        for row in startup_warnings(
            routes=start.routes,
            accepted_installed=start.accepted_installed,
            vault=self._model.vault,
            withheld=self._model.settings_withheld,
            inspects_models=start.inspects_models,
        ):
            self._say(line(" ", *row))

    # One turn: print news and item, rest, ask, answer

    def _run_turn(self) -> None:
        self._state.take_events()
        withheld = self._model.settings_withheld
        if self._follow_settings():
            self._say(words.vault.settings_in_force(withheld))
        self._say_news()
        self._shown = self._output.show()
        if self._first_frame is not None:
            self._first_frame()
            self._first_frame = None
        if not self._terminal.wait_quietly(self._in_force.arm_seconds, self._interrupted):
            self._leave_changing_item()
            return
        asked = self._has_question
        try:
            typed = self._terminal.read_line(words.plain.PROMPT, self._interrupted)
        except SeveralLines:
            self._touched_at = self._clock.monotonic()
            self._leave_question()
            self._say(words.plain.SEVERAL_LINES)
            return
        if typed is None:
            self._say(())  # leave the line of the question
        if typed is None or self._interrupted():
            if asked and not self._state.ended and not self._is_idle:
                self._say(words.plain.CHANGED_MEANWHILE)
            self._leave_changing_item()
            return
        self._interruptions.clear()
        self._touched_at = self._clock.monotonic()
        if typed:
            self._answer(typed)

    def _follow_settings(self) -> bool:
        """Have the person's keys hold once they are known to be theirs; return whether they do since now.

        Between two questions alone: an answer means what its key meant when the question was printed.
        """
        changed = self._in_force.follow(accepted=self._model.settings_accepted)
        self._notifier.runs_command = self._in_force.runs_command
        self._model.arming.rest_seconds = self._in_force.arm_seconds
        self._model.settings_withheld = self._in_force.withheld
        return changed and self._model.settings_accepted

    def _leave_changing_item(self) -> None:
        """Leave an item that changes faster than it can be asked about, so that `stop` can be typed.

        Rows hold still: an agent that makes its calls come and go must not keep a person from stopping it.
        """
        at, table = self._clock.monotonic(), self._model.table
        if self._state.ended or (table is not None and not table.opened):
            return
        self._interruptions.append(at)
        often = len(self._interruptions) == MAX_INTERRUPTIONS
        if often and at - self._interruptions[0] <= INTERRUPTION_SECONDS:
            self._interruptions.clear()
            self._state.open_view("activity")
            self._say(
                words.plain.changes_too_fast(
                    self._registry.key_label("view_waiting"), words.plain.STOP
                )
            )

    @property
    def _has_question(self) -> bool:
        """Something was printed that an answer could be about."""
        state, model = self._state, self._model
        if model.view != "waiting" or model.panel != "none":
            return not state.is_reading
        return state.item is not None and not is_fetching(state.item)

    def _interrupted(self) -> bool:
        """Apply new events; return whether what was printed is out of date."""
        state = self._state
        state.take_events()
        return state.ended or self._is_idle or state.question_version != self._shown

    # The lock

    @property
    def _is_idle(self) -> bool:
        """Nobody has typed a line for as long as the person set."""
        idle = self._clock.monotonic() - self._touched_at
        return 0 < self._lock_seconds <= idle

    def _stay_locked(self) -> None:
        """Print only a count until a line is typed, which does nothing but unlock."""
        state, model = self._state, self._model
        state.take_events()
        self._leave_question()
        model.forget_first_press()
        state.printed_version = ()
        self._say(words.panels.locked(model.queue.waiting))
        self._say(words.plain.LOCKED)
        with suppress(SeveralLines):
            if self._terminal.read_line(words.plain.PROMPT, self._ends) is None:
                self._say(())
                return
        self._touched_at = self._clock.monotonic()

    def _ends(self) -> bool:
        self._state.take_events()
        return self._state.ended or self._model.core_lost is not None

    def _leave_question(self) -> None:
        if self._model.panel != "none":
            self._model.close_panel()

    # Answers

    def _answer(self, typed: str) -> None:
        if self._model.vault.state == "unlocked":
            self._context.port.submit(TouchVault())
        action, rest = self._read(typed)
        if rest and action not in _WITH_TEXT:
            action = ""
        if action != "quit":
            self._quit_asked = False
        if self._model.panel != "none":
            self._deciding.answer_question(action)
            return
        taken_back = action != self._model.pressed_once and self._model.forget_first_press()
        match action:
            case "back" if taken_back:
                pass
            case (
                "approve"
                | "approve_session"
                | "acknowledge"
                | "accept"
                | "accept_rest"
                | "withdraw_acceptance"
                | "allow_host"
                | "undo_run"
                | "go_on"
            ):
                self._deciding.decide(action, typed)
            case "deny":
                self._deciding.deny(rest, typed)
            case "refresh" | "pause":
                self._deciding.ask_core(action, typed)
            case "stop_everything" | "stop_run" | "end_session":
                self._deciding.ask(action, typed)
            case "quit":
                self._quit()
            case _:
                self._navigate(action, rest, typed)

    def _navigate(self, action: str, rest: str, typed: str) -> None:
        """Carry out *action*, which looks at something, or is about the vault."""
        seen = self._navigation
        of_what_stands = {
            "back": seen.back,
            "unfold": seen.unfold,
            "whole": seen.whole,
            "look_again": seen.look_again,
            "open_review": seen.open_review,
            "show_record": seen.show_record,
            "page_down": seen.page_down,
            "page_up": seen.page_up,
            "verify": seen.verify,
            "unlock_vault": self._vault.unlock,
            "lock_vault": self._vault.lock,
        }
        if action in VIEWS:
            seen.open_view(VIEWS[action], rest)
        elif action in of_what_stands:
            of_what_stands[action](typed)
        elif action == "filter":
            seen.set_filter(rest)
        elif action == "choose_account":
            self._vault.choose(rest, typed)
        elif action in IN_SHELL:
            self._vault.name_command(action)
        elif action == "next":
            seen.next()
        elif action == "export":
            seen.export()
        elif action == "help":
            self._help()
        else:
            self._context.say_unavailable(typed)

    def _read(self, typed: str) -> tuple[str, str]:
        """Return the action that *typed* stands for, empty for none, and what follows its key."""
        word, _, rest = typed.partition(" ")
        sign = self._registry.key_label("filter")
        if typed.startswith(sign) and not sign.isalnum():
            return "filter", typed.removeprefix(sign).strip()
        return self._command_of(word), rest.strip()

    def _command_of(self, word: str) -> str:
        """Return what *word* stands for: of two actions with one key the one that is possible now."""
        view = self._model.view
        actions = (self._registry.command(each) for each in _COMMANDS)
        named = [
            each.id for each in actions if view in each.contexts and word in self._spellings(each)
        ]
        if not named:
            return {NEXT_KEY: "next", words.plain.STOP: "stop_everything"}.get(word, "")
        return next((each for each in named if self._context.availability(each).shown), named[0])

    def _spellings(self, action: Command) -> tuple[str, ...]:
        """Return how the key of *action* can be typed: as it is written, or as its control character."""
        key = action.keys[0]
        character = _CONTROLS.get(key, "")
        if key.startswith("ctrl+") and len(key) == 6:
            character = chr(ord(key[-1]) & 0x1F)
        return (key_label(key), character or key_label(key))

    def _quit(self) -> None:
        waiting = self._model.queue.undecided
        if waiting and not self._quit_asked:
            self._quit_asked = True
            self._say(words.status.confirm_quit(waiting, self._registry.key_label("quit")))
        else:
            self._state.ended = True

    def _help(self) -> None:
        view = self._model.view
        for action in _COMMANDS:
            command = self._registry.command(action)
            if view in command.contexts and command.help:
                self._say(f" {self._registry.key_labels(command)}: {command.help}")
        for key, text in words.plain.HELP:
            self._say(f" {key}: {text}")
        self._say_startup_warnings()
        self._say(words.plain.REST)
