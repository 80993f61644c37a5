"""Accounts that change under a call, or that their service rejects: nothing else is used, only a person is told whose."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.protocol import CredentialKind, CredentialRequirement, Limits
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.console_port.intents import StopEverything
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.credentials.account_secret import stored_secret
from aileron_core.credentials.oauth_tokens import OAuthClient, Tokens
from aileron_core.errors import Conflict, InvalidRequest
from aileron_core.runs.model import RunRecord
from aileron_core.server.agent_api import pending_body, result_body
from aileron_core.vault.secret import Secret
from tests.core.runs.test_accounts import (
    CANARY,
    NEEDS_KEY,
    Place,
    bind,
    choose_account,
    place,
    start,
    waiting_call,
)
from tests.support.authorization_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    AuthorizationServer,
    authorization_server,
)
from tests.support.core_harness import PASSPHRASE, PATIENCE, Core, Start
from tests.support.frozen_clock import FrozenClock
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import Request, TlsService, tls_service

__all__ = ["place", "start"]

NAMES = ("work", "home@example", "work@example", "api_key/")


def for_agent(row: RunRecord) -> str:
    """All that an agent is ever answered about its call."""
    bodies: list[Any] = [result_body(row), pending_body(row, "http://127.0.0.1:1", attached=False)]
    return json.dumps(bodies)


def tokens(secret: str, **more: Any) -> Tokens:
    """Return those of a login, without an end, of the client `mine`."""
    usual: dict[str, Any] = {
        "refresh_token": None, "expires_at": None, "client": OAuthClient(client_id="mine"),
        "token_url": "https://api.example/t", "scopes": ("all",),
    }  # fmt: skip
    return Tokens(access_token=Secret(secret), **usual | more)


async def asked_again(core: Core, shown: ApprovalView) -> ApprovalView:
    """Return the view once the call waits with another digest than *shown* has."""
    asks = lambda v: v.state == "pending" and v.digest not in ("", shown.digest)  # noqa: E731
    return await core.view(shown.approval_id, asks, after=shown.version)


@contextmanager
def answers_held(service: TlsService) -> Generator[Callable[[], bool]]:
    there, over = threading.Event(), threading.Event()

    def hold(_: Request) -> object:
        there.set()
        over.wait(PATIENCE)
        return {"done": True}

    service.answer = hold
    try:
        yield lambda: there.wait(PATIENCE)
    finally:
        over.set()
        service.answer = lambda _: {"done": True}


async def test_a_yes_is_none_to_another_account_of_the_same_name(core: Core, place: Place) -> None:
    """Revoked and bound anew under its name while the call waits: the digest is another, and asked for."""
    first = await bind(core)
    shown = await core.ask_for("act", {})
    await core.app.bindings.delete(first.name)
    await core.bind("canary-of-mallory", "mallory@example.com")
    again = await asked_again(core, shown)
    again = await core.looked(shown.approval_id, after=again.version - 1)
    assert [each.account for each in again.accounts] == ["mallory@example.com"]
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.approve(shown)
    assert place.keys.count("canary-of-mallory") == 1  # its own preview, no effect


async def test_a_yes_is_none_to_another_login_of_the_same_label(home: Path, tmp_path: Path) -> None:
    """Authorized again at a provider that does not say whose login it is."""
    need = (
        '[capabilities.credential]\nkind = "oauth2"\n[capabilities.credential.oauth2]\n'
        'authorize_url = "https://api.example/a"\ntoken_url = "https://api.example/t"\n'
        'client_id = "mine"\nscopes = ["all"]\n'
    )
    with tls_service(tmp_path) as service:
        request = {"url": f"https://{service.place}/x", "credential": "oauth2"}
        furnish_guest(home, [request], [service.place], more=need)
        clock = FrozenClock()
        async with Core.open(home, clock=clock, make_outgoing=service.client) as core:
            core.app.vault.create(Secret(PASSPHRASE))
            user, bindings = core.user(), core.app.bindings
            bound = await bindings.authorize(user, "work", "me", tokens("canary-1"))
            shown = await core.ask_for("act", {})
            clock.advance(5)
            await bindings.authorize(user, "", "me", tokens("canary-2"), bound.name)
            again = await asked_again(core, shown)
            with pytest.raises(Conflict, match="changed while you answered"):
                await core.approve(shown)
            assert not await core.records("run.started")
            assert again.accounts == shown.accounts


async def test_the_digest_covers_whose_account_it_is(core: Core) -> None:
    """Also where neither its name nor anything else of the call differs."""
    await bind(core)
    run = core.live(await core.ask_for("act", {}))
    (connector,) = run.resolved.connectors.values()
    before, binding = run.consent(run.preview), connector.binding
    for other in (
        replace(binding, account="eve@example.com"),
        replace(binding, created_at=1.0),
        replace(binding, hosts=("x:1",)),
        replace(binding, connector_hash="sha256:0"),
    ):
        connector.binding = other
        assert run.consent(run.preview)[0] != before[0], other
    connector.binding = binding
    assert run.consent(run.preview) == before


@pytest.mark.parametrize("what", ["lock", "revoke", "rebound"])
async def test_a_yes_while_the_account_goes_away_waits(core: Core, place: Place, what: str) -> None:
    """During the recheck's own request: the effect does not follow, and nothing is lost."""
    bound = await bind(core)
    shown = await core.ask_for("act", {})
    with answers_held(place.service) as reached:
        await core.approve(shown)
        assert await asyncio.to_thread(reached)
        if what == "lock":
            core.app.vault.lock()
        else:
            await core.app.bindings.delete(bound.name)
        if what == "rebound":
            await core.bind("canary-of-mallory", "mallory@example.com")
    if what == "rebound":
        again = await asked_again(core, shown)
        assert [each.account for each in again.accounts] == ["mallory@example.com"]
    else:
        await core.view(shown.approval_id, lambda v: v.state == "awaiting_vault")
    assert place.keys.count(CANARY) == 2  # the preview and the recheck
    assert not await core.records("run.started")


@pytest.mark.parametrize("what", ["lock", "revoke", "rebind"])
async def test_an_account_taken_away_sends_no_more(home: Path, tmp_path: Path, what: str) -> None:
    """Its first request is out; its second would have carried the same key."""
    with tls_service(tmp_path) as service:
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request] * 2, [service.place], more=NEEDS_KEY)
        async with Core.open(home, make_outgoing=service.client) as core:
            bound = await bind(core)
            with answers_held(service) as reached:
                call = asyncio.create_task(core.call("see", {}))
                assert await asyncio.to_thread(reached)
                if what == "lock":
                    core.app.vault.lock()
                elif what == "revoke":
                    await core.app.bindings.delete(bound.name)
                else:
                    changed = {**bound.to_metadata(), "account": "another"}
                    core.app.vault.put_metadata(bound.name, changed)
            row = (await call).row
            assert (row.state, row.failure.class_) == ("failed", "binding_failed")
            assert Place(home, service).keys == [CANARY]
            assert not any(each in row.failure.message for each in NAMES)


async def test_an_agent_never_learns_of_accounts(start: Start) -> None:
    said: list[str] = []
    async with start() as core:
        unbound = await core.call("act", {})
        said.append(for_agent(unbound.row))
        work = await bind(core)
        await bind(core, "home", "canary-of-home")
        view = await waiting_call(core, "see")
        said.append(for_agent(await core.result(view.approval_id)))
        await choose_account(core, view, work.name)
        await core.ended(view)
        said.append(for_agent(await core.result(view.approval_id)))
        core.app.vault.lock()
        locked = await waiting_call(core)
        said.append(for_agent(await core.result(locked.approval_id)))
        core.app.vault.unlock(Secret(PASSPHRASE))
    for text in said:
        assert not any(each in text for each in (*NAMES, CANARY, "2 accounts", "candidates"))


@pytest.mark.parametrize("spoil", ["gone", "rebound", "damaged"])
async def test_no_error_names_an_account_to_the_agent(core: Core, place: Place, spoil: str) -> None:
    bound = await bind(core)
    see = core.app.library.find("see")
    connectors, _ = core.app.accounts.assign(see.connectors, {}, see.file)
    (connector,) = connectors.values()
    if spoil == "gone":
        core.app.vault.delete(bound.name)
    elif spoil == "rebound":
        core.app.vault.put_metadata(bound.name, {**bound.to_metadata(), "created_at": 1.0})
    else:
        core.app.vault.put(bound.name, Secret("["), bound.to_metadata())
        core.app.vault.put_metadata(bound.name, {**bound.to_metadata(), "hosts": ["x:1"]})
    result = await connector.call("see", {}, limits=Limits())
    assert result.failure.class_ == "binding_failed"
    assert not any(each in repr(result) for each in NAMES)
    assert place.service.seen == []


async def test_a_stop_denies_what_waits_for_an_account(core: Core, place: Place) -> None:
    await bind(core)
    core.app.vault.lock()
    views = [await waiting_call(core, action) for action in ("act", "see")]
    await core.do(StopEverything())
    assert [(await core.ended(view)).state for view in views] == ["denied", "denied"]
    core.app.vault.unlock(Secret(PASSPHRASE))
    await core.app.account_waits.sweep()
    assert place.service.seen == []


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("api_key", {"secret": Secret("canary-key\r\nX: 1")}),
        ("aws_sigv4", {"user": "AK\r\nX: 1"}),
        ("aws_sigv4", {"user": "AK\u00e9"}),
        ("aws_sigv4", {"user": "AK", "session_token": Secret("t\r\nX: canary")}),
        ("basic", {"user": "ana:admin"}),
        ("basic", {"user": "ana\n"}),
    ],
)
def test_what_no_header_can_hold_is_refused(kind: CredentialKind, parts: dict[str, Any]) -> None:
    asked = BindAccount(connector_hash="", identity="", account="", secret=Secret(CANARY))
    with pytest.raises(InvalidRequest) as refused:
        stored_secret(replace(asked, **parts), CredentialRequirement(kind=kind))
    assert "canary" not in str(refused.value)


KINDS = {
    "api_key": NEEDS_KEY,
    "basic": '[capabilities.credential]\nkind = "basic"\n',
    "aws_sigv4": '[capabilities.credential]\nkind = "aws_sigv4"\nservice = "athena"\nregion = "eu-west-1"\n',
}
FAILS = '{"error":{"class":"external_api_error","message":"the service said no"}}'
EXPIRED = {"__type": "ExpiredTokenException", "message": "The security token is expired"}


@pytest.mark.parametrize(
    ("kind", "status", "body", "says", "class_"),
    [
        ("api_key", 401, {}, FAILS, "binding_failed"),
        ("basic", 401, {}, FAILS, "binding_failed"),
        ("aws_sigv4", 400, EXPIRED, FAILS, "binding_failed"),
        ("aws_sigv4", 403, {"Code": "InvalidAccessKeyId"}, FAILS, "binding_failed"),
        ("aws_sigv4", 403, {"__type": "AccessDeniedException"}, FAILS, "external_api_error"),
        ("api_key", 403, {}, FAILS, "external_api_error"),
        ("api_key", 400, EXPIRED, FAILS, "external_api_error"),
        ("api_key", 401, {}, '{"output":{"done":true}}', ""),
    ],
)
async def test_a_credential_that_its_service_rejects_is_to_be_bound_anew(
    home: Path, tmp_path: Path, kind: str, status: int, body: object, says: str, class_: str
) -> None:
    """A refusal of one thing (403) is the connector's to report, and a call that succeeds has no failure."""
    with tls_service(tmp_path) as service:
        service.answer, service.status = lambda _: body, status
        request = {"url": f"https://{service.place}/x", "credential": kind}
        furnish_guest(home, [request], [service.place], more=KINDS[kind], says=says)
        async with Core.open(home, make_outgoing=service.client) as core:
            token = Secret("a-session-token") if kind == "aws_sigv4" else None
            user = "" if kind == "api_key" else "ana"
            bound = await core.bind("a-key-of-ana", user=user, session_token=token)
            row = (await core.call("see", {})).row
            assert len(service.seen) == 1
            if not class_:
                assert row.failure is None
                return
            assert row.failure.class_ == class_
            if class_ == "binding_failed":
                assert "then bind a new one with `aileron binding setup`" in row.failure.message
                assert bound.name not in row.failure.message, "agents do not learn it"


@asynccontextmanager
async def logged_in(
    home: Path, server: AuthorizationServer, *, refresh: str = "a-refresh-token"
) -> AsyncGenerator[Core]:
    """A home whose account's access token, of an hour, is one that the service does not know."""
    place = server.service.place
    request = {"url": f"{server.base}/x", "credential": "oauth2"}
    furnish_guest(home, [request], [place], more=server.manifest(), says=FAILS)
    async with Core.open(home, make_outgoing=server.service.client) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        own = tokens(
            "a-token-that-was-revoked", refresh_token=Secret(refresh) if refresh else None,
            expires_at=core.app.clock.now() + 3600, token_url=f"{server.base}/token",
            client=OAuthClient(client_id=CLIENT_ID, client_secret=Secret(CLIENT_SECRET)),
            scopes=("mail.read", "mail.send"),
        )  # fmt: skip
        await core.app.bindings.authorize(core.user(), "work", "ana", own)
        yield core


@pytest.mark.parametrize("refresh", ["a-refresh-token", ""])
async def test_a_revoked_login_is_found(home: Path, tmp_path: Path, refresh: str) -> None:
    """The service says 401, the provider that the login has ended: the person is told the command."""
    with authorization_server(tmp_path) as server:
        async with logged_in(home, server, refresh=refresh) as core:
            for _ in range(2):
                failure = (await core.call("see", {})).row.failure
                assert failure.class_ == "binding_failed"
                assert "`aileron binding reauthorize ACCOUNT`" in failure.message
            assert len(server.grants) == (1 if refresh else 0), "then it is known"
            stale = await core.records("binding.stale")
            assert len(stale) == len(server.grants)
            assert "a-token" not in json.dumps(await core.records())


async def test_a_rejected_token_is_renewed_for_the_next_call(home: Path, tmp_path: Path) -> None:
    """Once for all calls that met it, and once a minute at most for a service that rejects any."""
    with authorization_server(tmp_path) as server:
        server.refresh_tokens.add("a-refresh-token")
        async with logged_in(home, server) as core:
            await asyncio.gather(*(core.call("see", {}) for _ in range(8)))
            assert [each["grant_type"] for each in server.grants] == ["refresh_token"]
            await core.call("see", {})
            sent = server.service.seen[-1].headers["authorization"].removeprefix("Bearer ")
            assert sent in server.access_tokens
            server.access_tokens.clear()
            view = await core.ask_for("act", {})
            assert len(server.grants) == 1
            said = f"answered 401 (Unauthorized) to the account {view.accounts[0].name}"
            assert view.preview.reason.endswith(said), "whose tokens they are stands with it"


async def test_only_a_person_is_told_whose_account_a_401_meant(home: Path, tmp_path: Path) -> None:
    """In the preview's place and in the outcome: the command that is named can be typed as it is."""
    with tls_service(tmp_path) as service:
        service.status = 401
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request], [service.place], more=KINDS["api_key"], says=FAILS)
        async with Core.open(home, make_outgoing=service.client) as core:
            bound = await core.bind("a-key-of-ana")
            said = f"The service does not accept the credential of {bound.name} any more"
            view = await core.ask_for("act", {})
            assert view.preview.reason.startswith(said)
            ended = await core.run(view)
            assert said in ended.outcome
            told = for_agent(await core.result(view.approval_id))
            assert "credential of ACCOUNT" in told
            assert bound.name not in told
