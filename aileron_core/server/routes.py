"""The routes (WIRE.md). Each says who may call it; `aileron_core.server.openapi` describes each."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from aileron_core.app import App
from aileron_core.clock import rfc3339
from aileron_core.connectors.json_depth import is_small
from aileron_core.errors import Forbidden, InvalidRequest, NotFound
from aileron_core.ids import APPROVAL_ID, SESSION_ID
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.runs import Call
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.server.auth import bearer_of, principal_of, proof
from aileron_core.server.client_claims import call_claims, client_claims
from aileron_core.server.error_responses import failure_response
from aileron_core.server.request_parsing import (
    flag,
    json_object,
    number,
    refuse_person_route,
    require_peer,
    require_session,
    text,
    whole_number,
)
from aileron_core.server.responses import (
    action_item,
    completed_body,
    pending_body,
    result_body,
)
from aileron_core.server.session_sockets import SessionSockets
from aileron_core.sessions.model import Session
from aileron_core.settings import AGENT_NAMES

__all__ = ["ROUTES", "Endpoint", "RouteSpec", "app_of"]

Endpoint = Callable[[Request], Awaitable[Response]]
_HEARTBEAT = 15.0
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec:
    """One route: where, who may call it, what does it."""

    method: Literal["GET", "POST"]
    path: str
    who: Literal["anybody", "session", "socket", "socket or its session", "a person"]
    summary: str
    endpoint: Endpoint


def app_of(request: Request) -> App:
    """Return the control app that the lifespan put into the state."""
    app: App = request.state.app
    return app


def _draining(request: Request) -> asyncio.Event:
    event: asyncio.Event = request.state.draining
    return event


async def health(request: Request) -> Response:
    """Say that it lives, and prove to a relay which console this is."""
    body: dict[str, Any] = {"status": "ok"}
    challenge = request.headers.get("aileron-challenge", "")
    key_id, _, nonce = challenge.partition(":")
    if key_id and 16 <= len(nonce) <= 128:
        session = app_of(request).sessions.by_key_id(key_id)
        address = request.scope.get("server")
        if session is not None and address and address[1] is not None:
            body["proof"] = proof(session.token_hash, nonce, f"{address[0]}:{address[1]}")
    return JSONResponse(body)


async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    document: dict[str, Any] = request.app.state.openapi
    return JSONResponse(document)


async def status(request: Request) -> Response:
    """Say how the console is, to the person's own command line."""
    require_peer(request)
    return JSONResponse(app_of(request).console.status())


async def open_session(request: Request) -> Response:
    """Open a session; its tokens are told here once."""
    peer = require_peer(request)
    body = await json_object(
        request, ("agent", "label", "cwd", "pid", "ttl_seconds", "launched", "contained")
    )
    ttl = number(body, "ttl_seconds", default=86400, least=1, most=30 * 86400)
    pid = whole_number(body, "pid", default=None, least=1, most=2**31)
    launched = flag(body, "launched")
    contained = flag(body, "contained")
    if contained and not launched:
        raise InvalidRequest("Only a launcher contains an agent: `contained` needs `launched`.")
    opened = await app_of(request).session_service.open(
        agent=text(body, "agent", most=64, least=1),
        label=text(body, "label", most=128, default=""),
        cwd=text(body, "cwd", most=4096),
        claimed_pid=pid,
        peer_pid=peer.pid,
        ttl=float(ttl or 86400),
        opened_by="contained" if contained else "launch" if launched else "relay",
    )
    told: dict[str, Any] = {
        "session_id": opened.session.session_id,
        "token": opened.token,
        "gateway_token": opened.gateway_token,
        "url": app_of(request).address.url,
        "expires_at": rfc3339(opened.session.expires_at),
    }
    if contained:
        sockets: SessionSockets = request.app.state.own_sockets
        told["socket"] = str(await sockets.open(opened.session.session_id))
    return JSONResponse(told, status_code=201, headers={"cache-control": "no-store"})


def _own_session(request: Request) -> str:
    """Return the session id in the path, if the caller is the home's socket or that session itself."""
    session_id: str = request.path_params["id"]
    principal = principal_of(request.scope)
    if principal.session is not None:
        if principal.session.session_id != session_id:
            raise NotFound("There is no such session of this token.")
        return session_id
    require_peer(request)
    if not SESSION_ID.fullmatch(session_id) or app_of(request).sessions.get(session_id) is None:
        raise NotFound(f"There is no open session {session_id[:40]!r}.")
    return session_id


async def hold_session(request: Request) -> Response:
    """Keep a stream open; its loss for 5 s ends the session."""
    session_id = _own_session(request)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    app, draining = app_of(request), _draining(request)

    async def beats() -> AsyncIterator[bytes]:
        try:
            await app.session_service.hold(session_id)
            yield b": held\n\n"
            while not draining.is_set():
                try:
                    async with asyncio.timeout(_HEARTBEAT):
                        await draining.wait()
                except TimeoutError:
                    yield b": held\n\n"
                if app.sessions.get(session_id) is None:
                    return
        finally:
            app.session_service.release(session_id, draining=draining.is_set())

    return StreamingResponse(beats(), media_type="text/event-stream")


async def end_session(request: Request) -> Response:
    """End a session; its open approvals stay, marked. Doing it again changes nothing."""
    session_id: str = request.path_params["id"]
    principal = principal_of(request.scope)
    if principal.session is not None and principal.session.session_id != session_id:
        raise NotFound("There is no such session of this token.")
    if principal.session is None:
        if await app_of(request).session_service.ended_by_token(
            session_id, bearer_of(request.scope)
        ):
            return Response(status_code=204)
        require_peer(request)
        if not SESSION_ID.fullmatch(session_id):
            raise NotFound("That is no session id.")
    await app_of(request).session_service.end(session_id, "its agent said so")
    return Response(status_code=204)


async def list_projects(request: Request) -> Response:
    """List the projects whose own settings a person accepted for a launch."""
    require_peer(request)
    return JSONResponse(
        {"items": [_project(request, pin) for pin in app_of(request).project_trust.all()]}
    )


async def accept_project(request: Request) -> Response:
    """Accept a project's own settings for launches of one agent, in exactly these bytes."""
    require_peer(request)
    body = await json_object(request, ("agent", "path", "digest"))
    agent, digest = text(body, "agent", most=64, least=1), text(body, "digest", most=64, least=64)
    if agent not in AGENT_NAMES:
        raise InvalidRequest(f"'agent' must be one of {', '.join(AGENT_NAMES)}.")
    if not _DIGEST.fullmatch(digest):
        raise InvalidRequest("'digest' must be a SHA-256, 64 hexadecimal digits.")
    path = text(body, "path", most=4096, least=1)
    pin = await app_of(request).project_trust.accept(agent, path, digest)
    return JSONResponse(_project(request, pin), status_code=201)


def _project(request: Request, pin: AcceptanceRecord) -> dict[str, str]:
    agent, _, path = pin.name.partition(" ")
    at = rfc3339(pin.accepted_at)
    return {"agent": agent, "path": path, "digest": pin.digest, "taken_at": at}


async def list_actions(request: Request) -> Response:
    """List the accepted actions, and what is wrong with the others."""
    session = principal_of(request.scope).session
    if session is None:
        require_peer(request)
    else:
        _note_client(request, session)
    library = app_of(request).library
    return JSONResponse(
        {
            "items": [action_item(action) for action in library.ready()],
            "load_errors": [
                {
                    "file": problem.file,
                    "line": problem.line,
                    "key": problem.key,
                    "class": problem.class_,
                    "message": problem.message,
                }
                for problem in library.problems()
            ],
        }
    )


def _note_client(request: Request, session: Session) -> None:
    """Note what the MCP client behind a request says of itself, where there is one."""
    if said := client_claims(request.scope):
        app_of(request).session_service.claimed(session.session_id, said)


async def get_action(request: Request) -> Response:
    """Return one accepted action."""
    if principal_of(request.scope).session is None:
        require_peer(request)
    name: str = request.path_params["name"]
    for action in app_of(request).library.ready():
        if action.name == name:
            return JSONResponse(action_item(action))
    raise NotFound(
        f"There is no accepted action {name[:80]!r}. `aileron action list` shows what lies there."
    )


async def run_action(request: Request) -> Response:
    """Run an action, or put it before a person."""
    session = require_session(request)
    body = await json_object(request, ("args", "idempotency_key"))
    key = text(body, "idempotency_key", most=128, default="") or None
    if "idempotency_key" in body and key is None:
        raise InvalidRequest("'idempotency_key' must be a string of 1 to 128 characters.")
    if "args" not in body:
        raise InvalidRequest(
            "'args' is missing: an object with the action's arguments, {} for none."
        )
    call = Call(
        session=session,
        action=request.path_params["name"],
        args=body["args"],
        idempotency_key=key,
        claims=call_claims(request.scope),
    )
    app = app_of(request)
    _note_client(request, session)
    answer = await app.gate.run(call)
    row = answer.row
    if row.state is RunState.COMPLETED:
        await app.approvals.deliver(row.approval_id)
        return await _answered(row, completed_body(row))
    if row.gated:
        return JSONResponse(
            pending_body(row, app.address.url, attached=answer.attached), status_code=202
        )
    assert row.failure is not None
    return failure_response(row.failure)


async def _answered(row: RunRecord, body: dict[str, Any]) -> Response:
    """Return *body* as JSON; with a large output it is written beside the loop."""
    headers = {"cache-control": "no-store"}
    if is_small(row.output):
        return JSONResponse(body, headers=headers)
    return await asyncio.to_thread(JSONResponse, body, headers=headers)


def _approval_id(request: Request) -> str:
    approval_id: str = request.path_params["id"]
    if not APPROVAL_ID.fullmatch(approval_id):
        raise NotFound(f"There is no approval {approval_id[:40]} of this session.")
    return approval_id


async def approval_result(request: Request) -> Response:
    """Return how one of the session's own approvals stands, waiting for its end for a while."""
    session = require_session(request)
    approval_id = _approval_id(request)
    wait = _wait(request.query_params.get("wait"))
    row = await _until_end_or_drain(request, session.session_id, approval_id, wait)
    # HEAD tells the agent nothing of the end, and nothing reaches one that hung up.
    if row.state in FINAL and request.method != "HEAD" and not await request.is_disconnected():
        await app_of(request).approvals.deliver(approval_id)
    return await _answered(row, result_body(row))


async def _until_end_or_drain(
    request: Request, session_id: str, approval_id: str, wait: float
) -> RunRecord:
    """Long-poll, but neither for a client that hung up nor in a console that wants to stop."""
    app, loop = app_of(request), asyncio.get_running_loop()
    row = await app.approvals.result(session_id, approval_id, 0)
    if row.state in FINAL or wait == 0:
        return row
    deadline = loop.time() + wait
    with app.publisher.waiters.waiting(approval_id):
        while not _draining(request).is_set() and not await request.is_disconnected():
            left = deadline - loop.time()
            row = await app.approvals.result(session_id, approval_id, max(0.0, min(left, 1.0)))
            if row.state in FINAL or left <= 0:
                break
    return row


def _wait(raw: str | None) -> float:
    if raw is None:
        return 0.0
    if not raw.isascii() or not raw.isdigit() or len(raw) > 2 or int(raw) > 60:
        raise InvalidRequest("'wait' must be whole seconds from 0 to 60.")
    return float(raw)


async def withdraw(request: Request) -> Response:
    """Withdraw one of the session's own approvals."""
    session = require_session(request)
    body = await json_object(request, ("reason",))
    reason = text(body, "reason", most=2000, default="")
    row = await app_of(request).approvals.withdraw(
        session.session_id, _approval_id(request), reason
    )
    return JSONResponse(result_body(row))


async def persons(request: Request) -> Response:
    """Refuse what only a person decides and reads; nothing is looked up."""
    refuse_person_route(request)
    raise Forbidden("Only a person decides this.")


_REVIEW = """<!doctype html>
<meta charset="utf-8"><title>Aileron</title>
<style>body{font:16px/1.5 system-ui;max-width:36em;margin:4em auto;padding:0 1em}</style>
<h1>This is answered in the console</h1>
<p>An agent asked for something that a person has to approve. Look at it and answer it in the
terminal where <code>aileron console</code> runs. This page shows nothing and decides nothing.</p>
"""


async def review(_request: Request) -> Response:
    """Show the same page for every id."""
    headers = {
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
        "x-frame-options": "DENY",
    }
    return HTMLResponse(_REVIEW, headers=headers)


def _route(
    method: Literal["GET", "POST"],
    path: str,
    who: Literal["anybody", "session", "socket", "socket or its session", "a person"],
    endpoint: Endpoint,
) -> RouteSpec:
    summary = (endpoint.__doc__ or "").strip().splitlines()[0]
    return RouteSpec(method=method, path=path, who=who, summary=summary, endpoint=endpoint)


ROUTES: tuple[RouteSpec, ...] = (
    _route("GET", "/v1/health", "anybody", health),
    _route("GET", "/v1/openapi.json", "anybody", openapi),
    _route("GET", "/v1/status", "socket", status),
    _route("POST", "/v1/sessions", "socket", open_session),
    _route("GET", "/v1/sessions/{id}/hold", "socket or its session", hold_session),
    _route("POST", "/v1/sessions/{id}/end", "socket or its session", end_session),
    _route("GET", "/v1/projects", "socket", list_projects),
    _route("POST", "/v1/projects", "socket", accept_project),
    _route("GET", "/v1/actions", "session", list_actions),
    _route("GET", "/v1/actions/{name}", "session", get_action),
    _route("POST", "/v1/actions/{name}/run", "session", run_action),
    _route("GET", "/v1/action-approvals/{id}/result", "session", approval_result),
    _route("POST", "/v1/action-approvals/{id}/withdraw", "session", withdraw),
    _route("GET", "/v1/action-approvals", "a person", persons),
    _route("GET", "/v1/action-approvals/{id}", "a person", persons),
    _route("POST", "/v1/action-approvals/{id}/decide", "a person", persons),
    _route("GET", "/v1/audit", "a person", persons),
    _route("GET", "/v1/audit/{run}", "a person", persons),
    _route("GET", "/review/{id}", "anybody", review),
)
