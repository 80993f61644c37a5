"""The accounts in the console: listed with why one cannot be used; bound, bound again, logged in to, deleted."""

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port.account_intents import (
    BeginLogin,
    BindAccount,
    CancelLogin,
    FinishLogin,
    ForgetChoice,
    RebindAccount,
    RevokeAccount,
)
from aileron_core.console_port.account_views import AccountChanged, BoundAccountView, LoginUpdated
from aileron_core.console_port.events import VaultStatus
from tests.screen.bound_accounts import ANA, CHANGED, DRIVE, ENDED, LOGIN, MAIL, accounts
from tests.screen.driving import Console, console, resting, start
from tests.support.screens.states import held, need

KEY = "a canary"
UNLOCKED = VaultStatus(state="unlocked", entries=2)


async def go(shown: Console) -> None:
    await shown.press_rested("6", " status ")
    await shown.rest()


@asynccontextmanager
async def listed(*bound: BoundAccountView, vault: VaultStatus = UNLOCKED, **options: Any):
    """A console at the list of accounts."""
    async with console(start(vault=vault, accounts=accounts(*bound)), **options) as shown:
        await go(shown)
        yield shown


@asynccontextmanager
async def logging_in(size: tuple[int, int] = (120, 36)):
    """A console in which a login for an account that ended was begun."""
    async with listed(ENDED, size=size) as shown:
        await shown.press_alone("l")
        await shown.until(lambda: bool(shown.asked(BeginLogin)), "begun")
        yield shown


@asynccontextmanager
async def binding():
    """A console that asks for the secret of a new account."""
    async with listed() as shown:
        await shown.press_alone("B", "Your name for this account")
        await give(shown, "")
        await shown.shows("Key:")
        yield shown


async def give(shown: Console, text: str) -> None:
    if text:
        await shown.type(text)
    shown.clock.advance(0.5)
    await shown.press_alone("enter")


async def test_an_account_is_bound_with_its_secret_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the connector of the row, in exactly the bytes that were shown; nothing of the key is drawn."""
    async with listed(CHANGED) as shown:
        await shown.press_alone("B", "Your name for this account")
        assert "X-Key" in shown.text
        assert "api.mail.example:443, new.mail.example:443" in " ".join(shown.text.split())
        await give(shown, "ana@example.com")
        await shown.shows("Key:")
        await give(shown, KEY)
        await shown.until(lambda: bool(shown.asked(BindAccount)), "sent")
        assert KEY not in shown.text
        (intent,) = shown.asked(BindAccount)
        assert (intent.connector_hash, intent.identity) == (MAIL.hash, "default")
        assert (intent.account, intent.secret.reveal_text()) == ("ana@example.com", KEY)
        shown.port.tell(AccountChanged(change="bound", name=MAIL.default_name, account="ana@x.org"))
        await shown.shows("✓ ana@x.org is bound.")
        assert "Key:" not in shown.text


async def test_escape_forgets_what_was_typed() -> None:
    async with binding() as shown:
        await shown.type(KEY)
        await shown.press_alone("escape")
        await shown.until(lambda: "Key:" not in shown.text, "closed")
        assert not shown.asked(BindAccount)
        assert shown.app.screen.query_one("#passphrase").is_empty  # type: ignore[attr-defined]


async def test_a_rebind_says_what_is_new_and_asks() -> None:
    """Each host, and the hash; the yes is about exactly that."""
    async with listed(CHANGED, size=(80, 24)) as shown:
        await shown.press_alone("R", "Let github://aileron/mail@1.1.0 use api_key/mail/home?")
        for each in (
            "+ new.mail.example:443",
            "− old.mail.example:443",
            "+ sha256:bbb",
            "− sha256:aaa",
        ):
            assert each in shown.text, each
        await shown.press_rested("y")
        wanted = RebindAccount(name=CHANGED.name, connector_hash=MAIL.hash)
        await shown.until(lambda: wanted in shown.port.intents, "asked")


async def test_a_rebind_that_changes_is_asked_anew() -> None:
    async with listed(CHANGED) as shown:
        await shown.press_alone("R", "Let github://aileron/mail@1.1.0 use")
        shown.port.tell(accounts(replace(CHANGED, hosts=())))
        await shown.until(lambda: "Let github" not in shown.text, "closed")
        assert not shown.asked(RebindAccount)


async def test_an_account_is_deleted_after_a_yes() -> None:
    async with listed(ANA) as shown:
        await shown.press_alone("x", "Delete ana@example.com (api_key/mail/work)?")
        await shown.press_alone("y")
        assert "Too soon" in shown.text
        assert not shown.asked(RevokeAccount)
        await shown.press_rested("y")
        await shown.until(
            lambda: shown.asked(RevokeAccount) == [RevokeAccount(name=ANA.name)], "asked"
        )


async def test_a_remembered_choice_is_forgotten_by_a_key() -> None:
    async with listed(ANA) as shown:
        await shown.press_alone("F")
        wanted = ForgetChoice(name=ANA.name, action="send-mail")
        await shown.until(lambda: wanted in shown.port.intents, "asked")


async def test_a_login_is_shown_before_it_is_stored() -> None:
    """Its address whole, then whose account it is; nothing is stored before a yes."""
    async with logging_in() as shown:
        (begun,) = shown.asked(BeginLogin)
        assert begun == BeginLogin(connector_hash=DRIVE.hash, replaces=ENDED.name, device=True)
        for each in ("files.read, files.‹RLO›write", DRIVE.login_host, DRIVE.token_host):
            assert each in shown.text, each  # before anything is opened
        shown.port.tell(LoginUpdated(login=LOGIN))
        await shown.shows("Log in at this address")
        assert LOGIN.url in shown.text
        await shown.press_rested("y")
        assert not shown.asked(FinishLogin)
        known = replace(
            LOGIN, state="authorized", account="ana@\u202eexample.com", missing=("files.write",)
        )
        shown.port.tell(LoginUpdated(login=known))
        await shown.shows("Is this the account you mean?")
        assert "ana@‹RLO›example.com" in shown.text
        assert "files.write" in shown.text
        await shown.press_rested("y")
        wanted = FinishLogin(login_id="login-1", account=known.account)
        await shown.until(lambda: wanted in shown.port.intents, "stored")


async def test_a_no_forgets_a_login() -> None:
    async with logging_in() as shown:
        shown.port.tell(LoginUpdated(login=LOGIN))
        await shown.shows("Log in at this address")
        await shown.press_alone("escape")
        await shown.until(
            lambda: shown.asked(CancelLogin) == [CancelLogin(login_id="login-1")], "left"
        )
        assert "Log in at" not in shown.text


async def test_a_person_names_the_account_where_the_service_does_not() -> None:
    """In a field; then it is shown like any other, and stored after a yes."""
    async with logging_in((80, 24)) as shown:
        known = replace(LOGIN, state="authorized", missing=("files.write",))
        shown.port.tell(LoginUpdated(login=known))
        await shown.shows("The service does not say whose account this is.")
        assert "files.write" in shown.text
        await give(shown, "")
        assert not shown.asked(FinishLogin)
        await give(shown, "ana@example.com")
        await shown.shows("Is this the account you mean?")
        assert "ana@example.com" in shown.text
        await shown.press_alone("y")
        assert not shown.asked(FinishLogin)  # too soon
        await shown.press_rested("y")
        wanted = FinishLogin(login_id="login-1", account="ana@example.com")
        await shown.until(lambda: wanted in shown.port.intents, "stored")
        assert len(shown.asked(BeginLogin)) == 1


async def test_a_call_without_an_account_leads_to_its_connector() -> None:
    """By one key; the row is the one to bind."""
    view = held(need("unbound"))
    async with resting(start(view, vault=UNLOCKED, accounts=accounts(ENDED))) as shown:
        assert "6" in shown.text
        await go(shown)
        await shown.press_alone("B", "api_key/mail/default for github://aileron/mail@1.1.0.")
