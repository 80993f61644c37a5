"""Runs the core on a thread and event loop of its own; front ends on other threads use it as their port."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.console_port.events import CoreEvent, CoreLost, Snapshot
from aileron_core.console_port.intents import Intent
from aileron_core.errors import Unavailable

_log = logging.getLogger(__name__)
_JOIN_SECONDS = 8.0
_SNAPSHOT_SECONDS = 5.0


class CoreThread:
    """A `ConsolePort`: the core on a loop of its own (uvloop where there is one).

    Args:
        open_core: opens the home, with whatever serves it, for as long as the context lasts.
    """

    def __init__(
        self, open_core: Callable[[], contextlib.AbstractAsyncContextManager[App]]
    ) -> None:
        self._open_core = open_core
        self._thread = threading.Thread(target=self._run, name="aileron-core", daemon=True)
        self._ready: Future[App] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._app: App | None = None
        self._sinks: list[Callable[[CoreEvent], None]] = []
        self._stopping = False
        self.failure: BaseException | None = None
        """What ended the core, where that was not `stop`."""

    def begin(self) -> None:
        """Start the core and return at once; `start` then only waits for it."""
        self._thread.start()

    def start(self) -> App:
        """Start the core and return once it serves.

        Raises:
            AileronError: it could not start (the home is locked, the port cannot be had).
        """
        if self._thread.ident is None:
            self.begin()
        return self._ready.result()

    def stop(self) -> None:
        """Stop serving, close the home, join the thread (8 s at most)."""
        self._stopping = True
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_JOIN_SECONDS)

    def wait(self) -> None:
        """Return when the core has ended, whatever ended it."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - the thread's edge: passed on to the caller that waits
            self.failure = error
            if not self._ready.done():
                self._ready.set_exception(error)
                return
            _log.error("the core ended with %s", type(error).__name__)
        finally:
            self._loop = None
        if not self._stopping:
            self._tell_lost()

    def _tell_lost(self) -> None:
        lost = CoreLost(
            message="Nothing can be decided or run now. Run `aileron logs` for details."
        )
        for sink in tuple(self._sinks):
            with contextlib.suppress(RuntimeError):
                sink(lost)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self._open_core() as app:
            self._app = app
            self._ready.set_result(app)
            await self._stop.wait()

    # The port

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. After `CoreLost` nothing happens."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # it ended just now; CoreLost is on its way
            self._loop.call_soon_threadsafe(self._begin, intent)

    def _begin(self, intent: Intent) -> None:
        assert self._app is not None
        tasks.spawn(self._app.console.submit(intent), name=f"intent {type(intent).__name__}")

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state; *sink* is called on the core's thread for every later event.

        Raises:
            Unavailable: the core has ended.
        """
        if self._loop is None or self._app is None:
            raise Unavailable("Aileron's server has stopped. Run `aileron logs` for details.")
        self._sinks.append(sink)
        future = asyncio.run_coroutine_threadsafe(self._subscribed(self._app, sink), self._loop)
        return future.result(_SNAPSHOT_SECONDS)

    async def _subscribed(self, app: App, sink: Callable[[CoreEvent], None]) -> Snapshot:
        # Events during the reading are queued until the snapshot is made, then delivered in order.
        early: list[CoreEvent] = []
        unsubscribe = app.events.subscribe(early.append)
        try:
            snapshot = await app.console.snapshot()
        finally:
            unsubscribe()
        app.events.subscribe(sink)
        for event in early:
            sink(event)
        return snapshot


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
