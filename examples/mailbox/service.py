"""The routes: Gmail's drafts, and two of our own to look inside and to make trouble."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from examples.mailbox.state import Draft, State

__all__ = ["HOST", "build_app"]

HOST = "gmail.googleapis.com"
_BASE = "/gmail/v1/users/me/drafts"
_PHRASE = {
    400: ("Invalid argument", "INVALID_ARGUMENT"),
    404: ("Requested entity was not found.", "NOT_FOUND"),
    429: ("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
    500: ("Internal error encountered.", "INTERNAL"),
    503: ("The service is currently unavailable.", "UNAVAILABLE"),
}
Handler = Callable[[State, Request], Awaitable[Response]]


class _LostAnswer(Response):
    """Begins an answer and hangs up."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head of an answer whose body never comes: the server then closes the connection."""
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
        )


def _error(status: int, message: str | None = None) -> JSONResponse:
    phrase, code = _PHRASE.get(status, ("Error", "UNKNOWN"))
    body = {"code": status, "message": message or phrase, "status": code}
    return JSONResponse({"error": body}, status_code=status)


async def _object(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ValueError("Invalid JSON payload received.")
    return body


async def _list(state: State, request: Request) -> Response:
    query = request.query_params
    try:
        limit = min(max(int(query.get("maxResults", "100")), 1), 500)
        start = int(query.get("pageToken", "0"))
    except ValueError:
        return _error(400)
    found = state.search(query.get("q", ""))
    page = found[start : start + limit]
    answer: dict[str, Any] = {"resultSizeEstimate": len(found)}
    if page:
        answer["drafts"] = [draft.brief() for draft in page]
    if start + limit < len(found):
        answer["nextPageToken"] = str(start + limit)
    return JSONResponse(answer)


async def _get(state: State, request: Request) -> Response:
    draft = state.drafts.get(request.path_params["id"])
    return _error(404) if draft is None else JSONResponse(draft.full())


async def _create(state: State, request: Request) -> Response:
    message = (await _object(request)).get("message")
    if not isinstance(message, dict) or not isinstance(message.get("raw"), str):
        return _error(400)
    return JSONResponse(state.create(message["raw"]).brief())


async def _update(state: State, request: Request) -> Response:
    message = (await _object(request)).get("message")
    if not isinstance(message, dict) or not isinstance(message.get("raw"), str):
        return _error(400)
    draft: Draft | None = state.drafts.get(request.path_params["id"])
    if draft is None:
        return _error(404)
    state.replace(draft.id, message["raw"])
    return JSONResponse(state.drafts[draft.id].brief())


async def _delete(state: State, request: Request) -> Response:
    if state.drafts.pop(request.path_params["id"], None) is None:
        return _error(404)
    return Response(status_code=204)


async def _send(state: State, request: Request) -> Response:
    draft_id = (await _object(request)).get("id")
    sent = state.send(draft_id) if isinstance(draft_id, str) else None
    return _error(404) if sent is None else JSONResponse(sent)


def build_app(state: State) -> Starlette:
    """Return the service over *state*."""

    def gmail(op: str, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            path = request.scope["raw_path"].decode("ascii").partition("?")[0]
            state.requests.append({"method": request.method, "path": path})
            if request.headers.get("host") != HOST:
                return _error(404, f"There is no such host here: the Host header must be {HOST}.")
            await asyncio.sleep(state.trouble.delay(op))
            if op in state.trouble.hang:
                # Until the client goes away or the mailbox ends.
                while not (state.closing.is_set() or await request.is_disconnected()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            if (status := state.trouble.next_failure(op)) is not None:
                return _error(status)
            if op in state.trouble.garbage:
                return Response(b"<html>\xff not JSON", media_type="text/html")
            try:
                answer = await handler(state, request)
            except ValueError as error:
                return _error(400, str(error))
            return answer if state.answered(op) else _LostAnswer()

        return route

    async def look(_: Request) -> Response:
        return JSONResponse(state.to_json())

    async def control(request: Request) -> Response:
        try:
            state.apply(await _object(request))
        except (ValueError, KeyError, TypeError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse({"ok": True})

    one = _BASE + "/{id:path}"
    return Starlette(
        routes=[
            Route(_BASE + "/send", gmail("send", _send), methods=["POST"]),
            Route(_BASE, gmail("list", _list), methods=["GET"]),
            Route(_BASE, gmail("create", _create), methods=["POST"]),
            Route(one, gmail("get", _get), methods=["GET"]),
            Route(one, gmail("update", _update), methods=["PUT"]),
            Route(one, gmail("delete", _delete), methods=["DELETE"]),
            Route("/_state", look, methods=["GET"]),
            Route("/_control", control, methods=["POST"]),
        ]
    )
