"""The questions about the vault at the foot of a view: a passphrase, typed unseen, and the account of a call."""

from math import ceil

from aileron_core.clock import Clock
from aileron_core.console_port.view_models import AccountNeed
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.accounts import account_name
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, line, truncate, wrap
from aileron_tui.draw.times import clock_minutes
from aileron_tui.input.refusals import too_soon
from aileron_tui.state.model import Model

NAMED_ACCOUNTS = 2
"""So many accounts that calls wait for are named."""
OFFERED_ROWS = 5
"""So many accounts to pick from are in view at once."""


def passphrase_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return what is asked, what waits for the answer, and what became of the last one."""
    panel, waits = model.vault_panel, model.account_waits
    if panel.creates:
        asked = words.vault.AGAIN_QUESTION if panel.asks_again else words.vault.CREATE_QUESTION
        rows = [*bars.panel_question(asked, words.vault.CREATE_REMARK, width)]
    else:
        remark = words.vault.waits_for(waits.locked, waits.ungated)
        opens = model.vault.keyring_opens
        asked = words.vault.UNLOCK_OR_KEYRING if opens else words.vault.UNLOCK_QUESTION
        rows = [*bars.panel_question(asked, remark, width)]
        accounts = waits.accounts
        rows += [
            truncate(line("   ", Piece("┃ ", "fact-bar"), *_needed(each)), width - 1)
            for each in accounts[:NAMED_ACCOUNTS]
        ]
        if more := len(accounts) - NAMED_ACCOUNTS:
            rows += [(Piece(f"   {words.vault.more_accounts(more)}", "muted"),)] if more > 0 else []
        rows += [*_failures(model, width)]
    if panel.is_sent:
        sent = words.vault.CREATING if panel.creates else words.vault.UNLOCKING
        rows.append((Piece(f" {sent}", "muted"),))
    elif panel.refusal:
        refused = wrap(foreign_text(panel.refusal, "attn"), width - 2)
        rows += [(Piece(" "), *each.pieces) for each in refused]
    return tuple(rows)


def _needed(need: AccountNeed) -> Line:
    """Return the account that a call waits for, or the connector where several could be used."""
    if len(need.candidates) == 1:
        return account_name(need.candidates[0])
    return brief(need.connector)


def _failures(model: Model, width: int) -> list[Line]:
    vault = model.vault
    if not vault.failed_attempts:
        return []
    since = clock_minutes(vault.failed_since) if vault.failed_since else ""
    text = words.vault.wrong_before(vault.failed_attempts, since)
    return [truncate((Piece(f" {text}", "attn"),), width - 1)]


def account_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return the accounts to pick from, the picked one marked; only its number and mark are left of the bar."""
    choice = model.account_choice
    if choice.need is None:
        return ()
    question = words.vault.choose_question(escape(choice.need.connector))
    rows = [
        *bars.panel_question(
            question, words.vault.choose_remark(model.registry.key_label("account_remember")), width
        )
    ]
    offered = choice.need.candidates
    first = min(max(0, choice.index - OFFERED_ROWS + 1), max(0, len(offered) - OFFERED_ROWS))
    for index, each in list(enumerate(offered))[first : first + OFFERED_ROWS]:
        edge = Piece("▌", "fact-bar") if index == choice.index else Piece(" ")
        number = Piece(f"{index + 1:>3} ", "strong" if index == choice.index else "muted")
        row = line(edge, number, Piece("┃ ", "fact-bar"), *account_name(each))
        rows.append(truncate(row, width - 1))
    if (hidden := len(offered) - OFFERED_ROWS) > 0:
        rows.append((Piece(f"     {words.vault.more_accounts(hidden)}", "muted"),))
    return tuple(rows)


def enter_obstacle(model: Model, clock: Clock, *, is_empty: bool) -> str:
    """Return why a press of enter does nothing about the vault, empty if it does."""
    panel, at = model.vault_panel, model.key_at
    enter = model.registry.key_label("passphrase_enter")
    if not model.arming.focused:
        return too_soon(enter, "unfocused", "screen")
    if model.key_in_burst:
        return words.vault.IN_BURST
    if panel.too_early(at):
        return words.vault.TOO_EARLY
    if is_empty and (panel.creates or not model.vault.keyring_opens):
        return words.refusals.did_nothing(enter, words.vault.EMPTY)
    if wait := panel.wait_left(clock.monotonic()):
        return words.refusals.did_nothing(enter, words.vault.wait(ceil(wait)))
    return ""
