"""Authorizing an account of kind oauth2: in a browser or with a device code, and shown before it is stored.

What a provider gave stays in memory until a person said yes to the account; ten minutes at most, and not
beyond a lock of the vault.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aileron_core.clock import Clock
from aileron_core.connectors.manifest import CLIENT_PLACEHOLDER
from aileron_core.connectors.protocol import OAuth2Requirement
from aileron_core.console_port.account_intents import BeginLogin
from aileron_core.console_port.account_views import LoginView
from aileron_core.credentials.binding import Binding, CredentialUser
from aileron_core.credentials.bindings import BindingService
from aileron_core.credentials.oauth import TokenEndpoint, https_target
from aileron_core.credentials.oauth_login import BrowserLogin, DeviceLogin, Login, LoginRequest
from aileron_core.credentials.oauth_tokens import (
    PROVIDERS,
    OAuthClient,
    Provider,
    Tokens,
    account_in_answer,
    is_own_token_host,
    missing_scopes,
    provider_of,
)
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import (
    AileronError,
    BindingFailed,
    Conflict,
    InternalError,
    InvalidRequest,
    NotFound,
    RateLimited,
    VaultAbsent,
    VaultLocked,
)
from aileron_core.ids import new_token
from aileron_core.tasks import spawn
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault

_ANSWER_SECONDS = 300.0
"""How long a person has at the provider."""
_KEPT_SECONDS = 300.0
"""How long after it they may say whether the account is the right one."""
_MOST_OPEN = 8


@dataclass(slots=True, kw_only=True)
class _Authorization:
    """One that is going on."""

    name: str
    """Of the account."""
    user: CredentialUser
    identity: str
    replaces: str
    asked: LoginRequest
    login: Login
    view: LoginView
    """How it stands."""
    tokens: Tokens | None = None
    """Once it is authorized."""
    task: asyncio.Task[None] | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is not waiting any more."""


class AuthorizationService:
    """Carries authorizations from the first request to the account in the vault.

    Args:
        providers, answer_seconds: replaceable for tests.
    """

    def __init__(
        self,
        vault: Vault,
        bindings: BindingService,
        endpoint: TokenEndpoint,
        clock: Clock,
        *,
        providers: Mapping[str, Provider] = PROVIDERS,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self._vault = vault
        self._bindings = bindings
        self._endpoint = endpoint
        self._clock = clock
        self._providers = providers
        self._answer_seconds = answer_seconds
        self._open: dict[str, _Authorization] = {}

    async def begin(self, user: CredentialUser, request: BeginLogin) -> LoginView:
        """Begin one for an account of *user*; it waits for the person at the provider from now on.

        Raises:
            VaultLocked, VaultAbsent: there is nowhere to store it.
            InvalidRequest: the connector's accounts are not of kind oauth2, or there is no client id.
            Conflict: the name is taken, or the token endpoint's host has to be typed first
                (`details.token_host`).
            NotFound: the account to authorize again is not bound.
            CapabilityDenied: an address is not https.
            RateLimited: too many are going on.
            NetworkError, ExternalApiError, BindingFailed: no device code was given.
        """
        if self._vault.state != "unlocked":
            raise VaultAbsent if self._vault.state == "absent" else VaultLocked
        need = user.requirement.oauth2
        if need is None:
            raise InvalidRequest(
                f"{user.identity.fqn} asks for a credential of kind "
                f"{user.requirement.kind}, which you type: there is no login in a browser."
            )
        name = self._bindings.name_for(user, request.identity, request.replaces)
        client = await self._client(user, request, need)
        page = https_target(need.authorize_url)
        token = https_target(need.token_url)
        provider = provider_of(need.authorize_url, self._providers)
        known = is_own_token_host(need.authorize_url, need.token_url, provider)
        if not known and request.token_host != token.host_port:
            raise Conflict(
                f"The login page is at {page.host_port}, and {token.host_port} would get the login. "
                "Nothing shows that they belong together. Type the second host to go on.",
                details={"login_host": page.host_port, "token_host": token.host_port},
            )
        for other in [each for each in self._open.values() if each.name == name]:
            self.cancel(other.view.login_id)
        if len(self._open) >= _MOST_OPEN:
            raise RateLimited(f"{_MOST_OPEN} logins are open. Finish one first.")
        asked = LoginRequest(
            need=need,
            provider=provider,
            client=client,
            scopes=tuple(dict.fromkeys((*need.scopes, *provider.account_scopes))),
        )
        if request.device:
            login = await DeviceLogin.begin(asked, self._endpoint)
        else:
            login = BrowserLogin(asked, self._endpoint, self._answer_seconds)
        view = LoginView(
            login_id=new_token(),
            state="waiting",
            url=login.url,
            user_code=login.user_code,
            scopes=asked.scopes,
            token_host=token.host_port,
            expires_at=self._clock.now() + login.seconds,
        )
        entry = _Authorization(
            name=name,
            user=user,
            identity=request.identity,
            replaces=request.replaces,
            asked=asked,
            login=login,
            view=view,
        )
        self._open[view.login_id] = entry
        entry.task = spawn(self._settle(entry), name="authorization")
        entry.task.add_done_callback(lambda _: login.close())
        return view

    async def wait(self, id_: str, seconds: float) -> LoginView:
        """Return the authorization *id_* once it does not wait any more, after *seconds* at most.

        Raises:
            NotFound: there is none, or not any more.
        """
        entry = self._entry(id_)
        try:
            async with asyncio.timeout(seconds):
                await entry.settled.wait()
        except TimeoutError:
            pass
        if entry.view.state == "failed":
            self._forget(entry)
        return entry.view

    async def finish(self, id_: str, account: str, hand: Hand = CONSOLE) -> Binding:
        """Store the account: the person saw whose it is, or says so with *account*; *hand*: with which.

        Raises:
            NotFound: there is no such authorization.
            Conflict: it is not authorized, or is for another account than the one it replaces.
            InvalidRequest: nobody says whose account it is.
            VaultLocked, StorageUnavailable, OSError: nothing was stored.
        """
        entry = self._entry(id_)
        tokens, replaces, said = entry.tokens, entry.replaces, entry.view.account
        if tokens is None:
            raise Conflict(f"The authorization is {entry.view.state}. Nothing was stored.")
        account = said or account
        if replaces:
            before = self._bindings.get(replaces).account
            if said and before and said != before:
                raise Conflict(
                    f"This login is of another account than {replaces}. Bind it under another "
                    "--identity, or authorize again with the right one."
                )
            account = account or before
        if not account:
            raise InvalidRequest("The provider does not say whose account it is. Name it.")
        del self._open[id_]  # first, so that it is stored once
        try:
            bound = await self._bindings.authorize(
                entry.user, entry.identity, account, tokens, replaces, hand
            )
        except (AileronError, OSError):
            waits = entry.task is not None and not entry.task.done()
            if waits and self._vault.state == "unlocked":  # it can be tried again meanwhile
                self._open[id_] = entry
            raise
        self._forget(entry)
        return bound

    def cancel(self, id_: str) -> None:
        """Forget the authorization *id_*, and all that it gave.

        Raises:
            NotFound: there is none.
        """
        self._forget(self._entry(id_))

    def close(self) -> None:
        """Forget every one, as when the vault is locked."""
        for id_ in list(self._open):
            self.cancel(id_)

    def _forget(self, entry: _Authorization) -> None:
        self._open.pop(entry.view.login_id, None)
        if entry.task is not None:
            entry.task.cancel()
        entry.settled.set()

    def _entry(self, id_: str) -> _Authorization:
        entry = self._open.get(id_)
        if entry is None:
            raise NotFound("This login has ended. Begin again.")
        return entry

    async def _client(
        self, user: CredentialUser, request: BeginLogin, need: OAuth2Requirement
    ) -> OAuthClient:
        """Return as whom to ask: the person's own client, the last one, or the manifest's."""
        client = None
        if request.client_id:
            secret = request.client_secret or None  # an empty one is none
            client = OAuthClient(client_id=request.client_id, client_secret=secret)
        elif request.replaces:
            client = Tokens.from_secret(
                await asyncio.to_thread(self._vault.get, request.replaces)
            ).client
        if client is None:
            if need.client_secret == CLIENT_PLACEHOLDER:
                raise InvalidRequest(
                    f"{user.identity.fqn} comes from a source, not a release: {CLIENT_PLACEHOLDER} is in "
                    "place of its client's secret. Install a release of it, or give a client of your own "
                    "with --client-id."
                )
            secret = Secret(need.client_secret) if need.client_secret else None
            client = OAuthClient(client_id=need.client_id, client_secret=secret)
        if not client.client_id:
            raise InvalidRequest(
                f"{user.identity.fqn} has no client id of its own. Register an application with "
                "the provider, and give its id with --client-id."
            )
        return client

    async def _settle(self, entry: _Authorization) -> None:
        """Wait for the tokens, then for the person's yes; forget them afterwards."""
        try:
            try:
                async with asyncio.timeout(entry.login.seconds):
                    await self._take(entry, await entry.login.obtain())
            except TimeoutError:
                raise BindingFailed(
                    f"Nobody finished the login in {entry.login.seconds / 60:.0f} minutes. Begin again."
                ) from None
        except AileronError as error:
            self._fail(entry, error)
        except Exception:
            self._fail(entry, InternalError("The login failed unexpectedly."))
            raise
        finally:
            entry.login.close()
            entry.settled.set()
        entry.view = replace(entry.view, expires_at=self._clock.now() + _KEPT_SECONDS)
        await asyncio.sleep(_KEPT_SECONDS)
        self._open.pop(entry.view.login_id, None)

    def _fail(self, entry: _Authorization, error: AileronError) -> None:
        entry.view = replace(entry.view, state="failed", problem=error.to_failure())

    async def _take(self, entry: _Authorization, answer: Mapping[str, Any]) -> None:
        asked, now = entry.asked, self._clock.now()
        tokens = Tokens.from_answer(
            answer,
            client=asked.client,
            token_url=asked.need.token_url,
            asked=asked.scopes,
            now=now,
        )
        account = account_in_answer(answer, asked.client.client_id, asked.provider.issuer, now)
        if not account:
            try:
                account = await self._endpoint.account(asked.provider, tokens.access_token)
            except AileronError:
                account = ""  # the person says it then
        entry.tokens = tokens
        entry.view = replace(
            entry.view,
            state="authorized",
            account=account,
            missing=missing_scopes(asked.need, tokens.scopes),
            ends_at=None if tokens.refresh_token else tokens.expires_at,
        )
