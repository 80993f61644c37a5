"""The accounts in the console: listed with why one cannot be used; bound, bound again, logged in to, deleted."""

import json
from dataclasses import replace
from typing import Any

from aileron_core.console_port import account_intents as intents
from aileron_core.console_port import account_views as views
from aileron_core.console_port.events import Snapshot, VaultStatus
from tests.screen import bound_accounts
from tests.screen.bound_accounts import ANA, CHANGED, DRIVE, ENDED, LOGIN, MAIL, UNLOCKED, accounts
from tests.support.screens.play import Play
from tests.support.screens.states import held_call, need, snapshot_of

KEY = "a canary"


def listed(*bound: views.BoundAccountView, **options: Any) -> Play:
    return at_accounts(snapshot_of(vault=UNLOCKED, accounts=accounts(*bound)), **options)


def at_accounts(first: Snapshot, **options: Any) -> Play:
    play = Play(first, **options)
    play.press_rested("6", " status ")
    play.rest()
    return play


def logging_in(size: tuple[int, int] = (120, 36)) -> Play:
    play = listed(ENDED, size=size)
    play.press_alone("l")
    assert play.asked(intents.BeginLogin)
    return play


def give_text(play: Play, text: str) -> None:
    if text:
        play.type(text)
    play.go("enter")


def test_an_account_is_bound_with_its_secret_unseen() -> None:
    play = listed(CHANGED)
    for leave in (True, False):
        play.press_alone("B", "Your name for this account", "X-Key")
        assert "api.mail.example:443, new.mail.example:443" in " ".join(play.text.split())
        give_text(play, "ana@example.com")
        play.shows("Key:")
        if leave:
            play.type(KEY)
            play.press_alone("escape")
            assert "Key:" not in play.text
            assert play.page.panel.secret.is_empty
    give_text(play, KEY)
    assert KEY not in play.text
    (intent,) = play.asked(intents.BindAccount)
    assert (intent.connector_hash, intent.identity) == (MAIL.hash, "default")
    assert (intent.account, intent.secret.reveal_text()) == ("ana@example.com", KEY)
    bound = views.AccountChanged(change="bound", name=MAIL.default_name, account="ana@x.org")
    play.port.tell(bound)
    play.shows("✓ ana@x.org is bound.")
    assert "Key:" not in play.text


def test_a_rebind_says_what_is_new_and_asks() -> None:
    play = listed(CHANGED, size=(80, 24))
    play.press_alone("R", "Let github://aileron/mail@1.1.0 use api_key/mail/home?")
    play.tell(accounts(replace(CHANGED, hosts=())))
    assert "Let github" not in play.text
    play.port.tell(accounts(CHANGED))
    play.press_rested("R", "Let github://aileron/mail@1.1.0 use api_key/mail/home?")
    play.shows("+ new.mail.example:443", "− old.mail.example:443", "+ sha256:bbb", "− sha256:aaa")
    assert not play.asked(intents.RebindAccount)
    play.press_rested("y")
    wanted = intents.RebindAccount(name=CHANGED.name, connector_hash=MAIL.hash)
    assert play.asked(intents.RebindAccount) == [wanted]


def with_server(*bound: views.BoundAccountView) -> Play:
    known = views.AccountsUpdated(accounts=bound, users=(bound_accounts.GITHUB,))
    return at_accounts(snapshot_of(vault=UNLOCKED, accounts=known))


def test_the_values_of_a_server_are_asked_one_after_the_other_unseen() -> None:
    play = with_server()
    play.press_alone("enter", "Needs       ┃ GITHUB_TOKEN, WEBHOOK_SECRET")
    play.shows("Held by     ┃ the server itself", "Reaches     ┃ api.github.com:443")
    play.press_alone("escape")
    play.press_alone("B", "Your name for this account")
    holds = "The server itself holds what you give it. It can reach api.github.com:443, and no"
    assert f"{holds} other host." in " ".join(play.text.split())
    give_text(play, "")
    for count in (1, 2):
        play.shows("GITHUB_TOKEN:")
        give_text(play, KEY)
        play.shows("WEBHOOK_SECRET:")
        give_text(play, f"{KEY} 2")
        assert len(play.asked(intents.BindAccount)) == count
        assert KEY not in play.text
        play.port.tell(views.AccountRefused(message="The value of GITHUB_TOKEN has 1 bytes"))
    values = json.loads(play.asked(intents.BindAccount)[-1].secret.reveal_text())
    assert values == {"GITHUB_TOKEN": KEY, "WEBHOOK_SECRET": f"{KEY} 2"}


def test_an_account_with_other_values_is_not_bound_again() -> None:
    play = with_server(bound_accounts.OTHER_VALUES)
    play.press_alone("R", "the server now asks for other values: delete the account")
    assert not play.asked(intents.RebindAccount)


def test_an_account_is_deleted_after_a_yes_and_a_remembered_choice_forgotten_by_a_key() -> None:
    play = listed(ANA)
    play.press_alone("F")
    assert play.asked(intents.ForgetChoice) == [
        intents.ForgetChoice(name=ANA.name, action="send-mail")
    ]
    play.press_alone("x", "Delete ana@example.com (api_key/mail/work)?")
    play.press_alone("y", "Too soon")
    assert not play.asked(intents.RevokeAccount)
    play.press_rested("y")
    assert play.asked(intents.RevokeAccount) == [intents.RevokeAccount(name=ANA.name)]


def test_a_login_is_shown_before_it_is_stored() -> None:
    play = logging_in()
    (begun,) = play.asked(intents.BeginLogin)
    assert begun == intents.BeginLogin(connector_hash=DRIVE.hash, replaces=ENDED.name, device=True)
    play.shows("files.read, files.‹RLO›write", DRIVE.login_host, DRIVE.token_host)
    play.port.tell(views.LoginUpdated(login=LOGIN))
    play.shows("Log in at this address", LOGIN.url)
    play.press_rested("y")
    assert not play.asked(intents.FinishLogin)
    who, missing = "ana@\u202eexample.com", ("files.write",)
    known = replace(LOGIN, state="authorized", account=who, missing=missing)
    play.port.tell(views.LoginUpdated(login=known))
    play.shows("Is this the account you mean?", "ana@‹RLO›example.com", "files.write")
    play.press_rested("y")
    wanted = [intents.FinishLogin(login_id="login-1", account=known.account)]
    assert play.asked(intents.FinishLogin) == wanted


def attached_console(**more: Any) -> Play:
    first = snapshot_of(vault=UNLOCKED, accounts=accounts(ENDED))
    return at_accounts(replace(first, attached="attached 1", **more))


def test_an_attached_console_that_is_yours_has_the_keys_of_accounts_and_no_passphrase() -> None:
    """With the vault locked it says what unlocks it there. Over ssh no browser here gets the login's address;
    a no forgets the login.
    """
    play = attached_console(is_owners=True, elsewhere="box")
    play.press_alone("l")
    play.port.tell(views.LoginUpdated(login=LOGIN))
    play.shows("Log in at this address, in a browser on box:")
    play.press_rested("enter", "the address has to be opened on box")
    play.press_alone("escape")
    assert play.asked(intents.CancelLogin) == [intents.CancelLogin(login_id="login-1")]
    assert "Log in at" not in play.text
    play.port.tell(VaultStatus(state="locked"))
    unlock = "`aileron vault unlock` on its server's machine"
    play.press_rested("B", f"the vault is locked; unlock it first, with {unlock}")
    play.press_rested("U", f"no passphrase leaves an attached console; {unlock} does it")
    other = attached_console()
    other.press_rested("B", "only the console itself does this, or an attached one")
    other.asks_nothing()


def test_a_person_names_the_account_where_the_service_does_not() -> None:
    play = logging_in((80, 24))
    known = replace(LOGIN, state="authorized", missing=("files.write",))
    play.port.tell(views.LoginUpdated(login=known))
    play.shows("The service does not say whose account this is.", "files.write")
    give_text(play, "")
    assert not play.asked(intents.FinishLogin)
    give_text(play, "ana@example.com")
    play.shows("Is this the account you mean?", "ana@example.com")
    play.press_alone("y")
    assert not play.asked(intents.FinishLogin)  # too soon
    play.press_rested("y")
    wanted = [intents.FinishLogin(login_id="login-1", account="ana@example.com")]
    assert play.asked(intents.FinishLogin) == wanted
    assert len(play.asked(intents.BeginLogin)) == 1


def test_a_call_without_an_account_leads_to_its_connector() -> None:
    view = held_call(need("unbound"))
    play = at_accounts(snapshot_of(view, vault=UNLOCKED, accounts=accounts(ENDED)))
    play.press_alone("B", "api_key/mail/default for github://aileron/mail@1.1.0.")
