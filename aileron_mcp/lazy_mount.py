"""What the root mounts at `/mcp` before the `mcp` package is there (its import takes about a second).

`LazyMcp` answers like the real thing from the first request on: that request waits for the import.
`asgi_call` is how its tools reach the routes of the same process.
"""

import asyncio
import importlib
import json
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias, cast

from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port import CoreEvent, LibraryUpdated
from aileron_core.errors import Unavailable
from aileron_core.library.home_library import HomeLibrary
from aileron_core.tasks import spawn

__all__ = [
    "AsgiApp",
    "Call",
    "IsTool",
    "LazyMcpApp",
    "Mount",
    "asgi_call",
    "everything",
    "send_json",
]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

IsTool: TypeAlias = Callable[[str, str], bool]
"""Whether an action, and the tool that it would be, are for agents."""

_log = logging.getLogger(__name__)


class Call(Protocol):
    """One request to the routes of this process, made in an agent's name."""

    async def __call__(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        bearer: str | None,
        *,
        extensions: Mapping[str, Any] | None = None,
    ) -> tuple[int, Json]:
        """Return status and JSON body.

        Args:
            method: the HTTP method.
            path: path and query, percent-encoded.
            body: what to send as JSON.
            bearer: the session's own token; None on a socket that is a session itself.
            extensions: the ASGI scope extensions of the request that caused this one.
        """
        ...


class Mount(Protocol):
    """What `aileron_mcp.server.McpMount` is to this module."""

    @property
    def app(self) -> AsgiApp:
        """The ASGI application for `/mcp` and `/mcp/`."""
        ...

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while the context is entered, once, on the core's loop."""
        ...

    def tools_changed(self) -> None:
        """Tell every client that the tool list changed."""
        ...

    def close_streams(self) -> None:
        """End holds and standing streams."""
        ...


async def send_json(
    send: Send, status: int, body: Json, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Answer an ASGI request with JSON, and with *more* header fields."""
    data = json.dumps(body, ensure_ascii=True).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    headers += more
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def asgi_call(app: AsgiApp, *, state: Mapping[str, Any] | None = None) -> Call:
    """Return a caller of *app* in this process, without a socket and without an HTTP library.

    Args:
        app: the whole application, so that a tool call passes the same door as any other.
        state: the lifespan's state, read anew for each request.
    """

    async def call(
        method: str,
        path: str,
        body: JsonObject | None,
        bearer: str | None,
        *,
        extensions: Mapping[str, Any] | None = None,
    ) -> tuple[int, Json]:
        exchange = _InProcessRequest(b"" if body is None else json.dumps(body).encode())
        scope = _scope(method, path, len(exchange.body), bearer, dict(extensions or {}))
        scope["state"] = dict(state or {})
        # A task of its own: who waits for the answer may be cancelled, the request never is.
        # It learns of it as it would over a socket, by `http.disconnect`.
        task = spawn(exchange.run(app, scope), name=f"in-process {method}")
        try:
            return await asyncio.shield(task)
        finally:
            exchange.gone.set()

    return call


def _scope(
    method: str, path: str, length: int, bearer: str | None, extensions: dict[str, Any]
) -> dict[str, Any]:
    headers = [(b"host", b"127.0.0.1"), (b"accept", b"application/json")]
    if length:
        headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", b"%d" % length))
    if bearer is not None:
        headers.append((b"authorization", b"Bearer " + bearer.encode("latin-1", "replace")))
    raw, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw,
        "raw_path": raw.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": None,
        "extensions": extensions,
    }


class _InProcessRequest:
    """One in-process request: its `receive`, its `send` and what they gathered."""

    __slots__ = ("_chunks", "_sent", "_status", "body", "gone")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.gone = asyncio.Event()
        self._sent = False
        self._status = 0
        self._chunks: list[bytes] = []

    async def run(self, app: AsgiApp, scope: MutableMapping[str, Any]) -> tuple[int, Json]:
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 - the boundary: a server would answer 500 here
            # By type only: the message may quote arguments.
            _log.error("in-process %s ended with %s", scope["method"], type(error).__name__)
            self._status, self._chunks = 500, []
        return self._status, _json_or_none(b"".join(self._chunks))

    async def _receive(self) -> Message:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = int(message["status"])
        elif message["type"] == "http.response.body":
            self._chunks.append(bytes(message.get("body", b"")))
            if not message.get("more_body", False):
                self.gone.set()


def _json_or_none(data: bytes) -> Json:
    try:
        return cast("Json", json.loads(data)) if data else None
    except ValueError:
        return None


def everything(action: str, tool: str) -> bool:
    """Leave no action out."""
    return True


class LazyMcpApp:
    """`McpMount`, imported later: the root builds this one at once."""

    def __init__(
        self,
        call: Call,
        hold_seconds: float = 25.0,
        version: str = "",
        is_tool: IsTool = everything,
        imported: Callable[[], object] = lambda: None,
    ) -> None:
        """*imported* is called on the importing thread once the package is there."""
        self._imported = imported
        self._call = call
        self._version = version
        self._hold_seconds = hold_seconds
        self._is_tool = is_tool
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._mount: Mount | None = None
        self._started = False

    async def app(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request of `/mcp` or `/mcp/`, once the import is through."""
        self._wanted.set()
        if self._loop is not None:
            await self._settled.wait()
        if self._mount is None:
            error = Unavailable("The console's MCP server is not running; try again in a minute.")
            await send_json(send, 503, {"error": error.to_failure().to_json()})
            return
        await self._mount.app(scope, receive, send)

    def start(self) -> None:
        """Begin the import in a thread; from any thread, before or while `run` is entered."""
        self._started = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wanted.set)

    def tools_changed(self) -> None:
        """Tell every client that the tool list changed; on the core's loop."""
        if self._mount is not None:
            self._mount.tools_changed()

    def close_streams(self) -> None:
        """End holds with their pending message, and standing streams; on the core's loop.

        For a server that is about to stop and would otherwise wait for them.
        """
        if self._mount is not None:
            self._mount.close_streams()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve while entered, once, on the core's loop."""
        self._loop = asyncio.get_running_loop()
        if self._started:
            self._wanted.set()
        stop = asyncio.Event()
        serving = spawn(self._serve(stop), name="mcp mount")
        try:
            yield
        finally:
            stop.set()
            self._wanted.set()
            self._settled.set()
            await asyncio.wait([serving])
            self._loop = None

    async def _serve(self, stop: asyncio.Event) -> None:
        """Build and run the mount in one task, as its task group wants it."""
        await self._wanted.wait()
        if stop.is_set():
            return
        try:
            mount = await asyncio.to_thread(self._build)
            async with mount.run():
                self._mount = mount
                self._settled.set()
                await stop.wait()
        finally:
            # Also where the import failed: requests then get 503, and the task's end is logged.
            self._mount = None
            self._settled.set()

    def _build(self) -> Mount:
        module = importlib.import_module("aileron_mcp.server")
        self._imported()
        mount = module.McpMount(self._call, self._hold_seconds, self._version, self._is_tool)
        return cast("Mount", mount)


class ToolsWatcher:
    """Tells MCP clients when the accepted actions changed, and only then: a listener of core events."""

    def __init__(self, library: HomeLibrary, mcp: LazyMcpApp) -> None:
        self._library = library
        self._mcp = mcp
        self._known = self._accepted()

    def _accepted(self) -> tuple[tuple[str, str], ...]:
        return tuple((action.name, action.sha256) for action in self._library.ready())

    def __call__(self, event: CoreEvent) -> None:
        if isinstance(event, LibraryUpdated) and (accepted := self._accepted()) != self._known:
            self._known = accepted
            self._mcp.tools_changed()
