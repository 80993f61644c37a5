"""The routes that authorize accounts of kind oauth2, on the home's socket alone: no token is in an answer."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core.clock import rfc3339
from aileron_core.console_port.account_views import LoginView
from aileron_core.credentials.accounts import find_user
from aileron_core.credentials.authorization import AuthorizationRequest
from aileron_core.credentials.oauth_tokens import OAuthClient
from aileron_core.server.binding_routes import binding_body, require_passphrase
from aileron_core.server.bodies import (
    AuthorizationBody,
    BeginAuthorizationBody,
    BindingBody,
    CancelAuthorizationBody,
    FinishAuthorizationBody,
    WaitAuthorizationBody,
)
from aileron_core.server.request_parsing import app_of, read_body, wait_seconds
from aileron_core.server.route_spec import RouteSpec
from aileron_core.vault.secret import Secret


async def begin(request: Request) -> Response:
    """Begin to authorize an account at its service; nothing is stored before `finish`.

    It needs the vault's passphrase. The id that it answers then stands for it: nobody else has it.
    """
    body = await read_body(request, BeginAuthorizationBody)
    app = app_of(request)
    await require_passphrase(app, body)
    replaces, secret = body.text("replaces"), body.text("client_secret")
    name = body.text("connector")
    if replaces:
        name = name or app.bindings.get(replaces).connector
    client = body.text("client_id")
    view = await app.authorizations.begin(
        AuthorizationRequest(
            user=find_user(app.library.accepted_connectors(), name),
            identity=body.text("identity"),
            replaces=replaces,
            client=OAuthClient(client_id=client, client_secret=Secret(secret) if secret else None)
            if client
            else None,
            token_host=body.text("token_host"),
            device=body.flag("device"),
        )
    )
    return JSONResponse(_body(view), status_code=201)


async def wait(request: Request) -> Response:
    """Return how an authorization is, once it does not wait any more or after `?wait=` seconds."""
    body = await read_body(request, WaitAuthorizationBody)
    found = await app_of(request).authorizations.wait(body.text("id"), wait_seconds(request))
    return JSONResponse(_body(found))


async def finish(request: Request) -> Response:
    """Store the account, of which a person saw whose it is, or says so."""
    body = await read_body(request, FinishAuthorizationBody)
    app = app_of(request)
    bound = await app.authorizations.finish(body.text("id"), body.text("account"))
    return JSONResponse(binding_body(app, bound), status_code=201)


async def cancel(request: Request) -> Response:
    """Forget an authorization, and all that the service gave for it."""
    app_of(request).authorizations.cancel(
        (await read_body(request, CancelAuthorizationBody)).text("id")
    )
    return Response(status_code=204)


def _body(view: LoginView) -> AuthorizationBody:
    return {
        "id": view.login_id,
        "state": view.state,
        "url": view.url,
        "user_code": view.user_code,
        "token_host": view.token_host,
        "expires_at": rfc3339(view.expires_at),
        "scopes": view.scopes,
        "account": view.account,
        "granted": view.granted,
        "missing": view.missing,
        "ends_at": None if view.ends_at is None else rfc3339(view.ends_at),
        "problem": "" if view.problem is None else view.problem.message,
    }


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec(
        "POST",
        "/v1/bindings/oauth",
        "socket",
        begin,
        {201: AuthorizationBody},
        BeginAuthorizationBody,
    ),
    RouteSpec(
        "POST",
        "/v1/bindings/oauth/wait",
        "socket",
        wait,
        {200: AuthorizationBody},
        WaitAuthorizationBody,
    ),
    RouteSpec(
        "POST",
        "/v1/bindings/oauth/finish",
        "socket",
        finish,
        {201: BindingBody},
        FinishAuthorizationBody,
    ),
    RouteSpec(
        "POST", "/v1/bindings/oauth/cancel", "socket", cancel, {204: None}, CancelAuthorizationBody
    ),
)
