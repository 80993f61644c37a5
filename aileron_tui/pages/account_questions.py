"""The questions at the foot of a view: the vault's passphrase, typed unseen, the account of a call, and accounts."""

from math import ceil

from aileron_core.clock import Clock
from aileron_core.console_port.account_views import AccountNeed, CredentialUserView, LoginView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.accounts import account_name
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, line, truncate, wrap
from aileron_tui.draw.times import clock_minutes
from aileron_tui.input.refusals import too_soon
from aileron_tui.state.account_panel import AccountPanel
from aileron_tui.state.model import Model

NAMED_ACCOUNTS = 2
"""So many accounts that calls wait for are named."""
OFFERED_ROWS = 5
"""So many accounts to pick from are in view at once."""
_ROWS_BESIDE_ADDRESS = 15
"""Rows of the screen that are no part of a login's address."""


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


def question_about_account(model: Model, width: int, height: int) -> tuple[Line, ...]:
    """Return what the panel about an account asks now; *height* is the screen's."""
    match model.panel:
        case "bind":
            return bind_question(model, width)
        case "rebind":
            return rebind_question(model, width)
        case "revoke":
            return revoke_question(model, width)
        case _:
            return login_question(model, width, height)


def bind_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return for whom the account is, where it will be sent, and what is to be typed."""
    panel = model.account_panel
    if panel.user is None:
        return ()
    rows = [*_purpose(panel, panel.user, width)]
    if panel.login is not None:
        rows += _missing(panel.login, width)
    asked = panel.question
    if asked is not None:
        remark = words.accounts.NOT_SHOWN if asked.is_secret else ""
        rows += bars.panel_question(asked.text, remark, width)
    elif panel.is_sent:
        login = panel.user.kind == "oauth2"
        rows.append((Piece(f" {words.accounts.BEGINNING if login else words.accounts.STORING}"),))
    return (*rows, *_refusal(model, width))


def rebind_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return what is new of the connector, and whether it may use the account."""
    panel = model.account_panel
    bound, user = panel.bound, panel.user
    if bound is None or user is None:
        return ()
    question = words.accounts.rebind_question(escape(user.ref), escape(bound.name))
    rows = [*bars.panel_question(question, "", width)]
    changes = [
        *((f"+ {host}", "attn") for host in user.hosts if host not in bound.hosts),
        *((f"− {host}", "muted") for host in bound.hosts if host not in user.hosts),
    ]
    if bound.connector_hash != user.hash:
        changes += [(f"− {bound.connector_hash}", "muted"), (f"+ {user.hash}", "attn")]
    for text, role in changes:
        wrapped = wrap(foreign_text(text, "attn" if role == "attn" else "muted"), width - 6)
        rows += [(Piece("   "), Piece("┃ ", "fact-bar"), *each.pieces) for each in wrapped]
    return tuple(rows)


def revoke_question(model: Model, width: int) -> tuple[Line, ...]:
    bound = model.account_panel.bound
    if bound is None:
        return ()
    name = escape(bound.name)
    account = f"{escape(bound.account)} ({name})" if bound.account else name
    question = words.accounts.revoke_question(account)
    return bars.panel_question(question, words.accounts.REVOKE_REMARK, width)


def login_question(model: Model, width: int, height: int) -> tuple[Line, ...]:
    """Return where to log in; after that whose account it is. Nothing is stored before a yes."""
    panel = model.account_panel
    login = panel.login
    if login is None:
        return ()
    if login.state == "waiting":
        said = words.accounts
        question, remark = (
            (said.OPEN_DEVICE, said.WAITING_DEVICE)
            if login.user_code
            else (said.OPEN_LOGIN, said.WAITING)
        )
        rows = [*bars.panel_question(question, remark, width)]
        if panel.user is not None:
            rows = [*_purpose(panel, panel.user, width), *rows]
        address = wrap(foreign_text(login.url, "strong"), width - 6)
        if len(address) > height - _ROWS_BESIDE_ADDRESS:
            too_long = (Piece(f"{said.LOGIN_TOO_LONG} "), *foreign_text(panel.command, "strong"))
            address = wrap(too_long, width - 6)
        rows += [(Piece("   "), Piece("┃ ", "fact-bar"), *each.pieces) for each in address]
        if login.user_code:
            rows += _labelled(said.CODE, login.user_code, width)
        return tuple(rows)
    if login.state == "authorized":
        rows = [*bars.panel_question(words.accounts.CONFIRM, "", width)]
        shown = [*_labelled("account", panel.account_named, width), *_missing(login, width)]
        return (*rows, *shown, *_refusal(model, width))
    return _refusal(model, width)


def _missing(login: LoginView, width: int) -> list[Line]:
    if not login.missing:
        return []
    return _labelled("not granted", ", ".join(login.missing), width)


def _labelled(label: str, text: str, width: int) -> list[Line]:
    rows = wrap(foreign_text(text, "strong"), width - 18)
    return [
        (Piece(f"   {label if number == 0 else '':<12}", "muted"), Piece("┃ ", "fact-bar"), *each.pieces)
        for number, each in enumerate(rows)
    ]  # fmt: skip


def _purpose(panel: AccountPanel, user: CredentialUserView, width: int) -> list[Line]:
    said = words.accounts
    title = said.bind_title(escape(user.ref), escape(panel.name))
    sent = f"{said.sent_as(user.kind, escape(user.header))}. {said.sent_to(escape(', '.join(user.hosts)))}"
    rows = [*wrap((Piece(title, "strong"),), width - 2), *wrap((Piece(sent, "muted"),), width - 2)]
    shown = [(Piece(" "), *each.pieces) for each in rows]
    if user.kind != "oauth2":
        return shown
    scopes = panel.login.scopes if panel.login is not None else user.scopes
    return [
        *shown,
        *_labelled(said.ASKS_FOR, ", ".join(scopes), width),
        *_labelled(said.LOGS_IN_AT, user.login_host, width),
        *_labelled(said.TOKENS_TO, user.token_host, width),
    ]


def _refusal(model: Model, width: int) -> tuple[Line, ...]:
    refusal = model.account_panel.refusal
    if not refusal:
        return ()
    rows = wrap(foreign_text(refusal, "attn"), width - 2)
    return tuple((Piece(" "), *each.pieces) for each in rows)
