"""Starts the core with its server and MCP on one thread, and the console's screen on the main one."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Final

from aileron_core.app import App, AppOptions, MakeOutgoing
from aileron_core.console_port.events import ApprovalsRead, CoreEvent
from aileron_core.core_thread import CoreThread
from aileron_core.home.layout import Home
from aileron_core.library.accepted_settings import load_policy
from aileron_core.runs.interfaces import Failpoint, no_failpoint
from aileron_core.server.sockets import bind_tcp, bind_unix
from aileron_core.settings import Settings, load_settings
from aileron_core.tracing import tracer_from_environment
from aileron_core.vault.secret import Secret
from aileron_tui.cli.arguments import route_argument
from aileron_tui.cli.logfile import log_to
from aileron_tui.cli.output import EXIT, UNATTENDED, CliError, CommandContext
from aileron_tui.draw.guide import Guide

_log = logging.getLogger(__name__)


def core_thread(
    home: Home,
    routes: Sequence[str] = (),
    *,
    accept_installed: bool = False,
    first_frame: Future[None] | None = None,
    failpoint: Failpoint = no_failpoint,
    passphrase: Secret | None = None,
    use_keyring: bool = False,
    make_outgoing: MakeOutgoing | None = None,
    settings: Settings | None = None,
) -> CoreThread:
    """Return the core with its server, ready to be started.

    Args:
        first_frame: done once the screen is drawn. The core is ready as soon as the home is open and
            the ports are taken; the server, whose imports would delay the screen, answers from then
            on. None: it serves before it is ready.
        failpoint: for tests of crashes, in process only.
        passphrase: unlocks the vault at the start, unattended.
        use_keyring: the system's keyring may open the vault before a passphrase did.
        make_outgoing: for tests, in process only: what sends connectors' requests instead.
        settings: of the home's `config.toml`, where the caller has read it: what is verified is what is used.

    Raises:
        InvalidRequest: a route is not of the form HOST:PORT=127.0.0.1:PORT.
        FileProblems: config.toml or policy.toml cannot be used.
    """
    settings = settings or load_settings(home.config)
    options = AppOptions(
        routes=tuple(route_argument(text) for text in routes),
        accept_installed=accept_installed,
        settings=settings,
        policy=load_policy(home.policy),
        failpoint=failpoint,
        passphrase=passphrase,
        use_keyring=use_keyring,
        has_console=first_frame is not None,
        make_outgoing=make_outgoing,
        tracer=tracer_from_environment(),
    )

    @contextlib.asynccontextmanager
    async def opened() -> AsyncGenerator[App]:
        async with App.open(home, options) as app:
            unsubscribe = app.events.subscribe(_freeze_calls)
            try:
                async with _bound(app, settings) as listeners:
                    if first_frame is None:
                        async with _served(app, settings, listeners):
                            yield app
                    else:
                        async with _served_after(first_frame, app, settings, listeners):
                            yield app
            finally:
                unsubscribe()

    return CoreThread(opened)


@contextlib.asynccontextmanager
async def _bound(app: App, settings: Settings) -> AsyncGenerator[list[socket.socket]]:
    """Take the port and the home's socket: what connects to them from now on waits to be served."""
    remembered = settings.listen_port or await app.address.remembered_port()
    tcp = bind_tcp(settings.listen_host, remembered)
    try:
        unix = bind_unix(app.home.socket)
        app.address.listen_on(tcp.getsockname()[1])
        try:
            yield [tcp, unix]
        finally:
            unix.close()
            with contextlib.suppress(OSError):
                app.home.socket.unlink()
    finally:
        tcp.close()


@contextlib.asynccontextmanager
async def _served(
    app: App, settings: Settings, listeners: list[socket.socket]
) -> AsyncGenerator[None]:
    from aileron_tui.cli.serving import served

    async with served(app, settings, listeners):
        yield


@contextlib.asynccontextmanager
async def _served_after(
    first_frame: Future[None], app: App, settings: Settings, listeners: list[socket.socket]
) -> AsyncGenerator[None]:
    """Serve from *first_frame* on; a server that does not start ends the core."""
    closing = asyncio.Event()

    async def serve() -> None:
        await asyncio.wrap_future(first_frame)
        async with _served(app, settings, listeners):
            gc.freeze()  # what was imported since the first frame stays as well
            await closing.wait()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(serve(), name="server")
            try:
                yield
            finally:
                closing.set()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


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
    _log.info("%s %s started as process %d at %s", how, app.version, os.getpid(), app.address.url)


def _log_end(core: CoreThread, how: str) -> None:
    if core.failure is not None:
        _log.error("%s ended because its core ended", how)
    else:
        _log.info("%s ended", how)


def collect_rarely() -> None:
    """Collect garbage from now on, but for the objects of the start, which live as long as the process.

    With 10,000 waiting calls, one collection over all of it stops agents and screen for a third of a second.
    """
    gc.freeze()
    # A full collection stops both threads, and long-lived garbage is rare: so collect rarely.
    gc.set_threshold(700, 10, 100)
    gc.enable()


TURN_SECONDS: Final = 0.0001
"""Of a thread in the interpreter while others want it: screen, server and guests' output share it."""


def run_serve(
    context: CommandContext,
    routes: Sequence[str],
    *,
    accept_installed: bool,
    passphrase: Secret | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    home = _prepare(context)
    gc.disable()
    settings = load_settings(home.config)
    core = core_thread(
        home, routes, settings=settings, accept_installed=accept_installed, passphrase=passphrase
    )
    ended = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    app = core.start()
    _log_start(app, "serve")
    if settings.notify.command:
        from aileron_tui.cli.notices import ServedNotices  # most homes have none

        ServedNotices(core, settings.notify)
    sys.setswitchinterval(TURN_SECONDS)
    collect_rarely()
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
    context.show(
        {"url": app.address.url, "socket": str(app.home.socket), "home": str(app.home.path)}
    )
    context.say(
        f"Aileron is serving {app.home.path} at {app.address.url}. Nobody can approve without a console."
    )
    for route in app.options.routes:
        answered_by = f"{route.address}:{route.port}"
        context.say(f"Test route: {route.host} is answered by {answered_by}, without a credential.")
    if app.vault_service.started_unattended:
        context.say(UNATTENDED)
    if app.options.accept_installed:
        context.say(
            "All installed actions and connectors were accepted without review "
            "(--accept-installed)."
        )


def run_console(
    context: CommandContext,
    routes: Sequence[str],
    *,
    accept_installed: bool,
    plain: bool = False,
    before_screen: Callable[[], object] | None = None,
    guide: Guide | None = None,
    passphrase: Secret | None = None,
    use_keyring: bool = False,
) -> int:
    """Open the console; return the exit code once it is closed and the core has stopped.

    Args:
        plain: line by line, without a screen.
        before_screen: called when everything is ready, just before the screen begins.
        guide: a demo that leads through the screen.
        passphrase: unlocks the vault at the start, unattended.
        use_keyring: the system's keyring may open the vault before a passphrase did.
    """
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise CliError(
            EXIT.FAILED, "The console needs a terminal. To run without one, use `aileron serve`."
        )
    home = _prepare(context)
    gc.disable()
    first_frame: Future[None] = Future()

    def drawn() -> None:
        collect_rarely()
        with contextlib.suppress(InvalidStateError):  # the core has ended
            first_frame.set_result(None)

    settings = load_settings(home.config)
    core = core_thread(
        home,
        routes,
        settings=settings,
        accept_installed=accept_installed,
        first_frame=first_frame,
        passphrase=passphrase,
        use_keyring=use_keyring,
    )
    core.begin()
    try:
        run = _front_end(core, settings, drawn, plain=plain, guide=guide)
    except BaseException:
        first_frame.cancel()
        core.stop()
        raise
    _log_start(core.start(), "console")
    sys.setswitchinterval(TURN_SECONDS)
    try:
        if before_screen is not None:
            before_screen()
        return run()
    finally:
        first_frame.cancel()
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
    return lambda: asyncio.run(show(app))
