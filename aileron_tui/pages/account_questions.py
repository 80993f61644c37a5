"""The questions about the vault and accounts: a passphrase typed unseen, the account of a call, binding, deleting."""

from collections.abc import Callable
from math import ceil

from aileron_core.console_port.account_intents import (
    CancelLogin,
    FinishLogin,
    RebindAccount,
    RevokeAccount,
)
from aileron_core.console_port.account_views import (
    AccountNeed,
    BoundAccountView,
    CredentialUserView,
    LoginView,
)
from aileron_core.console_port.intents import ChooseAccount
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.accounts import account_name
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, line, truncate, wrap
from aileron_tui.draw.times import clock_minutes
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import too_soon, unless
from aileron_tui.pages.surface import Place
from aileron_tui.state.account_panel import AccountPanel
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation

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
        asked = "New passphrase of the vault, at least 8 characters:"
        if panel.asks_again:
            asked = "The same passphrase again:"
        remark = "It encrypts your accounts on this computer. Nobody can reset it: keep it safe."
        rows = [*bars.panel_question(asked, remark, width)]
    else:
        remark = words.vault.waits_for(waits.locked, waits.ungated)
        or_keyring = ", or enter alone for the keyring" if model.vault.keyring_opens else ""
        rows = [*bars.panel_question(f"Passphrase of the vault{or_keyring}:", remark, width)]
        accounts = waits.accounts
        rows += [
            truncate(line("   ", Piece("┃ ", "fact-bar"), *_needed(each)), width - 1)
            for each in accounts[:NAMED_ACCOUNTS]
        ]
        if (more := len(accounts) - NAMED_ACCOUNTS) > 0:
            rows.append((Piece(f"   and {more} more", "muted"),))
        rows += [*_failures(model, width)]
    if panel.is_sent:
        sent = " Creating the vault …" if panel.creates else " Checking …"
        rows.append((Piece(sent, "muted"),))
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


def _refused_enter(asking: Asking, *, is_empty: bool) -> bool:
    """Say why a press of enter does nothing about the vault; return whether that is so."""
    model, panel = asking.model, asking.model.vault_panel
    enter, why = model.registry.key_label("passphrase_enter"), ""
    if not model.arming.focused:
        why = too_soon(enter, "unfocused", "screen")
    elif model.key_in_burst:
        why = "Enter came together with other keys. Press enter again."
    elif panel.too_early(model.key_at):
        why = "Too soon after the question appeared. Press enter again."
    elif is_empty and (panel.creates or not model.vault.keyring_opens):
        why = words.status.did_nothing(enter, "no passphrase was typed")
    elif wait := panel.wait_left(asking.clock.monotonic()):
        why = words.status.did_nothing(enter, words.vault.wait(ceil(wait)))
    if why:
        asking.refuse(why)
    return bool(why)


def ask_passphrase(asking: Asking) -> None:
    """Ask for the passphrase of the vault, or for that of a new one."""
    model = asking.model
    model.vault_panel.open(asking.clock.monotonic(), creates=model.vault.state == "absent")
    asking.secret.clear()
    asking.ask("passphrase")


def _send_passphrase(asking: Asking) -> None:
    """Hand what was typed to the core, which overwrites it; the line is empty afterwards."""
    if not _refused_enter(asking, is_empty=asking.secret.is_empty):
        intent = asking.model.vault_panel.enter(asking.secret.take())
        if intent is not None:
            asking.submit(intent)


def _is_answered(now: Situation) -> bool:
    """Return whether no passphrase is wanted any more."""
    wanted = "absent" if now.model.vault_panel.creates else "locked"
    return now.vault != wanted or not now.can_change


def _next_of_passphrase(now: Situation) -> str:
    if now.vault != "absent":
        return ""
    return words.vault.CREATE_LABEL if now.model.vault_panel.asks_again else "next"


PASSPHRASE = Question(
    "passphrase", rows=lambda asking, _, width: passphrase_question(asking.model, width),
    field=lambda _: "secret", is_over=_is_answered, leave="leave it",
    answers=(
        Answer(
            "passphrase_enter", ("enter",), "unlock", footer_rank=0, label_now=_next_of_passphrase, needs="core",
            why_not=unless(lambda now: not now.model.vault_panel.is_sent, "the passphrase is being checked"),
            do=_send_passphrase,
        ),
    ),
)  # fmt: skip

# The account of a call


def account_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return the accounts to pick from, the picked one marked; only its number and mark are left of the bar."""
    choice = model.account_choice
    if choice.need is None:
        return ()
    remark = (
        f"For this call alone. With {model.registry.key_label('account_remember')} for later calls of its "
        "action too, until the action's file or the account changes."
    )
    question = f"Which account for {escape(choice.need.connector)}?"
    rows = [*bars.panel_question(question, remark, width)]
    offered = choice.need.candidates
    first = min(max(0, choice.index - OFFERED_ROWS + 1), max(0, len(offered) - OFFERED_ROWS))
    for index, each in list(enumerate(offered))[first : first + OFFERED_ROWS]:
        edge = Piece("▌", "fact-bar") if index == choice.index else Piece(" ")
        number = Piece(f"{index + 1:>3} ", "strong" if index == choice.index else "muted")
        row = line(edge, number, Piece("┃ ", "fact-bar"), *account_name(each))
        rows.append(truncate(row, width - 1))
    if (hidden := len(offered) - OFFERED_ROWS) > 0:
        rows.append((Piece(f"     and {hidden} more", "muted"),))
    return tuple(rows)


def has_choice(now: Situation) -> bool:
    """A person has to pick the account of the selected call."""
    need = now.account_need
    return need is not None and need.reason == "choice" and now.deny_blocked_by == "none"


def ask_account(asking: Asking) -> None:
    """Ask which of its accounts the selected call uses."""
    item = asking.model.queue.current
    need = item.approval.account_need if item is not None and item.approval else None
    if item is not None and need is not None:
        asking.model.account_choice.open(need)
        asking.ask("account", item.key)


def chosen(now: Situation, *, remember: bool) -> tuple[ChooseAccount, ...]:
    """Return the pick among what is still offered exactly as it was when the question appeared."""
    choice, view = now.model.account_choice, now.approval
    if view is None or choice.need is None or choice.need != view.account_need:
        return ()
    return (
        ChooseAccount(
            approval_id=view.approval_id,
            connector=choice.need.connector,
            binding=choice.binding,
            remember=remember,
        ),
    )


def _picked(remember: bool) -> Callable[[Situation], tuple[ChooseAccount, ...]]:
    return lambda now: (
        chosen(now, remember=remember)
        if now.item is not None and now.model.panel_key == now.item.key
        else ()
    )


NO_CHOICE = "this waits for no choice of an account"
ACCOUNT = Question(
    "account", rows=lambda asking, _, width: account_question(asking.model, width), leave="leave it waiting",
    is_over=lambda now: now.model.account_choice.need != now.account_need,
    answers=(
        Answer(
            "account_enter", ("enter",), "use this account", decides=True, footer_rank=0,
            needs="owner", why_not=unless(has_choice, NO_CHOICE), intents=_picked(False),
        ),
        Answer(
            "account_remember", ("R",), "and for later calls", decides=True, footer_rank=1,
            help="use this account for later calls of the action too",
            needs="owner", why_not=unless(has_choice, NO_CHOICE), intents=_picked(True),
        ),
        Answer(
            "account_next", ("down", "j"), "choose", moves=True, paired_with="account_previous",
            footer_rank=1, do=lambda asking: asking.model.account_choice.move(1),
        ),
        Answer(
            "account_previous", ("up", "k"), "choose above", moves=True,
            do=lambda asking: asking.model.account_choice.move(-1),
        ),
        Answer(
            "account_number", tuple("123456789"), "by number",
            do=lambda asking: asking.model.account_choice.select(int(asking.model.key_name) - 1),
        ),
    ),
)  # fmt: skip

# Accounts


def is_unlocked(now: Situation) -> bool:
    return now.vault == "unlocked" and now.can_change


def can_rebind(now: Situation) -> bool:
    """Return whether the selected account does not count for its connector as that is now."""
    bound, user = now.bound_account, now.credential_user
    if bound is None or user is None or bound.remedy == "revoke" or not is_unlocked(now):
        return False
    return (bound.connector_hash, bound.hosts) != (user.hash, user.hosts)


def ask_to_bind(asking: Asking, *, again: bool) -> None:
    """Ask for an account of the selected row's connector, or for a new login to the one that there is."""
    model, row = asking.model, asking.model.accounts.current
    if row is None or row.user is None:
        return
    model.account_panel.open(row.user, row.bound if again else None, model.accounts.names)
    asking.ask("bind")
    if (intent := model.account_panel.begin()) is not None:
        asking.submit(intent)


def ask_about_account(asking: Asking, name: str) -> None:
    """Ask the question *name* about the selected account."""
    row = asking.model.accounts.current
    if row is not None and row.bound is not None:
        asking.ask(name, row.bound.name)
        asking.model.account_panel.open(row.user, row.bound)


def _answer(asking: Asking) -> None:
    """Take what was typed; hand it to the core once nothing more is asked."""
    panel = asking.model.account_panel
    asked = panel.question
    if asked is None or (asked.is_secret and _refused_enter(asking, is_empty=False)):
        return
    if asked.is_secret:
        intent = panel.enter_secret(asking.secret.take())
    else:
        intent = panel.enter_text(asking.text)
    if intent is not None:
        asking.submit(intent)
    elif panel.question is None and panel.login is not None:
        asking.ask("login")


def _end_login(asking: Asking) -> None:
    """Leave the question; a login that goes on is forgotten."""
    panel = asking.model.account_panel
    if panel.login is not None:
        asking.submit(CancelLogin(login_id=panel.login.login_id))
    panel.is_sent = False
    asking.close()


def _bind_field(model: Model) -> Place:
    asked = model.account_panel.question
    if asked is None:
        return "nothing"
    return "secret" if asked.is_secret else "field"


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
        remark = "It is not shown." if asked.is_secret else ""
        rows += bars.panel_question(asked.text, remark, width)
    elif panel.is_sent:
        login = panel.user.kind == "oauth2"
        rows.append((Piece(" Starting the login …" if login else " Storing …"),))
    return (*rows, *_refusal(model, width))


BIND = Question(
    "bind", rows=lambda asking, _, width: bind_question(asking.model, width), field=_bind_field,
    is_over=lambda now: not is_unlocked(now), leave="cancel", on_leave=_end_login,
    answers=(Answer("bind_enter", ("enter",), "next", footer_rank=0, needs="owner", do=_answer),),
)  # fmt: skip


def login_question(model: Model, width: int, height: int) -> tuple[Line, ...]:
    """Return where to log in; after that whose account it is. Nothing is stored before a yes."""
    panel = model.account_panel
    login = panel.login
    if login is None:
        return ()
    if login.state == "waiting":
        where = escape(model.snapshot.elsewhere) or "this machine"
        question = f"Log in at this address, in a browser on {where}:"
        remark = "Waiting for the browser."
        if login.user_code:
            question = "Open this address on any device, and enter the code:"
            remark = "Waiting until you did."
        rows = [*bars.panel_question(question, remark, width)]
        if panel.user is not None:
            rows = [*_purpose(panel, panel.user, width), *rows]
        address = wrap(foreign_text(login.url, "strong"), width - 6)
        if len(address) > height - _ROWS_BESIDE_ADDRESS:
            too_long = "The address is too long for this window. Make the window larger, or leave and log in with "
            address = wrap((Piece(too_long), *foreign_text(panel.command, "strong")), width - 6)
        rows += [(Piece("   "), Piece("┃ ", "fact-bar"), *each.pieces) for each in address]
        if login.user_code:
            rows += labelled("code", login.user_code, width)
        return tuple(rows)
    if login.state == "authorized":
        rows = [
            *bars.panel_question("Is this the account you mean? Nothing is stored yet.", "", width)
        ]
        shown = [*labelled("account", panel.account_named, width), *_missing(login, width)]
        return (*rows, *shown, *_refusal(model, width))
    return _refusal(model, width)


def _missing(login: LoginView, width: int) -> list[Line]:
    if not login.missing:
        return []
    return labelled("not granted", ", ".join(login.missing), width)


def labelled(label: str, text: str | Line, width: int) -> list[Line]:
    """Return *text*, a string from outside or a line, behind a bar of ours."""
    rows = wrap(foreign_text(text, "strong") if isinstance(text, str) else text, width - 18)
    return [
        (Piece(f"   {label if number == 0 else '':<12}", "muted"), Piece("┃ ", "fact-bar"), *each.pieces)
        for number, each in enumerate(rows)
    ]  # fmt: skip


def _purpose(panel: AccountPanel, user: CredentialUserView, width: int) -> list[Line]:
    said = words.vault
    title = f"{escape(panel.name)} for {escape(user.ref)}."
    sent = said.use(
        user.kind, escape(user.header), escape(", ".join(user.names)), escape(", ".join(user.hosts))
    )
    rows = [*wrap((Piece(title, "strong"),), width - 2), *wrap((Piece(sent, "muted"),), width - 2)]
    shown = [(Piece(" "), *each.pieces) for each in rows]
    if user.kind != "oauth2":
        return shown
    scopes = panel.login.scopes if panel.login is not None else user.scopes
    return [
        *shown,
        *labelled(said.ASKS_FOR, ", ".join(scopes), width),
        *labelled("log in at", user.login_host, width),
        *labelled("tokens of", user.token_host, width),
    ]


def _refusal(model: Model, width: int) -> tuple[Line, ...]:
    refusal = model.account_panel.refusal
    if not refusal:
        return ()
    rows = wrap(foreign_text(refusal, "attn"), width - 2)
    return tuple((Piece(" "), *each.pieces) for each in rows)


def _login_is(now: Situation, state: str) -> bool:
    login = now.model.account_panel.login
    return login is not None and login.state == state


def _finished(now: Situation) -> tuple[FinishLogin, ...]:
    panel = now.model.account_panel
    if panel.login is None or panel.login.state != "authorized" or not panel.account_named:
        return ()
    return (FinishLogin(login_id=panel.login.login_id, account=panel.account_named),)


def _cannot_open(now: Situation) -> str:
    """The browser of another machine than the home's does not lead back to it; with a code it need not."""
    login = now.model.account_panel.login
    if login is None or login.state != "waiting":
        return words.status.ONLY_ROW
    there = now.model.snapshot.elsewhere if not login.user_code else ""
    return f"the address has to be opened on {escape(there)}" if there else ""


def _open_login(asking: Asking) -> None:
    login = asking.model.account_panel.login
    if login is not None:
        asking.surface.open_link(login.url)


LOGIN = Question(
    "login", rows=lambda asking, _, width: login_question(asking.model, width, asking.model.size[1]),
    is_over=lambda now: not is_unlocked(now), leave="no, forget it", on_leave=_end_login,
    answers=(
        Answer(
            "login_enter", ("y",), "yes, store it", decides=True, footer_rank=0, needs="owner",
            why_not=unless(lambda now: _login_is(now, "authorized"), words.status.ONLY_ROW),
            intents=_finished,
        ),
        Answer(
            "login_open", ("enter",), "open the browser", footer_rank=0,
            why_not=_cannot_open, do=_open_login,
        ),
    ),
)  # fmt: skip


def rebind_question(model: Model, width: int) -> tuple[Line, ...]:
    """Return what is new of the connector, and whether it may use the account."""
    panel = model.account_panel
    bound, user = panel.bound, panel.user
    if bound is None or user is None:
        return ()
    question = f"Let {escape(user.ref)} use {escape(bound.name)}?"
    rows = [*bars.panel_question(question, "", width)]
    changes = [
        *((f"+ {each}", "attn") for each in user.hosts if each not in bound.hosts),
        *((f"− {each}", "muted") for each in bound.hosts if each not in user.hosts),
    ]
    if bound.connector_hash != user.hash:
        changes += [(f"− {bound.connector_hash}", "muted"), (f"+ {user.hash}", "attn")]
    for text, role in changes:
        wrapped = wrap(foreign_text(text, "attn" if role == "attn" else "muted"), width - 6)
        rows += [(Piece("   "), Piece("┃ ", "fact-bar"), *each.pieces) for each in wrapped]
    return tuple(rows)


def _asked_about(now: Situation) -> BoundAccountView | None:
    """Return the selected account, if it is exactly what the question showed."""
    return now.bound_account if now.bound_account == now.model.account_panel.bound else None


def _rebound(now: Situation) -> tuple[RebindAccount, ...]:
    bound, user = _asked_about(now), now.credential_user
    if bound is None or user is None or user != now.model.account_panel.user:
        return ()
    return (RebindAccount(name=bound.name, connector_hash=user.hash),)


COUNTS_ALREADY = "its connector may use it already"
REBIND = Question(
    "rebind", rows=lambda asking, _, width: rebind_question(asking.model, width), leave="cancel",
    is_over=lambda now: now.bound_account != now.model.account_panel.bound,
    answers=(
        Answer(
            "rebind_enter", ("y",), "yes", decides=True, footer_rank=0, needs="owner",
            why_not=unless(can_rebind, COUNTS_ALREADY), intents=_rebound,
        ),
    ),
)  # fmt: skip


def _revoke_text(now: Situation) -> tuple[str, str]:
    bound = now.model.account_panel.bound
    if bound is None:
        return "", ""
    name = escape(bound.name)
    return (
        f"Delete {f'{escape(bound.account)} ({name})' if bound.account else name}?",
        "Its secret is deleted from the vault. The service still accepts it: revoke it there as well.",
    )


def _revoked(now: Situation) -> tuple[RevokeAccount, ...]:
    bound = _asked_about(now)
    return (RevokeAccount(name=bound.name),) if bound is not None else ()


REVOKE = Question(
    "revoke", text=_revoke_text, leave="cancel",
    is_over=lambda now: now.bound_account != now.model.account_panel.bound,
    answers=(
        Answer(
            "revoke_enter", ("y",), "delete it", decides=True, footer_rank=0, needs="owner",
            intents=_revoked,
        ),
    ),
)  # fmt: skip
