"""The actions and connectors of the home: what lies there, what a person took in, what is held back."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aileron_core import tasks
from aileron_core.actions.catalog import Catalog, Entry, Scan, read_file, scan
from aileron_core.actions.model import Action
from aileron_core.approval.rows import calls_by_action
from aileron_core.canonical import Json, sha256_hex
from aileron_core.clock import Clock, rfc3339
from aileron_core.connectors.protocol import Connector, Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.requirements import offer_problems
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.control_plane.glance import Glance, glance
from aileron_core.control_plane.library_view import Shelf, held_back_views, library_items
from aileron_core.control_plane.port import HeldBackView, LibraryItemView
from aileron_core.errors import (
    AileronError,
    Conflict,
    HashMismatch,
    NotFound,
    Problem,
    Unavailable,
)
from aileron_core.gate import Loaded
from aileron_core.pins import rows as pins
from aileron_core.pins.rows import Pin
from aileron_core.storage.database import Database, Tx
from aileron_core.storage.record import AuditRecord

__all__ = ["HomeLibrary"]

_log = logging.getLogger(__name__)


class HomeLibrary:
    """The gate's `Library` over a home. Reads the folders again when they change (polled)."""

    def __init__(
        self,
        *,
        actions: Path,
        store: ConnectorStore,
        registry: ConnectorRegistry,
        database: Database,
        clock: Clock,
        routes: Sequence[Route],
        changed: Callable[[], None],
        guard: Callable[[Connector], Connector],
    ) -> None:
        """Read nothing yet; see `load`.

        Args:
            actions: the folder of action files.
            store: where connectors lie.
            registry: what makes them ready to be called.
            database: where it is written what was taken in.
            clock: the time.
            routes: where requests of some hosts really go.
            changed: called after each reading or taking in.
            guard: gives what a run calls in place of a connector.
        """
        self._folder = actions
        self._store = store
        self._registry = registry
        self._database = database
        self._clock = clock
        self._routes = {route.host: f"{route.address}:{route.port}" for route in routes}
        self._changed = changed
        self._guard = guard
        self._scan = Scan()
        self._installed: Mapping[str, WasmConnector] = {}
        self._warmed: set[str] = set()
        self._store_problems: tuple[Problem, ...] = ()
        self._pins: dict[tuple[str, str], Pin] = {}
        self._refused: set[tuple[str, str, str]] = set()
        self._catalog = Catalog(self._scan, {})
        self._seen: Glance | None = None
        self._reading = asyncio.Lock()
        self._compiling = asyncio.Lock()

    # What the gate asks

    def find(self, name: str) -> Loaded:
        """Return the accepted action *name* with its connectors.

        Raises:
            NotFound: no file holds an action of that name.
            Conflict: it, or a connector of it, is held back or broken.
        """
        action = self._catalog.ready().get(name)
        if action is None:
            raise self._missing(name)
        connectors: dict[str, Connector] = {}
        for requirement in action.requires:
            connectors[requirement.fqn] = self._guard(self._installed[requirement.hash])
        return Loaded(action=action, connectors=connectors, routed=self._routed(connectors))

    async def changed_since(self, loaded: Loaded) -> str:
        """Read action file and connectors from disk again; return what differs, or ''."""
        return await asyncio.to_thread(self._compare, loaded)

    def _compare(self, loaded: Loaded) -> str:
        try:
            digest = sha256_hex(read_file(self._folder, loaded.action.file))
        except OSError:
            return f"the action file {loaded.action.file} was removed or cannot be read"
        if digest != loaded.action.sha256:
            return f"the action file {loaded.action.file} was changed"
        for connector in loaded.connectors.values():
            identity = connector.identity
            try:
                self._store.read(identity.hash)
            except (HashMismatch, NotFound):
                return f"the bytes of the connector {identity.fqn} were changed"
            if self._taken_in("connector", identity.ref) != identity.hash:
                return f"the connector {identity.ref} was held back"
        if self._taken_in("action", loaded.action.file) != digest:
            return f"the action file {loaded.action.file} was held back"
        return ""

    def _taken_in(self, kind: str, name: str) -> str | None:
        pin = self._pins.get((kind, name))
        return pin.digest if pin else None

    def _missing(self, name: str) -> AileronError:
        for entry in self._catalog.entries:
            if entry.name != name and (entry.action or entry.file != f"{name}.md"):
                continue  # a file that is no action any more is known by the name of the file
            if entry.state == "held_back":
                return Conflict(
                    f"{name} is held back: a person has to take its file in, in the console.",
                    details={"outcome": "held_back"},
                )
            return Conflict(
                f"{name} cannot be used: {entry.problems[0].message}", details={"outcome": "error"}
            )
        return NotFound(f"There is no action {name[:80]!r}. List the actions to see what there is.")

    def _routed(self, connectors: Mapping[str, Connector]) -> tuple[str, ...]:
        hosts = sorted({host for each in connectors.values() for host in each.hosts})
        return tuple(f"{host} -> {self._routes[host]}" for host in hosts if host in self._routes)

    # What front ends show

    def ready(self) -> tuple[Action, ...]:
        """Return the actions that agents see, by name."""
        found = self._catalog.ready()
        return tuple(found[name] for name in sorted(found))

    def entries(self) -> tuple[Entry, ...]:
        """Return every action file with its state."""
        return self._catalog.entries

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with files that are not offered."""
        return (*self._catalog.problems(), *self._store_problems)

    def held_back(self) -> tuple[HeldBackView, ...]:
        """Return what lies there and was not taken in, or not in this form."""
        return held_back_views(self._shelf())

    def items(self) -> tuple[LibraryItemView, ...]:
        """Return everything that lies there, whatever its state."""
        return library_items(self._shelf())

    def _shelf(self) -> Shelf:
        return Shelf(
            catalog=self._catalog,
            installed=self._installed,
            store_problems=self._store_problems,
            pins=self._pins,
            refused=self._refused,
        )

    # Reading the folders

    async def load(self) -> None:
        """Read pins and folders; called once at start."""
        found = await self._database.read(pins.all_pins)
        self._pins = {(pin.kind, pin.name): pin for pin in found}
        self._refused = await self._database.read(pins.held_back)
        await self._rescan()

    async def poll(self) -> None:
        """Read the folders again if something in them changed, or may have; called every half second."""
        seen = await asyncio.to_thread(self._glance)
        if self._seen is None or not self._seen.settled or seen.stamps != self._seen.stamps:
            await self._rescan()

    def _glance(self) -> Glance:
        store = self._folder.parent / "store" / "connectors" / "sha256"
        return glance(self._folder, store, now_ns=time.time_ns())

    async def _rescan(self) -> None:
        async with self._reading:  # one that began earlier must not end later, with older files
            first = self._seen is None
            self._seen = await asyncio.to_thread(self._glance)
            before = (self._scan, tuple(self._installed), self._store_problems)
            self._scan = await asyncio.to_thread(scan, self._folder, self._scan)
            found, self._store_problems = await self._registry.installed()
            self._installed = {connector.identity.hash: connector for connector in found}
            if first or (self._scan, tuple(self._installed), self._store_problems) != before:
                self._judge()

    def _judge(self) -> None:
        taken_in = self._digests("connector")
        installed = {digest: each.identity for digest, each in self._installed.items()}
        usable = {
            digest for digest, found in installed.items() if taken_in.get(found.ref) == digest
        }
        if cold := usable - self._warmed:
            self._warmed |= cold
            connectors = [self._installed[digest] for digest in cold]
            tasks.spawn(self._compile(connectors), name="compile connectors")
        self._catalog = Catalog(
            self._scan,
            self._digests("action"),
            extra_problems=lambda action: offer_problems(action, installed, taken_in),
        )
        self._changed()

    async def _compile(self, connectors: Sequence[WasmConnector]) -> None:
        """Compile what was taken in before anybody has to wait for it: one by one, most used first.

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

    def _digests(self, kind: str) -> dict[str, str]:
        """Return by name the digest of everything of *kind* that was taken in."""
        return {name: pin.digest for (of, name), pin in self._pins.items() if of == kind}

    # Taking in, and back

    async def take_in(self, kind: str, name: str, digest: str, *, by: str) -> None:
        """Record that exactly *digest* counts from now on.

        Raises:
            Conflict: what lies there now is not what was shown.
        """
        await self._rescan()
        named = [view for view in self.held_back() if (view.kind, view.name) == (kind, name)]
        if not named:
            raise Conflict(f"{name} is not held back any more. Nothing changed.")
        for view in named:
            if view.digest == digest:
                await self._pin([_pin_of(view)], by)
                return
        raise Conflict(f"{name} changed while you looked. Nothing was taken in.")

    async def accept_all(self) -> int:
        """Take in whatever lies there (`--accept-installed`); return how many files that were."""
        found = [_pin_of(view) for view in self.held_back()]
        if found:
            await self._pin(found, "--accept-installed")
        return len(found)

    async def _pin(self, found: Sequence[tuple[str, str, str]], by: str) -> None:
        now = self._clock.now()
        taken = [
            Pin(kind=kind, name=name, digest=digest, taken_at=now, taken_by=by)
            for kind, name, digest in found
        ]

        def unit(tx: Tx) -> None:
            for pin in taken:
                pins.put(tx, pin)
                how = " (--accept-installed)" if by != "person" else ""
                tx.record(self._record(pins.TAKEN_IN, pin, f"Took in the {pin.kind}", how))

        await self._database.write(unit)
        for pin in taken:
            self._pins[pin.kind, pin.name] = pin
            self._refused.discard((pin.kind, pin.name, pin.digest))
        self._judge()

    async def hold_back(self, kind: str, name: str, digest: str) -> None:
        """Record that what was taken in with *digest* counts no more; agents stop seeing it at once.

        Args:
            kind: `action` or `connector`.
            name: the action's name, or the connector's `fqn@version`.
            digest: of the bytes that a person was shown.

        Raises:
            Conflict: nothing of that name counts in these bytes.
        """
        names = {name}
        if kind == "action":  # an action counts by its file's name
            names = {entry.file for entry in self._catalog.entries if entry.name == name}
        pinned = (self._pins.get((kind, each)) for each in sorted(names))
        found = next((pin for pin in pinned if pin and pin.digest == digest), None)
        if found is None:
            raise Conflict(f"{name} does not count in the form that you saw. Nothing changed.")

        def unit(tx: Tx) -> None:
            pins.drop(tx, found.kind, found.name)
            tx.record(self._record(pins.HELD_BACK, found, f"Held back the {found.kind}"))

        await self._database.write(unit)
        self._pins.pop((found.kind, found.name), None)
        self._refused.add((found.kind, found.name, found.digest))
        self._judge()

    def _record(self, event: str, pin: Pin, what: str, how: str = "") -> AuditRecord:
        extra: dict[str, Json] = {"kind": pin.kind, "name": pin.name, "digest": pin.digest}
        if event == pins.TAKEN_IN:
            extra["by"] = pin.taken_by
            if pin.kind == "action":
                extra["connectors"] = self._connectors_of(pin)
        return AuditRecord(
            at=rfc3339(self._clock.now()),
            event=event,
            actor="person",
            summary=f"{what} {pin.name}{how}",
            extra=extra,
        )

    def _connectors_of(self, pin: Pin) -> Json:
        """Return the exact connectors that taking in this action file is a yes to."""
        entries = self._catalog.entries
        action = next((each.action for each in entries if each.file == pin.name), None)
        return [
            {"fqn": each.fqn, "version": each.version, "hash": each.hash}
            for each in (action.requires if action else ())
        ]


def _pin_of(view: HeldBackView) -> tuple[str, str, str]:
    """Return what a pin says: an action counts by its file's name, a connector by its reference."""
    return view.kind, view.file if view.kind == "action" else view.name, view.digest
