"""The routes of accounts and of model providers' keys, on the home's socket alone: a secret comes in a body, and is in no answer.

Every program of this user can reach the socket. What lets a connector use an account therefore needs the vault's
passphrase, each time; what only reads or takes away needs none.
"""

from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core.app import App
from aileron_core.clock import rfc3339
from aileron_core.console.account_views import account_body, account_view
from aileron_core.credentials.account_secret import AccountSecret
from aileron_core.credentials.accounts import credential_users, find_user
from aileron_core.credentials.binding import Binding
from aileron_core.credentials.model_keys import ModelKey
from aileron_core.errors import Conflict, InvalidRequest
from aileron_core.server.bodies import (
    BindingBody,
    BindingsBody,
    CreateBindingBody,
    ForgetChoiceBody,
    ModelKeyBody,
    ModelKeysBody,
    RebindBody,
    RemoveModelKeyBody,
    RevokeBindingBody,
    SetModelKeyBody,
)
from aileron_core.server.gateway.providers import PROVIDERS, Provider
from aileron_core.server.gateway.upstreams import base_urls
from aileron_core.server.request_parsing import RequestBody, app_of, read_body
from aileron_core.server.route_spec import RouteSpec
from aileron_core.vault.secret import Secret


async def list_bindings(request: Request) -> Response:
    """List the bound accounts, and why one cannot be used."""
    app = app_of(request)
    body: BindingsBody = {"items": [binding_body(app, each) for each in app.bindings.all()]}
    return JSONResponse(body)


async def create_binding(request: Request) -> Response:
    """Bind an account to an accepted connector; the vault has to be unlocked."""
    body = await read_body(request, CreateBindingBody)
    app = app_of(request)
    await require_passphrase(app, body)
    token = body.text("session_token")
    secret = AccountSecret(
        value=Secret(body.text("secret")),
        user=body.text("user"),
        session_token=Secret(token) if token else None,
        region=body.text("region"),
    )
    user = find_user(app.library.accepted_connectors(), body.text("connector"))
    bound = await app.bindings.setup(user, body.text("identity"), body.text("account"), secret)
    return JSONResponse(binding_body(app, bound), status_code=201)


async def rebind(request: Request) -> Response:
    """Let a connector use an account as the connector now is: its bytes and its hosts."""
    body = await read_body(request, RebindBody)
    app = app_of(request)
    await require_passphrase(app, body)
    name = body.text("name")
    connector = body.text("connector") or app.bindings.get(name).connector
    user = find_user(app.library.accepted_connectors(), connector)
    return JSONResponse(binding_body(app, await app.bindings.rebind(name, user)))


async def revoke(request: Request) -> Response:
    """Delete an account from the vault. The service is not notified."""
    body = await read_body(request, RevokeBindingBody)
    await app_of(request).bindings.revoke(body.text("name"))
    return Response(status_code=204)


async def require_passphrase(app: App, body: RequestBody) -> None:
    """Check that *body* has the passphrase of the vault, which is unlocked.

    Raises:
        WrongPassphrase, RateLimited, VaultLocked, StorageUnavailable: it has not, or nobody can tell.
    """
    await app.vault_service.verify(Secret(body.text("passphrase")))


async def forget(request: Request) -> Response:
    """Have a person pick again which account the next call of an action uses."""
    body = await read_body(request, ForgetChoiceBody)
    app = app_of(request)
    await app.bindings.forget(body.text("name"), body.text("action"))
    return JSONResponse(binding_body(app, app.bindings.get(body.text("name"))))


def binding_body(app: App, binding: Binding) -> BindingBody:
    users = credential_users(app.library.accepted_connectors())
    accepted = {each.sha256 for each in app.library.ready()}
    return cast("BindingBody", account_body(account_view(binding, users, accepted)))


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/v1/bindings", "socket", list_bindings, {200: BindingsBody}),
    RouteSpec(
        "POST", "/v1/bindings", "socket", create_binding, {201: BindingBody}, CreateBindingBody
    ),
    RouteSpec("POST", "/v1/bindings/rebind", "socket", rebind, {200: BindingBody}, RebindBody),
    RouteSpec(
        "POST", "/v1/bindings/forget", "socket", forget, {200: BindingBody}, ForgetChoiceBody
    ),
    RouteSpec("POST", "/v1/bindings/revoke", "socket", revoke, {204: None}, RevokeBindingBody),
)


async def list_keys(request: Request) -> Response:
    """List the providers that have a key in the vault, and where each provider's requests go."""
    app = app_of(request)
    body: ModelKeysBody = {
        "items": [_key_body(app, each) for each in app.model_keys.all()],
        "base_urls": dict(base_urls(app.options.settings.gateway)),
    }
    return JSONResponse(body)


async def set_key(request: Request) -> Response:
    """Store a provider's key for the address that its requests go to; it needs the vault's passphrase."""
    body = await read_body(request, SetModelKeyBody)
    app = app_of(request)
    provider = find_provider(body.text("provider"))
    await require_passphrase(app, body)
    if not app.accepted_settings.count:
        raise Conflict(
            "config.toml may say where model requests go, and is not verified. Accept it in the console first."
        )
    base_url = base_urls(app.options.settings.gateway)[provider]
    if body.text("base_url") != base_url:
        raise Conflict(
            f"Requests to {provider} go to {base_url} now. Nothing was stored; start again."
        )
    key = await app.model_keys.set(provider, base_url, Secret(body.text("secret")))
    return JSONResponse(_key_body(app, key), status_code=201)


async def remove_key(request: Request) -> Response:
    """Delete a provider's key from the vault. The provider is not notified."""
    body = await read_body(request, RemoveModelKeyBody)
    await app_of(request).model_keys.remove(body.text("provider"))
    return Response(status_code=204)


def find_provider(name: str) -> Provider:
    """Return the provider *name*.

    Raises:
        InvalidRequest: there is none.
    """
    for each in PROVIDERS:
        if each == name:
            return each
    raise InvalidRequest(f"A provider is one of {', '.join(PROVIDERS)}.")


def _key_body(app: App, key: ModelKey) -> ModelKeyBody:
    return {
        "provider": key.provider,
        "base_url": key.base_url,
        "created_at": rfc3339(key.created_at) if key.created_at else None,
        "problem": key.problem(base_urls(app.options.settings.gateway)),
    }


MODEL_KEY_ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/v1/gateway/keys", "socket", list_keys, {200: ModelKeysBody}),
    RouteSpec("POST", "/v1/gateway/keys", "socket", set_key, {201: ModelKeyBody}, SetModelKeyBody),
    RouteSpec(
        "POST", "/v1/gateway/keys/remove", "socket", remove_key, {204: None}, RemoveModelKeyBody
    ),
)
