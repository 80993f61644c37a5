"""The composition root of the core: it opens a home and puts the rooms together."""

import asyncio
import logging
import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Self

from aileron_core import tasks
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.head import JOURNAL, HeadFile, SystemJournal
from aileron_core.audit.read import head_contradiction
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, SystemClock, rfc3339
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.console.audit_reader import AuditReader
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.view_mapping import records_from
from aileron_core.console_port.port import CoreEvent, Snapshot
from aileron_core.errors import AileronError, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.hash_words import two_words
from aileron_core.home.daemon_file import write_daemon_file
from aileron_core.home.layout import Home, HomeLock
from aileron_core.library.home_library import HomeLibrary
from aileron_core.library.project_trust import ProjectTrust
from aileron_core.runs import ApprovalService, Gate, GateSettings, LiveRun
from aileron_core.runs.approved import ApprovedRunner
from aileron_core.runs.argument_quota import ArgumentQuota
from aileron_core.runs.emergency_stop import EmergencyStop, StopToken
from aileron_core.runs.executor import Executor
from aileron_core.runs.interfaces import Failpoint, no_failpoint
from aileron_core.runs.live_run import RunRegistry
from aileron_core.runs.locks import ConnectorLocks
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.recovery import Recovery
from aileron_core.runs.restore_claims import restore_claims
from aileron_core.runs.retention import Retention
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunState
from aileron_core.sessions.model import Session
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.service import SessionService, nobody
from aileron_core.sessions.traffic import TrafficMeter
from aileron_core.settings import Settings
from aileron_core.storage.database import Database, Tx

__all__ = ["App", "AppOptions"]

_log = logging.getLogger(__name__)
_TICK = 0.5
_SETTLE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """What the command line says of one life of a console."""

    routes: tuple[Route, ...] = ()
    accept_installed: bool = False
    settings: Settings = field(default_factory=Settings)
    failpoint: Failpoint = no_failpoint


class App:
    """The core on its own loop. Front ends hold this (the server) or its port (the console)."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock | None = None) -> None:
        self.home = home
        self.options = options
        self.clock = clock or SystemClock()
        self.events: EventBus[CoreEvent] = EventBus()
        self.sessions = SessionRegistry(self.clock)
        self.pause = PauseSwitch()
        self.url = ""
        self._lock = HomeLock(home)
        self._run_changed: EventBus[LiveRun] = EventBus()
        self._runs = RunRegistry()
        self._tick: asyncio.Task[None] | None = None
        self._recovering: asyncio.Task[None] | None = None

    # Life

    async def __aenter__(self) -> Self:
        """Take the home, bring back what the last life left, and begin to tick.

        Raises:
            HomeError: the home is locked, foreign or damaged.
            StorageUnavailable: the database cannot be written.
        """
        self.home.prepare()
        self._lock.acquire()
        try:
            await self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    async def _open(self) -> None:
        settings = GateSettings(expires_seconds=self.options.settings.expires_seconds)
        self.database = Database(self.home.database)
        self.traffic = TrafficMeter(self.sessions, self.database, self.clock, self._traffic_moved)
        self.publisher = EventPublisher(
            self.events,
            self._runs,
            self.sessions,
            self.clock,
            preview_seconds=settings.preview_seconds,
            traffic=self.traffic.view,
        )
        # Before the first record of this life overwrites what the last one left.
        found = await self.database.read(lambda c: head_contradiction(c, self.home.path))
        self._head_file = HeadFile(self.home.audit_head)
        self.database.on_commit(self._head_file)
        self._journald = SystemJournal(self.home.path) if JOURNAL.exists() else None
        if self._journald is not None:
            self.database.on_commit(self._journald)
        self.database.on_commit(self.publisher.committed)
        self.database.on_failure(self.publisher.commit_failed)
        self._store = ConnectorStore(self.home.path)
        self._outgoing = OutgoingClient(routes=self.options.routes, clock=self.clock)
        # Compiled forms stay in memory: only a key from a vault would outlive this process.
        self._engine = WasmEngine(self._outgoing, apart=True)
        self._stops = StopToken(self._engine.stop_running)
        self._registry = ConnectorRegistry(self._store, self._engine)
        self.library = HomeLibrary(
            actions=self.home.actions,
            store=self._store,
            registry=self._registry,
            database=self.database,
            clock=self.clock,
            routes=self.options.routes,
            changed=lambda: self.publisher.library_changed(self.library),
            guard=self._stops.guarded,
        )
        self._compose(settings)
        self.session_service = SessionService(
            book=self.sessions,
            database=self.database,
            clock=self.clock,
            changed=self.publisher.sessions_changed,
            gone=self._requester_gone,
            met=self._tell_waiting,
        )
        self.project_trust = ProjectTrust(self.database, self.clock)
        await self._note_start(found)
        await self.project_trust.load()
        await self.library.load()
        if self.options.accept_installed:
            await self.library.accept_all()
        await self._recover(await self.session_service.load())
        self.audit = AuditReader(self.home, self.database, self.clock)
        self.emergency_stop = EmergencyStop(
            stops=self._stops,
            pause=self.pause,
            approvals=self.approvals,
            registry=self._runs,
            run_changed=self._run_changed,
            sessions=self.session_service,
            note=self.note,
        )
        self._run_changed.subscribe(self.publisher.run_changed)
        self._tick = tasks.spawn(self._ticking(), name="tick")

    def _compose(self, settings: GateSettings) -> None:
        journal = RunStore(self.database, self.clock, self._run_changed, self.options.failpoint)
        executor = Executor(self.clock)
        locks = ConnectorLocks()
        lookout = PreviewFetcher(executor, journal, self.library, self.clock, settings)
        self._journal, self._lookout = journal, lookout
        self.gate = Gate(
            library=self.library,
            registry=self._runs,
            store=journal,
            previews=lookout,
            executor=executor,
            locks=locks,
            database=self.database,
            clock=self.clock,
            settings=settings,
            pause=self.pause,
            argument_quota=ArgumentQuota(
                self.database, self._runs, journal, self.clock, most=settings.argument_bytes
            ),
            is_open=lambda session_id: self.sessions.get(session_id) is not None,
        )
        carrier = ApprovedRunner(
            executor=executor,
            journal=journal,
            lookout=lookout,
            library=self.library,
            locks=locks,
            clock=self.clock,
            settings=settings,
            pause=self.pause,
        )
        self.approvals = ApprovalService(
            registry=self._runs,
            store=journal,
            previews=lookout,
            runner=carrier,
            database=self.database,
            clock=self.clock,
            settings=settings,
            pause=self.pause,
        )
        days = settings.keep_arguments_days
        self._forgetting = Retention(self.database, self.approvals, self.clock, days=days)

    async def _note_start(self, contradiction: str) -> None:
        extra = {
            "version": self.version,
            "routes": list(self.routes),
            "accept_installed": self.options.accept_installed,
            "upstreams": self.options.settings.gateway.named(),
        }

        def unit(tx: Tx) -> None:
            if contradiction:
                tx.record(self._record(AuditEvent.AUDIT_CUT, contradiction, {}))
            tx.record(self._record(AuditEvent.CONSOLE_STARTED, "The console started", extra))

        await self.database.write(unit)

    async def _recover(self, known: Mapping[str, Session]) -> None:
        recovery = Recovery(
            registry=self._runs,
            store=self._journal,
            previews=self._lookout,
            library=self.library,
            database=self.database,
            clock=self.clock,
            session_of=lambda session_id: known.get(session_id) or nobody(session_id),
        )
        # First, so that no run is held in memory with what its row has forgotten.
        await self._forgetting.sweep()
        rest = await recovery.recover()
        await restore_claims(self._runs, self.database)
        self.publisher.recovered()
        self._recovering = tasks.spawn(recovery.take_up(rest), name="recovery")

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop, in the reverse order. Effects in flight get `_SETTLE` seconds to end on record."""
        if self._tick is not None:
            self._tick.cancel()
        if self._recovering is not None:
            self._recovering.cancel()
        self.audit.close()
        await self._settle()
        with suppress(AileronError):
            await self.traffic.sweep(all_of_it=True)
            await self.database.write(
                lambda tx: tx.record(
                    self._record(AuditEvent.CONSOLE_STOPPED, "The console stopped", {})
                )
            )
        await asyncio.to_thread(self._engine.close)
        self._outgoing.close()
        await asyncio.to_thread(self.database.close)
        self._head_file.close()
        if self._journald is not None:
            self._journald.close()
        with suppress(FileNotFoundError):
            self.home.daemon.unlink()
        self._lock.release()

    async def _settle(self) -> None:
        """Wait for effects that have begun; one that takes longer is unknown to the next life."""
        running = [held for held in self._runs if held.row.state is RunState.EXECUTING]
        try:
            async with asyncio.timeout(_SETTLE):
                for held in running:
                    await held.ended.wait()
        except TimeoutError:
            _log.warning("%d runs were still going on when the console stopped", len(running))

    async def _ticking(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                await self.library.poll()
                await self.approvals.sweep()
                await self.session_service.sweep()
                await self.traffic.sweep()
                self.publisher.waiters.sweep(self._is_open)
                await self._forgetting.sweep()
                if not self.publisher.health.writable:
                    await self._probe()
            except StorageUnavailable as error:
                self.publisher.unwritable(error.message)
            except (AileronError, OSError, sqlite3.Error) as error:
                _log.error("a tick failed with %s", type(error).__name__)

    def _is_open(self, approval_id: str) -> bool:
        held = self._runs.approval(approval_id)
        return held is not None and not held.is_final

    async def note(self, event: AuditEvent, summary: str) -> None:
        """Put on record what a person did with the console itself.

        Raises:
            StorageUnavailable: it could not be written.
        """
        await self.database.write(lambda tx: tx.record(self._record(event, summary, {})))

    async def _probe(self) -> None:
        """See whether the database can be written again, by recording that it could not."""
        record = self._record(AuditEvent.STORAGE_MENDED, "The audit can be written again", {})
        await self.database.write(lambda tx: tx.record(record))
        self.publisher.mended()

    def _traffic_moved(self) -> None:
        self.publisher.sessions_changed()

    def _requester_gone(self, session_id: str) -> None:
        """Its approvals stay; what is shown of them differs."""
        self._lookout.forget(session_id)
        self._tell_waiting(session_id)

    def _tell_waiting(self, session_id: str) -> None:
        """Something differs that every open approval of a session shows."""
        for held in self._runs:
            if held.row.session_id == session_id and held.row.gated and not held.is_final:
                self._journal.notify(held)

    # Addresses

    @property
    def version(self) -> str:
        """Aileron's version."""
        return metadata.version("aileron")

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers that are answered over TCP."""
        return frozenset({self.url.removeprefix("http://")})

    @property
    def routes(self) -> tuple[str, ...]:
        """`host:port -> address:port`, from `--route`."""
        return tuple(f"{each.host} -> {each.address}:{each.port}" for each in self.options.routes)

    async def remembered_port(self) -> int:
        """Return the TCP port that was given to the first console of this home, 0 if none was."""
        query = "SELECT value FROM meta WHERE key = 'port'"
        found = await self.database.read(lambda c: c.execute(query).fetchone())
        # Another program may have written there; any free port will do then.
        return int(found[0]) if found and re.fullmatch(r"\d{1,5}", str(found[0])) else 0

    async def announce(self, port: int) -> None:
        """Write down where this console listens."""
        self.url = f"http://127.0.0.1:{port}"
        if not await self.remembered_port():

            def unit(tx: Tx) -> None:
                tx.execute("INSERT INTO meta VALUES('port', ?)", (str(port),))
                tx.record(self._record(AuditEvent.CONSOLE_PORT, f"Listens on port {port}", {}))

            await self.database.write(unit)
        write_daemon_file(self.home, self.url, self.clock.now())

    def look_again_for(self, read: str) -> None:
        """Fetch anew the previews that were refused for what counts now under the name *read*."""
        for held in self._runs:
            if held.is_waiting and read in held.preview.refused_reads:
                tasks.spawn(self._lookout.refresh(held), name="fetch a preview again")

    def status(self) -> dict[str, Any]:
        """Return what `aileron status` shows."""
        return {
            "running": True,
            "url": self.url,
            "pid": os.getpid(),
            "version": self.version,
            "pending": sum(1 for held in self._runs if held.row.gated and not held.is_final),
            "sessions": len(self.sessions.all()),
        }

    def time_text(self, seconds: float) -> str:
        """Return RFC 3339."""
        return rfc3339(seconds)

    async def snapshot(self, records: int = 500) -> Snapshot:
        """Return everything that a front end draws first; facts published after it are later than it."""
        found = await self.database.read(lambda connection: records_from(connection, records))
        approvals, more = self.publisher.first_approvals()
        return Snapshot(
            version=self.version,
            home=str(self.home.path),
            url=self.url,
            routes=self.routes,
            accepted_installed=self.options.accept_installed,
            approvals=approvals,
            more=more,
            sessions=self.publisher.sessions(),
            held_back=self.library.not_accepted(),
            problems=self.library.problems(),
            actions_ready=len(self.library.ready()),
            records=found,
            head_words=two_words(self.database.head.hash),
            health=self.publisher.health,
            library=self.library.items(),
            paused_at=self.pause.since,
        )

    def _record(self, event: AuditEvent, summary: str, extra: dict[str, Any]) -> AuditRecord:
        return AuditRecord(at=rfc3339(self.clock.now()), event=event, summary=summary, extra=extra)
