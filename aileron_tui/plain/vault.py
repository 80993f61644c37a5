"""The vault in the console without a screen: a passphrase typed unseen, locking, the account of a call."""

from math import ceil

from aileron_core.console_port import LockVault
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.plain.context import PlainContext
from aileron_tui.plain.lines import own_line
from aileron_tui.state.intents import choose_account
from aileron_tui.widgets.vault_questions import passphrase_question

IN_SHELL = {
    "bind_account": "setup",
    "rebind_account": "rebind",
    "log_in_again": "reauthorize",
    "revoke_account": "revoke",
    "forget_choice": "forget",
}
"""What is done about an account with a command of `aileron binding`, by the action of the screen's key."""


class PlainVault:
    """Asks for a passphrase after the person's key alone; nothing of it is echoed or kept."""

    def __init__(self, context: PlainContext) -> None:
        self._context, self._model = context, context.model

    def unlock(self, typed: str) -> None:
        """Ask for the passphrase, twice where the vault is to be created, and hand it to the core."""
        context, panel, clock = self._context, self._model.vault_panel, self._context.clock
        if not context.availability("unlock_vault").shown:
            context.say_unavailable(typed)
            return
        if wait := panel.wait_left(clock.monotonic()):
            context.say(words.refusals.did_nothing(typed, words.vault.wait(ceil(wait))))
            return
        panel.open(clock.monotonic(), creates=self._model.vault.state == "absent")
        try:
            while self._ask():
                pass
        finally:
            panel.close()

    def _ask(self) -> bool:
        """Ask once; return whether it has to be asked again."""
        context, panel, model = self._context, self._model.vault_panel, self._model
        for row in passphrase_question(model, context.terminal.columns):
            context.say(row)
        wanted = "absent" if panel.creates else "locked"

        def over() -> bool:
            context.state.take_events()
            lost = model.core_lost is not None or context.state.ended
            return lost or model.vault.state != wanted

        secret = context.terminal.read_secret(words.vault.UNSEEN_PROMPT, over)
        by_keyring = model.vault.keyring_opens and not panel.creates
        if secret is None or not (len(secret) or by_keyring):
            context.say(words.vault.CANCELLED)
            return False
        intent = panel.enter(secret)
        if intent is None:
            return True
        context.port.submit(intent)
        if not context.wait_until(lambda: not panel.is_sent):
            context.state.messages.append(own_line(words.plain.NO_ANSWER_YET))
        return False

    def lock(self, typed: str) -> None:
        context = self._context
        if not context.availability("lock_vault").shown:
            context.say_unavailable(typed)
            return
        context.port.submit(LockVault())
        context.wait_until(lambda: self._model.vault.state != "unlocked")

    def name_command(self, action: str) -> None:
        """Say which command does *action*, for the account of the opened row."""
        table = self._model.accounts
        row = table.current if table.opened else None
        bound = row.bound if row is not None else None
        subject = bound.name if bound is not None else "NAME"
        if action == "bind_account":
            subject = row.connector if row is not None else "CONNECTOR"
        elif action == "forget_choice":
            remembered = bound.remembered_for if bound is not None else ()
            subject = f"{subject} {remembered[0] if len(remembered) == 1 else 'ACTION'}"
        command = f"aileron binding {IN_SHELL[action]} {escape(subject)}"
        self._context.say(words.plain.in_shell(command))

    def choose(self, answer: str, typed: str) -> None:
        """Have the present call use one of its accounts: its number as printed, and whether to remember it."""
        number, _, more = answer.partition(" ")
        context, model, item = self._context, self._model, self._context.state.item
        need = context.situation.account_need
        if item is None or need is None or not context.availability("choose_account").shown:
            context.say_unavailable(typed)
            return
        if not (
            number.isascii() and number.isdigit() and 1 <= int(number) <= len(need.candidates)
        ) or more not in ("", words.vault.REMEMBER):
            context.say(
                words.vault.choose_by_number(typed.split(" ", maxsplit=1)[0], len(need.candidates))
            )
            return
        model.account_choice.open(need)
        model.account_choice.select(int(number) - 1)
        intent = None
        if item.approval is not None:
            intent = choose_account(model, item.approval, remember=bool(more))
        if intent is None:
            context.say_unavailable(typed)
            return
        context.port.submit(intent)
        context.wait_until(lambda: context.situation.account_need != need)
