"""The installed connectors, ready to be called."""

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from aileron_core.connectors.protocol import Connector
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.errors import HashMismatch, NotFound, Problem

if TYPE_CHECKING:
    from aileron_core.connectors.servers.process import ServerProcesses
    from aileron_core.connectors.wasm.engine import WasmEngine


class ConnectorRegistry:
    """Provides connectors by name, version and hash.

    Args:
        make_engine: returns what runs modules, called once, for the first of them: importing the
            sandbox delays the start of a home that has none. Routes belong to its outgoing client.
        make_servers: returns what runs MCP servers, called once, for the first of them.
    """

    def __init__(
        self,
        store: ConnectorStore,
        make_engine: Callable[[], "WasmEngine"],
        make_servers: "Callable[[], ServerProcesses] | None" = None,
    ) -> None:
        self._store = store
        self._make_engine = make_engine
        self._make_servers = make_servers
        self._servers: ServerProcesses | None = None
        self._made: WasmEngine | None = None
        self._making = threading.Lock()

    @property
    def engine(self) -> "WasmEngine":
        """What runs the connectors."""
        with self._making:
            if self._made is None:
                self._made = self._make_engine()
            return self._made

    @property
    def servers(self) -> "ServerProcesses":
        """What runs the MCP servers."""
        with self._making:
            if self._servers is None:
                assert self._make_servers is not None
                self._servers = self._make_servers()
            return self._servers

    def server_state(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return how the MCP server *name* ended if it is not started any more, and each host that it was refused."""
        if (servers := self._servers) is None:
            return "", ()
        return servers.held.get(name, ""), (*servers.refused_hosts(name),)

    def forget_secrets(self) -> None:
        """End every MCP server that holds a secret, once its present calls have ended: the vault was locked."""
        if self._servers is not None:
            self._servers.retire_with_secrets()

    def stop_running(self) -> None:
        """Stop every guest that runs or waits for a thread, and every MCP server; later calls are not affected."""
        if (engine := self._engine_if_made()) is not None:
            engine.stop_running()
        if self._servers is not None:
            self._servers.stop_running()

    def close(self) -> None:
        """Stop every guest and every MCP server, end the engine's threads and close its connections; blocks."""
        if self._servers is not None:
            self._servers.close()
        if (engine := self._engine_if_made()) is not None:
            engine.close()
            engine.outgoing.close()

    def _engine_if_made(self) -> "WasmEngine | None":
        with self._making:
            return self._made

    async def get(self, fqn: str, version: str, hash_: str) -> Connector:
        """Return the connector with exactly that name, version and hash, its bytes verified.

        Raises:
            NotFound: it is not installed; the message says what is.
            HashMismatch: the bytes on disk do not match *hash_*, or belong to another connector.
            FileProblems: this version cannot use its manifest.
        """
        try:
            installed = await asyncio.to_thread(self._store.find, hash_)
        except NotFound as error:
            hint = await asyncio.to_thread(self._hint, fqn, version)
            raise NotFound(
                f"connector {fqn} {version} with hash {hash_} is not installed; {hint}",
                details={"connector": fqn, "version": version, "hash": hash_},
            ) from error
        identity = installed.identity
        if (identity.fqn, identity.version) != (fqn, version):
            raise HashMismatch(
                f"{hash_} is {identity.fqn} {identity.version}, not {fqn} {version}; "
                "correct the action's requires.connectors",
                details={
                    "expected": f"{fqn}@{version}",
                    "computed": f"{identity.fqn}@{identity.version}",
                },
            )
        return self._connector(installed)

    async def scan(
        self,
    ) -> tuple[tuple[tuple[Connector, InstalledConnector], ...], tuple[Problem, ...]]:
        """Return every usable connector with what the store says of it, and what is wrong with others."""
        found, problems = await asyncio.to_thread(self._store.scan)
        return tuple((self._connector(entry), entry) for entry in found), problems

    async def stage_modules(self, hashes: Sequence[str]) -> None:
        """Read the cached machine code of the modules with *hashes* before the vault's key verifies it, and check their files."""
        if (engine := self._engine_if_made()) is not None:
            await asyncio.to_thread(engine.stage_modules, hashes)
            for hash_ in hashes:
                with suppress(NotFound, HashMismatch):  # said where it is used
                    await asyncio.to_thread(self._store.verify, hash_)

    async def collect_modules(self, wanted: Collection[str]) -> None:
        """Remove the cached machine code of every connector but those with these hashes."""
        if (engine := self._engine_if_made()) is not None:
            await asyncio.to_thread(engine.collect_modules, wanted)

    def _connector(self, installed: InstalledConnector) -> Connector:
        if installed.manifest.server is not None:
            from aileron_core.connectors.servers.connector import ServerConnector

            return ServerConnector(
                identity=installed.identity,
                manifest=installed.manifest,
                definitions=installed.tools,
                servers=self.servers,
                check=lambda: self._store.verify(installed.identity.hash),
            )
        from aileron_core.connectors.wasm.connector import WasmConnector

        return WasmConnector(
            identity=installed.identity,
            manifest=installed.manifest,
            store=self._store,
            engine=self.engine,
        )

    def _hint(self, fqn: str, version: str) -> str:
        same = [entry.identity for entry in self._store.list() if entry.identity.fqn == fqn]
        if any(identity.version == version for identity in same):
            return "that version is installed with a different hash: pin the action to it, or install the build that the action was written for"
        if same:
            return f"installed versions: {', '.join(identity.version for identity in same)}"
        return "install it from its folder first"
