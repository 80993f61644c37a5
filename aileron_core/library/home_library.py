"""The accepted actions and connectors of a home, which are those that may be called.

Reads the folders twice a second, accepts only the bytes that were shown (all with
`--accept-installed`), offers a preview's reads by POST (16 at most), and compiles
connectors in advance, the most used first.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from aileron_core import tasks
from aileron_core.actions.catalog import Catalog, CatalogEntry, cannot_run, read_file
from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.connectors.protocol import Connector, Route
from aileron_core.connectors.read_names import acceptance_name, unchecked_op
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.servers.definitions import ToolDefinition, definitions_bytes
from aileron_core.connectors.servers.table import server_name
from aileron_core.connectors.store import ConnectorStore, InstalledConnector, availability_problems
from aileron_core.console_port.view_models import LibraryItemView, NotAcceptedView
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import (
    AileronError,
    Conflict,
    HashMismatch,
    NotFound,
    Problem,
    Unavailable,
)
from aileron_core.library import publishers, removal, run_time
from aileron_core.library.acceptance import (
    READS_KIND,
    AcceptanceRecord,
    accepted_reads,
    load_digests,
    named,
    reads_gated_by,
    reads_of,
    why_not_counted,
)
from aileron_core.library.acceptances import Acceptances
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.accepted_settings import AcceptedSettings
from aileron_core.library.authenticated_records import AuthenticatedRecords
from aileron_core.library.file_contents import FileContents
from aileron_core.library.home_files import HomeFiles
from aileron_core.library.offers import (
    keys_of,
    left_out,
    needs_key,
    not_signed,
    shows,
    signed_alike,
)
from aileron_core.library.plugin_tools import (
    accepted_plugin,
    op_action,
    plugin_tool_problems,
    server_actions,
)
from aileron_core.library.removal import FileKind
from aileron_core.library.view import LibraryState, library_items, not_accepted_views
from aileron_core.proxy_settings import PluginTools
from aileron_core.runs import ResolvedAction
from aileron_core.runs.run_table import calls_by_action
from aileron_core.storage.database import Database

_log = logging.getLogger(__name__)
_MOST_READS = 16
"""Reads of one connector's previews that are offered at most; an agent's arguments may choose them."""


class HomeLibrary:
    """The gate's `Library` over a home. Reads the folders again when they change (polled)."""

    def __init__(
        self,
        *,
        actions: Path,
        store: ConnectorStore,
        registry: ConnectorRegistry,
        accepted: AuthenticatedRecords,
        settings: AcceptedSettings,
        policy: AcceptedSettings,
        alarms: Callable[[], Sequence[Problem]],
        database: Database,
        clock: Clock,
        routes: Sequence[Route],
        changed: Callable[[], None],
        guard: Callable[[Connector], Connector],
        server_for_call: Callable[[Connector, InstalledConnector, Action], Connector],
    ) -> None:
        """Read nothing yet; see `load`.

        Args:
            alarms: gives what does not verify of earlier acceptances, and what is wrong with `policy.toml`.
            routes: the addresses that requests to some hosts go to instead.
            changed: called after each reading and each acceptance.
            guard: gives what a run calls in place of a connector.
            server_for_call: gives what one call uses in place of an MCP server.
        """
        self._folder = actions
        self._store = store
        self._database = database
        self._routes = {route.host: f"{route.address}:{route.port}" for route in routes}
        self._changed = changed
        self._guard = guard
        self._server_for_call = server_for_call
        self._alarms = alarms
        self._settings = settings
        self._settings_files = {each.file.kind: each for each in (settings, policy)}
        self._registry = registry
        self._files = HomeFiles(actions, registry, store)
        self._copies = AcceptedContents(actions.parent)
        self._contents = FileContents(self._copies)
        self._warmed: set[str] = set()
        self._accepted = Acceptances(accepted, database, clock, self._connectors_of)
        self._accepts_all = False
        self._catalog = Catalog(self._files.actions, {})
        self._tools: Mapping[str, Action] = {}
        """The tools of accepted MCP servers, by action name."""
        self._of_servers: dict[str, tuple[Action, ...]] = {}
        """The tools of each accepted MCP server by its hash, which are the same as long as that is."""
        self._reading = asyncio.Lock()
        self._compiling = asyncio.Lock()

    # For the gate

    def find(self, name: str) -> ResolvedAction:
        """Return the accepted action *name* with its connectors.

        Raises:
            NotFound: no file holds an action of that name.
            Conflict: it, or a connector of it, is not accepted or broken.
        """
        if (tool := self._tools.get(name)) is not None:
            return self._resolved_tool(tool)
        action = self._catalog.ready().get(name)
        # The catalog is judged anew a moment after what is accepted has changed.
        if action is None or self._accepted.digest("action", action.file) != action.sha256:
            raise self._missing(name)
        connectors: dict[str, Connector] = {}
        for requirement in action.requires:
            connectors[requirement.fqn] = self._guard(self._files.connectors[requirement.hash])
        seconds = run_time.run_seconds(
            action, action.file, action.sha256, self._files.stored, self._accepted.records
        )
        if seconds != action.limits.wall_seconds:
            action = replace(action, limits=replace(action.limits, wall_seconds=seconds))
        return ResolvedAction(action=action, connectors=connectors, routed=self._routed(connectors))

    def _resolved_tool(self, action: Action) -> ResolvedAction:
        (pin,) = action.requires
        connector = self._files.connectors.get(pin.hash)
        if connector is None or self._accepted.digest("connector", pin.ref) != pin.hash:
            raise self._missing(action.name)
        used = self._server_for_call(connector, self._files.stored[pin.hash], action)
        return ResolvedAction(action=action, connectors={pin.fqn: self._guard(used)})

    def is_server_tool(self, name: str) -> bool:
        """Return whether the action *name* is a tool of an accepted MCP server."""
        return name in self._tools

    def find_op(self, name: str) -> ResolvedAction:
        """Return the op `<plugin>.<op>` of an accepted connector, as an action of its own.

        Raises:
            Conflict: no accepted connector has that name, or several do.
        """
        found = accepted_plugin(name.rpartition(".")[0], self._accepted_in_store())
        connector = self._files.connectors[found.identity.hash]
        connectors = {found.identity.fqn: self._guard(connector)}
        action = op_action(name, found, self.ready())
        return ResolvedAction(action=action, connectors=connectors, routed=self._routed(connectors))

    def plugin_tool_problems(self, exposed: Sequence[PluginTools]) -> tuple[Problem, ...]:
        """Return why a session cannot get the tools *exposed*."""
        return plugin_tool_problems(exposed, self._accepted_in_store(), self.ready())

    def _accepted_in_store(self) -> tuple[InstalledConnector, ...]:
        accepted = (self._files.stored[each.identity.hash] for each in self.accepted_connectors())
        return tuple(each for each in accepted if each.manifest.server is None)

    def accepted_reads(self, identity: ConnectorIdentity, op: str) -> Mapping[str, str]:
        found = accepted_reads(self._accepted.records.values(), identity.ref, identity.hash)
        return {
            read: by
            for read, by in found.items()
            if unchecked_op(read) in ("", op) and not self._why_not_counted(read, identity)
        }

    async def offer_read(self, identity: ConnectorIdentity, read: str) -> bool:
        """Offer a person to accept *read*; with `--accept-installed` it counts at once, on record.

        Returns:
            Whether it counts. Beyond 16 of one connector nothing more is offered or accepted, nor
            unchecked requests of an op that is gated or not declared idempotent.

        Raises:
            StorageUnavailable: it could not be put on record.
        """
        if self._why_not_counted(read, identity):
            return False
        name = acceptance_name(identity.ref, read)
        if self._accepted.digest(READS_KIND, name) == identity.hash:
            return True
        known = reads_of(self._accepted.records.values(), identity.ref)
        offered = [each for each in self._accepted.offers if each.startswith(f"{identity.ref} ")]
        if name not in offered and len(known) + len(offered) >= _MOST_READS:
            return False
        wanted = (READS_KIND, name, identity.hash)
        counts_at_once = self._accepts_all and not self._accepted.waits_for_vault
        if counts_at_once and wanted not in self._accepted.withdrawn:
            await self._accept([wanted], "--accept-installed")
            return True
        if self._accepted.offer(name, identity.hash):
            self._changed()
        return False

    def _why_not_counted(self, read: str, identity: ConnectorIdentity) -> str:
        return why_not_counted(read, identity, self._catalog.ready().values())

    async def changed_since(self, resolved: ResolvedAction) -> str:
        """Read the connectors from disk again; return why the action or one of them does not count any more, or ''."""
        return await asyncio.to_thread(self._compare, resolved)

    def _compare(self, resolved: ResolvedAction) -> str:
        if resolved.action.tool:  # an op of a connector, which no file names
            return self._compare_connectors(resolved)
        file = resolved.action.file
        try:
            read_file(self._folder, file)
        except OSError:
            return f"the action file {file} was removed or cannot be read"
        if changed := self._compare_connectors(resolved):
            return changed
        if (accepted := self._accepted.digest("action", file)) == resolved.action.sha256:
            return ""
        for entry in self._catalog.entries:
            if (entry.file, entry.sha256) == (file, accepted) and entry.action is not None:
                return f"the action file {file} was replaced by its version {entry.action.version}"
        return f"the action file {file} {self._accepted.end_reason('action', file)}"

    def _compare_connectors(self, resolved: ResolvedAction) -> str:
        for connector in resolved.connectors.values():
            identity = connector.identity
            if self._accepted.digest("connector", identity.ref) != identity.hash:
                ended = self._accepted.end_reason("connector", identity.ref)
                return f"the connector {identity.ref} {ended}"
            try:
                self._store.read(identity.hash)
            except (HashMismatch, NotFound):
                return f"the files of the connector {identity.fqn} were changed"
        return ""

    def _missing(self, name: str) -> AileronError:
        for entry in self._catalog.entries:
            if entry.name != name and (entry.action or entry.file != f"{name}.md"):
                continue  # a file that is no longer an action is known by the file's name
            if entry.state in ("held_back", "ready"):
                return Conflict(
                    f"{name} is not accepted: a person must accept its file in the console.",
                    details={"outcome": "held_back"},
                )
            return Conflict(
                f"{name} cannot be used: {entry.problems[0].message}", details={"outcome": "error"}
            )
        return NotFound(f"There is no action {name[:80]!r}. List the actions to see which exist.")

    def _routed(self, connectors: Mapping[str, Connector]) -> tuple[str, ...]:
        hosts = sorted({host for each in connectors.values() for host in each.hosts})
        return tuple(f"{host} -> {self._routes[host]}" for host in hosts if host in self._routes)

    # For front ends

    def ready(self) -> tuple[Action, ...]:
        """Return the actions that agents see, by name: of those that are accepted, what can run."""
        found = {**self._catalog.ready(), **self._tools}
        return tuple(found[name] for name in sorted(found) if not cannot_run(found[name]))

    def accepted_connectors(self) -> tuple[Connector, ...]:
        """Return the accepted connectors, whether an action uses them or not."""
        accepted = set(self._accepted.digests("connector").items())
        found = self._files.connectors.values()
        return tuple(each for each in found if (each.identity.ref, each.identity.hash) in accepted)

    def successions(self) -> tuple[tuple[InstalledConnector, InstalledConnector], ...]:
        """Return each accepted connector whose accounts go along with a newer one that waits, and that one."""
        state = self._state()
        return tuple(
            (old, new) for new in state.installed.values() for old in state.predecessors(new)
        )

    def entries(self) -> tuple[CatalogEntry, ...]:
        return self._catalog.entries

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with files that are not offered."""
        return (*self._catalog.problems(), *self._files.store_problems)

    def problems_and_alarms(self) -> tuple[Problem, ...]:
        """Return `problems`, after what of earlier acceptances and `policy.toml` is wrong; for the person alone."""
        return (*self._alarms(), *self.problems())

    @property
    def settings_accepted(self) -> bool:
        """Whether `config.toml` is known to be the person's."""
        return self._settings.count

    def not_accepted(self) -> tuple[NotAcceptedView, ...]:
        """Return what is not accepted, or not with these bytes."""
        settings = (each.not_accepted() for each in self._settings_files.values())
        return (*chain.from_iterable(settings), *not_accepted_views(self._state()))

    def items(self) -> tuple[LibraryItemView, ...]:
        """Return all actions and connectors, whatever their state."""
        return library_items(self._state())

    def _state(self) -> LibraryState:
        return LibraryState(
            catalog=self._catalog,
            installed=self._files.stored,
            contents=self._contents,
            store_problems=self._files.store_problems,
            accepted=self._accepted.records,
            withdrawn=self._accepted.withdrawn,
            offers=self._accepted.offers,
            suites=self._files.suites,
            publishers=self._files.publishers,
            keys=self._accepted.digests(publishers.KIND),
            server_state=self._registry.server_state,
        )

    # Reading the folders

    async def load(self) -> None:
        """Read what was accepted, and the folders; called at the start, and when the vault was unlocked."""
        await self._accepted.load()
        self._prepare_accepted()  # as the folders were read last; each is verified before it is used
        await self._rescan()
        await self._judge()
        if self._accepted.waits_for_vault:
            await self._registry.stage_modules([*self._modules()])
        if self._accepts_all:
            await self.accept_all()
        await self._keep({*self._accepted.digests("action").values()})
        await self._collect_copies()

    async def prepare(self) -> None:
        """Verify what was accepted, and begin to load the connectors of it: first of all after an unlock."""
        await self._accepted.load()
        self._prepare_accepted()

    async def poll(self) -> None:
        """Read the folders again if something in them changed, or may have; called every half second."""
        if await self._files.may_have_changed():
            await self._rescan()

    async def server_differs(
        self, identity: ConnectorIdentity, tools: tuple[ToolDefinition, ...]
    ) -> None:
        """Offer a person to accept the *tools* that an accepted MCP server lists now, in place of what waits of it."""
        try:
            stored = self._files.stored.values()
            await asyncio.to_thread(_install_listed, self._store, [*stored], identity, tools)
        except AileronError as error:
            _log.warning("what %s lists now cannot be offered: %s", identity.fqn, error.message)
        await self.poll()

    def release_server(self, fqn: str) -> None:
        """Let the MCP server whose connector's name is *fqn* be started again with its next call."""
        self._registry.servers.release(server_name(fqn))
        self._changed()

    async def _rescan(self) -> None:
        async with self._reading:  # one that began earlier must not end later, with older files
            await self._read_again()

    async def _read_again(self) -> None:
        await self._end_removed(rejudge=self._files.stamps is not None)
        suites = self._files.suites
        changed = await self._files.read()
        if await self._remove_superseded() or changed:
            await self._judge()
        elif self._files.suites != suites:
            self._changed()

    async def _remove_superseded(self) -> bool:
        """Remove the builds of MCP servers that newer ones replaced; return whether there were any."""
        if self._accepted.waits_for_vault:
            return False  # nobody knows what is accepted
        accepted = {*self._accepted.digests("connector").values()}
        older = await asyncio.to_thread(
            self._store.superseded, self._files.stored.values(), accepted
        )
        for hash_ in older:
            await asyncio.to_thread(self._store.remove, hash_)
        return bool(older) and await self._files.read()

    async def _end_removed(self, *, rejudge: bool) -> None:
        """Record what was removed; it is no longer accepted, even if the same bytes come back."""
        recorded = await self._accepted.load_recorded()
        gone = await asyncio.to_thread(removal.find_removed, self._folder.parent, recorded)
        await self._end(gone, rejudge=rejudge)

    async def remove(self, kind: FileKind, name: str) -> None:
        """End the acceptance of a file, then remove it: it does not count, however soon it is back.

        Args:
            name: of the action's or the offered key's file, or the connector's hash.

        Raises:
            StorageUnavailable: it could not be recorded; nothing was removed.
            NotFound: there is none.
            HomeError: it could not be removed, and is not accepted any more.
        """
        async with self._reading:
            recorded = await self._accepted.load_recorded()
            await self._end(named(recorded, kind, name), rejudge=False)
            try:
                await asyncio.to_thread(removal.remove, self._folder.parent, kind, name)
            finally:
                await self._files.read()
                await self._judge()

    async def _end(self, gone: Sequence[AcceptanceRecord], *, rejudge: bool) -> None:
        await self._accepted.remove(gone)
        if gone:
            await self._collect_copies()
        if gone and rejudge:
            await self._judge()

    async def _judge(self) -> None:
        while not all(self._contents.has(each.digest) for each in self._changed_actions()):
            await self._contents.load(self._changed_actions())
        self._prepare_accepted()
        accepted = self._accepted.digests("connector")
        installed = {digest: each.identity for digest, each in self._files.connectors.items()}
        tools = self._server_tools()
        taken = {name: each for each in tools for name in (each.name, each.tool)}
        self._catalog = Catalog(
            self._files.actions,
            self._accepted.digests("action"),
            kept=self._contents.kept(self._changed_actions()),
            extra_problems=lambda action: (
                *availability_problems(action, installed, accepted),
                *self._taken_name(action, taken),
            ),
        )
        ready = self._catalog.ready()
        used = {*ready, *(each.tool_name for each in ready.values())}
        self._tools = {each.name: each for each in tools if not {each.name, each.tool} & used}
        self._changed()

    def _server_tools(self) -> tuple[Action, ...]:
        """Return the tools of the accepted servers."""
        found = (self._files.stored[each.identity.hash] for each in self.accepted_connectors())
        self._of_servers = {
            one.identity.hash: self._of_servers.get(one.identity.hash) or (*server_actions(one),)
            for one in found
            if one.manifest.server
        }
        return tuple(chain.from_iterable(self._of_servers.values()))

    def _taken_name(self, action: Action, taken: Mapping[str, Action]) -> Iterator[Problem]:
        """Yield why *action* is not offered: the tool of a server that was accepted first is *taken* for its name."""
        accepted = self._accepted.records
        for name in (action.name, action.tool_name):
            tool = taken.get(name)
            if (
                tool is not None
                and accepted[("connector", tool.source)].accepted_at
                <= accepted[("action", action.file)].accepted_at
            ):
                message = f"agents know a tool of the MCP server {tool.file} as {name}; rename one of them"
                yield Problem(file=action.file, key="name", message=message)
                return

    def _prepare_accepted(self) -> None:
        """Compile or load what is accepted. While the vault is locked no call begins, so it waits for the key."""
        usable = {each.identity.hash for each in self.accepted_connectors()}
        if (cold := usable - self._warmed) and not self._accepted.waits_for_vault:
            self._warmed |= cold
            connectors = [self._files.connectors[digest] for digest in cold & self._modules()]
            tasks.spawn(self._compile(connectors), name="compile connectors")

    def _modules(self) -> set[str]:
        """Return the hashes of the installed connectors that are modules, not MCP servers."""
        return {each for each, found in self._files.stored.items() if not found.manifest.server}

    def _changed_actions(self) -> list[AcceptanceRecord]:
        """Return what was accepted of the action files that have other bytes now."""
        records = self._accepted.records
        found = ((records.get(("action", each.file)), each) for each in self._files.actions.files)
        return [record for record, each in found if record and record.digest != each.sha256]

    async def _keep(self, digests: Collection[str]) -> None:
        """Keep a copy of each action file with one of these *digests*, which are accepted.

        Where that fails, a later change takes the action away until it is accepted, and is shown without a difference.
        """
        contents = [each.data for each in self._files.actions.files if each.sha256 in digests]
        try:
            await asyncio.to_thread(self._copies.keep, contents)
        except OSError as error:
            _log.warning("copies of the accepted files cannot be kept: %s", type(error).__name__)

    async def _collect_copies(self) -> None:
        digests = await self._database.read(load_digests)
        await asyncio.to_thread(self._copies.collect, digests)

    async def _compile(self, connectors: Sequence[Connector]) -> None:
        """Compile what is accepted before a call has to wait for it: one by one, most used first.

        A connector that is called before its turn is compiled at once, beside this.
        """
        calls = await self._database.read(calls_by_action)
        used = Counter[str]()
        for entry in self._catalog.entries:
            for requirement in entry.action.requires if entry.action else ():
                used[requirement.hash] += calls.get(entry.name, 0)
        async with self._compiling:
            for connector in sorted(connectors, key=lambda each: -used[each.identity.hash]):
                try:
                    await connector.prepare(background=True)
                except Unavailable:
                    return  # the console is closing
                except AileronError as error:
                    _log.warning(
                        "%s cannot be compiled: %s", connector.identity.hash, type(error).__name__
                    )
            await self._registry.collect_modules({*self._files.stored})

    # Accepting, and withdrawing it

    async def accept(
        self,
        kind: str,
        name: str,
        digest: str,
        *,
        by: str,
        run_seconds: int = 0,
        signed_with: str = "",
        hand: Hand = CONSOLE,
    ) -> None:
        """Record that exactly the bytes of *digest* are accepted from now on.

        Args:
            kind: of `NotAcceptedView`.
            name: of it.
            digest: of the bytes that were shown.
            by: who accepts.
            run_seconds: the time that was shown with it, which an action gets; 0 where none was.
            signed_with: `PublisherView.name_and_key` that was shown with it: where it is the publisher's
                first key, it is accepted as well.
            hand: with which a person does.

        Raises:
            Conflict: the bytes, or who signed them, are no longer those that were shown, or the publisher's
                accepted key did not sign them.
        """
        if kind == "settings" or kind == "policy":
            await self._settings_files[kind].accept(digest, hand)
            self._changed()
            return
        async with self._reading:  # not what is being removed
            await self._read_again()
            named = [view for view in self.not_accepted() if (view.kind, view.name) == (kind, name)]
            if not named:
                raise Conflict(f"{name} is no longer waiting to be accepted. Nothing changed.")
            for view in named:
                if view.digest == digest and shows(view, run_seconds, signed_with):
                    if view.is_refused:
                        raise Conflict(not_signed(view))
                    await self._accept(keys_of([view]), by, hand)
                    return
        raise Conflict(
            f"{name} changed while you were reviewing it. Nothing was accepted; review it again."
        )

    async def accept_suite(
        self,
        suite_id: str,
        files: Sequence[tuple[str, str]],
        *,
        by: str,
        run_seconds: Mapping[str, int] | None = None,
        signed_with: Mapping[str, str] | None = None,
        hand: Hand = CONSOLE,
    ) -> None:
        """Record that these action files and connectors are accepted, each in exactly the bytes that were shown.

        Args:
            suite_id: of the suite.
            files: `NotAcceptedView.file` and `digest` of each.
            by: who accepts.
            run_seconds: by file, the time that was shown with it.
            signed_with: by file, `PublisherView.name_and_key` that was shown with it.
            hand: with which a person does.

        Raises:
            Conflict: some of them have changed or are gone, or the first key that was accepted with them did not
                sign them; the others were accepted.
        """
        async with self._reading:  # not what is being removed
            await self._read_again()
            waiting = {
                (view.file, view.digest): view
                for view in self.not_accepted()
                if view.kind in ("action", "connector")
                and not view.is_refused
                and shows(
                    view,
                    (run_seconds or {}).get(view.file, 0),
                    (signed_with or {}).get(view.file, ""),
                )
            }
            found = [waiting[each] for each in files if each in waiting]
            taken = signed_alike(found)
            if taken:
                await self._accept(keys_of(taken), by, hand)
        await self._files.delete_suite(suite_id)
        self._changed()
        gone = [file for file, digest in files if (file, digest) not in waiting]
        others = [each.name for each in found if each not in taken]
        if gone or others:
            raise Conflict(
                f"Accepted {len(taken)} of {len(files)}."
                + left_out(gone, "changed or removed while you were reviewing")
                + left_out(others, "not signed with the key that was accepted with the rest")
                + " Check the list again."
            )

    async def accept_all(self) -> int:
        """Accept every action and connector (`--accept-installed`); return how many items that were.

        Settings are not installed: a person looks at them. From then on, what previews try to read by POST is accepted as well. While the vault is locked
        nothing is; it is done once it is unlocked.
        """
        self._accepts_all = True
        if self._accepted.waits_for_vault:
            return 0
        async with self._reading:  # not what is being removed
            views = not_accepted_views(self._state())
            withdrawn = {name for kind, name, _ in self._accepted.withdrawn if kind == "publisher"}
            # Another key in place of an accepted or withdrawn one is for a person to look at, as is what it signed.
            found = keys_of(
                signed_alike(
                    each
                    for each in views
                    if each.kind != "publisher"
                    and not each.is_refused
                    and not needs_key(each, withdrawn)
                )
            )
            if found:
                await self._accept(found, "--accept-installed")
        return len(found)

    async def _accept(
        self, found: Sequence[tuple[str, str, str]], by: str, hand: Hand = CONSOLE
    ) -> None:
        await self._keep({digest for _, _, digest in found})
        files = {(name, digest) for kind, name, digest in found if kind == "action"}
        actions = [e.action for e in self._catalog.entries if (e.file, e.sha256) in files]
        ended = reads_gated_by(self._accepted.records.values(), filter(None, actions))
        await self._accepted.accept(found, by, ended=ended, hand=hand)
        await self._collect_copies()
        await self._remove_superseded()
        await self._judge()

    async def withdraw_acceptance(self, kind: str, name: str, digest: str) -> None:
        """Record that *name* is no longer accepted; agents stop seeing it at once.

        Args:
            kind: `action`, `connector`, `preview` or `publisher`.
            name: the action's name, the connector's `fqn@version`, what a preview's read is accepted by, or the
                publisher's name.
            digest: of the bytes that the person was shown.

        Raises:
            Conflict: *name* is not accepted with these bytes.
        """
        names = {name}
        if kind == "action":  # an action counts by its file's name
            names = {entry.file for entry in self._catalog.entries if entry.name == name}
        records = (self._accepted.records.get((kind, each)) for each in sorted(names))
        found = next((each for each in records if each and each.digest == digest), None)
        if found is None:
            raise Conflict(f"{name} is not accepted in the form you saw. Nothing changed.")
        await self._accepted.withdraw(found)
        await self._collect_copies()
        await self._judge()

    def _connectors_of(self, name: str, digest: str) -> Json:
        """Return the exact connectors that accepting *digest* of the action file *name* allows."""
        entries = self._catalog.entries
        action = next((e.action for e in entries if (e.file, e.sha256) == (name, digest)), None)
        return [
            {"fqn": each.fqn, "version": each.version, "hash": each.hash}
            for each in (action.requires if action else ())
        ]


def _install_listed(
    store: ConnectorStore,
    stored: Sequence[InstalledConnector],
    whose: ConnectorIdentity,
    tools: tuple[ToolDefinition, ...],
) -> None:
    """Install what the server *whose* lists now, with the words and files that a person gave it last.

    Nothing where a build of it waits that starts something else: what that lists is not known.
    """
    from aileron_core.connectors.servers.propose import manifest_bytes, relisted

    builds = {each.identity.hash: each for each in stored if each.identity.fqn == whose.fqn}
    newest = store.newest(builds)
    known, last = (builds.get(hash_) for hash_ in (whose.hash, newest))
    if known is None or last is None:
        return
    old, table = known.manifest.server, last.manifest.server
    assert old is not None
    assert table is not None
    if (old.program, old.tree) == (table.program, table.tree):
        name = server_name(whose.fqn)
        listed = relisted(name, table, tools)
        store.install_server(definitions_bytes(tools), manifest_bytes(name, listed))
