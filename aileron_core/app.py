"""Composes the core: opens a home, creates its services, runs their housekeeping, and closes them."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from aileron_core import __version__, tasks
from aileron_core.audit.head import JOURNAL, HeadFile, SystemJournal
from aileron_core.audit.read import head_contradiction
from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console.address import ConsoleAddress
from aileron_core.console.audit_reader import AuditReader
from aileron_core.console.call_reader import CallReader
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.records import ConsoleRecords
from aileron_core.console.service import ConsoleService
from aileron_core.console.storage_monitor import StorageMonitor
from aileron_core.console_port import CoreEvent
from aileron_core.errors import AileronError, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.history.keys import HistoryKeys, NoVault
from aileron_core.history.sealed_screens import SealedScreens
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
from aileron_core.runs.read_back import ReadBackService
from aileron_core.runs.recovery import Recovery, restore_claims
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.retention import Retention
from aileron_core.runs.store import RunStore
from aileron_core.runs.unknown_outcomes import UnknownOutcomeService
from aileron_core.sessions.model import Session
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.service import SessionService, unknown_session
from aileron_core.sessions.traffic import TrafficMeter
from aileron_core.settings import Settings
from aileron_core.storage.database import Database

if TYPE_CHECKING:
    from aileron_core.connectors.wasm.engine import WasmEngine

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
    history_keys: HistoryKeys = field(default_factory=NoVault)

    def routes_shown(self) -> tuple[str, ...]:
        """Return `host:port -> address:port` of each route."""
        return tuple(f"{each.host} -> {each.address}:{each.port}" for each in self.routes)


class _Base:
    """What every other service is given."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        self.home = home
        self.options = options
        self.clock = clock
        self.database = database
        self.version = __version__
        self.settings = GateSettings(expires_seconds=options.settings.expires_seconds)
        self.events: EventBus[CoreEvent] = EventBus()
        self.pause = PauseSwitch()
        self.registry = RunRegistry()
        self.run_changed: EventBus[LiveRun] = EventBus()
        self.sessions = SessionRegistry(clock)
        self.screens = SealedScreens(
            database, options.history_keys, clock, days=options.settings.history_days
        )


class _Reports:
    """The parts that notify the front ends, and those that write the audit."""

    def __init__(self, base: _Base) -> None:
        clock, database = base.clock, base.database
        self.traffic = TrafficMeter(
            base.sessions,
            database,
            clock,
            changed=lambda: self.publisher.sessions_changed(),  # noqa: PLW0108 - not there yet
        )
        self.publisher = EventPublisher(
            base.events,
            base.registry,
            base.sessions,
            clock,
            preview_seconds=base.settings.preview_seconds,
            traffic=self.traffic.view,
        )
        self.records = ConsoleRecords(database, clock)
        self.storage = StorageMonitor(base.events, self.records)
        self.address = ConsoleAddress(base.home, database, clock, self.records)
        self.audit = AuditReader(base.home, database, clock)


class _Files:
    """The installed files, the accepted projects, and the engine that runs connectors."""

    def __init__(self, base: _Base, publisher: EventPublisher) -> None:
        routes = base.options.routes
        store = ConnectorStore(base.home.path)
        self.connectors = ConnectorRegistry(store, lambda: _engine(routes, base.clock))
        if routes:
            _ = self.connectors.engine  # a route that cannot be used ends the start
        self.stop_signal = StopSignal(self.connectors.stop_running)
        self.library = HomeLibrary(
            actions=base.home.actions,
            store=store,
            registry=self.connectors,
            database=base.database,
            clock=base.clock,
            routes=routes,
            changed=lambda: publisher.library_changed(self.library),
            guard=self.stop_signal.make_stoppable,
        )
        self.project_trust = ProjectTrust(base.database, base.clock)


def _engine(routes: Sequence[Route], clock: Clock) -> "WasmEngine":
    from aileron_core.connectors.http.client import OutgoingClient
    from aileron_core.connectors.wasm.engine import WasmEngine

    outgoing = OutgoingClient(routes=routes, clock=clock)
    # Compiled forms stay in memory: only a key from a vault would outlive this process.
    return WasmEngine(outgoing, separate_compiler=True)


class _Runs:
    """The gate, and what a run goes through behind it."""

    def __init__(self, base: _Base, library: HomeLibrary) -> None:
        clock, database = base.clock, base.database
        registry, settings = base.registry, base.settings
        executor = Executor(clock)
        locks = ConnectorLocks()
        self.store = RunStore(database, clock, base.run_changed, base.options.failpoint)
        self.previews = PreviewFetcher(executor, self.store, library, clock, settings)
        self.gate = Gate(
            library=library,
            registry=registry,
            store=self.store,
            previews=self.previews,
            executor=executor,
            locks=locks,
            database=database,
            clock=clock,
            settings=settings,
            pause=base.pause,
            argument_quota=ArgumentQuota(
                database, registry, self.store, clock, max_bytes=settings.argument_bytes
            ),
            is_session_open=lambda session_id: base.sessions.get(session_id) is not None,
        )
        self.read_backs = ReadBackService(
            store=self.store,
            registry=registry,
            previews=self.previews,
            library=library,
            clock=clock,
            settings=settings,
        )
        self.approvals = ApprovalService(
            registry=registry,
            store=self.store,
            previews=self.previews,
            runner=ApprovedRunner(
                executor=executor,
                store=self.store,
                previews=self.previews,
                library=library,
                locks=locks,
                clock=clock,
                settings=settings,
                pause=base.pause,
            ),
            database=database,
            clock=clock,
            settings=settings,
            pause=base.pause,
            read_backs=self.read_backs,
            unknown_outcomes=UnknownOutcomeService(
                store=self.store, registry=registry, previews=self.previews, library=library
            ),
        )
        self.retention = Retention(
            database,
            registry,
            self.store,
            clock,
            days=base.options.settings.history_days,
            backups=base.home.backups,
        )


class _Commands:
    """What a person's commands and the agents' sessions are carried out by."""

    def __init__(self, base: _Base, reports: _Reports, files: _Files, runs: _Runs) -> None:
        self.session_service = SessionService(
            registry=base.sessions,
            database=base.database,
            clock=base.clock,
            changed=reports.publisher.sessions_changed,
            ended=runs.approvals.requester_ended,
            containment_changed=runs.approvals.requester_changed,
        )
        self.emergency_stop = EmergencyStop(
            stop_signal=files.stop_signal,
            pause=base.pause,
            approvals=runs.approvals,
            registry=base.registry,
            run_changed=base.run_changed,
            sessions=self.session_service,
            record=reports.records.record_by_person,
        )
        self.console = ConsoleService(
            version=base.version,
            home=base.home,
            routes=base.options.routes_shown(),
            accepted_installed=base.options.accept_installed,
            address=reports.address,
            events=base.events,
            publisher=reports.publisher,
            storage=reports.storage,
            records=reports.records,
            database=base.database,
            clock=base.clock,
            registry=base.registry,
            approvals=runs.approvals,
            library=files.library,
            sessions=self.session_service,
            pause=base.pause,
            emergency_stop=self.emergency_stop,
            audit=reports.audit,
            calls=CallReader(
                database=base.database,
                registry=base.registry,
                library=files.library,
                publisher=reports.publisher,
                screens=base.screens,
            ),
            screens=base.screens,
        )


class App:
    """The services of one open home, on the core's own loop. See `open`."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        base = _Base(home, options, clock, database)
        self.home = home
        self.options = options
        self.clock = clock
        self.database = database
        self.version = base.version
        self.events = base.events
        self.pause = base.pause
        self.registry = base.registry
        self.run_changed = base.run_changed
        self.sessions = base.sessions
        self.screens = base.screens

        reports = _Reports(base)
        self.traffic = reports.traffic
        self.publisher = reports.publisher
        self.records = reports.records
        self.storage = reports.storage
        self.address = reports.address
        self.audit = reports.audit

        files = _Files(base, self.publisher)
        self.connectors = files.connectors
        self.library = files.library
        self.project_trust = files.project_trust

        runs = _Runs(base, self.library)
        self.run_store = runs.store
        self.previews = runs.previews
        self.gate = runs.gate
        self.approvals = runs.approvals
        self.read_backs = runs.read_backs
        self.retention = runs.retention

        commands = _Commands(base, reports, files, runs)
        self.session_service = commands.session_service
        self.console = commands.console

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
            closing.callback(home.daemon_file.unlink, missing_ok=True)
            heads = closing.enter_context(ExitStack())
            database = Database(home.database)
            closing.push_async_callback(asyncio.to_thread, database.close)
            # Before the first record of this process overwrites what the last one left.
            contradiction = await database.read(lambda c: head_contradiction(c, home.path))
            _copy_heads(home, database, heads)
            app = cls(home, options, clock or SystemClock(), database)
            closing.push_async_callback(asyncio.to_thread, app.connectors.close)
            database.on_commit(app.publisher.records_committed)
            database.on_failure(app.storage.commit_failed)
            recovery = await app._begin(contradiction)
            closing.push_async_callback(app._end)
            closing.callback(recovery.cancel)
            closing.callback(tasks.spawn(app._housekeeping(), name="housekeeping").cancel)
            yield app

    async def _begin(self, contradiction: str) -> asyncio.Task[None]:
        """Record the start, load what was stored, and begin the recovery; return the recovery's task."""
        await self.records.record_start(
            {
                "version": self.version,
                "routes": list(self.options.routes_shown()),
                "accept_installed": self.options.accept_installed,
                "upstreams": self.options.settings.gateway.custom_addresses(),
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
        self.publisher.runs_recovered()
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
            self.screens.sweep,
            self.storage.probe,
        )
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for job in jobs:
                try:
                    await job()
                except StorageUnavailable as error:
                    self.storage.report_failure(error.message)
                except (AileronError, OSError, sqlite3.Error) as error:
                    _log.error("housekeeping failed with %s", type(error).__name__)

    async def _end(self) -> None:
        self.audit.close()
        self.read_backs.close()
        if left := await self.registry.wait_for_executing(_SETTLE_SECONDS):
            # The next start records them as unknown.
            _log.warning("%d runs were still going on when the console stopped", left)
        with suppress(AileronError):
            await self.traffic.sweep(everything=True)
            await self.records.record_stop()


def _copy_heads(home: Home, database: Database, closing: ExitStack) -> None:
    """Write the audit's head outside the database after each commit."""
    head_file = HeadFile(home.audit_head)
    closing.callback(head_file.close)
    database.on_commit(head_file)
    if JOURNAL.exists():
        journal = SystemJournal(home.path)
        closing.callback(journal.close)
        database.on_commit(journal)
