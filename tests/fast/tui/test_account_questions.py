"""The questions about an account: what is typed next, asked of the core and drawn; and why a call waits."""

from dataclasses import replace
from typing import get_args, get_type_hints

import pytest

from aileron_core.console_port import account_views
from aileron_core.console_port.account_intents import BeginLogin, BindAccount
from aileron_core.console_port.events import VaultStatus
from aileron_core.vault.secret import Secret
from aileron_tui import words
from aileron_tui.draw.accounts import need_blocks, need_heading
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.account_questions import login_question
from aileron_tui.pages.command import availability, refusal
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state.account_panel import AccountPanel
from tests.screen.bound_accounts import ANA, DRIVE, ENDED, LOGIN, MAIL, accounts
from tests.support.screens.drawn import Drawn
from tests.support.screens.states import snapshot_of

KEY = Secret("a canary")
DEVICE = replace(LOGIN, url="https://login.drive.example/device", user_code="WDJB-MJHT")
ENTER = "Open this address on any device, and enter the code:"
LONG = replace(LOGIN, url=LOGIN.url + "x" * 2000)
COMMAND = f"aileron binding reauthorize {ENDED.name}"
REASONS = get_args(get_type_hints(account_views.AccountNeed)["reason"])


def opened_panel(user: account_views.CredentialUserView) -> AccountPanel:
    panel = AccountPanel()
    panel.open(user, None)
    assert panel.enter_text("") is None
    return panel


def asked_field(panel: AccountPanel) -> str:
    assert panel.question is not None
    return panel.question.field


def test_a_refused_secret_is_typed_again() -> None:
    panel = opened_panel(MAIL)
    assert isinstance(panel.enter_secret(KEY), BindAccount)
    assert panel.question is None, "it is being looked at"
    panel.on_refused(account_views.AccountRefused(message="The secret has 5 bytes; it needs 8."))
    assert (asked_field(panel), panel.refusal) == ("secret", "The secret has 5 bytes; it needs 8.")
    assert isinstance(panel.enter_secret(KEY), BindAccount)


def test_a_region_is_asked_for_where_nothing_names_one() -> None:
    panel = opened_panel(replace(MAIL, kind="aws_sigv4", access_key_id="AKIA", needs_region=True))
    assert asked_field(panel) == "region"
    panel.enter_text("eu-west-1")
    panel.enter_secret(KEY)
    assert asked_field(panel) == "session_token"
    intent = panel.enter_secret(Secret(""))
    assert isinstance(intent, BindAccount)
    assert (intent.region, intent.user, intent.session_token) == ("eu-west-1", "AKIA", None)


def test_a_strangers_token_host_is_typed() -> None:
    panel = AccountPanel()
    panel.open(DRIVE, ENDED)
    assert isinstance(panel.begin(), BeginLogin)
    # The first was not it, and is typed again.
    for host in ("evil.example:443", "other.example:443"):
        panel.on_refused(account_views.AccountRefused(message="Type it.", token_host=host))
        assert asked_field(panel) == "token_host"
        assert panel.enter_text(" ") is None
        assert panel.refusal == "nothing was typed"
        intent = panel.enter_text(host)
        assert isinstance(intent, BeginLogin)
        assert (intent.token_host, intent.replaces) == (host, ENDED.name)


@pytest.mark.parametrize(
    ("login", "says"),
    [
        (DEVICE, (ENTER, "https://login.drive.example/device", "WDJB-MJHT")),
        (LONG, ("too long for this window", COMMAND)),
    ],
    ids=["device code", "no room"],
)
def test_where_to_log_in_or_the_command_is_shown(
    login: account_views.LoginView, says: tuple[str, ...]
) -> None:
    model = Drawn(snapshot_of()).model
    model.account_panel.open(DRIVE, ENDED)
    model.account_panel.on_login(login)
    rows = " ".join(plain_text(row).replace("┃", " ") for row in login_question(model, 80, 24))
    assert all(each in " ".join(rows.split()) for each in says)


def test_nothing_is_done_while_the_vault_is_locked() -> None:
    state = snapshot_of(vault=VaultStatus(state="locked"), accounts=accounts(ANA))
    now = Drawn(state).go("accounts", "work").situation
    for command, key in (("bind_account", "B"), ("revoke_account", "x"), ("forget_choice", "F")):
        refused = DEFAULT_REGISTRY.command(command)
        assert not availability(refused, now).shown
        said = refusal((refused,), key, now)
        assert said == f"{key} did nothing: the vault is locked; unlock it first."


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_for_waiting_can_be_drawn_said_and_refused(reason: str) -> None:
    need = account_views.AccountNeed(reason=reason, connector="local://x/y", kind="")  # type: ignore[arg-type]
    assert plain_text(need_heading(need).label)
    drawn = [*need_blocks(need, gated=True, unlock_key="U", choose_key="C", accounts_key="6")]
    assert "of kind" not in " ".join(plain_text(block.pieces) for block in drawn)
    for table in (words.vault.WARNINGS, words.vault.TAGS, words.vault.REFUSED):
        assert table[reason]
    said = words.vault.status(reason, "U", "C", "6", has_vault=True)
    assert ("vault is locked" in said) == (reason == "locked")
