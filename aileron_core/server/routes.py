"""The routes: each reads a request, asks the core, and writes the answer.

`ROUTES` says who may call each; `aileron_core.server.openapi` describes them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from aileron_core.agent_names import AGENT_NAMES
from aileron_core.app import App
from aileron_core.canonical import Json, dumped
from aileron_core.clock import rfc3339
from aileron_core.connectors.protocol import is_small
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.credentials.upstreams import find_provider
from aileron_core.errors import Failure, Forbidden, InvalidRequest, NotFound, Problem, Unauthorized
from aileron_core.ids import SESSION_ID
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.proxy_settings import PluginTools, entries, plugin_tools
from aileron_core.server import (
    attach_routes,
    intent_routes,
    review_routes,
    tool_routes,
)
from aileron_core.server.agent_api import AgentApi, ClientClaims
from aileron_core.server.auth import bearer_token, challenge_proof, request_principal
from aileron_core.server.bodies import (
    DIGEST_PATTERN,
    AcceptProjectBody,
    ActionBody,
    ActionsBody,
    CheckPluginToolsBody,
    CompletedBody,
    HealthBody,
    OpenedSessionBody,
    OpenSessionBody,
    PendingBody,
    PluginToolProblemsBody,
    ProjectBody,
    ProjectsBody,
    RefusedHostBody,
    ResultBody,
    RunBody,
    StatusBody,
    WithdrawBody,
    load_error,
)
from aileron_core.server.error_responses import STATUS, failure_response
from aileron_core.server.request_parsing import (
    RequestBody,
    app_of,
    read_body,
    require_peer,
    require_session,
    wait_seconds,
    watch_disconnect,
)
from aileron_core.server.route_spec import RouteSpec
from aileron_core.server.sockets import SessionSockets
from aileron_core.settings import is_base_url
from aileron_core.tasks import any_set
from aileron_core.tracing.spans import remote_span

_HEARTBEAT = 15.0
_PART = 64 * 1024


def _agents(request: Request) -> AgentApi:
    agents: AgentApi = request.state.agents
    return agents


def _json(body: Mapping[str, object], status: int = 200, **headers: str) -> JSONResponse:
    """Return *body* as the answer; `_` in the name of a header stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse(body, status_code=status, headers=named)


async def health(request: Request) -> Response:
    """Answer that the console runs, and prove to a relay which console it is."""
    body: HealthBody = {"status": "ok"}
    challenge = request.headers.get("aileron-challenge", "")
    key_id, _, nonce = challenge.partition(":")
    if key_id and 16 <= len(nonce) <= 128:
        session = app_of(request).sessions.by_key_id(key_id)
        address = request.scope.get("server")
        if session is not None and address and address[1] is not None:
            body["proof"] = challenge_proof(session.token_hash, nonce, f"{address[0]}:{address[1]}")
    return _json(body)


async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    document: Callable[[], dict[str, Any]] = request.app.state.openapi
    return _json(document())


async def status(request: Request) -> Response:
    """Return the state of the console, for the person's own command line."""
    return _json(app_of(request).console.status())


async def open_session(request: Request) -> Response:
    """Open a session; its tokens are in this answer and in no other."""
    peer = require_peer(request)
    body = await read_body(request, OpenSessionBody)
    ttl = body.number("ttl_seconds")
    assert ttl is not None  # it has a default
    pid = body.whole_number("pid")
    launched = body.flag("launched")
    contained = body.flag("contained")
    if contained and not launched:
        raise InvalidRequest("`contained` is only allowed together with `launched`.")
    terms = _asked_terms(app_of(request), body, launched=launched, contained=contained)
    opened = await app_of(request).session_service.open(
        agent=body.text("agent"),
        label=body.text("label"),
        cwd=body.text("cwd"),
        claimed_pid=pid,
        peer_pid=peer.pid,
        ttl=float(ttl),
        opened_by="contained" if contained else "launch" if launched else "relay",
        terms=terms,
    )
    answer: OpenedSessionBody = {
        "session_id": opened.session.session_id,
        "token": opened.token,
        "gateway_token": opened.gateway_token,
        "url": app_of(request).address.url,
        "expires_at": rfc3339(opened.session.expires_at),
    }
    if contained:
        sockets: SessionSockets = request.app.state.session_sockets
        answer["socket"] = str(await sockets.open(opened.session.session_id))
    if terms.key_providers:
        answer["key_providers"] = terms.key_providers
        answer["placeholder"] = opened.placeholder
    return _json(answer, 201, cache_control="no-store")


def _asked_terms(app: App, body: RequestBody, *, launched: bool, contained: bool) -> SessionTerms:
    """Return the terms in a request, with those of the keys asked for that the vault has.

    Raises:
        InvalidRequest: one is something else, or not for such a session.
    """
    asked = SessionTerms(
        key_providers=body.texts("key_providers"),
        network=str(body.content.get("network", "")),
        hosts=body.texts("hosts"),
        writes=body.texts("writes"),
        builtins=str(body.content.get("builtins", "")),
        plugin_tools=body.texts("plugin_tools"),
        own_servers=body.texts("own_servers"),
        augment=body.flag("augment"),
        base_url=body.text("base_url"),
    )
    if asked.augment and not launched:
        raise InvalidRequest("`augment` is only allowed together with `launched`.")
    # A key of the vault goes to the address that it was stored for, and to no other.
    if asked.base_url and (
        not asked.augment or asked.key_providers or not is_base_url(asked.base_url)
    ):
        raise InvalidRequest(
            "'base_url' is a base URL, with `augment` and without `key_providers`."
        )
    if asked.network not in ("", "all", "hosts", "offline") or (asked.network and not contained):
        raise InvalidRequest("'network' is all, hosts or offline, together with `contained`.")
    if asked.builtins not in ("", "beside", "instead") or (asked.builtins and not launched):
        raise InvalidRequest("'builtins' is beside or instead, together with `launched`.")
    if asked.plugin_tools and not launched:
        raise InvalidRequest("'plugin_tools' is only allowed together with `launched`.")
    exposed = _plugin_tools(entries(asked.plugin_tools))
    if problems := app.library.plugin_tool_problems(exposed):
        raise InvalidRequest("\n".join(map(str, problems)))
    providers = {find_provider(each) for each in asked.key_providers}
    keys = app.model_keys.usable()
    return replace(asked, key_providers=tuple(each for each in keys if each in providers))


def _plugin_tools(listed: object) -> tuple[PluginTools, ...]:
    """Return the entries of a list `plugin_tools`.

    Raises:
        InvalidRequest: it is something else.
    """
    problems: list[Problem] = []
    found = plugin_tools(listed, problems)
    if problems:
        raise InvalidRequest("\n".join(map(str, problems)))
    return found


async def check_plugin_tools(request: Request) -> Response:
    """Return why a session would not get these ops of connectors as tools."""
    body = await read_body(request, CheckPluginToolsBody)
    problems = app_of(request).library.plugin_tool_problems(
        _plugin_tools(body.content.get("plugin_tools", []))
    )
    return _json({"problems": [load_error(each) for each in problems]})


def _own_session(request: Request) -> str:
    """Return the session id in the path, if the caller is the home's socket or that session itself."""
    session_id: str = request.path_params["id"]
    principal = request_principal(request.scope)
    if principal.session is not None:
        if principal.session.session_id != session_id:
            raise NotFound("This is not the session of this token.")
        return session_id
    require_peer(request)
    if not SESSION_ID.fullmatch(session_id) or app_of(request).sessions.get(session_id) is None:
        raise NotFound(f"There is no open session {session_id[:40]!r}.")
    return session_id


async def hold_session(request: Request) -> Response:
    """Keep a stream open; the session ends 5 s after it is lost."""
    session_id = _own_session(request)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    app, draining = app_of(request), _agents(request).draining
    hosts = app.sessions.hosts

    async def beats() -> AsyncIterator[bytes]:
        sent = 0
        try:
            await app.session_service.hold(session_id)
            yield b": held\n\n"
            while not draining.is_set():
                changed, allowed = hosts.changed, hosts.of(session_id).allowed
                for host in allowed[sent:]:
                    yield f"data: {host}\n\n".encode("ascii")
                sent = len(allowed)
                if not await any_set(draining, changed, seconds=_HEARTBEAT):
                    yield b": held\n\n"
                if app.sessions.get(session_id) is None:
                    return
        finally:
            app.session_service.release(session_id, draining=draining.is_set())

    return StreamingResponse(beats(), media_type="text/event-stream")


async def report_refused_host(request: Request) -> Response:
    """Note that the session's sandbox refused its agent a host."""
    session_id = _own_session(request)
    body = await read_body(request, RefusedHostBody)
    host, problem = body.text("host"), body.text("problem")
    if not problem and not re.fullmatch(r"[a-z0-9_.-]{1,253}:[1-9][0-9]{0,4}", host):
        # What a person can allow has to be readable at a glance.
        raise InvalidRequest(
            "'host' must be NAME:PORT in lower case, or 'problem' say why it is not."
        )
    await app_of(request).session_service.note_refused_host(session_id, host, problem)
    return Response(status_code=204)


async def end_session(request: Request) -> Response:
    """End a session; its open approvals stay, marked. Ending it again changes nothing."""
    session_id: str = request.path_params["id"]
    principal = request_principal(request.scope)
    if principal.session is not None and principal.session.session_id != session_id:
        raise NotFound("This is not the session of this token.")
    if principal.session is None:
        if await app_of(request).session_service.has_ended(session_id, bearer_token(request.scope)):
            return Response(status_code=204)
        require_peer(request)
        if not SESSION_ID.fullmatch(session_id):
            raise NotFound("That is not a session id.")
    await app_of(request).session_service.end(session_id, "the agent ended it")
    return Response(status_code=204)


async def list_projects(request: Request) -> Response:
    """List the projects whose own settings a person accepted for a launch."""
    app = app_of(request)
    settings = app.accepted_settings.settings_in_force
    body: ProjectsBody = {
        "items": [_project(record) for record in app.project_trust.records()],
        "settings": settings if app.vault.state != "absent" else None,
    }
    return _json(body)


async def accept_project(request: Request) -> Response:
    """Accept a project's own settings for launches of one agent, in exactly these bytes."""
    body = await read_body(request, AcceptProjectBody)
    agent, digest = body.text("agent"), body.text("digest")
    if agent not in AGENT_NAMES:
        raise InvalidRequest(f"'agent' must be one of {', '.join(AGENT_NAMES)}.")
    if not re.fullmatch(DIGEST_PATTERN, digest):
        raise InvalidRequest("'digest' must be a SHA-256 hash: 64 hexadecimal digits.")
    record = await app_of(request).project_trust.accept(
        agent, body.text("path"), digest, missing_checks=body.flag("missing_checks")
    )
    return _json(_project(record), 201)


def _project(record: AcceptanceRecord) -> ProjectBody:
    agent, _, path = record.name.partition(" ")
    at = rfc3339(record.accepted_at)
    return {"agent": agent, "path": path, "digest": record.digest, "taken_at": at}


async def list_actions(request: Request) -> Response:
    """List the accepted actions, and what is wrong with the others."""
    session = request_principal(request.scope).session
    if session is None:
        require_peer(request)
    return _json(_agents(request).list_actions(session))


async def get_action(request: Request) -> Response:
    """Return one accepted action."""
    if request_principal(request.scope).session is None:
        require_peer(request)
    return _json(_agents(request).action(request.path_params["name"]))


async def run_action(request: Request) -> Response:
    """Run an action, or put it before a person."""
    session = require_session(request.scope)
    body = await read_body(request, RunBody)
    key = body.text("idempotency_key") or None
    if "args" not in body.content:
        raise InvalidRequest(
            "'args' is missing. Send an object with the action's arguments, or {} if it has none."
        )
    name: str = request.path_params["name"]
    args = body.content["args"]
    claims = ClientClaims(parent=remote_span(request.headers.getlist("traceparent")))
    answer = await _agents(request).run(session, name, args, idempotency_key=key, claims=claims)
    if isinstance(answer, Failure):
        if is_small(answer.details):  # of what a server's tool returned, they have all
            return failure_response(answer)
        return await _in_parts({"error": answer.to_json()}, STATUS.get(answer.class_, 500))
    if answer["status"] == "pending_approval":
        return _json(answer, 202)
    return await _output_response(answer)


async def _output_response(body: CompletedBody | ResultBody) -> Response:
    # A small output may come from large ones of earlier steps.
    parts = {name: body.get(name) for name in ("output", "steps", "failure")}
    if is_small(cast("Json", parts)):
        return JSONResponse(body, headers={"cache-control": "no-store"})
    return await _in_parts(body)


async def _in_parts(body: object, status: int = 200) -> Response:
    """Return a large *body* as the answer, written off the loop, and sent in parts between which others have their turn."""
    data = await asyncio.to_thread(lambda: str(dumped(body, in_turns=True)).encode())

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(data), _PART):
            yield data[at : at + _PART]
            await asyncio.sleep(0)

    headers = {"cache-control": "no-store", "content-length": str(len(data))}
    return StreamingResponse(parts(), status, headers, media_type="application/json")


async def approval_result(request: Request) -> Response:
    """Return the state of one of the session's own approvals, waiting for its end for a while."""
    session = require_session(request.scope)
    wait = wait_seconds(request)
    async with watch_disconnect(request) as gone:
        body = await _agents(request).result(
            session,
            request.path_params["id"],
            wait=wait,
            gone=gone,
            deliver=request.method != "HEAD",  # its answer has no body, so the agent learns nothing
        )
    return await _output_response(body)


async def withdraw(request: Request) -> Response:
    """Withdraw one of the session's own approvals."""
    session = require_session(request.scope)
    reason = (await read_body(request, WithdrawBody)).text("reason")
    return _json(await _agents(request).withdraw(session, request.path_params["id"], reason))


async def person_only(request: Request) -> Response:
    """Refuse what only a person may decide and read, without looking anything up."""
    is_session = request_principal(request.scope).session is not None
    refusal = Forbidden if is_session else Unauthorized
    raise refusal("Only a person can read or decide this, in the console.")


_APPROVALS = "/v1/action-approvals"

ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/v1/health", "anybody", health, {200: HealthBody}),
    RouteSpec("GET", "/v1/openapi.json", "anybody", openapi, {200: dict}),
    RouteSpec("GET", "/v1/status", "socket", status, {200: StatusBody}),
    RouteSpec("POST", "/v1/sessions", "socket", open_session, {201: OpenedSessionBody}, OpenSessionBody),
    RouteSpec("GET", "/v1/sessions/{id}/hold", "socket or its session", hold_session, {200: None}),
    RouteSpec("POST", "/v1/sessions/{id}/end", "socket or its session", end_session, {204: None}),
    RouteSpec("POST", "/v1/sessions/{id}/refused-hosts", "socket", report_refused_host, {204: None}, RefusedHostBody),
    RouteSpec("POST", "/v1/plugin-tools", "socket", check_plugin_tools, {200: PluginToolProblemsBody}, CheckPluginToolsBody),
    RouteSpec("GET", "/v1/projects", "socket", list_projects, {200: ProjectsBody}),
    RouteSpec("POST", "/v1/projects", "socket", accept_project, {201: ProjectBody}, AcceptProjectBody),
    *intent_routes.ROUTES,
    *tool_routes.ROUTES,
    RouteSpec("GET", "/v1/actions", "session", list_actions, {200: ActionsBody}),
    RouteSpec("GET", "/v1/actions/{name}", "session", get_action, {200: ActionBody}),
    RouteSpec("POST", "/v1/actions/{name}/run", "session", run_action, {200: CompletedBody, 202: PendingBody}, RunBody),
    RouteSpec("GET", f"{_APPROVALS}/{{id}}/result", "session", approval_result, {200: ResultBody}),
    RouteSpec("POST", f"{_APPROVALS}/{{id}}/withdraw", "session", withdraw, {200: ResultBody}, WithdrawBody),
    RouteSpec("GET", _APPROVALS, "a person", person_only),
    RouteSpec("GET", f"{_APPROVALS}/{{id}}", "a person", person_only),
    RouteSpec("POST", f"{_APPROVALS}/{{id}}/decide", "a person", person_only),
    RouteSpec("GET", "/v1/audit", "a person", person_only),
    RouteSpec("GET", "/v1/audit/{run}", "a person", person_only),
    *review_routes.ROUTES,
    *attach_routes.ROUTES,
)  # fmt: skip
