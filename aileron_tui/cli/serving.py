"""The server with MCP beside an open core; a module of its own, since the first frame comes before its imports."""

import asyncio
import contextlib
import functools
import gc
import logging
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import JsonObject
from aileron_core.console_port.events import CoreEvent, LibraryUpdated, VaultStatus
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import StorageUnavailable
from aileron_core.launch.sweep import LaunchSweep
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.review_items import DrawnItem, ReviewDrawing
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
    drawing = _Drawing(app)
    mounts = {"/mcp": mcp.app, "/mcp/": mcp.app}
    asgi_app = create_app(app, mounts, agents=agents, review=drawing)

    async def recovered(session_id: str, sentence: str) -> None:
        await app.session_service.record(
            AuditEvent.SESSION_COMMIT_RECOVERED, sentence, session_id, {}
        )

    unsweep = app.events.subscribe(LaunchSweep(app.home.path, recovered))
    unhear = app.events.subscribe(drawing.hear)
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
        unhear()


class _Drawing:
    """Draws calls for the review page; what that takes is imported for the first page, as `serve` has no screen."""

    def __init__(self, app: App) -> None:
        self._clock = app.clock
        self.not_accepted = app.library.not_accepted()
        self.vault = app.vault_service.status()

    def hear(self, event: CoreEvent) -> None:
        """Follow what else of the console a page says of a call."""
        if isinstance(event, LibraryUpdated):
            self.not_accepted = event.not_accepted
        elif isinstance(event, VaultStatus):
            self.vault = event

    @functools.cached_property
    def _page(self) -> ReviewDrawing:
        from aileron_tui.review import PageDrawing

        return PageDrawing(self._clock, self)

    def rows(self, views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        return self._page.rows(views)

    def item(self, view: ApprovalView) -> DrawnItem:
        return self._page.item(view)


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
