"""Starts the core with its server and MCP on one thread, and the console's screen on the main one."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from aileron_core.app import App, AppOptions
from aileron_core.console_port import ApprovalsRead, CoreEvent
from aileron_core.core_thread import CoreThread
from aileron_core.home.layout import Home
from aileron_core.launch.sweep import LaunchSweep
from aileron_core.runs.interfaces import Failpoint, no_failpoint
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.session_sockets import SessionSockets
from aileron_core.server.sockets import bind_tcp, bind_unix
from aileron_core.settings import Settings, load_settings
from aileron_mcp.lazy_mount import LazyMcpApp
from aileron_tui.cli.arguments import route_argument
from aileron_tui.cli.logfile import log_to
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.draw.guide import Guide

_log = logging.getLogger(__name__)


def core_thread(
    home: Home,
    routes: Sequence[str] = (),
    *,
    accept_installed: bool = False,
    first_frame: threading.Event | None = None,
    failpoint: Failpoint = no_failpoint,
) -> CoreThread:
    """Return the core with its server, ready to be started.

    Args:
        first_frame: set once the screen is drawn; the `mcp` package (about 1 s under the
            interpreter's lock) is imported after that, or at once without a screen.
        failpoint: for tests of crashes, in process only.

    Raises:
        InvalidRequest: a route is not of the form HOST:PORT=127.0.0.1:PORT.
        FileProblems: config.toml cannot be used.
    """
    settings = load_settings(home.config)
    options = AppOptions(
        routes=tuple(route_argument(text) for text in routes),
        accept_installed=accept_installed,
        settings=settings,
        failpoint=failpoint,
    )

    @contextlib.asynccontextmanager
    async def opened() -> AsyncGenerator[App]:
        async with App.open(home, options) as app, _served(app, settings, first_frame):
            yield app

    return CoreThread(opened)


@contextlib.asynccontextmanager
async def _served(
    app: App, settings: Settings, first_frame: threading.Event | None
) -> AsyncGenerator[None, None]:
    tcp = bind_tcp(
        settings.listen_host, settings.listen_port or await app.address.remembered_port()
    )
    unix = bind_unix(app.home.socket)
    port: int = tcp.getsockname()[1]
    app.address.listen_on(port)
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
    unkeep = app.events.subscribe(_freeze_calls)
    unsweep = app.events.subscribe(LaunchSweep(app.home.path))
    server = EmbeddedServer(asgi_app, [tcp, unix])
    own = asgi_app.state.session_sockets = SessionSockets(app, server.serve_session)
    try:
        async with mcp.run(), server, own.listening():
            await app.address.announce(port)
            _start_after(first_frame, mcp)
            yield
    finally:
        unkeep()
        unsweep()
        with contextlib.suppress(OSError):
            app.home.socket.unlink()


_MCP_IMPORT_DELAY: Final = 10.0
"""Seconds after the start before the `mcp` package is imported unasked: a server that lives shorter never needs it."""


def _start_after(first_frame: threading.Event | None, mcp: LazyMcpApp) -> None:
    def wait() -> None:
        if first_frame is not None:
            first_frame.wait()
        time.sleep(_MCP_IMPORT_DELAY)
        mcp.start()

    threading.Thread(target=wait, name="aileron-mcp-import", daemon=True).start()


def _freeze_calls(event: CoreEvent) -> None:
    """Exclude the calls that were read after the first frame from garbage collection."""
    if isinstance(event, ApprovalsRead) and not event.remaining:
        gc.freeze()


def _prepare(context: CommandContext) -> Home:
    home = Home(context.home)
    home.prepare()
    log_to(home, load_settings(home.config).log)
    return home


def _log_start(app: App, how: str) -> None:
    _log.info("%s %s began as process %d at %s", how, app.version, os.getpid(), app.address.url)


def _log_end(core: CoreThread, how: str) -> None:
    if core.failure is not None:
        _log.error("%s ended because its core did", how)
    else:
        _log.info("%s ended", how)


def _started() -> None:
    """Collect garbage from now on, but for the objects of the start, which live as long as the process.

    With 10,000 waiting calls, one collection over all of it stops agents and screen for a third of a second.
    """
    gc.freeze()
    # A full collection stops both threads, and long-lived garbage is rare: so collect rarely.
    gc.set_threshold(700, 10, 100)
    gc.enable()


_TURN_SECONDS: Final = 0.0005
"""Of a thread in the interpreter while others want it: screen, server and guests' output share it."""


def run_serve(context: CommandContext, routes: Sequence[str], *, accept_installed: bool) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    home = _prepare(context)
    gc.disable()
    core = core_thread(home, routes, accept_installed=accept_installed)
    ended = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    app = core.start()
    _log_start(app, "serve")
    sys.setswitchinterval(_TURN_SECONDS)
    _started()
    _say_start(context, app)
    threading.Thread(target=lambda: (core.wait(), ended.set()), daemon=True).start()
    # Not one endless wait: the kernel may hand the signal to another thread, and nothing would
    # wake this one, which alone runs the handler.
    while not ended.wait(0.2):
        pass
    core.stop()
    _log_end(core, "serve")
    return EXIT.OUR_BUG if core.failure is not None else EXIT.DONE


def _say_start(context: CommandContext, app: App) -> None:
    if context.json:
        context.show(
            {"url": app.address.url, "socket": str(app.home.socket), "home": str(app.home.path)}
        )
        return
    context.say(
        f"Aileron serves {app.home.path} at {app.address.url}. Nobody can approve without a console."
    )
    for route in app.options.routes_shown():
        context.say(f"Routed: {route}, without credential.")
    if app.options.accept_installed:
        context.say("Everything installed was accepted without review (--accept-installed).")


def run_console(
    context: CommandContext,
    routes: Sequence[str],
    *,
    accept_installed: bool,
    plain: bool = False,
    guide: Guide | None = None,
) -> int:
    """Open the console; return the exit code once it is closed and the core has stopped.

    Args:
        plain: line by line, without a screen.
        guide: a demo that leads through the screen.
    """
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise CliError(
            EXIT.FAILED, "The console needs a terminal. `aileron serve` runs without one."
        )
    home = _prepare(context)
    gc.disable()
    first_frame = threading.Event()

    def drawn() -> None:
        _started()
        first_frame.set()

    core = core_thread(home, routes, accept_installed=accept_installed, first_frame=first_frame)
    core.begin()
    try:
        run = _front_end(core, load_settings(home.config), drawn, plain=plain, guide=guide)
    except BaseException:
        core.stop()
        raise
    _log_start(core.start(), "console")
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        return run()
    finally:
        first_frame.set()
        core.stop()
        _log_end(core, "console")


def _front_end(
    core: CoreThread,
    settings: Settings,
    drawn: Callable[[], None],
    *,
    plain: bool,
    guide: Guide | None,
) -> Callable[[], int]:
    """Return the function that runs the console until it is closed and returns its exit code."""
    if plain:
        from aileron_tui.cli.plain import plain_console

        return lambda: plain_console(core, settings, drawn).run()
    from aileron_tui.cli.screen import console_app, show

    app = console_app(core, settings, drawn, guide)

    def run() -> int:
        with asyncio.Runner() as runner:
            return runner.run(show(app))

    return run
