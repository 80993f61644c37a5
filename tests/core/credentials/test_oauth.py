"""Accounts of kind oauth2: authorized at a real authorization server, shown, stored, renewed, ended."""

import asyncio
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import pytest

from aileron_core import errors
from aileron_core.actions.model import ConnectorIdentity
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.protocol import RequestToSign
from aileron_core.console.account_commands import AccountCommands
from aileron_core.console_port.account_intents import BeginLogin
from aileron_core.console_port.account_views import LoginUpdated, LoginView
from aileron_core.console_port.events import CoreEvent
from aileron_core.credentials.authorization import AuthorizationService
from aileron_core.credentials.binding import Binding, CredentialUser
from aileron_core.credentials.bindings import BindingService
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.credentials.oauth_tokens import Provider, is_own_token_host, provider_of
from aileron_core.devices import CONSOLE
from aileron_core.events import EventBus
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.support import authorization_server as oauth_server
from tests.support.authorization_server import CANARY, CLIENT_ID, AuthorizationServer
from tests.support.frozen_clock import FrozenClock
from tests.support.tls_service import HOST, Request

PASSPHRASE = "correct horse"
REQUEST = RequestToSign(method="GET", host=HOST, path="/", headers={}, body=b"")


Login: TypeAlias = AsyncIterator[tuple[AuthorizationService, LoginView]]


@dataclass
class Desk:
    """A vault, its accounts, and the authorization server that one connector names."""

    server: AuthorizationServer
    folder: Path
    clock: FrozenClock = field(default_factory=FrozenClock)
    records: list[tuple[AuditEvent, str, Mapping[str, Json]]] = field(default_factory=list)
    provider: Provider = field(default_factory=lambda: Provider(name="Example"))
    answer_seconds: float = 300.0

    def __post_init__(self) -> None:
        self.vault = Vault(self.folder, self.clock)
        self.vault.create(Secret(PASSPHRASE))
        client = partial(self.server.service.client, (), self.clock)
        self.endpoint = TokenEndpoint(client, self.clock)
        self.bindings = BindingService(self.vault, self.clock, self.record, self.endpoint)
        self.user = self.make_user()

    async def record(self, event: AuditEvent, summary: str, more: Mapping[str, Json]) -> None:
        assert CANARY not in f"{summary} {more}"
        self.records.append((event, summary, more))

    def make_user(self, manifest: str = "") -> CredentialUser:
        text = '[connector]\nname = "github://ana/Mail"\nversion = "1.0.0"\n'
        parsed = parse_manifest((text + (manifest or self.server.manifest())).encode(), "m")
        assert parsed.credential is not None
        identity = ConnectorIdentity(fqn=parsed.name, version="1.0.0", hash="sha256:aa")
        hosts = (self.server.service.place,)
        return CredentialUser(identity=identity, requirement=parsed.credential, hosts=hosts)

    @property
    def events(self) -> list[str]:
        return [event.value for event, _, _ in self.records]

    def authorizations(self) -> AuthorizationService:
        own = {"providers": {HOST: self.provider}, "answer_seconds": self.answer_seconds}
        return AuthorizationService(self.vault, self.bindings, self.endpoint, self.clock, **own)

    @asynccontextmanager
    async def authorizing(self, **more: object) -> Login:
        service = self.authorizations()
        asked = BeginLogin(connector_hash=self.user.identity.hash, identity="work")
        view = await service.begin(self.user, replace(asked, **more))
        try:
            yield service, view
        finally:
            service.close()

    async def begin(self, **more: object) -> None:
        async with self.authorizing(**more):
            pass

    @asynccontextmanager
    async def logged_in(self, **more: object) -> Login:
        """Follow the login to its end, at which nothing is stored yet."""
        async with self.authorizing(**more) as (service, view):
            await asyncio.to_thread(self.server.browse, view.url)
            yield service, await service.wait(view.login_id, 30)

    async def authorized(self, account: str = "") -> Binding:
        async with self.logged_in() as (service, view):
            assert view.problem is None
            return await service.finish(view.login_id, account)

    async def failure(self, **more: object) -> str:
        """Follow the login, and return the sentence that it ends with; nothing is stored."""
        async with self.logged_in(**more) as (service, ended):
            assert ended.state == "failed"
            assert ended.problem.class_ == "binding_failed"
            with pytest.raises(errors.NotFound):
                await service.finish(ended.login_id, "ana")
        assert self.bindings.all() == ()
        return ended.problem.message

    async def token(self, bound: Binding) -> str:
        """Return the access token that a call of the connector would send."""
        credential = await self.bindings.credential_for(bound, self.user)
        return credential.headers(REQUEST)["Authorization"].removeprefix("Bearer ")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "home").mkdir(mode=0o700)
    with oauth_server.authorization_server(tmp_path) as server:
        made = Desk(server=server, folder=tmp_path / "home")
        yield made
        made.endpoint.close()


async def test_a_login_is_shown_before_it_is_stored(desk: Desk) -> None:
    """The server checks the PKCE verifier and the redirect; the connector gets a working token alone."""
    async with desk.authorizing() as (service, view):
        asked = parse_qs(urlsplit(view.url).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["scope"] == ["mail.read mail.send"]
        assert asked["redirect_uri"][0].startswith("http://127.0.0.1:")
        assert (await service.wait(view.login_id, 0)).state == "waiting"
        assert await asyncio.to_thread(desk.server.browse, view.url) == 200
        shown = await service.wait(view.login_id, 30)
        assert (shown.state, shown.account) == ("authorized", "ana@example.com")
        assert (shown.missing, shown.ends_at) == ((), None)
        assert desk.bindings.all() == ()
        assert desk.events == []
        bound = await service.finish(view.login_id, "")
        with pytest.raises(errors.NotFound):
            await service.finish(view.login_id, "")
    assert (bound.name, bound.account) == ("oauth2/mail/work", "ana@example.com")
    assert bound.scopes == ("mail.read", "mail.send")
    assert desk.events == ["binding.created"]
    assert await desk.token(bound) in desk.server.access_tokens
    (grant,) = desk.server.grants
    assert grant["code_verifier"] not in view.url
    stored = json.loads(desk.vault.get(bound.name).reveal())
    tokens = {"access_token", "refresh_token", "expires_at", "token_type"}  # as upstream writes it
    assert {*stored} == tokens | {"client_id", "client_secret", "token_url", "scopes"}
    assert stored["expires_at"] == desk.clock.now() + 3600


@pytest.mark.parametrize(
    ("redirect", "why"),
    [
        ({"iss": "https://evil.example"}, "its iss differs"),
        ({"iss": ""}, "its iss differs"),
        ({"code": None, "error": "access_denied"}, "refused: access_denied"),
        ({"code": None, "error": "ohno\x1b[2J"}, "refused: an error of its own"),
        ({"code": "somebody-elses"}, "refused: invalid_grant"),
    ],
)
async def test_an_answer_that_is_not_of_this_login_binds_nothing(
    desk: Desk, redirect: dict[str, str | None], why: str
) -> None:
    desk.server.redirect = redirect
    assert why in await desk.failure()
    if "state" in redirect or "iss" in redirect:
        assert desk.server.grants == []  # the code went nowhere


async def test_of_a_known_provider_the_issuer_is_compared_and_the_account_asked(desk: Desk) -> None:
    desk.provider = replace(desk.provider, issuer="https://accounts.example")
    assert "its iss differs" in await desk.failure()
    desk.server.redirect = {"iss": "https://accounts.example"}
    desk.server.gives_id_token = False
    assert (await desk.authorized("ana")).account == "ana"
    desk.server.account = "bo@example.com"
    desk.provider = replace(desk.provider, account_url=f"{desk.server.base}/userinfo")
    async with desk.logged_in(identity="home") as (service, view):
        assert (await service.finish(view.login_id, "my own words")).account == "bo@example.com"


@pytest.mark.parametrize(
    "query",
    [
        *("code=x&state=another", "code=x", "error=access_denied", "", "code=%ff&state={state}"),
        *("code=a&code=b&state={state}", "code=a&state={state}&state={state}"),
    ],
)
async def test_requests_without_the_right_state_do_not_end_a_login(desk: Desk, query: str) -> None:
    """Any program or page can send one; of a parameter that comes twice, two readers could see two answers."""
    async with desk.authorizing() as (service, view):
        asked = parse_qs(urlsplit(view.url).query)
        wrong = f"{asked['redirect_uri'][0]}?{query.format(state=asked['state'][0])}"
        for _ in range(3):
            assert await asyncio.to_thread(desk.server.browse, wrong) == 404
        assert (await service.wait(view.login_id, 0)).state == "waiting"
        assert desk.server.grants == []
        assert await asyncio.to_thread(desk.server.browse, view.url) == 200
        assert (await service.wait(view.login_id, 30)).state == "authorized"


async def test_only_the_exact_address_is_answered_and_only_once(desk: Desk) -> None:
    """Another path, method or Host does not use the one request up; a second one is not connected."""
    async with desk.authorizing() as (service, view):
        asked = parse_qs(urlsplit(view.url).query)
        uri, state = asked["redirect_uri"][0], asked["state"][0]
        port = urlsplit(uri).port or 0
        good = f"/callback?code=x&state={state}"
        host = f"Host: 127.0.0.1:{port}\r\n"
        for head in (
            f"GET /favicon.ico HTTP/1.1\r\n{host}\r\n",
            f"GET /callback/?code=x&state={state} HTTP/1.1\r\n{host}\r\n",
            f"POST {good} HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n",
            f"GET {good} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n",
            f"GET {good} HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode())
            assert (await reader.read(4096)).startswith(b"HTTP/1.1 404 ")
            writer.close()
        assert (await service.wait(view.login_id, 0)).state == "waiting"
        with pytest.raises(OSError, match="in use"), socket.socket(socket.AF_INET6) as other:
            other.bind(("::1", port))
        assert await asyncio.to_thread(desk.server.browse, view.url) == 200
        assert (await service.wait(view.login_id, 30)).state == "authorized"
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(desk.server.browse, f"{uri}?code=x&state={state}")
        assert len(desk.server.grants) == 1


async def test_connections_that_say_nothing_keep_the_browser_out_no_longer(desk: Desk) -> None:
    async with desk.authorizing() as (service, view):
        port = urlsplit(parse_qs(urlsplit(view.url).query)["redirect_uri"][0]).port
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        assert await asyncio.to_thread(desk.server.browse, view.url) == 200
        assert (await service.wait(view.login_id, 30)).state == "authorized"
        for _, writer in silent:
            writer.close()


async def test_a_login_that_comes_too_late_finds_nobody(desk: Desk) -> None:
    desk.answer_seconds = 0.05
    async with desk.authorizing() as (service, view):
        assert "Nobody finished" in (await service.wait(view.login_id, 30)).problem.message
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(desk.server.browse, view.url)
    assert desk.server.grants == []


async def test_a_lock_of_the_vault_ends_every_login(desk: Desk) -> None:
    """Nothing of it is kept in memory, and none begins while it is locked."""
    async with desk.logged_in() as (service, view):
        desk.vault.lock()
        for refused in (errors.VaultLocked, errors.NotFound):
            with pytest.raises(refused):
                await service.finish(view.login_id, "")
        with pytest.raises(errors.VaultLocked):
            await service.begin(desk.user, BeginLogin(connector_hash="", identity="work"))


async def test_a_token_host_that_is_not_the_providers_is_typed_first(desk: Desk) -> None:
    """A manifest can name a trusted login page beside somebody else's token endpoint."""
    port = desk.server.service.port
    evil = f"evil.example:{port}"
    desk.user = desk.make_user(desk.server.manifest(f"https://{evil}/token"))
    for typed in ("", "evil.example", desk.server.service.place):
        with pytest.raises(errors.Conflict) as asked:
            await desk.begin(token_host=typed)
        assert asked.value.details["token_host"] == evil
        assert evil in asked.value.message
    assert desk.server.service.seen == []
    async with desk.authorizing(token_host=evil) as (_, view):
        assert view.token_host == evil
    desk.provider = replace(desk.provider, token_hosts=frozenset({"tokens.example"}))
    desk.user = desk.make_user(desk.server.manifest(f"https://tokens.example:{port}/token"))
    async with desk.authorizing() as (_, view):  # a known pair is not asked about
        assert view.state == "waiting"


@pytest.mark.parametrize(
    ("token_url", "is_own"),
    [
        ("https://accounts.google.com/o/token", True),
        ("https://oauth2.googleapis.com/token", True),
        ("https://oauth2.googleapis.com:8443/token", False),
        ("https://www.googleapis.com/upload/storage/v1/b/evil/o?name=code", False),
        ("https://evil.accounts.google.com/token", False),
        ("https://accounts.google.com.evil.example/token", False),
    ],
)
def test_only_whole_hosts_are_known_as_the_providers(token_url: str, is_own: bool) -> None:
    """Neither a shared domain nor a name below it: customers of many services have such a name."""
    login = "https://accounts.google.com/o/oauth2/v2/auth"
    assert is_own_token_host(login, token_url, provider_of(login)) is is_own
    customer = "https://a.github.io/authorize"
    assert not is_own_token_host(customer, "https://b.github.io/token", provider_of(customer))


@pytest.mark.parametrize(
    ("old", "new", "asked", "why"),
    [
        (f'authorize_url = "https://{HOST}', 'authorize_url = "http://127.0.0.1', {}, "plain HTTP"),
        (f'token_url = "https://{HOST}', 'token_url = "http://127.0.0.1', {}, "plain HTTP"),
        ("/authorize", "/authorize?state=fixed&x=1", {}, "sets state itself"),
        (CLIENT_ID, "", {}, "--client-id"),
        ("", "", {"device": True}, "--device"),
    ],
)
async def test_a_login_that_could_not_be_safe_or_whole_does_not_begin(
    desk: Desk, old: str, new: str, asked: dict[str, object], why: str
) -> None:
    """Manifests may name this machine in plain HTTP, and no token goes that way; what protects it they cannot set."""
    desk.user = desk.make_user(desk.server.manifest().replace(old, new))
    with pytest.raises((errors.CapabilityDenied, errors.InvalidRequest), match=why):
        await desk.begin(**{"token_host": f"127.0.0.1:{desk.server.service.port}"} | asked)


async def test_a_persons_own_client_takes_the_place_of_the_manifests(desk: Desk) -> None:
    assert "invalid_client" in await desk.failure(client_id="ana-own")
    (grant,) = desk.server.grants
    assert grant["client_id"] == "ana-own"
    assert "client_secret" not in grant


@pytest.mark.parametrize("account", ["ana\u202e@example.com", "a\nb", "x" * 300, ""])
async def test_where_nobody_says_the_account_a_person_does(desk: Desk, account: str) -> None:
    desk.server.account = account
    async with desk.logged_in() as (service, view):
        assert view.account == ""
        with pytest.raises(errors.InvalidRequest, match="Name it"):
            await service.finish(view.login_id, "")
        assert (await service.finish(view.login_id, "ana at work")).account == "ana at work"


@pytest.mark.parametrize(
    ("claim", "value"),
    [("aud", "another-client"), ("aud", None), ("iss", "https://evil"), ("exp", 1), ("exp", "x")],
)
async def test_an_id_token_of_another_login_names_no_account(
    desk: Desk, claim: str, value: object
) -> None:
    desk.provider = replace(desk.provider, issuer=desk.server.base)
    desk.server.claims = {claim: value}
    async with desk.logged_in() as (_, view):
        assert (view.state, view.account) == ("authorized", "")


async def test_scopes_that_were_not_granted_are_shown(desk: Desk) -> None:
    """At a renewal and at a login."""
    bound = await desk.authorized()
    desk.server.scope = "mail.read"
    desk.clock.advance(3600)
    await desk.token(bound)
    async with desk.logged_in(identity="home") as (service, view):
        assert view.missing == ("mail.send",)
        again = await service.finish(view.login_id, "")
    for made in (bound, again):
        assert desk.bindings.get(made.name).missing_scopes == ("mail.send",)
    assert desk.events[-2:] == ["binding.refreshed", "binding.created"]
    assert [more["missing_scopes"] for _, _, more in desk.records[-2:]] == [["mail.send"]] * 2


async def test_a_device_code_needs_no_browser_here(desk: Desk) -> None:
    desk.provider = replace(desk.provider, device_url=f"{desk.server.base}/device")
    async with desk.authorizing(device=True) as (service, view):
        assert view.user_code == "WDJB-MJHT"
        assert view.url == f"{desk.server.base}/activate"
        async with asyncio.timeout(60):
            while not desk.server.grants:  # refused once: nobody has entered it yet
                await asyncio.sleep(0.05)
        assert (await service.wait(view.login_id, 0)).state == "waiting"
        desk.server.device_approved.set()
        assert (await service.wait(view.login_id, 60)).account == "ana@example.com"
        bound = await service.finish(view.login_id, "")
    assert await desk.token(bound) in desk.server.access_tokens


@pytest.mark.parametrize("gives_codes", [True, False])
async def test_a_console_without_a_browser_uses_a_code_where_there_is_one(
    desk: Desk, *, gives_codes: bool
) -> None:
    """Else the address is the one for a browser on this machine."""
    if gives_codes:
        desk.provider = replace(desk.provider, device_url=f"{desk.server.base}/device")
    connector = SimpleNamespace(identity=desk.user.identity, hosts=desk.user.hosts)
    connector.credential_requirement = desk.user.requirement
    library = SimpleNamespace(accepted_connectors=lambda: [connector], ready=list)
    service, events = desk.authorizations(), EventBus[CoreEvent]()
    seen: list[CoreEvent] = []
    events.subscribe(seen.append)
    console = AccountCommands(desk.bindings, service, library, events)
    asked = BeginLogin(connector_hash=desk.user.identity.hash, identity="work", device=True)
    await console.carry_out(asked, events, CONSOLE)
    service.close()
    (begun,) = [each for each in seen if isinstance(each, LoginUpdated)]
    assert begun.login.state == "waiting"
    assert begun.login.user_code == ("WDJB-MJHT" if gives_codes else "")
    assert ("redirect_uri" in begun.login.url) is not gives_codes


async def test_a_token_is_renewed_once_a_minute_before_its_end(desk: Desk) -> None:
    """By however many calls: the server ends every login whose refresh token comes twice."""
    bound = await desk.authorized()
    first = await desk.token(bound)
    desk.clock.advance(3600 - 61)
    assert await desk.token(bound) == first
    desk.clock.advance(1)
    (second,) = {*await asyncio.gather(*(desk.token(bound) for _ in range(20)))}
    assert second != first
    assert second in desk.server.access_tokens
    kinds = [grant["grant_type"] for grant in desk.server.grants]
    assert kinds == ["authorization_code", "refresh_token"]
    assert desk.events == ["binding.created", "binding.refreshed"]
    desk.clock.advance(3600)
    assert await desk.token(bound) not in (first, second)  # by the rotated refresh token


async def test_a_renewal_that_fails_says_so_and_is_tried_again(desk: Desk) -> None:
    """While the token lasts, a provider that is away costs nothing."""
    bound = await desk.authorized()
    first = await desk.token(bound)
    desk.clock.advance(3600 - 30)
    desk.server.refuses = "temporarily_unavailable"
    with pytest.raises(errors.BindingFailed, match="temporarily_unavailable"):
        await desk.token(bound)
    desk.server.refuses = ""

    def breaks_off(_: object) -> object:
        raise ConnectionAbortedError

    answer, desk.server.service.answer = desk.server.service.answer, breaks_off
    assert await desk.token(bound) == first
    desk.clock.advance(30)
    with pytest.raises(errors.NetworkError):
        await desk.token(bound)
    desk.server.service.answer = answer
    assert await desk.token(bound) != first


async def test_a_revoked_login_says_what_to_do(desk: Desk) -> None:
    """Once it is known the provider is not asked again; a new login puts it right, of the same account."""
    bound = await desk.authorized()
    desk.server.refresh_tokens.clear()
    desk.clock.advance(3600)
    for _ in range(2):
        with pytest.raises(errors.BindingFailed) as failed:
            await desk.token(bound)
        assert f"`aileron binding reauthorize {bound.name}`" in failed.value.message
        assert failed.value.to_failure().class_ == "binding_failed"
    assert len(desk.server.grants) == 2
    assert desk.events == ["binding.created", "binding.stale"]
    assert desk.bindings.get(bound.name).is_stale
    desk.server.account = "mallory@example.com"
    async with desk.logged_in(replaces=bound.name) as (service, view):
        assert view.account == "mallory@example.com"
        with pytest.raises(errors.Conflict, match="another account"):
            await service.finish(view.login_id, "")
    desk.server.account = bound.account
    async with desk.logged_in(replaces=bound.name) as (service, view):
        again = await service.finish(view.login_id, "")
    assert {**again.consented, "created_at": bound.created_at} == bound.consented
    assert not desk.bindings.get(bound.name).is_stale
    assert desk.events[-1] == "binding.reauthorized"
    assert await desk.token(again) in desk.server.access_tokens


async def test_a_login_that_cannot_be_renewed_ends(desk: Desk) -> None:
    desk.server.rotates = False
    bound = await desk.authorized()
    stored = json.loads(desk.vault.get(bound.name).reveal())
    without = json.dumps({**stored, "refresh_token": ""})
    desk.vault.put(bound.name, Secret(without), desk.vault.entries()[bound.name])
    desk.clock.advance(3600 - 30)
    assert await desk.token(bound) == stored["access_token"]
    desk.clock.advance(30)
    with pytest.raises(errors.BindingFailed, match="has ended"):
        await desk.token(bound)


@asynccontextmanager
async def renewing(desk: Desk, bound: Binding) -> AsyncIterator[asyncio.Task[str]]:
    """Have a call renew the login; the server answers at the end of the context."""
    desk.clock.advance(3600)
    asked, go_on, answer = threading.Event(), threading.Event(), desk.server.service.answer

    def slowly(request: Request) -> object:
        asked.set()
        go_on.wait(60)
        return answer(request)

    desk.server.service.answer = slowly
    call = asyncio.create_task(desk.token(bound))
    await asyncio.to_thread(asked.wait, 60)
    yield call
    go_on.set()


async def test_an_account_that_is_revoked_during_a_renewal_stays_revoked(desk: Desk) -> None:
    bound = await desk.authorized()
    async with renewing(desk, bound) as call:
        await desk.bindings.delete(bound.name)
    with pytest.raises(errors.BindingFailed, match="changed while"):
        await call
    assert desk.bindings.all() == ()
    assert bound.name not in desk.vault.entries()


async def test_a_login_that_is_renewed_while_the_vault_is_locked_is_not_lost(desk: Desk) -> None:
    """The server takes the old refresh token no more; the call itself gets nothing."""
    bound = await desk.authorized()
    async with renewing(desk, bound) as call:
        desk.vault.lock()
    with pytest.raises(errors.AileronError, match="locked"):
        await call
    assert desk.events[-1] == "binding.refreshed"
    desk.vault.unlock(Secret(PASSPHRASE))
    assert await desk.token(bound) in desk.server.access_tokens
    desk.clock.advance(3600)
    assert await desk.token(bound) in desk.server.access_tokens


async def test_tokens_go_to_the_endpoint_of_the_manifest_alone(desk: Desk) -> None:
    """Also those of an account that was stored for another one, as by upstream Aileron."""
    bound = await desk.authorized()
    port = desk.server.service.port
    desk.user = desk.make_user(desk.server.manifest(f"https://{HOST}:{port}/other"))
    with pytest.raises(errors.BindingFailed, match="another token endpoint"):
        await desk.token(bound)
    assert len(desk.server.grants) == 1


@pytest.mark.parametrize(
    ("what", "value"),
    [
        *(("refuses", each) for each in ("invalid_grant", "invalid_client", f"{CANARY}-reflected")),
        *(("lifetime", each) for each in (f"{CANARY}-seconds", [1], {"a": 1}, float("inf"))),
    ],
)
async def test_no_error_repeats_what_was_sent_or_makes_no_sense(
    desk: Desk, what: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The server's errors quote the whole form: the secret, the code, the refresh token."""
    caplog.set_level(logging.DEBUG)
    bound = await desk.authorized()
    setattr(desk.server, what, value)
    desk.clock.advance(3600)
    with pytest.raises(errors.AileronError) as failed:
        await desk.token(bound)
    if what == "lifetime":
        assert isinstance(failed.value, errors.ExternalApiError)
        assert "cannot be used" in failed.value.message
    error: BaseException | None = failed.value
    while error is not None:
        assert CANARY not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__
    assert CANARY not in caplog.text


async def test_no_token_is_in_a_file_or_a_value_that_prints(desk: Desk) -> None:
    async with desk.logged_in() as (service, view):
        bound = await service.finish(view.login_id, "")
    desk.clock.advance(3600)
    credential = await desk.bindings.credential_for(bound, desk.user)
    for value in (view, bound, credential, desk.bindings, service, desk.endpoint):
        assert CANARY not in repr(value)
    for path in desk.folder.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes()
