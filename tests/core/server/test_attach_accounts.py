"""Accounts over an attached console: what is bound, what is signed, and where a secret is not."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.device_answers import DeviceAnswers
from aileron_core.console_port import account_intents
from aileron_core.console_port.account_views import AccountChanged, AccountRefused, LoginUpdated
from aileron_core.console_port.codec import intent_from_frame, to_bytes, to_frame
from aileron_core.console_port.devices import EndDevice
from aileron_core.console_port.events import ApprovalUpdated, VaultRefused, VaultStatus
from aileron_core.console_port.intents import ChooseAccount, LockVault, OwnersIntent, UnlockVault
from aileron_core.devices import CONSOLE
from aileron_core.errors import NotFound
from aileron_core.server import attach_routes
from aileron_core.vault.secret import Secret
from aileron_tui.cli import attach
from tests.core.runs.test_accounts import CANARY, Place, bind, place, waiting_call
from tests.core.server.test_attach import QUICK, Console
from tests.support.authorization_server import CANARY as LOGIN_CANARY
from tests.support.authorization_server import CLIENT_ID, CLIENT_SECRET, authorization_server
from tests.support.core_harness import PASSPHRASE, PATIENCE, Core, Start, audit_problems
from tests.support.review_harness import serving
from tests.support.scripted_guest import furnish_guest

__all__ = ["place"]
NAME = "api_key/scripted/work"


@pytest.fixture
def start(place: Place) -> Start:
    return partial(Core.open, place.home, make_outgoing=place.service.client, settings=QUICK)


@pytest.fixture
async def console(core: Core) -> AsyncIterator[Console]:
    core.app.vault.create(Secret(PASSPHRASE))
    await core.until_record("library.authenticated", 3)
    async with serving(core):
        made = await Console(core).confirmed(as_owners=True)
        yield made
        made.port.close()


def account_of(core: Core, **changed: Any) -> account_intents.BindAccount:
    (user,) = core.app.console.accounts.accounts().users
    given = {"identity": "work", "account": "ana@x.org", "user": "", "secret": Secret(CANARY)}
    return account_intents.BindAccount(connector_hash=user.hash, **{**given, **changed})


def frame_of(console: Console, intent: OwnersIntent) -> dict[str, Any]:
    signed = console.port._signed_intent(intent)  # pyright: ignore[reportPrivateUsage]
    return json.loads(to_bytes({"intent": to_frame(intent), **signed}))


def holding_call(home: Path, *texts: str) -> list[str]:
    files = [each for each in home.rglob("*") if each.is_file()]
    held = {each: each.read_bytes() for each in files}
    return [each.name for each in files if any(text.encode() in held[each] for text in texts)]


async def test_an_account_is_bound_by_a_secret_that_no_record_holds(
    console: Console,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The call that waited uses it. Signed is a commitment, whose random value is kept nowhere either."""
    caplog.set_level(logging.DEBUG)
    core, sent = console.core, list[bytes]()
    monkeypatch.setattr(attach, "to_bytes", lambda it: sent.append(to_bytes(it)) or sent[-1])
    view = await waiting_call(core, "see")
    intent = account_of(core, user="the-user-canary")
    await console.ask(intent)
    done = AccountChanged(change="bound", name=NAME, account="ana@x.org")
    assert await console.hears(AccountChanged) == done
    assert (await core.ended(view)).state == "completed"
    assert place.keys == [CANARY]
    await core.until(lambda: len(intent.secret) == 0)

    (asked,) = await core.records("device.asked")
    signed = json.loads(asked["signed"])["intent"]["BindAccount"]
    assert {*signed["secret"], *signed["user"]} == {"commitment"}
    (bound,) = await core.records("binding.created")
    assert (bound["hand"], bound["asked"]) == ("attached 1", asked["signature"])
    assert audit_problems(core.app.home.path) == []
    (frame,) = [json.loads(each) for each in sent if CANARY.encode() in each]
    secrets = (CANARY, "the-user-canary", *frame["randoms"].values())
    assert len(secrets) == 4
    assert holding_call(core.app.home.path, *secrets) == []
    seen = (core.events, console.told, await core.records(), caplog.text)
    assert not [each for each in secrets if each in repr(seen)]
    assert not [each for each in core.events if isinstance(each, AccountChanged)]


async def test_a_secret_that_was_not_signed_binds_nothing(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its commitment; nor one without its random value, with a passphrase, or of another device than the owner's."""
    core, came = console.core, list[account_intents.BindAccount]()

    def taken(*given: Any) -> Any:
        came.append(intent_from_frame(*given))
        return came[-1]

    monkeypatch.setattr(attach_routes, "intent_from_frame", taken)
    given = account_of(core)
    other = await Console(core).confirmed()
    try:
        await other.ask(account_of(core))
        assert "in the console itself" in (await other.hears(AccountRefused)).message
        assert await other.post(frame_of(other, given)) == "forbidden"
    finally:
        other.port.close()

    for changes, randoms in (
        ({"secret": f"{CANARY}2"}, {}),
        ({"user": "eve"}, {}),
        ({"session_token": CANARY}, {}),
        ({"identity": "home"}, {}),
        ({}, {"secret": "00" * 32}),
        ({}, {"secret": "00" * 16}),
        ({}, {"account": "00" * 32}),  # which was not signed
    ):
        frame = frame_of(console, given)
        frame["intent"]["BindAccount"].update(changes)
        frame["randoms"].update(randoms)
        assert await console.post(frame) == "invalid_request", (changes, randoms)
    frame = frame_of(console, given)
    assert await console.post({**frame, "randoms": []}) == "invalid_request"
    frame = frame_of(console, given)
    del frame["randoms"]
    assert await console.post(frame) == "invalid_request"
    for intent, refusal in (
        (replace(given, passphrase=Secret(PASSPHRASE)), "invalid_request"),
        (replace(given, connector_hash="sha256:" + "0" * 64), "conflict"),
    ):
        assert await console.post(frame_of(console, intent)) == refusal
    await console.ask(replace(given, passphrase=Secret(PASSPHRASE)))
    assert "in the console itself" in (await console.hears(AccountRefused)).message
    assert core.app.bindings.all() == ()
    assert await core.records("device.asked") == []
    assert holding_call(core.app.home.path, CANARY, PASSPHRASE) == []
    assert [len(each.secret) for each in came] == [0] * 12
    await console.ask(account_of(core))
    assert await console.hears(AccountChanged)


async def test_what_is_done_with_accounts_names_the_signed_intent(console: Console) -> None:
    """Choosing, binding again, asking again, deleting, locking; and `audit verify` finds another than that."""
    core = console.core
    await bind(core, "home", "canary-of-home")
    await bind(core)
    view = await waiting_call(core, "see")
    await console.hears(ApprovalUpdated, lambda e: e.view == view)
    need = view.account_need
    assert need is not None
    named = {"connector": need.connector, "binding": NAME, "remember": True}
    chosen = ChooseAccount(approval_id=view.approval_id, **named)
    await console.ask(chosen)
    await core.ended(view)
    gated = await waiting_call(core)
    await console.hears(ApprovalUpdated, lambda e: e.view == gated)
    await console.ask(replace(chosen, approval_id=gated.approval_id, remember=False))
    await core.until_record("run.has_account")
    (user,) = core.app.console.accounts.accounts().users
    intents = {
        "binding.forgotten": account_intents.ForgetChoice(name=NAME, action="see"),
        "binding.rebound": account_intents.RebindAccount(name=NAME, connector_hash=user.hash),
        "binding.revoked": account_intents.RevokeAccount(name=NAME),
        "vault.locked": LockVault(),
    }
    for event, intent in intents.items():
        await console.ask(intent)
        await core.until_record(event)
    assert (await console.hears(VaultStatus, lambda e: e.state == "locked")).entries == 1
    await console.ask(UnlockVault(passphrase=Secret(PASSPHRASE)))
    assert "aileron vault unlock" in (await console.hears(VaultRefused)).message
    await console.ask(account_of(core))
    assert "vault is locked" in (await console.hears(AccountRefused)).message

    done = [each for each in await core.records() if each.get("hand") and "asked" in each]
    assert [each["event"] for each in done] == ["binding.remembered", "run.has_account", *intents]
    assert {each["hand"] for each in done} == {"attached 1"}
    assert audit_problems(core.app.home.path) == []
    for of, name in {
        "binding.remembered": "binding",
        "run.has_account": "approval",
        "binding.forgotten": "for_action",
        "binding.rebound": "connector_hash",
        "binding.revoked": "binding",
        "vault.locked": "asked",
    }.items():
        answers = DeviceAnswers()
        kept = await core.records()
        bodies = [each | ({name: "x"} if each["event"] == of else {}) for each in kept]
        assert any(answers.problem(each) for each in bodies), of


async def test_a_login_is_an_attached_consoles_and_ends_with_it(home: Path, tmp_path: Path) -> None:
    """It alone is told the address; the login's id, by which it is stored, is on no record."""
    (tmp_path / "server").mkdir()
    with authorization_server(tmp_path / "server") as server:
        place = server.service.place
        request = {"url": f"https://{place}/x", "credential": "oauth2"}
        furnish_guest(home, [request], [place], more=server.manifest())
        opened = Core.open(home, make_outgoing=server.service.client, settings=QUICK)
        async with opened as core, serving(core):
            core.app.vault.create(Secret(PASSPHRASE))
            await core.until_record("library.authenticated", 3)
            console = await Console(core).confirmed(as_owners=True)
            (user,) = core.app.console.accounts.accounts().users
            client = {"client_id": CLIENT_ID, "client_secret": Secret(CLIENT_SECRET)}
            begin = account_intents.BeginLogin(connector_hash=user.hash, identity="work", **client)
            await console.ask(begin)
            login = (await console.hears(LoginUpdated)).login
            assert login.url.startswith(f"{server.base}/authorize?")
            await asyncio.to_thread(server.browse, login.url)
            await console.hears(LoginUpdated, lambda e: e.login.state == "authorized")
            await console.ask(
                account_intents.FinishLogin(login_id=login.login_id, account="ana@example.com")
            )
            assert (await console.hears(AccountChanged)).change == "authorized"
            assert core.app.bindings.get("oauth2/scripted/work").account == "ana@example.com"
            assert not [each for each in core.events if isinstance(each, LoginUpdated)]
            assert audit_problems(home) == []
            # The connector's manifest has the same client's secret.
            assert holding_call(home, LOGIN_CANARY, login.login_id, login.url) == ["manifest.toml"]

            console.told.clear()
            await console.ask(replace(begin, identity="home"))
            second = (await console.hears(LoginUpdated)).login
            console.port.close()
            async with asyncio.timeout(PATIENCE):
                with suppress(NotFound):
                    while True:
                        await core.app.authorizations.wait(second.login_id, 0.05)


async def test_what_waits_when_its_console_is_ended_is_not_done(console: Console) -> None:
    """An account whose turn comes after the person's `x` is not bound, though it was asked for before."""
    core = console.core
    (device,) = core.app.devices.views()
    async with core.app.bindings._changing:  # pyright: ignore[reportPrivateUsage]
        await console.ask(account_of(core))
        await core.until_record("device.asked")
        await core.app.console.submit(EndDevice(device_id=device.device_id), CONSOLE)
        await core.until_record("device.ended")
    await asyncio.sleep(0)
    await core.app.bindings._changing.acquire()  # pyright: ignore[reportPrivateUsage]
    assert await core.records("binding.created") == []
    assert core.app.vault.entries() == {}
