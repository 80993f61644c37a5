"""Serves `/mcp` while the `mcp` package is still being imported, which takes about a second."""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, cast

from starlette.types import Receive, Scope, Send

from aileron_core.errors import Unavailable
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.error_responses import error_response
from aileron_core.tasks import spawn


class Mount(Protocol):
    """What `aileron_mcp.server.McpMount` is to this module."""

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of `/mcp` or `/mcp/`."""
        ...

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while the context is entered, once, on the core's loop."""
        ...

    def tools_changed(self) -> None: ...


class LazyMcpApp:
    """`McpMount`, imported later: it answers like the real one, but the first request waits.

    Args:
        hold_seconds: `[mcp] hold_seconds`, the longest that a gated call is held.
        is_tool: whether an action, and the tool that it would be, are for agents: `[mcp] tools`.
        on_import: called on the importing thread once the package is there.
    """

    def __init__(
        self,
        agents: AgentApi,
        hold_seconds: float = 25.0,
        version: str = "",
        is_tool: Callable[[str, str], bool] = lambda _action, _tool: True,
        on_import: Callable[[], object] = lambda: None,
    ) -> None:
        self._on_import = on_import
        self._agents = agents
        self._version = version
        self._hold_seconds = hold_seconds
        self._is_tool = is_tool
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requested = asyncio.Event()
        self._build_ended = asyncio.Event()
        self._mount: Mount | None = None
        self._started = False

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of `/mcp` or `/mcp/`, once the import is through."""
        self._requested.set()
        if self._loop is not None:
            await self._build_ended.wait()
        if self._mount is None:
            error = Unavailable("The console's MCP server is not running. Try again in a minute.")
            await error_response(error)(scope, receive, send)
            return
        await self._mount.app(scope, receive, send)

    def start(self) -> None:
        """Begin the import in a thread; from any thread, before or while `run` is entered."""
        self._started = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._requested.set)

    def _tools_changed(self) -> None:
        if self._mount is not None:
            self._mount.tools_changed()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve while entered, once, on the core's loop."""
        self._loop = asyncio.get_running_loop()
        if self._started:
            self._requested.set()
        stop = asyncio.Event()
        serving = spawn(self._serve(stop), name="mcp mount")
        unwatch = self._agents.watch_actions(self._tools_changed)
        try:
            yield
        finally:
            unwatch()
            stop.set()
            self._requested.set()
            self._build_ended.set()
            await asyncio.wait([serving])
            self._loop = None

    async def _serve(self, stop: asyncio.Event) -> None:
        """Build and run the mount in one task, as its task group wants it."""
        await self._requested.wait()
        if stop.is_set():
            return
        try:
            mount = await asyncio.to_thread(self._build)
            async with mount.run():
                self._mount = mount
                self._build_ended.set()
                await stop.wait()
        finally:
            # Also where the import failed: requests then get 503, and the task's end is logged.
            self._mount = None
            self._build_ended.set()

    def _build(self) -> Mount:
        module = importlib.import_module("aileron_mcp.server")
        self._on_import()
        mount = module.McpMount(self._agents, self._hold_seconds, self._version, self._is_tool)
        return cast("Mount", mount)
