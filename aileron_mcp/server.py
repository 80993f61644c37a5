"""The MCP server at `/mcp`: lists the tools, tells clients of both eras when the list changed; every tool call becomes a call of `AgentApi`.

It decides nothing. A call is made in the name of the session that its HTTP request proved, so what
it may do is decided where every other request is decided. Both protocol eras are served by one
stateful manager: "old" is 2025-03-26 to 2025-11-25 (a session, a GET stream), "new" is 2026-07-28
(each POST alone, `subscriptions/listen`).
"""

import asyncio
import json
import math
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

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
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from aileron_core.actions.model import is_builtin, op_tool_name
from aileron_core.canonical import JsonObject
from aileron_core.connectors.protocol import is_small
from aileron_core.errors import AileronError, Failure, InvalidRequest, NotFound
from aileron_core.server.agent_api import AgentApi, ClientClaims, bounded_claims
from aileron_core.server.bodies import ActionBody, PendingBody
from aileron_core.server.error_responses import STATUS, error_response, failure_from
from aileron_core.server.request_parsing import require_session
from aileron_core.server.tool_results import (
    CHECK_ACTION_STATUS,
    WITHDRAW_ACTION,
    ToolResult,
    approval_result,
    builtin_tools,
    error_result,
    parse_status_query,
    run_result,
    withdrawal_result,
)
from aileron_core.sessions.model import Session
from aileron_core.tasks import spawn
from aileron_core.tracing.spans import RemoteSpan, remote_span
from aileron_mcp.http_messages import (
    LongTexts,
    discard,
    disconnect_when,
    limit_metadata,
    receive_empty_body,
    with_json_errors,
)
from aileron_mcp.open_sessions import (
    IDLE_SECONDS,
    McpSession,
    OpenSessions,
    Subscriber,
)
from aileron_mcp.translate import (
    INSTRUCTIONS,
    action_tool,
    call_claims,
    client_claims,
    hold_seconds,
)

Context: TypeAlias = ServerRequestContext[Any, Any]

_BODY_LIMIT = 4 * 1024 * 1024  # bytes; the relay's line limit
_PROGRESS_SECONDS = 5.0
_KEY_HEADER, _WAITED_HEADER = "idempotency-key", "aileron-waited"
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_RELAY_LOGGER = "aileron.relay"


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
    """In whose name a message came: the session that its HTTP request proved, and when that request ends."""

    session: Session
    disconnected: asyncio.Event
    long_texts: LongTexts = field(default_factory=LongTexts)
    """Of the answer to that request."""


class McpMount:
    """The ASGI application for `/mcp` and `/mcp/`.

    Args:
        hold_seconds: `[mcp] hold_seconds`, the longest a gated call is held.
        is_tool: whether an action, and the tool that it would be, are for agents: `[mcp] tools`.
    """

    def __init__(
        self,
        agents: AgentApi,
        hold_seconds: float,
        version: str,
        is_tool: Callable[[str, str], bool],
    ) -> None:
        self._agents = agents
        self._is_tool = is_tool
        self._hold_setting = hold_seconds
        self._bus = InMemorySubscriptionBus()
        self._action_names: dict[str, str] = {}
        self._stale = True
        self._changes = 0
        self._open_sessions = OpenSessions(
            lambda session_id: agents.session(session_id) is not None
        )
        server = _ToolServer(
            "aileron",
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            # No bound that sessions share: each stream is one of its session's open requests.
            on_subscriptions_listen=ListenHandler(self._bus, max_subscriptions=sys.maxsize),
            # No input names a header, so there is none to check: without this the package would
            # list all tools before every call of the new era.
            get_tool_input_schema=_no_parameter_headers,
        )
        # Its own spans are named by what clients send, and quote errors; the gate's are ours.
        server.middleware.clear()
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=_BODY_LIMIT,
            max_sessions=None,  # `OpenSessions` has a limit for each agent's session
        )

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve while entered, once, on the core's loop."""
        async with self._manager.run():
            yield

    def tools_changed(self) -> None:
        """Tell every client of both eras that the tool list changed; on the core's loop."""
        self._stale = True
        self._changes += 1
        spawn(self._bus.publish(ToolsListChanged()), name="mcp list_changed")
        for each in self._open_sessions:
            if each.subscriber is not None:
                each.subscriber.notify()

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of `/mcp` or `/mcp/`, in the name of the session that it proved."""
        try:
            session = require_session(scope)
            if scope["method"] == "POST":
                receive = await limit_metadata(receive)
        except AileronError as error:
            await error_response(error)(scope, receive, send)
            return
        headers = _headers(scope)
        owner, mcp_id = session.session_id, headers.get("mcp-session-id")
        # The package compares this user with the one that opened the MCP session.
        user = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
        gone = asyncio.Event()
        caller = _Caller(session=session, disconnected=gone)
        inner = {**scope, "user": user, "aileron.caller": caller}
        if mcp_id is None:
            send = self._with_session_limit(inner, owner, send)
        elif scope["method"] == "DELETE":
            self._open_sessions.close(owner, mcp_id)
        send = caller.long_texts.sender(with_json_errors(send))
        standing = scope["method"] == "GET" or headers.get("mcp-method") == "subscriptions/listen"
        inbound = disconnect_when(receive, self._agents.draining) if standing else receive
        with (
            nullcontext() if mcp_id is None else self._open_sessions.in_use(owner, mcp_id) as opened
        ):
            if opened is not None and scope["method"] == "GET":
                send = self._with_catch_up(opened, send)
            try:
                await self._manager.handle_request(inner, inbound, send)
            finally:
                # Answered, or the client hung up: in the old era only this tells a held call.
                gone.set()

    def _with_session_limit(self, scope: Scope, owner: str, send: Send) -> Send:
        """Wrap *send*: a session that this request opens may make its owner's oldest close."""

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = _headers(message).get("mcp-session-id")
                oldest = self._open_sessions.open(owner, opened, self._changes) if opened else None
                if oldest is not None:
                    spawn(self._close_session(scope, oldest), name="mcp close the oldest session")
            await send(message)

        return send_counted

    def _with_catch_up(self, opened: McpSession, send: Send) -> Send:
        """Wrap *send* of a standing stream: a list change from before it was open is sent once it is."""

        async def send_and_catch_up(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200:
                self._catch_up(opened)
                if opened.subscriber is not None:
                    opened.reported_changes = self._changes

        return send_and_catch_up

    def _catch_up(self, opened: McpSession) -> None:
        """Inform a session of a change that it may have missed; lost where it has no stream yet."""
        if opened.subscriber is not None and opened.reported_changes != self._changes:
            opened.subscriber.notify()

    async def _close_session(self, scope: Scope, mcp_id: str) -> None:
        """End an MCP session as its client would, in its owner's name."""
        headers = [(b"mcp-session-id", mcp_id.encode())]
        request = {**scope, "method": "DELETE", "headers": headers}
        await self._manager.handle_request(request, receive_empty_body, discard)

    async def _initialized(self, ctx: Context, params: types.NotificationParams | None) -> None:
        """Remember an old-era session; its standing stream carries list changes."""
        mcp_id = ctx.request.headers.get("mcp-session-id") if ctx.request else None
        opened = self._open_sessions.get(_caller(ctx).session.session_id, mcp_id or "")
        if opened is not None:
            opened.subscriber = Subscriber(ctx.session)
            self._catch_up(opened)  # its stream may be open already

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            items = self._refresh_tools(ctx)
        except Exception as error:  # noqa: BLE001 - the edge to the agent
            # Not an empty list: an agent would take that for "there are no actions".
            status = STATUS[failure_from(error).class_]
            raise MCPError(
                types.INTERNAL_ERROR, f"The console could not list its actions (HTTP {status})."
            ) from None
        tools = [action_tool(item) for item in items] + builtin_tools()
        return types.ListToolsResult(tools=[types.Tool.model_validate(entry) for entry in tools])

    def _refresh_tools(self, ctx: Context) -> list[ActionBody]:
        """List the actions that are tools, and keep which is which.

        A name only: whether it may run is asked at each run.
        """
        listed = self._agents.list_actions(_caller(ctx).session, _claims(ctx))["items"]
        items = [
            item
            for item in listed
            if is_builtin(item["name"]) or self._is_tool(item["name"], item["tool"])
        ]
        # What left the list stays known: the gate says why it may not run any more.
        own = _caller(ctx).session.terms.plugin_tools
        self._action_names |= {
            item["tool"]: item["name"] for item in items if item["name"] not in own
        }
        self._stale = False
        return items

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = cast("JsonObject", params.arguments or {})
        try:
            result = await self._answer(ctx, params.name, arguments)
        except Exception as error:  # noqa: BLE001 - the edge to the agent
            result = error_result(failure_from(error))
        if is_small(result):
            with suppress(ValidationError):
                return types.CallToolResult.model_validate(result)
        valid = _with_valid_blocks(result)
        if not is_small(result):
            valid = await asyncio.to_thread(_caller(ctx).long_texts.mark, valid)
        return types.CallToolResult.model_validate(valid)

    async def _answer(self, ctx: Context, name: str, arguments: JsonObject) -> ToolResult:
        session = _caller(ctx).session
        if name == CHECK_ACTION_STATUS:
            query = parse_status_query(arguments, may_wait=True)
            hold = min(float(query.wait_seconds), self._hold(ctx, setting=math.inf))
            return await self._wait(ctx, query.approval_id, hold)
        if name == WITHDRAW_ACTION:
            query = parse_status_query(arguments, may_wait=False)
            return withdrawal_result(await self._agents.withdraw(session, query.approval_id))
        key = _idempotency_key(ctx)
        answer = await self._agents.run(
            session,
            self._action(ctx, name),
            arguments,
            idempotency_key=key,
            claims=_claims(ctx),
        )
        if isinstance(answer, Failure) or answer["status"] == "completed":
            return await _off_loop(run_result, answer)
        await _tell_relay(ctx, answer["approval_id"])
        hold = self._hold(ctx, self._hold_setting)
        return await self._wait(ctx, answer["approval_id"], hold, answer)

    def _action(self, ctx: Context, name: str) -> str:
        for own in _caller(ctx).session.terms.plugin_tools:
            if op_tool_name(own) == name and self._is_tool(own, name):
                return own
        if self._stale or name not in self._action_names:
            self._refresh_tools(ctx)
        if name not in self._action_names:
            raise NotFound(f"There is no tool {name!r}. List the tools again.")
        return self._action_names[name]

    def _hold(self, ctx: Context, setting: float) -> float:
        client = ctx.session.client_params
        return hold_seconds(client.client_info.name if client else None, setting=setting)

    async def _wait(
        self, ctx: Context, approval_id: str, hold: float, pending: PendingBody | None = None
    ) -> ToolResult:
        """Return how an approval stands once it is final or *hold* seconds are over, with progress.

        Whatever ends the wait (time, a cancel, a client that hung up, the console stopping), the
        approval stays as it is.
        """
        caller, loop = _caller(ctx), asyncio.get_running_loop()
        started = loop.time() - (_waited(ctx) or 0.0)
        reported = -1.0
        body = None
        if pending is None:
            body = await self._agents.result(caller.session, approval_id, gone=caller.disconnected)
        while body is None or body["status"] == "pending_approval":
            if self._agents.draining.is_set() or caller.disconnected.is_set():
                break
            elapsed = min(loop.time() - started, hold)
            done = math.floor(elapsed * 10) / 10 if elapsed < hold else hold
            if done > reported and hold > 0:  # each has to be greater than the one before
                reported = done
                what = (body or pending or {}).get("waits_for", "a person's approval")
                await ctx.session.report_progress(
                    done, hold, f"Waiting for {what} ({elapsed:.0f} s so far)."
                )
            if elapsed >= hold:
                break
            seconds = min(_PROGRESS_SECONDS, hold - elapsed)
            try:
                body = await self._agents.result(
                    caller.session, approval_id, wait=seconds, gone=caller.disconnected
                )
            except AileronError:
                if pending is None:
                    raise
                break  # the console cannot say now; the request stands all the same
        if body is None:
            assert pending is not None
            return run_result(pending)
        return await _off_loop(approval_result, body, pending)


async def _off_loop(translate: Callable[..., ToolResult], body: Any, *more: Any) -> ToolResult:
    """Return what *translate* makes of the answer *body*; of a large one, in a thread."""
    content = body.details if isinstance(body, Failure) else body
    if is_small(content):
        return translate(body, *more)
    return await asyncio.to_thread(translate, body, *more)


def _with_valid_blocks(result: ToolResult) -> ToolResult:
    """Return *result*; a block of an MCP server's that is none becomes a text: the call was made all the same."""
    blocks = [
        each if _is_block(each) else {"type": "text", "text": json.dumps(each)}
        for each in result["content"]
    ]
    return {**result, "content": blocks}


def _is_block(block: Any) -> bool:
    try:
        types.CallToolResult.model_validate({"content": [block]})
    except ValidationError:
        return False
    return True


def _caller(ctx: Context) -> _Caller:
    request = cast("Request", ctx.request)  # every message here came over HTTP
    return cast("_Caller", request.scope["aileron.caller"])


def _idempotency_key(ctx: Context) -> str | None:
    key = cast("Request", ctx.request).headers.get(_KEY_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest("Idempotency-Key must have 1 to 128 visible ASCII characters.")
    return key


def _waited(ctx: Context) -> float | None:
    """Return for how many seconds the relay has held the call, over restarts; None where it is no relay."""
    waited = cast("Request", ctx.request).headers.get(_WAITED_HEADER, "")
    return float(waited) if re.fullmatch(r"[0-9]{1,9}(\.[0-9])?", waited) else None


async def _tell_relay(ctx: Context, approval_id: str) -> None:
    """Tell the relay what its call waits for: it passes that on if it loses the console for good."""
    if _waited(ctx) is not None:
        told = types.LoggingMessageNotificationParams(
            level="info", logger=_RELAY_LOGGER, data=approval_id
        )
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=told), ctx.request_id
        )


def _claims(ctx: Context) -> ClientClaims:
    """Return what the client of a message claims about itself and the call."""
    client = ctx.session.client_params
    info = client.client_info if client else None
    return ClientClaims(
        client=bounded_claims(client_claims(info.name, info.version) if info else {}),
        call=bounded_claims(call_claims(ctx.meta)),
        parent=_parent(ctx),
    )


def _parent(ctx: Context) -> RemoteSpan | None:
    """Return the span of the client's own trace that a message names, in its `_meta` or else its header."""
    if ctx.meta and "traceparent" in ctx.meta:
        return remote_span([ctx.meta["traceparent"]])
    return remote_span(cast("Request", ctx.request).headers.getlist("traceparent"))


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope.get("headers") or ()
    }


def _no_parameter_headers(name: str) -> None:
    """Say of tool *name* that none of its inputs is mirrored into a header."""
    return
