"""The questions about an account at the foot of the list of accounts."""

from aileron_core.console_port.account_views import CredentialUserView, LoginView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, wrap
from aileron_tui.state.account_panel import AccountPanel
from aileron_tui.state.model import Model

_ROWS_BESIDE_ADDRESS = 15
"""Rows of the screen that are no part of a login's address."""


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
