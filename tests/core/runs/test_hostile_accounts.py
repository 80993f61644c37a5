"""Accounts that change under a call: what a person saw is what is used, or nothing is sent."""

import asyncio
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.protocol import CredentialKind, CredentialRequirement, Limits
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.console_port.intents import StopEverything
from aileron_core.credentials.account_secret import stored_secret
from aileron_core.credentials.accounts import ConnectorWithAccount
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
    waiting,
)
from tests.support.core_harness import PASSPHRASE, PATIENCE, Core, Start
from tests.support.frozen_clock import FrozenClock
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import Request, TlsService, tls_service

__all__ = ["place", "start"]

NAMES = ("work", "home@example", "work@example", "api_key/")


def for_agent(row: RunRecord) -> str:
    """All that an agent is ever answered about its call."""
    assert row.approval_id is not None
    bodies: list[Any] = [result_body(row), pending_body(row, "http://127.0.0.1:1", attached=False)]
    return json.dumps(bodies)


@contextmanager
def answers_held(service: TlsService) -> Generator[Callable[[], bool]]:
    """Have the service answer nothing until the block ends; yields what waits for a request."""
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


async def test_a_yes_to_one_account_is_none_to_another_of_the_same_name(
    core: Core, place: Place
) -> None:
    """Revoked and bound anew under its name while the call waits: the digest is another, and asked for."""
    first = await bind(core)
    shown = await core.ask_for("act", {})
    await core.app.bindings.delete(first.name)
    await core.bind("canary-of-mallory", "mallory@example.com")
    again = await core.view(
        shown.approval_id,
        lambda v: v.state == "pending" and bool(v.digest) and v.version > shown.version,
        after=shown.version,
    )
    again = await core.looked(shown.approval_id, after=again.version - 1)
    assert [each.account for each in again.accounts] == ["mallory@example.com"]
    assert again.digest != shown.digest
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

    def tokens(secret: str) -> Tokens:
        return Tokens(
            access_token=Secret(secret),
            refresh_token=None,
            expires_at=None,
            client=OAuthClient(client_id="mine"),
            token_url="https://api.example/t",
            scopes=("all",),
        )

    with tls_service(tmp_path) as service:
        request = {"url": f"https://{service.place}/x", "credential": "oauth2"}
        furnish_guest(home, [request], [service.place], more=need)
        clock = FrozenClock()
        async with Core.open(home, clock=clock, make_outgoing=service.client) as core:
            core.app.vault.create(Secret(PASSPHRASE))
            user = core.user()
            bindings = core.app.bindings
            bound = await bindings.authorize(user, "work", "me", tokens("canary-1"))
            shown = await core.ask_for("act", {})
            clock.advance(5)
            await bindings.authorize(user, "", "me", tokens("canary-2"), bound.name)
            again = await core.view(
                shown.approval_id,
                lambda v: v.state == "pending" and bool(v.digest) and v.digest != shown.digest,
                after=shown.version,
            )
            with pytest.raises(Conflict, match="changed while you answered"):
                await core.approve(shown)
            assert not await core.records("run.started")
            assert again.accounts == shown.accounts


async def test_the_digest_covers_whose_account_it_is(core: Core) -> None:
    """Also where neither its name nor anything else of the call differs."""
    await bind(core)
    answer = await core.call("act", {})
    assert answer.row.approval_id is not None
    run = core.app.registry.by_approval(answer.row.approval_id)
    await core.looked(answer.row.approval_id)
    (connector,) = run.resolved.connectors.values()
    assert isinstance(connector, ConnectorWithAccount)
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
async def test_a_yes_while_the_account_goes_away_sends_nothing_and_waits_again(
    core: Core, place: Place, what: str
) -> None:
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
        again = await core.view(
            shown.approval_id,
            lambda v: (
                v.state == "pending"
                and bool(v.digest)
                and [each.account for each in v.accounts] == ["mallory@example.com"]
            ),
        )
        assert again.digest != shown.digest
    else:
        await core.view(shown.approval_id, lambda v: v.state == "awaiting_vault")
    assert place.keys.count(CANARY) == 2  # the preview and the recheck
    assert not await core.records("run.started")


@pytest.mark.parametrize("what", ["lock", "revoke", "rebind"])
async def test_a_call_that_goes_on_sends_nothing_more_with_an_account_that_was_taken_away(
    home: Path, tmp_path: Path, what: str
) -> None:
    """Its first request is out; its second would have carried the same key."""
    with tls_service(tmp_path) as service:
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request] * 2, [service.place], more=NEEDS_KEY)
        place = Place(home, service)
        async with Core.open(place.home, make_outgoing=place.service.client) as core:
            bound = await bind(core)
            with answers_held(service) as reached:
                call = asyncio.create_task(core.call("see", {}))
                assert await asyncio.to_thread(reached)
                if what == "lock":
                    core.app.vault.lock()
                elif what == "revoke":
                    await core.app.bindings.delete(bound.name)
                else:
                    core.app.vault.put_metadata(
                        bound.name, {**bound.to_metadata(), "account": "another"}
                    )
            row = (await call).row
            assert row.state == "failed"
            assert row.failure.class_ == "binding_failed"
            assert place.keys == [CANARY]
            assert not any(each in row.failure.message for each in NAMES)


async def test_an_agent_never_learns_of_accounts(start: Start) -> None:
    """Neither a name nor how many there are, whatever it waits for and however that ends."""
    said: list[str] = []
    async with start() as core:
        unbound = await core.call("act", {})
        said.append(for_agent(unbound.row))
        work = await bind(core)
        await bind(core, "home", "canary-of-home")
        view = await waiting(core, "see")
        said.append(for_agent(await core.result(view.approval_id)))
        await choose_account(core, view, work.name)
        await core.ended(view)
        said.append(for_agent(await core.result(view.approval_id)))
        core.app.vault.lock()
        locked = await waiting(core)
        said.append(for_agent(await core.result(locked.approval_id)))
        core.app.vault.unlock(Secret(PASSPHRASE))
    for text in said:
        assert not any(each in text for each in (*NAMES, CANARY, "2 accounts", "candidates"))


@pytest.mark.parametrize("spoil", ["gone", "rebound", "damaged"])
async def test_no_error_of_an_account_names_it_to_the_agent(
    core: Core, place: Place, spoil: str
) -> None:
    """Whatever happened to it between the choice and the request."""
    bound = await bind(core)
    connectors, _ = core.app.accounts.assign(
        (see := core.app.library.find("see")).connectors, {}, see.file
    )
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
    """Gated or not; unlocking the vault afterwards runs nothing."""
    await bind(core)
    core.app.vault.lock()
    views = [await waiting(core, action) for action in ("act", "see")]
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
def test_what_no_header_can_hold_is_refused_when_entered(
    kind: CredentialKind, parts: dict[str, Any]
) -> None:
    asked = BindAccount(connector_hash="", identity="", account="", secret=Secret(CANARY))
    with pytest.raises(InvalidRequest) as refused:
        stored_secret(replace(asked, **parts), CredentialRequirement(kind=kind))
    assert "canary" not in str(refused.value)
