"""Composes the core: opens a home, creates its services, runs their housekeeping, and closes them."""

import asyncio
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from aileron_core import __version__, tasks
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.head import JOURNAL, HeadFile, SystemJournal
from aileron_core.audit.read import head_contradiction
from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.builtin.channel import ToolChannels
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.servers.started import StartServer
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console.account_commands import AccountCommands
from aileron_core.console.address import ConsoleAddress
from aileron_core.console.audit_reader import AuditReader
from aileron_core.console.call_reader import CallReader
from aileron_core.console.device_service import LINK_KEY, DeviceService
from aileron_core.console.grants import GrantCommands, PastAnswers
from aileron_core.console.head_signing import HeadSigning
from aileron_core.console.history_reader import HistoryReader
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.records import ConsoleRecords, StorageMonitor
from aileron_core.console.service import ConsoleService
from aileron_core.console.vault_service import VaultService
from aileron_core.console_port.events import CoreEvent
from aileron_core.containment.detection import SEEN_CONTAINED
from aileron_core.containment.safe_paths import remove_tree
from aileron_core.credentials.accounts import AccountService
from aileron_core.credentials.authorization import AuthorizationService
from aileron_core.credentials.bindings import BindingService
from aileron_core.credentials.model_keys import ModelKeys
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.credentials.upstreams import base_urls
from aileron_core.errors import AileronError, Problem, StorageUnavailable, VaultLocked
from aileron_core.events import EventBus
from aileron_core.history.sealed_screens import SealedScreens
from aileron_core.history.sealing import HistoryKeys
from aileron_core.home.layout import Home, HomeLock
from aileron_core.library import removal
from aileron_core.library.acceptance import load_recorded, named, removals
from aileron_core.library.acceptances import ProjectTrust
from aileron_core.library.accepted_settings import POLICY, AcceptedSettings, PolicyInForce
from aileron_core.library.authenticated_records import AuthenticatedRecords
from aileron_core.library.home_library import HomeLibrary
from aileron_core.library.removal import FileKind
from aileron_core.library.session_library import SessionLibrary
from aileron_core.policy.model import Policy
from aileron_core.runs import ApprovalService, Gate, GateSettings, LiveRun
from aileron_core.runs.account_waits import AccountWaits
from aileron_core.runs.approved import ApprovedRunner
from aileron_core.runs.argument_quota import ArgumentQuota
from aileron_core.runs.emergency_stop import EmergencyStop, StopSignal
from aileron_core.runs.executor import Executor
from aileron_core.runs.grants import Grants
from aileron_core.runs.interfaces import Failpoint, no_failpoint
from aileron_core.runs.live_run import random_nonce
from aileron_core.runs.locks import ConnectorLocks
from aileron_core.runs.model import RunRecord
from aileron_core.runs.outcomes import OutcomeService
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.recovery import Recovery, restore_claims
from aileron_core.runs.refusals import RefusedCalls
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.sealed_contents import SealedContents
from aileron_core.runs.standing import StandingAnswers
from aileron_core.runs.store import RunStore
from aileron_core.runs.tool_rules import ToolRules
from aileron_core.runs.undo import UndoService
from aileron_core.sessions.model import Session
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.service import SessionService, unknown_session
from aileron_core.sessions.tool_calls import ToolCallMeter
from aileron_core.sessions.traffic import TrafficMeter
from aileron_core.settings import Rehearse, Settings
from aileron_core.storage.database import Database
from aileron_core.storage.migrations import migrate
from aileron_core.tracing.spans import NO_TRACER, Tracer
from aileron_core.vault.history_keys import VaultHistoryKeys
from aileron_core.vault.os_keyring import OsKeyring
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault, VaultState

if TYPE_CHECKING:
    from aileron_core.connectors.http.client import OutgoingClient
    from aileron_core.connectors.wasm.engine import WasmEngine
    from aileron_core.library.running_servers import RunningServers

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 0.5
_SETTLE_SECONDS = 3.0
"""How long effects in flight have, when the console stops, to end on record."""


MakeOutgoing: TypeAlias = Callable[[Sequence[Route], Clock], "OutgoingClient"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """The settings and command-line options that one run of a console is started with."""

    routes: tuple[Route, ...] = ()
    accept_installed: bool = False
    settings: Settings = field(default_factory=Settings)
    policy: Policy = field(default_factory=Policy)
    failpoint: Failpoint = no_failpoint
    history_keys: HistoryKeys | None = None
    """None: the vault's own."""
    passphrase: Secret | None = None
    """Unlocks the vault at the start, unattended; overwritten then."""
    use_keyring: bool = False
    """The system's keyring may open the vault before a passphrase did; see `Vault`."""
    keyring: OsKeyring | None = None
    """None: the one that runs."""
    has_console: bool = True
    """A person sits before this process: not so of `aileron serve`."""
    start_server: StartServer | None = None
    """What starts MCP servers, in place of their boxes; for tests in this process only."""
    make_outgoing: MakeOutgoing | None = None
    """What sends connectors' requests, in place of the real client; for tests in this process only."""
    tracer: Tracer = NO_TRACER

    def routes_shown(self) -> tuple[str, ...]:
        """Return `host:port -> address:port` of each route."""
        return tuple(f"{each.host} -> {each.address}:{each.port}" for each in self.routes)


class _Base:
    """The home, the vault, the registries and what else every later part is given; `App` adds part after part."""

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
        self.tool_channels = ToolChannels()
        # It changes on threads of its own; whoever listens runs on the core's loop.
        self.vault = Vault(
            home.path,
            clock,
            deliver=asyncio.get_running_loop().call_soon_threadsafe,
            keyring=options.keyring,
            use_keyring=options.use_keyring,
        )
        self.records = ConsoleRecords(database, clock)
        # Without routes, of its own: tokens are asked for at the real host alone.
        self.token_endpoint = TokenEndpoint(lambda: self._outgoing(()), clock)
        self.bindings = BindingService(
            self.vault, clock, self.records.record_binding, self.token_endpoint
        )
        self.authorizations = AuthorizationService(
            self.vault, self.bindings, self.token_endpoint, clock
        )
        self.model_keys = ModelKeys(
            self.vault,
            clock,
            self.records.record_binding,
            base_urls(options.settings.gateway),
            lambda: self.accepted_settings.count,
        )
        self.signing = HeadSigning(self.vault, home.path, clock)
        database.sign_heads(self.signing.sign)
        self.accepted_files, self.accepted_projects = _file_sets(database, self.vault, clock)
        self.accepted_settings = AcceptedSettings(
            database, self.vault, clock, options.settings.text, home.path
        )
        self.accepted_policy = AcceptedSettings(
            database, self.vault, clock, options.policy.text, home.path, POLICY
        )
        self.policy = PolicyInForce(self.accepted_policy, options.policy)
        self.accounts = AccountService(
            self.vault,
            self.bindings,
            [route.host for route in options.routes],
            unverified=self._unverified,
        )
        self.history_keys: HistoryKeys = options.history_keys or VaultHistoryKeys(
            self.vault, home.path
        )
        self.screens = SealedScreens(
            database, self.history_keys, clock, days=options.settings.history_days
        )
        self.standing = StandingAnswers(
            rules=self.policy.action_rules,
            grants=Grants(clock, self._is_contained),
            clock=clock,
            is_contained=self._is_contained,
        )
        self.grants = GrantCommands(
            events=self.events,
            registry=self.registry,
            standing=self.standing,
            rules=options.policy.action_rules,
            records=self.records,
            past=PastAnswers(
                screens=self.screens,
                is_open=lambda: self.vault.is_unlocked and bool(options.settings.history_days),
            ),
            pause=self.pause,
        )
        self.standing.grants.tell(self.grants.changed, self.grants.ended)
        self.run_changed.subscribe(self.standing.follow)

    def _outgoing(self, routes: Sequence[Route]) -> "OutgoingClient":
        from aileron_core.connectors.http.client import OutgoingClient

        if self.options.make_outgoing is not None:
            return self.options.make_outgoing(routes, self.clock)
        return OutgoingClient(routes=routes, clock=self.clock)

    def _is_contained(self, session: Session) -> bool:
        return self.sessions.containment(session) in SEEN_CONTAINED

    def _unverified(self) -> Literal["locked", "settings"] | None:
        if self.accepted_files.waits_for_vault:
            return "locked"
        return None if self.accepted_settings.count else "settings"

    def has_tools(self, session_id: str) -> bool:
        """Return whether the session is open and has the built-in tools."""
        session = self.sessions.get(session_id)
        return session is not None and bool(session.terms.builtins)

    def plugin_tools(self, session_id: str) -> tuple[str, ...]:
        """Return the ops of connectors that the session was launched with, if it is open."""
        session = self.sessions.get(session_id)
        return session.terms.plugin_tools if session is not None else ()

    def expires_seconds(self) -> float:
        """Return `approval.expires_seconds`; no more than the default before a person accepted it."""
        return self._in_force(self.options.settings.expires_seconds, Settings().expires_seconds)

    def lock_minutes(self) -> float:
        """Return `vault.lock_minutes`; no more than the default before a person accepted it."""
        own, usual = self.options.settings.vault, Settings().vault
        return self._in_force(own.lock_minutes, usual.lock_minutes)

    def review_origins(self) -> tuple[str, ...]:
        """Return `review.origins`, none before a person accepted them: a link would lead there."""
        return self.options.settings.review_origins if self.accepted_settings.count else ()

    def arm_ms(self) -> int:
        """Return `console.arm_ms`; no less than the default before a person accepted it."""
        own, usual = self.options.settings.console.arm_ms, Settings().console.arm_ms
        return own if self.accepted_settings.count else max(own, usual)

    def link_key(self) -> str:
        """Return the key that makes a link; the usual one before a person accepted their own."""
        own = dict(self.options.settings.console.keys).get("open_review", LINK_KEY)
        return own if self.accepted_settings.count else LINK_KEY

    def rehearse(self) -> Rehearse:
        """Return `builtin.bash.rehearse`; not `never` before a person accepted it."""
        own = self.options.settings.rehearse
        return own if self.accepted_settings.count or own != "never" else "ask"

    def _in_force(self, own: float, usual: float) -> float:
        """Return *own*, where 0 is "never", or less: another program may have written it."""
        return own if self.accepted_settings.count else min(own or usual, usual)

    def nonce_of(self, row: RunRecord) -> str:
        """Return the digest's nonce of a run: from the vault's key and the run's own, else a random one."""
        if not self.vault.is_unlocked:
            return random_nonce(row)
        try:
            key = self.vault.derive_key("digest nonce")
        except VaultLocked:
            return random_nonce(row)
        return hmac.digest(key, f"{row.run_id} {row.content_key}".encode(), "sha256")[:16].hex()

    def alarms(self) -> tuple[Problem, ...]:
        """Return what does not verify with the vault's key, and the rules that no accepted action fits."""
        sets = (self.accepted_files, self.accepted_projects)
        found = filter(None, (self.signing.alarm, *(each.problem for each in sets)))
        unverified = (Problem(file="aileron.db", message=each) for each in found)
        return (*unverified, *self.policy.problems)


class _Reports(_Base):
    """The parts that notify the front ends, and those that write the audit."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        super().__init__(home, options, clock, database)
        self.traffic = TrafficMeter(
            self.sessions,
            database,
            clock,
            changed=lambda: self.publisher.sessions_changed(),  # noqa: PLW0108 - not there yet
        )
        self.tool_calls = ToolCallMeter(
            self.sessions,
            database,
            clock,
            inspects=self.options.settings.gateway.inspect,
            changed=lambda: self.publisher.sessions_changed(),  # noqa: PLW0108 - as above
        )
        self.undo = UndoService(
            self.tool_channels,
            database,
            clock,
            forgotten=lambda run_id: self.publisher.undo_forgotten(run_id),  # noqa: PLW0108 - as above
        )
        self.run_changed.subscribe(self.undo.run_changed)
        self.publisher = EventPublisher(
            self.events,
            self.registry,
            self.sessions,
            clock,
            preview_seconds=self.settings.preview_seconds,
            can_undo=self.undo.can_undo,
            traffic=self.traffic.view,
            waits_for_vault=lambda session_id: (
                self.traffic.was_refused_for_vault(session_id) and self.vault.state == "locked"
            ),
            tool_calls=self.tool_calls.view,
        )
        self.vault_service = VaultService(
            self.vault,
            self.records,
            self.events,
            self.registry,
            is_needed=lambda: any(each.terms.key_providers for each in self.sessions.all()),
            lock_minutes=self.lock_minutes,
        )
        self.storage = StorageMonitor(self.events, self.records)
        self.address = ConsoleAddress(self.home, database, clock, self.records)
        self.audit = AuditReader(self.home, database, clock, self.signing)
        self.devices = DeviceService(
            clock=clock,
            events=self.events,
            records=self.records,
            address=self.address,
            sessions=self.sessions,
            origins=self.review_origins,
            arm_ms=self.arm_ms,
            link_key=self.link_key,
            has_console=self.options.has_console,
        )


class _Files(_Reports):
    """The installed files, the accepted projects, and the engine that runs connectors."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        super().__init__(home, options, clock, database)
        self._servers: RunningServers | None = None
        store = ConnectorStore(self.home.path)
        self.connectors = ConnectorRegistry(store, self._engine, lambda: self.servers.processes)
        if options.routes:
            _ = self.connectors.engine  # a route that cannot be used ends the start
        self.stop_signal = StopSignal(self.connectors.stop_running)
        self.library = HomeLibrary(
            actions=self.home.actions,
            store=store,
            registry=self.connectors,
            accepted=self.accepted_files,
            settings=self.accepted_settings,
            policy=self.accepted_policy,
            alarms=self.alarms,
            database=self.database,
            clock=self.clock,
            routes=options.routes,
            changed=self._library_changed,
            guard=self.stop_signal.make_stoppable,
            server_for_call=lambda connector, installed, action: self.servers.for_call(  # noqa: PLW0108 - made at need
                connector, installed, action
            ),
        )
        self.project_trust = ProjectTrust(self.accepted_projects, self.clock)
        self.session_library = SessionLibrary(
            home=self.library,
            channels=self.tool_channels,
            has_tools=self.has_tools,
            plugin_tools=self.plugin_tools,
            guard=self.stop_signal.make_stoppable,
            rehearse=self.rehearse,
        )

    @property
    def servers(self) -> "RunningServers":
        """The MCP servers; importing what runs them delays the start of a home that has none."""
        if self._servers is None:
            from aileron_core.library.running_servers import RunningServers

            self._servers = RunningServers(
                self.home.path,
                self.library,
                self.tool_channels,
                self.clock,
                changed=self._library_changed,
                forgotten=self.undo.forget,
                start=self.options.start_server,
                make_outgoing=lambda: self._outgoing(self.options.routes),
            )
        return self._servers

    async def close_servers(self) -> None:
        """End what rehearses the calls of servers."""
        if self._servers is not None:
            await self._servers.close()

    def _library_changed(self) -> None:
        self.policy.follow(self.library.ready())
        if self._servers is not None:
            accepted = self.library.accepted_connectors()
            self._servers.keep({each.identity.hash for each in accepted})
        self.publisher.library_changed(self.library)
        self.grants.library_changed(self.library)

    def _engine(self) -> "WasmEngine":
        from aileron_core.connectors.wasm.engine import WasmEngine

        folder = self.home.path / "store" / "compiled"
        return WasmEngine(
            self._outgoing(self.options.routes),
            cache_folder=folder,
            key=self._compiled_key,
            separate_compiler=True,
        )

    def _compiled_key(self) -> bytes | None:
        try:
            return self.vault.derive_key("compiled modules")
        except VaultLocked:
            return None  # compiled forms stay in memory: nothing else could prove what a file holds


class _Runs(_Files):
    """The gate, and what a run goes through behind it."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        super().__init__(home, options, clock, database)
        library, registry, settings = self.session_library, self.registry, self.settings
        executor = Executor(clock)
        locks = ConnectorLocks()

        def is_session_open(session_id: str) -> bool:
            return self.sessions.get(session_id) is not None

        self.run_store = RunStore(database, clock, self.run_changed, self.options.failpoint)
        self.previews = PreviewFetcher(executor, self.run_store, library, clock, settings)
        days, backups = self.options.settings.history_days, self.home.backups
        self.contents = SealedContents(
            database, registry, self.run_store, self.history_keys, clock, days=days, backups=backups
        )
        self.gate = Gate(
            library=library,
            registry=registry,
            store=self.run_store,
            executor=executor,
            locks=locks,
            database=database,
            clock=clock,
            settings=settings,
            pause=self.pause,
            accounts=self.accounts,
            opened=self.contents.opened,
            tool_rules=ToolRules(
                self.policy.rules, self.standing.grants, library.connectors, self.home.path
            ),
            standing=self.standing,
            look_first=self._look_first,
            argument_quota=ArgumentQuota(
                database, registry, self.run_store, clock, max_bytes=settings.argument_bytes
            ),
            refused_calls=RefusedCalls(is_session_open, database, clock),
            nonce_of=self.nonce_of,
            expires_seconds=self.expires_seconds,
            is_session_open=is_session_open,
            tracer=self.options.tracer,
        )
        self.account_waits = AccountWaits(
            accounts=self.accounts,
            registry=registry,
            store=self.run_store,
            standing=self.standing,
            look_first=self._look_first,
            clock=clock,
            nonce_of=self.nonce_of,
            refusal=self.gate.refusal,
            refuse=self.gate.refuse_to_resume,
            resume=self.gate.resume,
        )
        self.outcomes = OutcomeService(
            store=self.run_store,
            registry=registry,
            previews=self.previews,
            library=library,
            clock=clock,
            settings=settings,
        )
        self.approvals = ApprovalService(
            registry=registry,
            store=self.run_store,
            previews=self.previews,
            runner=ApprovedRunner(
                executor=executor,
                store=self.run_store,
                previews=self.previews,
                library=library,
                locks=locks,
                clock=clock,
                settings=settings,
                pause=self.pause,
                accounts=self.accounts,
                standing=self.standing,
            ),
            database=database,
            opened=self.contents.opened,
            clock=clock,
            settings=settings,
            pause=self.pause,
            ended=self.outcomes.begin,
            accounts_may_have_changed=self.account_waits.changed,
            standing=self.standing,
        )

    async def _look_first(self, run: LiveRun) -> None:
        await self.approvals.look_first(run)


class App(_Runs):
    """The services of one open home, on the core's own loop. See `open`."""

    def __init__(self, home: Home, options: AppOptions, clock: Clock, database: Database) -> None:
        super().__init__(home, options, clock, database)
        self._following: set[asyncio.Task[None]] = set()

        def session_ended(session_id: str) -> None:
            self.tool_channels.close(session_id)
            self.undo.forget(session_id)
            self.approvals.requester_ended(session_id)

        self.session_service = SessionService(
            registry=self.sessions,
            database=self.database,
            clock=self.clock,
            changed=self.publisher.sessions_changed,
            ended=session_ended,
            containment_changed=self.approvals.requester_changed,
        )
        emergency_stop = EmergencyStop(
            stop_signal=self.stop_signal,
            pause=self.pause,
            approvals=self.approvals,
            registry=self.registry,
            run_changed=self.run_changed,
            sessions=self.session_service,
            record=self.records.record_by_person,
        )
        calls = CallReader(
            database=self.database,
            registry=self.registry,
            library=self.session_library,
            publisher=self.publisher,
            screens=self.screens,
            contents=self.contents,
        )
        self.console = ConsoleService(
            version=self.version,
            home=self.home,
            routes=self.options.routes_shown(),
            accepted_installed=self.options.accept_installed,
            inspects_models=self.options.settings.gateway.inspect,
            address=self.address,
            events=self.events,
            publisher=self.publisher,
            storage=self.storage,
            records=self.records,
            database=self.database,
            clock=self.clock,
            registry=self.registry,
            approvals=self.approvals,
            outcomes=self.outcomes,
            account_waits=self.account_waits,
            accounts=AccountCommands(self.bindings, self.authorizations, self.library, self.events),
            model_keys=self.model_keys,
            library=self.library,
            sessions=self.session_service,
            pause=self.pause,
            emergency_stop=emergency_stop,
            audit=self.audit,
            calls=calls,
            history=HistoryReader(calls=calls, clock=self.clock),
            undo=self.undo,
            devices=self.devices,
            grants=self.grants,
            screens=self.screens,
            vault=self.vault_service,
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
            database, contradiction = await _take(home, closing)
            app = cls(home, options, clock or SystemClock(), database)
            closing.push_async_callback(asyncio.to_thread, app.connectors.close)
            closing.push_async_callback(asyncio.to_thread, app.token_endpoint.close)
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
        if self.options.passphrase is not None:
            await self.vault_service.unlock(self.options.passphrase, way="unattended")
        await self._look_at_signed_head()
        await self.accepted_settings.load()
        await self.accepted_policy.load()
        await self.project_trust.load()
        await self.library.load()
        if self.options.accept_installed:
            await self.library.accept_all()
        await self._try_policy()
        known = await self.session_service.load()
        await self.tool_calls.load()
        # Nothing is awaited between the recovery, which goes on by itself, and those who hear of it.
        recovering = await self._recover(known)
        self.run_changed.subscribe(self.publisher.run_changed)
        return recovering

    async def _recover(self, known: Mapping[str, Session]) -> asyncio.Task[None]:
        recovery = Recovery(
            registry=self.registry,
            store=self.run_store,
            previews=self.previews,
            library=self.session_library,
            database=self.database,
            clock=self.clock,
            accounts=self.accounts,
            judge=self.gate.tool_rules.judge,
            nonce_of=self.nonce_of,
            get_session=lambda session_id: known.get(session_id) or unknown_session(session_id),
        )
        # First, so that no run is held in memory with what its row has forgotten.
        await self.contents.forget_due()
        rest = await recovery.recover()
        await self.contents.reveal()
        await restore_claims(self.registry, self.database)
        later = {run.row.run_id for run in rest}
        await self.account_waits.sweep(r for r in self.registry if r.row.run_id not in later)
        self.vault.changed.subscribe(self._vault_changed)
        self.bindings.changed.subscribe(lambda _: self.account_waits.changed())
        self.publisher.runs_recovered()
        return tasks.spawn(recovery.resume_waiting(rest, self.account_waits.sweep), name="recovery")

    async def _try_policy(self) -> None:
        """Say in the item of a `policy.toml` that waits to be accepted which of a person's answers it would have given."""
        if self.accepted_policy.problem and self.options.policy.action_rules:
            self.accepted_policy.tried = await self.grants.try_rules(self.library)
            self.publisher.library_changed(self.library)

    def _vault_changed(self, _state: VaultState) -> None:
        if self.vault.state != "unlocked":
            self.authorizations.close()
            self.standing.grants.end_where(lambda _: True, "the vault was locked")
            self.grants.past.forget()
            self.connectors.forget_secrets()
        self.publisher.sessions_changed()
        following = tasks.spawn(self._follow_vault(), name="follow the vault")
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def vault_followed(self) -> None:
        """Return once what follows from the vault's last change has been done, or has failed."""
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _follow_vault(self) -> None:
        """Verify what was accepted once the vault is unlocked; then have calls go on, or wait."""
        try:
            await self._look_at_signed_head()
            if self.vault.state == "unlocked":
                await self.library.prepare()
                await self.accepted_settings.load()
                await self.accepted_policy.load()
                await self.project_trust.load()
                await self.library.load()
                await self.contents.reveal()
                await self._try_policy()
        except StorageUnavailable as error:
            self.storage.report_failure(error.message)
        except VaultLocked:
            pass  # locked again meanwhile, of which there is another call
        await self.account_waits.sweep()

    async def _look_at_signed_head(self) -> None:
        """Compare the record with what was signed last, say on record where it differs; then sign again."""
        if self.vault.state != "unlocked":
            self.signing.end()
            return
        alarms: list[str] = []
        if problem := await self.database.read(self.signing.problem):
            await self.records.record(AuditEvent.AUDIT_REWRITTEN, problem)
            alarms.append(f"{problem} `aileron audit verify` names what it finds.")
        if problem := await self.database.read(self.signing.vault_problem):
            await self.vault_service.record_replaced(problem)
            alarms.append(problem)
        if alarms:
            self.signing.alarm = " ".join(alarms)
        self.signing.begin()

    async def _anchor_signed_head(self) -> None:
        if self.signing.anchor_is_due:
            await asyncio.to_thread(self.signing.anchor)

    async def _housekeeping(self) -> None:
        """Twice a second, do what depends on the time alone."""
        jobs: Sequence[Callable[[], Awaitable[None]]] = (
            self.library.poll,
            self.approvals.expire_overdue,
            self.grants.sweep,
            self.session_service.sweep,
            self.traffic.sweep,
            self.tool_calls.sweep,
            self.gate.refused_calls.sweep,
            self.gate.record_repeats,
            self.publisher.sweep,
            self.contents.forget_due,
            self.contents.sweep,
            self.vault_service.lock_if_idle,
            self.devices.sweep,
            self._anchor_signed_head,
            self.storage.probe,
        )
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for job in jobs:
                try:
                    await job()
                except StorageUnavailable as error:
                    self.storage.report_failure(error.message)
                except Exception as error:  # noqa: BLE001 - no job may end the others
                    _log.error("housekeeping failed: %s", tasks.type_and_places(error))

    async def _end(self) -> None:
        """Stop what goes on, and record it; the vault is locked last, since what ends may use it."""
        self.audit.close()
        await self.vault_followed()
        await self.close_servers()
        self.outcomes.close()
        self.authorizations.close()
        if left := await self.registry.wait_for_executing(_SETTLE_SECONDS):
            # The next start records them as unknown.
            _log.warning("%d runs were still going on when the console stopped", left)
        with suppress(AileronError):
            await self.traffic.sweep(everything=True)
            await self.tool_calls.sweep(everything=True)
            await self.gate.refused_calls.sweep(everything=True)
            await self.gate.record_repeats(everything=True)
            await self.devices.end_all("the console stopped")
            await self.records.record_stop()
        with suppress(AileronError, OSError):
            await asyncio.to_thread(self.signing.anchor)
        self.vault.lock()


def _file_sets(
    database: Database, vault: Vault, clock: Clock
) -> tuple[AuthenticatedRecords, AuthenticatedRecords]:
    """Return the records of the accepted files of a home, and of its accepted projects."""
    return (
        AuthenticatedRecords(database, vault, clock, "accepted files"),
        AuthenticatedRecords(database, vault, clock, "accepted projects"),
    )


@asynccontextmanager
async def open_vault(home: Home) -> AsyncGenerator[VaultService]:
    """Own *home* for a command that changes its vault, on record; nothing runs meanwhile.

    Raises:
        HomeError: the home is locked, foreign or damaged.
        StorageUnavailable: the database cannot be written.
    """
    home.prepare()
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        database, contradiction = await _take(home, closing)
        records = ConsoleRecords(database, clock)
        if contradiction:
            await records.record(AuditEvent.AUDIT_CUT, contradiction)
        vault = Vault(home.path, clock)
        closing.callback(vault.lock)
        sets = (
            *_file_sets(database, vault, clock),
            AcceptedSettings(database, vault, clock, _text_of(home.config), home.path),
            AcceptedSettings(database, vault, clock, _text_of(home.policy), home.path, POLICY),
        )
        for each in sets:
            await each.load()
        yield VaultService(vault, records, EventBus(), RunRegistry(), lock_minutes=lambda: 0)
        if vault.state == "unlocked":  # it was created: what is accepted is signed with it
            for each in sets:
                await each.load()


async def remove_file(home: Home, kind: FileKind, name: str) -> None:
    """Own *home* for a command that removes a file; errors as of `open_vault` and `HomeLibrary.remove`."""
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        database, contradiction = await _take(home, closing)
        if contradiction:
            await ConsoleRecords(database, clock).record(AuditEvent.AUDIT_CUT, contradiction)
        accepted = await database.read(load_recorded)
        for record in removals(named(accepted, kind, name), accepted, clock.now()).values():
            await database.write(lambda tx, record=record: tx.record(record))
        await asyncio.to_thread(removal.remove, home.path, kind, name)


def _text_of(path: Path) -> str:
    """Return *path* as settings are read; empty where there is none that can be."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return ""


async def _take(home: Home, closing: AsyncExitStack) -> tuple[Database, str]:
    """Lock *home* and open its database; return it, and where the audit contradicts its head (or '')."""
    lock = HomeLock(home)
    lock.acquire()
    closing.callback(lock.release)
    closing.callback(home.daemon_file.unlink, missing_ok=True)
    remove_tree(home.sockets / "rehearsals")  # arguments of calls, of a console that was killed
    heads = closing.enter_context(ExitStack())
    migrate(home.database)
    database = Database(home.database)
    closing.push_async_callback(asyncio.to_thread, database.close)
    # Before the first record of this process overwrites what the last one left.
    contradiction = await database.read(lambda c: head_contradiction(c, home.path))
    _copy_heads(home, database, heads)
    return database, contradiction


def _copy_heads(home: Home, database: Database, closing: ExitStack) -> None:
    """Write the audit's head outside the database after each commit."""
    head_file = HeadFile(home.audit_head)
    closing.callback(head_file.close)
    database.on_commit(head_file)
    if JOURNAL.exists():
        journal = SystemJournal(home.path)
        closing.callback(journal.close)
        database.on_commit(journal)
