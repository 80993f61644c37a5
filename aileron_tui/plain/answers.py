"""Answers in the console without a screen: which typed word is which key, under the screen's conditions for it."""

from collections.abc import Callable
from math import ceil

from aileron_core.console_port.devices import MakeLink
from aileron_core.console_port.intents import ConsolePort, Deny, EndGrant, Intent, StopEverything
from aileron_core.console_port.view_models import FINAL_STATES
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.devices import device_name, device_program, device_status
from aileron_tui.draw.text import Piece, line
from aileron_tui.input.commands import key_label
from aileron_tui.pages.account_questions import chosen, passphrase_question
from aileron_tui.pages.command import Availability, availability
from aileron_tui.plain.output import COMMANDS, OWN_KEYS, Output
from aileron_tui.state.deny_panel import REASON_LIMIT
from aileron_tui.state.tables.rules import grant_line

_NOT_RUNNING = ("pending", "awaiting_vault", *FINAL_STATES)


class Answers:
    """Passes the person's answers to the core, once what was printed has rested and may be decided."""

    def __init__(self, port: ConsolePort, output: Output) -> None:
        self._submit, self._output, self._say = port.submit, output, output.say
        self._state, self._model = output.state, output.state.model
        self._registry = self._model.registry
        self._quits = False  # the last answer asked to quit
        self._handlers: dict[str, Callable[[str], object]] = {
            "next": lambda _: self._state.go_on() or self._say(words.plain.NOTHING_ELSE),
            "again": lambda _: self._state.print_again(),
            "help": self._help,
            "quit": self._quit,
            "unfold": lambda _: self._model.unfold(),
            "deny": self._deny,
            "stop_everything": lambda _: self._model.open_panel("stop"),
            "unlock_vault": self._unlock,
            "choose_account": self._choose,
            "open_review": self._make_link,
            "devices": self._show_devices,
            "grants": self._show_grants,
        }

    def give(self, typed: str) -> None:
        """Do what *typed* asks for, or say that it does nothing now."""
        model = self._model
        word, _, rest = typed.partition(" ")
        action = self._command_of(word)
        if rest and action not in ("deny", "choose_account", "devices", "grants"):
            action = ""
        self._quits = self._quits and action == "quit"
        if model.panel == "stop":
            self._answer_stop(action)
            return
        if model.panel in ("pair", "device"):
            self._answer_device(action)
            return
        if action != model.pressed_once:
            model.forget_first_press()
        there = action and (action not in COMMANDS or self._now(action).shown)
        if not there or not self._do(action, rest.strip()):
            self._say(words.plain.no_effect(escape(typed)))

    def _command_of(self, word: str) -> str:
        """Return what *word* stands for: of two commands with one key the one that is possible now."""
        if len(word) == 1 and word < " ":  # the key itself, in place of its name
            word = f"ctrl+{chr(ord(word) + 96)}"
        keys = ((each, self._registry.command(each).keys[0]) for each in COMMANDS)
        named = [action for action, key in keys if key_label(key) == word]
        shown = [each for each in named if self._now(each).shown]
        return next(iter([*shown, *named]), OWN_KEYS.get(word, ""))

    def _now(self, action: str) -> Availability:
        """Return what *action* does now; rest counts from when the item was printed."""
        model = self._model
        model.arming.on_drawn(model.screen_version, self._state.printed_at)
        return availability(self._registry.command(action), self._state.situation)

    def _do(self, action: str, rest: str) -> bool:
        """Do what *action* asks for, with *rest* typed behind its key; return False where it does nothing now."""
        if shell := COMMANDS.get(action):
            self._say(words.plain.in_shell(shell))
            return True
        handler = self._handlers.get(action)
        return self._decide(action) if handler is None else handler(rest) is not False

    def _quit(self, _: str) -> None:
        waiting = self._model.queue.undecided
        if waiting and not self._quits:
            self._quits = True
            self._say(words.status.confirm_quit(waiting, self._registry.key_label("quit")))
        else:
            self._state.ended = True

    def _help(self, _: str) -> None:
        for action, shell in COMMANDS.items():
            command = self._registry.command(action)
            text = words.plain.in_shell(shell) if shell else command.help
            self._say(f" {self._registry.key_labels(command)}: {text}")
        for key, text in words.plain.HELP:
            self._say(f" {key}: {text}")
        self._output.say_startup_warnings()
        self._say(words.plain.REST)

    # Decisions

    def _decide(self, action: str) -> bool:
        """Submit what *action* asks for, or note it where something was found; the same again decides."""
        command, now = self._registry.command(action), self._now(action)
        if command.decides and now.asks:
            self._model.note_first_press(action)
            return True
        intents = tuple(command.intents(self._state.situation)) if now.has_effect else ()
        if intents and (said := command.said or words.plain.ASKED.get(action)):
            self._say(said)
        return self._hand_over(*intents)

    def _deny(self, reason: str) -> None:
        if len(reason) > REASON_LIMIT:
            self._say(words.plain.reason_too_long(REASON_LIMIT))
        elif (item := self._state.item) is not None:
            self._hand_over(Deny(approval_id=item.key, reason=reason))

    def _answer_stop(self, action: str) -> None:
        """Stop everything if *action* is the one that asked; any other leaves everything as it is."""
        stops = action == "stop_everything" and self._now("stop_enter").decides_now
        self._model.close_panel()
        if stops:
            self._hand_over(StopEverything())
        else:
            self._say(words.plain.LEFT_ALONE)

    def _hand_over(self, *intents: Intent) -> bool:
        """Submit *intents* and wait a while for their outcome; return whether there is something to submit."""
        state, model, call = self._state, self._model, self._state.situation.approval
        for intent in intents:
            model.mark_sent(intent)
            self._submit(intent)
        if not intents:
            return False
        before = state.question_version, len(state.messages)

        def over() -> bool:
            item = model.queue.get(call.call_id) if call is not None else None
            runs = item is not None and item.state not in _NOT_RUNNING
            return not runs and before != (state.question_version, len(state.messages))

        self._output.wait_until(over)
        return True

    # Devices

    def _make_link(self, _: str) -> None:
        model = self._model
        model.pairing.ask(self._state.situation.approval)
        model.open_panel("pair")
        self._submit(MakeLink())
        self._output.wait_until(lambda: model.pairing.is_made or model.panel != "pair")

    def _show_devices(self, number: str) -> bool:
        """List the devices, or ask about the one of *number*, as listed."""
        devices = self._model.pairing.devices
        if number in map(str, range(1, len(devices) + 1)):
            self._model.open_panel("device", devices[int(number) - 1].device_id)
            return True
        for at, each in enumerate(devices, start=1):
            about = (Piece(f"{at} "), *device_name(each), Piece(", "), *device_status(each))
            self._say(line(*about, Piece(", "), *device_program(each)))
        self._say(words.plain.about_devices(len(devices)))
        return True

    def _answer_device(self, action: str) -> None:
        """Confirm or end the device that was printed; anything else leaves it as it is."""
        is_answer = (
            action in ("device_confirm", "device_owners", "device_refuse")
            and self._now(action).shown
        )
        if not is_answer or not self._decide(action):
            self._say(words.devices.LEFT)
        self._model.close_panel()

    # Grants

    def _show_grants(self, name: str) -> bool:
        """List the grants, or end the one called *name*."""
        grants = self._model.rules.grants
        if name and name not in (each.grant_id for each in grants):
            self._say(words.plain.no_grant(escape(name)))
        elif not name:
            for each in grants:
                self._say(grant_line(each, self._output.clock.now()))
            self._say(words.plain.about_grants(len(grants)))
        elif self._model.snapshot.attached:
            self._say(words.status.did_nothing(words.plain.GRANTS, words.status.OWNERS))
        else:
            self._hand_over(EndGrant(grant_id=name))
        return True

    # The vault

    def _unlock(self, _: str) -> None:
        """Ask for the passphrase, twice where the vault is to be created; nothing of it is echoed or kept."""
        model, at, terminal = self._model, self._output.clock.monotonic(), self._output.terminal
        panel, before, intent = model.vault_panel, model.vault.state, None
        if wait := panel.wait_left(at):
            key = self._registry.key_label("unlock_vault")
            self._say(words.status.did_nothing(key, words.vault.wait(ceil(wait))))
            return

        def over() -> bool:
            self._state.take_events()
            return self._state.is_over or model.vault.state != before

        panel.open(at, creates=before == "absent")
        try:
            while intent is None:
                for row in passphrase_question(model, terminal.columns):
                    self._say(row)
                secret = terminal.read_secret(words.vault.UNSEEN_PROMPT, over)
                by_keyring = model.vault.keyring_opens and not panel.creates
                if secret is None or not (len(secret) or by_keyring):
                    self._say(words.vault.CANCELLED)
                    return
                intent = panel.enter(secret)
        finally:
            panel.close()
        self._submit(intent)
        self._output.wait_until(lambda: not panel.is_sent)

    def _choose(self, answer: str) -> bool:
        """Have the call use one of its accounts: its number as printed, and whether to remember it."""
        number, _, more = answer.partition(" ")
        model, item, need = self._model, self._state.item, self._state.situation.account_need
        if item is None or item.approval is None or need is None:
            return False
        count = len(need.candidates)
        if number not in map(str, range(1, count + 1)) or more not in ("", words.vault.REMEMBER):
            key = self._registry.key_label("choose_account")
            self._say(words.vault.choose_by_number(key, count))
            return True
        model.account_choice.open(need)
        model.account_choice.select(int(number) - 1)
        return self._hand_over(*chosen(self._state.situation, remember=bool(more)))
