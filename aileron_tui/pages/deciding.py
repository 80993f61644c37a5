"""From the press of a key that decides to the intents for the core: rest before it, silence after it."""

from typing import Protocol

from aileron_core.clock import Clock
from aileron_core.console_port.intents import Approve, Deny, Intent
from aileron_tui import words
from aileron_tui.input.arming import AFTER_SECONDS, Obstacle
from aileron_tui.input.commands import AnyCommand
from aileron_tui.pages.command import availability, refusal, too_soon
from aileron_tui.pages.surface import Surface
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation

SETTLE_AGAIN_SECONDS = 0.005
DROPPED_SECONDS = 1.0
"""How long the message about a burst stays, whatever late keys of it arrive."""


class DecidingScreen(Protocol):
    """What `Decisions` needs of the screen that holds it."""

    @property
    def key_situation(self) -> Situation:
        """What each key does at the time at which the present one was pressed."""
        ...

    @property
    def situation(self) -> Situation: ...

    def submit(self, intent: Intent, /) -> None: ...

    def require_second_press(self, command: str) -> None:
        """Say what was not seen; the next press of the same key decides."""
        ...

    def save_screen(self) -> None:
        """Keep the screen in which a call is decided, to show it again."""
        ...

    @property
    def surface(self) -> Surface: ...

    def after_decision(self) -> None:
        """The intents were submitted: the panel is over."""
        ...

    def redraw(self) -> None: ...


class Decisions:
    """Lets a press decide only if its item was on screen, was seen and had rested."""

    def __init__(self, screen: DecidingScreen, model: Model, clock: Clock) -> None:
        self._screen = screen
        self._model = model
        self._clock = clock
        self._pressed = ""

    def press(self, command: AnyCommand) -> None:
        """The key of *command*, which decides, was pressed."""
        model, state = self._model, availability(command, self._screen.key_situation)
        if model.pressed_once not in ("", command.id):
            model.forget_first_press()
        obstacle = model.arming.obstacle(model.screen_version, model.key_at)
        if state.asks:
            if model.arming.focused:  # else it was not typed into this pane
                self._screen.require_second_press(command.id)
            else:
                self._refuse(command.id, "unfocused")
        elif state.shown and model.press(model.key_at):
            self._pressed = command.id
            self._screen.surface.settle_in(AFTER_SECONDS)
        else:
            self._refuse(command.id, obstacle or "key")

    def _refuse(self, command_id: str, obstacle: Obstacle) -> None:
        model = self._model
        key = model.registry.key_label(command_id)
        model.refuse(too_soon(key, obstacle, model.last_change), self._clock.monotonic())

    def settle(self, at: float) -> None:
        """Let a press that had its silence until *at* decide; report one that a burst cancelled."""
        arming = self._model.arming
        version = arming.take_settled_press(at)
        lost = arming.take_lost_press()
        if version is not None:
            if version == self._model.screen_version:
                self._decide(self._pressed)
            else:
                lost = "drawn"
        if lost is not None:
            self._report_lost(lost, at)
        if dropped := arming.take_dropped_keys(at):
            self._model.refuse(words.status.keys_dropped(dropped), at, hold=DROPPED_SECONDS)
            self._screen.redraw()
        if arming.awaits_silence:
            self._screen.surface.settle_in(SETTLE_AGAIN_SECONDS)
        else:
            self._model.sweep(self._clock.now())

    def _report_lost(self, obstacle: Obstacle, at: float) -> None:
        """Say that a press which had counted decided nothing, as something came between it and its silence."""
        if self._pressed and obstacle == "drawn":
            key, now = self._model.registry.key_label(self._pressed), self._screen.situation
            command = self._model.registry.command(self._pressed)
            said = words.status.again(words.status.CHANGED_MEANWHILE, key)
            if now.blocked_by == "over":  # it says whose answer counted
                said = refusal((command,), key, now)
            self._model.refuse(said, at)
        elif self._pressed:
            self._refuse(self._pressed, obstacle)
        self._screen.redraw()

    def _decide(self, command_id: str) -> None:
        """Submit what the press of *command_id* asks for, if it may still decide."""
        screen, model = self._screen, self._model
        command, now = model.registry.command(command_id), screen.situation
        intents = tuple(command.intents(now)) if availability(command, now).shown else ()
        if not intents:
            key = model.registry.key_label(command_id)
            model.refuse(refusal((command,), key, now), self._clock.monotonic())
            screen.redraw()
            return
        answers = [each for each in intents if isinstance(each, Approve | Deny)]
        if answers:
            screen.save_screen()
            reason = now.reason if isinstance(answers[0], Deny) else ""
            model.deny_panel.mark_sent([each.approval_id for each in answers], reason)
        for intent in intents:
            model.mark_sent(intent)
            screen.submit(intent)
        screen.after_decision()
