"""The MCP server at `/mcp`: every tool call becomes `POST /v1/actions/{name}/run` in this process.

It decides nothing. A call carries the token of the HTTP request that brought it, so what it may do
is decided where every other request is decided. Both protocol eras are served by one stateful
manager: "old" is 2025-03-26 to 2025-11-25 (a session, a GET stream), "new" is 2026-07-28 (each POST
alone, `subscriptions/listen`).
"""

import asyncio
import hashlib
import math
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from starlette.requests import Request

from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import AileronError, NotFound, Unauthorized, Unavailable
from aileron_core.server.client_claims import EXTENSION as CLAIMS
from aileron_core.server.error_responses import STATUS
from aileron_core.tasks import spawn
from aileron_mcp.client_claims import call_claims, client_claims
from aileron_mcp.error_bodies import in_one_body
from aileron_mcp.lazy_mount import (
    AsgiApp,
    Call,
    IsTool,
    Message,
    Receive,
    Send,
    everything,
    send_json,
)
from aileron_mcp.metadata_limits import bounded
from aileron_mcp.session_limit import SessionLimit
from aileron_mcp.subscriptions import Subscriber, ended_by, nothing, unheard, unless
from aileron_mcp.translate import (
    CHECK_ACTION_STATUS,
    INSTRUCTIONS,
    WITHDRAW_ACTION,
    ToolResult,
    error_result,
    hold_seconds,
    is_pending,
    own_tools,
    result_answer,
    run_answer,
    status_query,
    tool,
    withdraw_answer,
)

__all__ = ["McpMount"]

Context: TypeAlias = ServerRequestContext[Any, Any]

_BODY_LIMIT = 4 * 1024 * 1024  # bytes; the relay's line limit
_PROGRESS_SECONDS = 5
# A well-formed approval id that no session has: asking for its result tells a token that opens
# something (404) from one that does not (401), for requests that make no other call.
_NOBODYS = "/v1/action-approvals/act-00000101T000000-0000000000000000/result"


class _ToolServer(Server[dict[str, Any]]):
    """A `Server` that announces list changes in the handshake eras too."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # The session manager asks without options, which would announce listChanged: false.
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """In whose name a message came: what its HTTP request proved, and when that request ends."""

    call: Call
    bearer: str | None
    extensions: Mapping[str, Any]
    gone: asyncio.Event

    async def get(self, path: str) -> tuple[int, Json]:
        return await self.call("GET", path, None, self.bearer, extensions=self.extensions)

    async def post(self, path: str, body: JsonObject) -> tuple[int, Json]:
        return await self.call("POST", path, body, self.bearer, extensions=self.extensions)


class McpMount:
    """The ASGI application for `/mcp` and `/mcp/`.

    Args:
        call: reaches the routes of this process (`aileron_mcp.lazy_mount.asgi_call`).
        hold_seconds: `[mcp] hold_seconds`, the longest a gated call is held.
        version: what clients are told of this program.
        is_tool: whether an action, and the tool that it would be, are for agents: `[mcp] tools`.
    """

    def __init__(
        self,
        call: Call,
        hold_seconds: float = 25.0,
        version: str = "",
        is_tool: IsTool = everything,
    ) -> None:
        self._call = call
        self._is_tool = is_tool
        self._setting = hold_seconds
        self._bus = InMemorySubscriptionBus()
        self._actions: dict[str, str] = {}
        self._stale = True
        self._handshaken: dict[str, Subscriber] = {}
        self._changes = 0
        self._known: dict[str, int] = {}  # by session: `_changes` when it or its stream was opened
        self._closing = asyncio.Event()
        self._opened = SessionLimit()
        server = _ToolServer(
            "aileron",
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            # No input names a header, so there is none to check: without this the package would
            # list all tools before every call of the new era.
            get_tool_input_schema=_no_parameter_headers,
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )
        self._manager = StreamableHTTPSessionManager(server, max_request_body_size=_BODY_LIMIT)

    @property
    def app(self) -> AsgiApp:
        """The ASGI application, to be mounted at `/mcp`."""
        return self._serve

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve while entered, once, on the core's loop."""
        async with self._manager.run():
            try:
                yield
            finally:
                self.close_streams()

    def tools_changed(self) -> None:
        """Tell every client of both eras that the tool list changed; on the core's loop."""
        self._stale = True
        self._changes += 1
        spawn(self._bus.publish(ToolsListChanged()), name="mcp list_changed")
        for subscriber in self._handshaken.values():
            subscriber.notify()

    def close_streams(self) -> None:
        """End holds with their pending message, and standing streams; on the core's loop."""
        self._closing.set()

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Check the door, put the caller into the scope, hand over to the package."""
        if scope["type"] != "http":
            return
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
        if path not in ("", "/", "/mcp", "/mcp/"):
            await _refuse(send, 404, NotFound(f"There is no route {scope['path']}."))
            return
        headers = _headers(scope)
        extensions = dict(scope.get("extensions") or {})
        gone = asyncio.Event()
        caller = _Caller(call=self._call, bearer=_bearer(headers), extensions=extensions, gone=gone)
        try:
            principal = await _principal(caller)
            if scope["method"] == "POST":
                receive = await bounded(receive)
        except AileronError as error:
            await _refuse(send, STATUS[error.to_failure().class_], error)
            return
        # The package compares this user with the one that opened the MCP session.
        user = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))
        inner = {**scope, "user": user, "aileron.caller": caller}
        session_id = headers.get("mcp-session-id")
        if session_id is None:
            send = self._counted(inner, principal, send)
        elif scope["method"] == "DELETE":
            self._forget(session_id)
            self._opened.closed(principal, session_id)
        else:
            self._opened.used(principal, session_id)
            if scope["method"] == "GET":
                send = self._caught_up(session_id, send)
        send = in_one_body(send)
        standing = scope["method"] == "GET" or headers.get("mcp-method") == "subscriptions/listen"
        inbound = ended_by(receive, self._closing) if standing else receive
        try:
            await self._manager.handle_request(inner, inbound, send)
        finally:
            # Answered, or the client hung up: in the old era only this tells a held call.
            gone.set()

    def _counted(self, scope: MutableMapping[str, Any], principal: str, send: Send) -> Send:
        """Wrap *send*: a session that this request opens may make its principal's oldest close."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = _headers(message).get("mcp-session-id")
                oldest = self._opened.opened(principal, opened) if opened else None
                if opened:
                    self._known[opened] = self._changes
                if oldest is not None:
                    self._forget(oldest)
                    spawn(self._close(scope, oldest), name="mcp close the oldest session")
            await send(message)

        return counted

    def _caught_up(self, session_id: str, send: Send) -> Send:
        """Wrap *send* of a standing stream: what changed before it was open is told once it is."""

        async def caught_up(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200:
                self._catch_up(session_id)
                if session_id in self._handshaken:
                    self._known[session_id] = self._changes

        return caught_up

    def _catch_up(self, session_id: str) -> None:
        """Tell a session of a change that it may not have heard of; lost where it has no stream yet."""
        subscriber = self._handshaken.get(session_id)
        if subscriber is not None and self._known.get(session_id) != self._changes:
            subscriber.notify()

    def _forget(self, session_id: str) -> None:
        self._handshaken.pop(session_id, None)
        self._known.pop(session_id, None)

    async def _close(self, scope: MutableMapping[str, Any], session_id: str) -> None:
        """End an MCP session as its client would, in the same principal's name."""
        headers = [(b"mcp-session-id", session_id.encode())]
        request = {**scope, "method": "DELETE", "headers": headers}
        await self._manager.handle_request(request, nothing, unheard)

    async def _initialized(self, ctx: Context, params: types.NotificationParams | None) -> None:
        """Remember an old-era session; its standing stream carries list changes."""
        session_id = ctx.request.headers.get("mcp-session-id") if ctx.request else None
        if session_id is not None:
            live = self._manager_sessions()
            self._handshaken = {k: v for k, v in self._handshaken.items() if live(k)}
            self._known = {k: v for k, v in self._known.items() if live(k)}
            self._handshaken[session_id] = Subscriber(ctx.session)
            self._catch_up(session_id)  # its stream may be open already

    def _manager_sessions(self) -> Callable[[str], bool]:
        """Say which MCP sessions the package still knows (it drops idle ones after 30 minutes)."""
        # The package offers no public view of it; without one the table would only grow.
        known = getattr(self._manager, "_server_instances", None)
        return (lambda key: key in known) if isinstance(known, dict) else (lambda _: True)

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        status, body = await _caller(ctx).get("/v1/actions")
        if status != 200:
            # Not an empty list: an agent would take that for "there are no actions".
            raise MCPError(
                types.INTERNAL_ERROR, f"The console did not list its actions (HTTP {status})."
            )
        items = self._learn(status, body)
        tools = [tool(item) for item in items] + own_tools()
        return types.ListToolsResult(tools=[types.Tool.model_validate(entry) for entry in tools])

    def _learn(self, status: int, body: Json) -> list[JsonObject]:
        """Keep which tool is which action; a name only: whether it may run is asked at each run."""
        if status != 200 or not isinstance(body, Mapping):
            return []
        told = cast("list[JsonObject]", list(cast("list[Any]", body.get("items") or [])))
        items = [item for item in told if self._is_tool(str(item["name"]), str(item["tool"]))]
        # What left the list stays known: the gate says why it may not run any more.
        self._actions |= {str(item["tool"]): str(item["name"]) for item in items}
        self._stale = False
        return items

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = cast("JsonObject", params.arguments or {})
        try:
            result = await self._answer(ctx, params.name, arguments)
        except AileronError as error:
            result = error_result(error.to_failure())
        return types.CallToolResult.model_validate(result)

    async def _answer(self, ctx: Context, name: str, arguments: JsonObject) -> ToolResult:
        caller = _caller(ctx)
        if name == CHECK_ACTION_STATUS:
            query = status_query(arguments, may_wait=True)
            hold = min(float(query.wait_seconds), self._hold(ctx, setting=math.inf))
            return await self._wait(ctx, caller, query.approval_id, hold, None)
        if name == WITHDRAW_ACTION:
            query = status_query(arguments, may_wait=False)
            path = f"/v1/action-approvals/{query.approval_id}/withdraw"
            return withdraw_answer(*await caller.post(path, {}))
        action = await self._action(caller, name)
        status, body = await caller.post(
            f"/v1/actions/{quote(action, safe='')}/run", {"args": arguments}
        )
        approval_id = body.get("approval_id") if isinstance(body, Mapping) else None
        if not is_pending(status, body) or not isinstance(approval_id, str):
            return run_answer(status, body)
        return await self._wait(ctx, caller, approval_id, self._hold(ctx, self._setting), body)

    async def _action(self, caller: _Caller, name: str) -> str:
        if self._stale or name not in self._actions:
            status, body = await caller.get("/v1/actions")
            if status == 401:
                raise Unauthorized("This session has ended.")
            self._learn(status, body)
        if name not in self._actions:
            raise NotFound(f"There is no tool {name!r} here (any more); list the tools again.")
        return self._actions[name]

    def _hold(self, ctx: Context, setting: float) -> float:
        client = ctx.session.client_params
        return hold_seconds(client.client_info.name if client else None, setting=setting)

    async def _wait(
        self, ctx: Context, caller: _Caller, approval_id: str, hold: float, asked: Json
    ) -> ToolResult:
        """Ask for the result until it is final or *hold* seconds are over, with progress.

        Whatever ends the wait (time, a cancel, a client that hung up, the console stopping), the
        approval stays as it is.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        told = -1.0
        path = f"/v1/action-approvals/{quote(approval_id, safe='')}/result"
        status, body = (202, asked) if asked is not None else await caller.get(path)
        while is_pending(status, body) and not self._closing.is_set() and not caller.gone.is_set():
            elapsed = min(loop.time() - begun, hold)
            done = math.floor(elapsed * 10) / 10 if elapsed < hold else hold
            if done > told and hold > 0:  # each has to be greater than the one before
                told = done
                await ctx.session.report_progress(
                    done, hold, f"Waiting for a person, {elapsed:.0f} s so far."
                )
            if elapsed >= hold:
                break
            seconds = max(1, min(_PROGRESS_SECONDS, math.ceil(hold - elapsed)))
            answer = await unless(caller.get(f"{path}?wait={seconds}"), caller.gone, self._closing)
            if answer is None:
                break
            if answer[0] != 200 and asked is not None:
                # The console cannot say now (it may be stopping); the request stands all the same.
                break
            status, body = answer
        return result_answer(200 if status == 202 else status, body, asked)


async def _principal(caller: _Caller) -> str:
    """Return a name for whoever sent this request.

    Raises:
        Unauthorized: it opens nothing here.
        Unavailable: that cannot be said now.
    """
    own = caller.extensions.get("aileron")
    if isinstance(own, Mapping):
        session = cast("Mapping[str, Any]", own).get("session")
        if isinstance(session, str):
            # The server's own layer already knows the session (a contained one has its own socket).
            return f"session:{session}"
    if caller.bearer is None:
        raise Unauthorized("A session token is needed here: send it as a bearer token.")
    status, _ = await caller.get(_NOBODYS)
    if status in (401, 403):
        raise Unauthorized("This token opens no session here; the session may have ended.")
    if status not in (200, 404):
        raise Unavailable(f"The session could not be looked up (HTTP {status}); try again.")
    return "token:" + hashlib.sha256(caller.bearer.encode()).hexdigest()


def _caller(ctx: Context) -> _Caller:
    """Return in whose name a message came, with what its client says of itself and of the call."""
    request = cast("Request", ctx.request)  # every message here came over HTTP
    caller = cast("_Caller", request.scope["aileron.caller"])
    client = ctx.session.client_params
    info = client.client_info if client else None
    said = {
        "client": client_claims(info.name, info.version) if info else {},
        "call": call_claims(ctx.meta),
    }
    return replace(caller, extensions={**caller.extensions, CLAIMS: said})


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope.get("headers") or ()
    }


def _bearer(headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _no_parameter_headers(name: str) -> None:
    """Say of tool *name* that none of its inputs is mirrored into a header."""
    return


async def _refuse(send: Send, status: int, error: AileronError) -> None:
    await send_json(send, status, {"error": error.to_failure().to_json()})
