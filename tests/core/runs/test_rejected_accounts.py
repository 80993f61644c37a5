"""An account that its service does not accept any more, found by a call: the person is told what to do."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aileron_core.credentials.oauth_tokens import OAuthClient, Tokens
from aileron_core.vault.secret import Secret
from tests.core.runs.test_hostile_accounts import for_agent
from tests.support.authorization_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    AuthorizationServer,
    authorization_server,
)
from tests.support.core_harness import PASSPHRASE, Core
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import tls_service

KINDS = {
    "api_key": '[capabilities.credential]\nkind = "api_key"\nheader = "X-Key"\nformat = "{key}"\n',
    "basic": '[capabilities.credential]\nkind = "basic"\n',
    "aws_sigv4": '[capabilities.credential]\nkind = "aws_sigv4"\nservice = "athena"\nregion = "eu-west-1"\n',
}
FAILS = '{"error":{"class":"external_api_error","message":"the service said no"}}'
EXPIRED = {
    "__type": "ExpiredTokenException",
    "message": "The security token included in the request is expired",
}


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
            bound = await core.bind(
                "a-key-of-ana",
                user="" if kind == "api_key" else "ana",
                session_token=Secret("a-session-token") if kind == "aws_sigv4" else None,
            )
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
        tokens = Tokens(
            access_token=Secret("a-token-that-was-revoked"),
            refresh_token=Secret(refresh) if refresh else None,
            expires_at=core.app.clock.now() + 3600,
            client=OAuthClient(client_id=CLIENT_ID, client_secret=Secret(CLIENT_SECRET)),
            token_url=f"{server.base}/token",
            scopes=("mail.read", "mail.send"),
        )
        await core.app.bindings.authorize(core.user(), "work", "ana", tokens)
        yield core


@pytest.mark.parametrize("refresh", ["a-refresh-token", ""])
async def test_a_login_that_was_revoked_is_found_before_its_tokens_end(
    home: Path, tmp_path: Path, refresh: str
) -> None:
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


async def test_a_token_that_its_service_rejects_is_renewed_for_the_next_call(
    home: Path, tmp_path: Path
) -> None:
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
            await core.call("see", {})
            assert len(server.grants) == 1


async def test_a_person_is_told_which_account_a_401_is_about_and_the_agent_is_not(
    home: Path, tmp_path: Path
) -> None:
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


async def test_a_401_for_a_renewed_login_names_the_account_too(home: Path, tmp_path: Path) -> None:
    """The tokens are new, and the service may say 401 again: whose they are stands with it."""
    with authorization_server(tmp_path) as server:
        server.refresh_tokens.add("a-refresh-token")
        async with logged_in(home, server) as core:
            view = await core.ask_for("act", {})
            (account,) = view.accounts
            assert view.preview.reason.endswith(
                f"answered 401 (Unauthorized) to the account {account.name}"
            )
