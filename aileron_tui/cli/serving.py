"""The server with MCP beside an open core; a module of its own, since the first frame comes before its imports."""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import AsyncGenerator
from typing import Final

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.audit.events import AuditEvent
from aileron_core.errors import StorageUnavailable
from aileron_core.launch.sweep import LaunchSweep
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import SessionSockets
from aileron_core.settings import Settings
from aileron_mcp.lazy_mount import LazyMcpApp

_MCP_IMPORT_DELAY: Final = 10.0
"""Seconds after the start before the `mcp` package is imported unasked: a server that lives shorter never needs it."""

_ANNOUNCE_SECONDS: Final = 0.5
_log = logging.getLogger(__name__)


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

    async def recovered(session_id: str, sentence: str) -> None:
        await app.session_service.record(
            AuditEvent.SESSION_COMMIT_RECOVERED, sentence, session_id, {}
        )

    unsweep = app.events.subscribe(LaunchSweep(app.home.path, recovered))
    server = EmbeddedServer(asgi_app, listeners)
    own = asgi_app.state.session_sockets = SessionSockets(app, server.serve_session)
    try:
        async with mcp.run(), server, own.listening():
            port = listeners[0].getsockname()[1]
            others = [tasks.spawn(_import_later(mcp), name="mcp import")]
            if not await _announced(app, port):
                others.append(tasks.spawn(_announce_later(app, port), name="announce"))
            try:
                yield
            finally:
                for each in others:
                    each.cancel()
    finally:
        unsweep()


async def _announced(app: App, port: int) -> bool:
    """Say in the home where this console is; return whether there was room for that."""
    try:
        await app.address.announce(port)
    except (StorageUnavailable, OSError) as error:
        _log.warning("daemon.json could not be written: %s", type(error).__name__)
        return False
    return True


async def _announce_later(app: App, port: int) -> None:
    """Say it once there is room: a disk that is full at the start must not end the core."""
    while not await _announced(app, port):  # noqa: ASYNC110 - no disk tells that it has room
        await asyncio.sleep(_ANNOUNCE_SECONDS)


async def _import_later(mcp: LazyMcpApp) -> None:
    await asyncio.sleep(_MCP_IMPORT_DELAY)
    mcp.start()
