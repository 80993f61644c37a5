"""Composes the core: opens a home, creates its services, runs their housekeeping, and closes them."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import Self

from aileron_core import tasks
from aileron_core.audit.head import JOURNAL, HeadFile, SystemJournal
from aileron_core.audit.read import head_contradiction
from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.console.address import ConsoleAddress
from aileron_core.console.audit_reader import AuditReader
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.records import ConsoleRecords
from aileron_core.console.service import ConsoleService
from aileron_core.console.storage_monitor import StorageMonitor
from aileron_core.console_port import CoreEvent
from aileron_core.errors import AileronError, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.home.layout import Home, HomeLock
from aileron_core.library.home_library import HomeLibrary
from aileron_core.library.project_trust import ProjectTrust
from aileron_core.runs import ApprovalService, Gate, GateSettings, LiveRun
from aileron_core.runs.approved import ApprovedRunner
from aileron_core.runs.argument_quota import ArgumentQuota
from aileron_core.runs.emergency_stop import EmergencyStop, StopSignal
from aileron_core.runs.executor import Executor
from aileron_core.runs.interfaces import Failpoint, no_failpoint
from aileron_core.runs.locks import ConnectorLocks
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.recovery import Recovery, restore_claims
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.retention import Retention
from aileron_core.runs.store import RunStore
from aileron_core.sessions.model import Session
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.service import SessionService, unknown_session
from aileron_core.sessions.traffic import TrafficMeter
from aileron_core.settings import Settings
from aileron_core.storage.database import Database

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 0.5
_SETTLE_SECONDS = 3.0
"""How long effects in flight have, when the console stops, to end on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """The settings and command-line options that one run of a console is started with."""

    routes: tuple[Route, ...] = ()
    accept_installed: bool = False
    settings: Settings = field(default_factory=Settings)
    failpoint: Failpoint = no_failpoint

    def routes_shown(self) -> tuple[str, ...]:
        """Return `host:port -> address:port` of each route."""
        return tuple(f"{each.host} -> {each.address}:{each.port}" for each in self.routes)


class App:
    """The services of one open home, on the core's own loop. See `open`."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        settings = GateSettings(expires_seconds=options.settings.expires_seconds)
        self.home = home
        self.options = options
        self.clock = clock
        self.database = database
        self.version = metadata.version("aileron")
        self.events: EventBus[CoreEvent] = EventBus()
        self.pause = PauseSwitch()
        self.registry = RunRegistry()
        self.run_changed: EventBus[LiveRun] = EventBus()

        self.sessions = SessionRegistry(clock)
        self.traffic = TrafficMeter(
            self.sessions,
            database,
            clock,
            changed=lambda: self.publisher.sessions_changed(),  # noqa: PLW0108 - not there yet
        )
        self.publisher = EventPublisher(
            self.events,
            self.registry,
            self.sessions,
            clock,
            preview_seconds=settings.preview_seconds,
            traffic=self.traffic.view,
        )
        self.records = ConsoleRecords(database, clock)
        self.storage = StorageMonitor(self.events, self.records)
        self.address = ConsoleAddress(home, database, clock, self.records)

        self.outgoing = OutgoingClient(routes=options.routes, clock=clock)
        # Compiled forms stay in memory: only a key from a vault would outlive this process.
        self.engine = WasmEngine(self.outgoing, apart=True)
        self.stops = StopSignal(self.engine.stop_running)
        store = ConnectorStore(home.path)
        self.library = HomeLibrary(
            actions=home.actions,
            store=store,
            registry=ConnectorRegistry(store, self.engine),
            database=database,
            clock=clock,
            routes=options.routes,
            changed=lambda: self.publisher.library_changed(self.library),
            guard=self.stops.make_stoppable,
        )
        self.project_trust = ProjectTrust(database, clock)

        executor = Executor(clock)
        locks = ConnectorLocks()
        self.run_store = RunStore(database, clock, self.run_changed, options.failpoint)
        self.previews = PreviewFetcher(executor, self.run_store, self.library, clock, settings)
        self.gate = Gate(
            library=self.library,
            registry=self.registry,
            store=self.run_store,
            previews=self.previews,
            executor=executor,
            locks=locks,
            database=database,
            clock=clock,
            settings=settings,
            pause=self.pause,
            argument_quota=ArgumentQuota(
                database, self.registry, self.run_store, clock, max_bytes=settings.argument_bytes
            ),
            is_session_open=lambda session_id: self.sessions.get(session_id) is not None,
        )
        self.approvals = ApprovalService(
            registry=self.registry,
            store=self.run_store,
            previews=self.previews,
            runner=ApprovedRunner(
                executor=executor,
                store=self.run_store,
                previews=self.previews,
                library=self.library,
                locks=locks,
                clock=clock,
                settings=settings,
                pause=self.pause,
            ),
            database=database,
            clock=clock,
            settings=settings,
            pause=self.pause,
        )
        self.retention = Retention(
            database, self.approvals, clock, days=settings.keep_arguments_days
        )
        self.session_service = SessionService(
            registry=self.sessions,
            database=database,
            clock=clock,
            changed=self.publisher.sessions_changed,
            ended=self.approvals.requester_ended,
            containment_changed=self.approvals.requester_changed,
        )
        self.audit = AuditReader(home, database, clock)
        self.emergency_stop = EmergencyStop(
            stop_signal=self.stops,
            pause=self.pause,
            approvals=self.approvals,
            registry=self.registry,
            run_changed=self.run_changed,
            sessions=self.session_service,
            record=self.records.by_person,
        )
        self.console = ConsoleService(
            version=self.version,
            home=home,
            routes=options.routes_shown(),
            accepted_installed=options.accept_installed,
            address=self.address,
            events=self.events,
            publisher=self.publisher,
            storage=self.storage,
            records=self.records,
            database=database,
            clock=clock,
            registry=self.registry,
            approvals=self.approvals,
            library=self.library,
            sessions=self.session_service,
            pause=self.pause,
            emergency_stop=self.emergency_stop,
            audit=self.audit,
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls, home: Home, options: AppOptions, clock: Clock | None = None
    ) -> AsyncGenerator[Self]:
        """Open *home*: lock it, recover the runs of the last process, do its housekeeping until the end.

        Raises:
            HomeError: the home is locked, foreign or damaged.
            StorageUnavailable: the database cannot be written.
        """
        home.prepare()
        async with AsyncExitStack() as closing:
            lock = HomeLock(home)
            lock.acquire()
            closing.callback(lock.release)
            closing.callback(home.daemon.unlink, missing_ok=True)
            heads = closing.enter_context(ExitStack())
            database = Database(home.database)
            closing.push_async_callback(asyncio.to_thread, database.close)
            # Before the first record of this process overwrites what the last one left.
            contradiction = await database.read(lambda c: head_contradiction(c, home.path))
            _copy_heads(home, database, heads)
            app = cls(home, options, clock or SystemClock(), database)
            closing.callback(app.outgoing.close)
            closing.push_async_callback(asyncio.to_thread, app.engine.close)
            database.on_commit(app.publisher.committed)
            database.on_failure(app.storage.commit_failed)
            recovery = await app._begin(contradiction)
            closing.push_async_callback(app._end)
            closing.callback(recovery.cancel)
            closing.callback(tasks.spawn(app._housekeeping(), name="housekeeping").cancel)
            yield app

    async def _begin(self, contradiction: str) -> asyncio.Task[None]:
        """Record the start, load what was stored, and begin the recovery; return the recovery's task."""
        await self.records.started(
            {
                "version": self.version,
                "routes": list(self.options.routes_shown()),
                "accept_installed": self.options.accept_installed,
                "upstreams": self.options.settings.gateway.named(),
            },
            contradiction=contradiction,
        )
        await self.project_trust.load()
        await self.library.load()
        if self.options.accept_installed:
            await self.library.accept_all()
        recovering = await self._recover(await self.session_service.load())
        self.run_changed.subscribe(self.publisher.run_changed)
        return recovering

    async def _recover(self, known: Mapping[str, Session]) -> asyncio.Task[None]:
        recovery = Recovery(
            registry=self.registry,
            store=self.run_store,
            previews=self.previews,
            library=self.library,
            database=self.database,
            clock=self.clock,
            get_session=lambda session_id: known.get(session_id) or unknown_session(session_id),
        )
        # First, so that no run is held in memory with what its row has forgotten.
        await self.retention.sweep()
        rest = await recovery.recover()
        await restore_claims(self.registry, self.database)
        self.publisher.recovered()
        return tasks.spawn(recovery.resume_waiting(rest), name="recovery")

    async def _housekeeping(self) -> None:
        """Twice a second, do what depends on the time alone."""
        jobs: Sequence[Callable[[], Awaitable[None]]] = (
            self.library.poll,
            self.approvals.expire_overdue,
            self.session_service.sweep,
            self.traffic.sweep,
            self.publisher.sweep,
            self.retention.sweep,
            self.storage.probe,
        )
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for job in jobs:
                try:
                    await job()
                except StorageUnavailable as error:
                    self.storage.failed(error.message)
                except (AileronError, OSError, sqlite3.Error) as error:
                    _log.error("housekeeping failed with %s", type(error).__name__)

    async def _end(self) -> None:
        self.audit.close()
        if left := await self.registry.wait_for_executing(_SETTLE_SECONDS):
            # The next life takes them for unknown.
            _log.warning("%d runs were still going on when the console stopped", left)
        with suppress(AileronError):
            await self.traffic.sweep(everything=True)
            await self.records.stopped()


def _copy_heads(home: Home, database: Database, closing: ExitStack) -> None:
    """Write the audit's head outside the database after each commit."""
    head_file = HeadFile(home.audit_head)
    closing.callback(head_file.close)
    database.on_commit(head_file)
    if JOURNAL.exists():
        journal = SystemJournal(home.path)
        closing.callback(journal.close)
        database.on_commit(journal)
