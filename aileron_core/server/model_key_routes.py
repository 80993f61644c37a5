"""The routes of model providers' keys, on the home's socket alone: a key comes in a body, and is in no answer."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core.app import App
from aileron_core.clock import rfc3339
from aileron_core.credentials.model_keys import ModelKey
from aileron_core.errors import Conflict, InvalidRequest
from aileron_core.server.binding_routes import require_passphrase
from aileron_core.server.bodies import (
    ModelKeyBody,
    ModelKeysBody,
    RemoveModelKeyBody,
    SetModelKeyBody,
)
from aileron_core.server.gateway.providers import PROVIDERS, Provider
from aileron_core.server.gateway.upstreams import base_urls
from aileron_core.server.request_parsing import app_of, read_body
from aileron_core.server.route_spec import RouteSpec
from aileron_core.vault.secret import Secret


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


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/v1/gateway/keys", "socket", list_keys, {200: ModelKeysBody}),
    RouteSpec("POST", "/v1/gateway/keys", "socket", set_key, {201: ModelKeyBody}, SetModelKeyBody),
    RouteSpec(
        "POST", "/v1/gateway/keys/remove", "socket", remove_key, {204: None}, RemoveModelKeyBody
    ),
)
