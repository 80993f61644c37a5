"""The server with MCP beside an open core; a module of its own, since the first frame comes before its imports."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncGenerator
from typing import Final

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.launch.sweep import LaunchSweep
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.session_sockets import SessionSockets
from aileron_core.settings import Settings
from aileron_mcp.lazy_mount import LazyMcpApp

_MCP_IMPORT_DELAY: Final = 10.0
"""Seconds after the start before the `mcp` package is imported unasked: a server that lives shorter never needs it."""


@contextlib.asynccontextmanager
async def served(
    app: App, settings: Settings, listeners: list[socket.socket]
) -> AsyncGenerator[None, None]:
    """Serve *app* on *listeners*, the first of which is the TCP one, until the context ends.

    Raises:
        ServerStartError: it did not start.
    """
    agents = AgentApi(app)
    mcp = LazyMcpApp(
        agents,
        hold_seconds=settings.hold_seconds,
        version=app.version,
        is_tool=settings.is_tool,
        # What it imports stays: collecting it every other second would stop agents for 0.1 s.
        on_import=gc.freeze,
    )
    asgi_app = create_app(app, {"/mcp": mcp.app, "/mcp/": mcp.app}, agents=agents)
    unsweep = app.events.subscribe(LaunchSweep(app.home.path))
    server = EmbeddedServer(asgi_app, listeners)
    own = asgi_app.state.session_sockets = SessionSockets(app, server.serve_session)
    try:
        async with mcp.run(), server, own.listening():
            await app.address.announce(listeners[0].getsockname()[1])
            importing = tasks.spawn(_import_later(mcp), name="mcp import")
            try:
                yield
            finally:
                importing.cancel()
    finally:
        unsweep()


async def _import_later(mcp: LazyMcpApp) -> None:
    await asyncio.sleep(_MCP_IMPORT_DELAY)
    mcp.start()
