"""The accounts of a call: which it uses, and what it waits for where it has none yet."""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, line


def account_name(view: AccountView) -> Line:
    """Return `ana@example.com (api_key/mail/work)`, whole; the person's words are drawn like any other."""
    if not view.account:
        return foreign_text(view.name, "strong")
    name = foreign_text(view.name)
    return line(*foreign_text(view.account, "strong"), Piece(" ("), *name, Piece(")"))


def as_whom(accounts: Sequence[AccountView]) -> Line:
    """Return ` as ana@example.com (api_key/mail/work)` for a sentence; the record has it whole."""
    pieces: list[Piece] = []
    for index, each in enumerate(accounts):
        pieces.append(Piece(" and " if index else " as ", "muted"))
        pieces += brief(each.account or each.name, "strong")
        if each.account:
            pieces += [Piece(" (", "muted"), *brief(each.name, "muted"), Piece(")", "muted")]
    return tuple(pieces)


def account_rows(view: ApprovalView) -> Iterator[Block]:
    """Yield the accounts for the record, one a line."""
    for index, each in enumerate(view.accounts):
        yield value("Account" if index == 0 else "", account_name(each), "record")


def need_heading(need: AccountNeed) -> Block:
    """Return the first line of a document whose call waits for an account."""
    text, remark = {
        "locked": (words.vault.WAITS_FOR_VAULT, words.vault.LOCKED_REMARK),
        "settings": (words.vault.WAITS_FOR_SETTINGS, words.vault.SETTINGS_REMARK),
        "unbound": (words.vault.WAITS_FOR_ACCOUNT, words.vault.UNBOUND_REMARK),
        "choice": (words.vault.WAITS_FOR_CHOICE, words.vault.CHOICE_REMARK),
    }[need.reason]
    return heading(text, (Piece(remark, "muted"),), "attn")


def need_blocks(
    need: AccountNeed, *, gated: bool, unlock_key: str, choose_key: str, accounts_key: str
) -> Iterator[Block]:
    """Yield what a call waits for, and what to do about it."""
    if need.kind:
        yield value(words.vault.NEEDS, foreign_text(words.vault.kind_needed(need.kind)))
    yield value("For", foreign_text(need.connector))
    if need.problem:
        yield value("Problem", foreign_text(need.problem, "attn"))
    for number, each in enumerate(need.candidates, start=1):
        numbered = (Piece(f"{number}  ", "muted"),) if len(need.candidates) > 1 else ()
        label = "Account" if number == 1 else ""
        yield value(label, (*numbered, *account_name(each)))
    yield blank()
    if need.reason == "unbound":
        yield value(words.vault.NEXT, (Piece(words.vault.bind_here(accounts_key)),))
        command = foreign_text(need.command, "strong")
        yield value("", line(Piece(words.vault.IN_SHELL, "muted"), *command))
    key = choose_key if need.reason == "choice" else unlock_key
    text = words.vault.next_step(need.reason, key, gated=gated)
    yield value("" if need.reason == "unbound" else words.vault.NEXT, (Piece(text),))
