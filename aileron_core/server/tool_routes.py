"""The routes over which a launcher carries the frames of its session's built-in tools.

Only the process that opened the session may use them, as the kernel names it: what comes from there is
taken for what a worker did and found.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from aileron_core.connectors.builtin.channel import ToolChannel, WorkerName
from aileron_core.errors import Forbidden, InvalidRequest, NotFound
from aileron_core.ids import SESSION_ID
from aileron_core.server.bodies import ToolResultBody, ToolsBody
from aileron_core.server.request_parsing import app_of, read_body, require_peer
from aileron_core.server.route_spec import RouteSpec
from aileron_core.tasks import spawn

_HEARTBEAT = 15.0
_PATH = "/v1/sessions/{id}"


def _channel(request: Request) -> ToolChannel:
    """Return the session's channel, if the caller is the launcher that opened it.

    Raises:
        NotFound: no session of this id is open, or it was launched without built-in tools.
        Forbidden: another process asks.
    """
    peer = require_peer(request)
    app = app_of(request)
    session_id: str = request.path_params["id"]
    session = app.sessions.get(session_id) if SESSION_ID.fullmatch(session_id) else None
    if session is None or not session.terms.builtins:
        raise NotFound(f"There is no open session {session_id[:40]!r} with built-in tools.")
    if session.pid != peer.pid:
        raise Forbidden("Only the launcher that opened this session may carry its tools.")
    return app.tool_channels.get(session_id)


async def attach_tools(request: Request) -> Response:
    """Note that the session's workers are ready, and what they can do."""
    channel = _channel(request)
    body = await read_body(request, ToolsBody)
    features: Any = body.content.get("commands", {})
    if not isinstance(features, dict):
        raise InvalidRequest("'commands' must be an object: what that worker can do.")
    channel.attach(cast("dict[str, Any]", features))
    return Response(status_code=204)


async def tool_calls(request: Request) -> Response:
    """Stream what the session's workers are to do, a frame each."""
    channel = _channel(request)
    calls = channel.frames
    draining = request.state.agents.draining
    app = app_of(request)
    session_id: str = request.path_params["id"]

    async def frames() -> AsyncIterator[bytes]:
        yield b": tools\n\n"
        taking = None
        stopping = spawn(draining.wait(), name="end of the tools' stream")
        try:
            while not draining.is_set() and app.sessions.get(session_id) is not None:
                taking = taking or spawn(calls.get(), name="next frame of a tool")
                await asyncio.wait(
                    [taking, stopping], timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
                )
                if not taking.done():
                    yield b": tools\n\n"
                    continue
                frame, taking = taking.result(), None
                yield b"data: " + json.dumps(frame, ensure_ascii=True).encode("ascii") + b"\n\n"
        finally:
            channel.detach(calls)
            stopping.cancel()
            if taking is not None:
                taking.cancel()

    return StreamingResponse(frames(), media_type="text/event-stream")


async def tool_results(request: Request) -> Response:
    """Take what a worker of the session answered."""
    channel = _channel(request)
    body = await read_body(request, ToolResultBody)
    frame: Any = body.content.get("frame")
    if body.text("worker") not in ("files", "commands") or not isinstance(frame, dict):
        raise InvalidRequest("'worker' must be files or commands, and 'frame' an object.")
    channel.receive(cast("WorkerName", body.text("worker")), cast("dict[str, Any]", frame))
    return Response(status_code=204)


ROUTES = (
    RouteSpec("POST", f"{_PATH}/tools", "socket", attach_tools, {204: None}, ToolsBody),
    RouteSpec("GET", f"{_PATH}/tool-calls", "socket", tool_calls, {200: None}),
    RouteSpec("POST", f"{_PATH}/tool-results", "socket", tool_results, {204: None}, ToolResultBody),
)
