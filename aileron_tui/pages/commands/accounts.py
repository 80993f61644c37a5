"""The keys of the vault and its accounts, and of grants and rules."""

from collections.abc import Callable, Iterable

from aileron_core.actions.model import is_builtin
from aileron_core.console_port.account_intents import ForgetChoice
from aileron_core.console_port.intents import EndGrant, LockVault
from aileron_core.errors import FileProblems
from aileron_core.policy.model import to_toml
from aileron_core.policy.policy_file import parse_policy
from aileron_tui import words
from aileron_tui.input.commands import VIEWS, Command
from aileron_tui.pages.account_questions import (
    COUNTS_ALREADY,
    NO_CHOICE,
    ask_about_account,
    ask_account,
    ask_passphrase,
    ask_to_bind,
    can_rebind,
    has_choice,
)
from aileron_tui.pages.command import unless
from aileron_tui.pages.commands.everywhere import view_key
from aileron_tui.pages.listing import ListPage
from aileron_tui.pages.page import Page
from aileron_tui.state.situation import Situation

_Key = Command[Situation, Page]
_NO_CONNECTOR = "its connector is not accepted, or asks for no account"
UNLOCK_RANK = 65
"""The rank of the key that unlocks the vault, where the item does not wait for it."""


def _no_unlocking(now: Situation) -> str:
    """There is no vault that is locked, nor none while a call waits for an account that it would keep."""
    if now.vault == "absent":
        waits = now.model.account_waits.count
        return "" if waits else "there is no vault, and nothing waits for one"
    return "" if now.vault == "locked" else "the vault is not locked"


def _rank_of_unlocking(now: Situation) -> int:
    need = now.account_need
    return UNLOCK_RANK if need is None or need.reason == "choice" else 9


def _account(holds: Callable[[Situation], object], why: str) -> Callable[[Situation], str]:
    """Return what says why nothing can be done about an account: the vault is locked, or else *why*."""

    def why_not(now: Situation) -> str:
        if now.vault != "unlocked":
            return words.vault.first(now.vault, attached=bool(now.model.snapshot.attached))
        return "" if holds(now) else why

    return why_not


def _can_log_in(now: Situation) -> bool:
    bound = now.bound_account
    has_login = bound is not None and bound.kind == "oauth2"
    return has_login and now.credential_user is not None and not can_rebind(now)


def _forgotten(now: Situation) -> Iterable[ForgetChoice]:
    if (bound := now.bound_account) is not None:
        yield from (ForgetChoice(name=bound.name, action=each) for each in bound.remembered_for)


def _cannot_rebind(now: Situation) -> str:
    why = COUNTS_ALREADY if now.credential_user else _NO_CONNECTOR
    if now.bound_account is not None and now.bound_account.remedy == "revoke":
        why = now.bound_account.problem
    return _account(can_rebind, why)(now)


ACCOUNTS = (
    _Key(
        "unlock_vault", ("U",), "unlock the vault", VIEWS,
        "unlock the vault, or create it where a call waits for one; asks for the passphrase", asks=True,
        footer_rank=9, rank_now=_rank_of_unlocking,
        label_now=lambda now: words.vault.CREATE_LABEL if now.vault == "absent" else "",
        needs="core", why_not=_no_unlocking, do=lambda page: ask_passphrase(page.panel),
    ),
    _Key(
        "lock_vault", ("Z",), "lock the vault", VIEWS, "lock the vault at once; calls that need it wait",
        needs="owner", why_not=unless(lambda now: now.vault == "unlocked", "the vault is not unlocked"),
        intents=lambda _: (LockVault(),),
    ),
    _Key(
        "choose_account", ("C",), "pick the account", ("waiting",), "pick the account that the call uses",
        asks=True, footer_rank=8, needs="owner", why_not=unless(has_choice, NO_CHOICE),
        do=lambda page: ask_account(page.panel),
    ),
    view_key("accounts", "6", "accounts that connectors log in with: bind, bind again, delete"),
    _Key(
        "bind_account", ("B",), "bind an account", ("accounts",),
        "bind an account to the row's connector; asks for its secret, unseen", asks=True, footer_rank=20,
        needs="owner", why_not=_account(lambda now: now.credential_user, _NO_CONNECTOR),
        do=lambda page: ask_to_bind(page.panel, again=False),
    ),
    _Key(
        "rebind_account", ("R",), "bind again", ("accounts",),
        "let a connector that has changed use the account; says what is new", asks=True, footer_rank=21,
        needs="owner", why_not=_cannot_rebind, do=lambda page: ask_about_account(page.panel, "rebind"),
    ),
    _Key(
        "log_in_again", ("l",), "log in again", ("accounts",), "log in to the account's service again",
        asks=True, footer_rank=22, needs="owner",
        why_not=_account(_can_log_in, "it has no login to renew: delete it and bind it again"),
        do=lambda page: ask_to_bind(page.panel, again=True),
    ),
    _Key(
        "revoke_account", ("x",), "delete", ("accounts",), "delete the account from the vault; asks first",
        asks=True, footer_rank=23, needs="owner",
        why_not=_account(lambda now: now.bound_account, "no bound account is selected"),
        do=lambda page: ask_about_account(page.panel, "revoke"),
    ),
    _Key(
        "forget_choice", ("F",), "ask again", ("accounts",),
        "forget that actions use this account without asking", footer_rank=24, needs="owner",
        why_not=_account(
            lambda now: now.bound_account and now.bound_account.remembered_for,
            "it is not remembered for any action",
        ),
        intents=_forgotten,
    ),
)  # fmt: skip


_ListKey = Command[Situation, ListPage]
_has_grant = unless(lambda now: now.model.rules.grant, words.rules.NO_GRANT)


def _ended(now: Situation) -> Iterable[EndGrant]:
    if (grant := now.model.rules.grant) is not None:
        yield EndGrant(grant_id=grant.grant_id)


def _copy(page: ListPage) -> None:
    """Copy the selected grant as a rule, unless no rule can hold it."""
    if (grant := page.model.rules.grant) is None:
        return
    if is_builtin(grant.action):
        page.model.say(words.rules.OF_A_TOOL, page.clock.monotonic())
        return
    text = to_toml(grant.action, grant.decision, grant.tests)
    try:
        parse_policy(text)
    except FileProblems:
        said = words.rules.CANNOT_BE_RULE
    else:
        page.surface.copy(text)
        said = words.rules.copied(text.count("\n"))
    page.model.say(said, page.clock.monotonic())


RULES = (
    view_key("rules", "7", "grants and rules: what answers calls in your place", rank=85),
    _ListKey(
        "end_grant", ("x",), "end", ("rules",), "end the grant, at once", decides=True, footer_rank=6,
        needs="core", phrase="end it", why_not=_has_grant, intents=_ended,
    ),
    _ListKey(
        "show_call", ("enter",), "its calls", ("rules",), "show the calls that the grant answered, newest first",
        fixed=True, footer_rank=5, never_with="open",
        why_not=unless(lambda now: now.opened and now.model.rules.calls, words.rules.NO_CALLS),
        do=lambda page: page.model.rules.show_next_call(),
    ),
    _ListKey(
        "copy_rule", ("y",), "copy as a rule", ("rules",), "copy the grant as lines of policy.toml", footer_rank=7,
        why_not=_has_grant, do=_copy,
    ),
)  # fmt: skip
