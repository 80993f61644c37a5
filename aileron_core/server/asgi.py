"""The ASGI application: the guard, the routes, the gateway and what is mounted (`/mcp`)."""

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypedDict

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from aileron_core.app import App
from aileron_core.errors import (
    AileronError,
    Failure,
    InternalError,
    InvalidRequest,
    NotFound,
    Unauthorized,
)
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.attach_routes import AttachedStream
from aileron_core.server.auth import Guard
from aileron_core.server.error_responses import error_response, failure_response
from aileron_core.server.gateway.app import Gateway
from aileron_core.server.gateway.augmenting import AugmentRoom
from aileron_core.server.gateway.client_request import CLIENT_REQUEST
from aileron_core.server.gateway.connect import Dialer
from aileron_core.server.gateway.forwarding import Inspector
from aileron_core.server.request_parsing import require_session
from aileron_core.server.review_items import ReviewDrawing
from aileron_core.server.review_routes import ReviewRoom
from aileron_core.server.routes import ROUTES


class LifespanState(TypedDict):
    """The state that the lifespan adds to each request."""

    app: App
    agents: AgentApi


def create_app(
    app: App,
    mounts: Mapping[str, ASGIApp] | None = None,
    *,
    agents: AgentApi | None = None,
    dialer: Dialer | None = None,
    review: ReviewDrawing | None = None,
) -> Starlette:
    """Return the ASGI application over *app*.

    Args:
        mounts: exact path -> application that needs a session's token (`/mcp`).
        agents: the same object that the mounts use; a new one if they use none.
        review: what draws calls for the review page; without it no call is shown there.
        dialer: how the gateway reaches upstreams; another one is for tests, in process only.
    """
    served = agents or AgentApi(app)

    @contextlib.asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncGenerator[LifespanState, None]:
        opened = Gateway(app, dialer, lambda: _augment_mode(app, served), _inspector(app))
        with contextlib.closing(opened) as gateway:
            starlette.state.gateway = gateway
            yield {"app": app, "agents": served}

    routes: list[BaseRoute] = [
        Route(spec.path, spec.serve, methods=[spec.method]) for spec in ROUTES
    ]
    for path, mounted in (mounts or {}).items():
        # A class instance keeps Starlette from wrapping the application as an endpoint function.
        routes.append(Route(path, _RequireSession(mounted)))
    starlette = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(
                Guard,
                agents=served,
                hosts=lambda: app.address.hosts,
                devices=app.devices,
                # A lambda: the app has no session service yet.
                on_containment=lambda session_id, containment: (  # noqa: PLW0108
                    app.session_service.observe_containment(session_id, containment)
                ),
            ),
            Middleware(_UnexpectedErrors),
        ],
        exception_handlers={AileronError: _ours, HTTPException: _http},
    )
    # A path with a slash too many is another path: 404 in the one error body, no redirect.
    starlette.router.redirect_slashes = False
    starlette.state.openapi = functools.cache(_document)
    starlette.state.draining = served.draining
    starlette.state.attached = dict[str, AttachedStream]()
    starlette.state.review = ReviewRoom(review) if review is not None else None
    return starlette


# Neither is loaded where no session and no setting asks for it.


def _document() -> dict[str, Any]:
    from aileron_core.server.openapi import document  # most consoles are never asked for it

    return document()


def _augment_mode(app: App, agents: AgentApi) -> AugmentRoom:
    from aileron_core.server.augment import room

    return room.AugmentRoom(app, agents)


def _inspector(app: App) -> Inspector | None:
    if not app.options.settings.gateway.inspect:
        return None
    from aileron_core.server.inspection import AnswerInspector

    return AnswerInspector(app.tool_calls)


class GatewayDispatch:
    """The outermost application: passes the gateway's requests to it before any middleware."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.get("extensions")
        if extensions and CLIENT_REQUEST in extensions:
            gateway: Gateway = self._app.state.gateway
            await gateway(scope, receive)
        else:
            await self._app(scope, receive, send)


class _RequireSession:
    """A mounted application that only a session's token reaches."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            require_session(scope)
        except Unauthorized as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _UnexpectedErrors:
    """Answers an unexpected exception with the one error body, which says nothing of the exception."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_watched(message: Any) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_watched)
        except Exception as error:  # noqa: BLE001 - the HTTP edge
            if started:
                raise InternalError("the response ended early") from None
            await error_response(error)(scope, receive, send)


async def _ours(_request: Request, error: Exception) -> Response:
    return error_response(error)


def _path(request: Request) -> str:
    path: str = request.scope["path"]  # not `request.url`: that is made from the Host header too
    return path[:200]


_HTTP: Mapping[int, Callable[[Request], Failure]] = {
    404: lambda request: NotFound(f"There is no route {_path(request)}.").to_failure(),
    405: lambda request: InvalidRequest(
        f"{_path(request)} does not support {request.method}."
    ).to_failure(),
}


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    make = _HTTP.get(error.status_code)
    failure = make(request) if make else InvalidRequest(error.detail).to_failure()
    response = failure_response(failure, error.status_code)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
