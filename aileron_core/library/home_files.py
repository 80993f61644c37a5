"""Reads the files of a home: action files, connectors, and the lists of what was added together."""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aileron_core.actions.catalog import CatalogScan, scan
from aileron_core.actions.suites import Suite, delete_suite, read_suites
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import InstalledConnector
from aileron_core.errors import Problem
from aileron_core.library.file_stamps import FileStamps, read_stamps

if TYPE_CHECKING:
    from aileron_core.connectors.wasm.connector import WasmConnector

_log = logging.getLogger(__name__)


class HomeFiles:
    """The files of a home as they were last read, whether accepted or not.

    Args:
        actions: the folder of action files; the home is its parent.
    """

    def __init__(self, actions: Path, registry: ConnectorRegistry) -> None:
        self.actions = CatalogScan()
        self.suites: tuple[Suite, ...] = ()
        self.connectors: Mapping[str, WasmConnector] = {}
        """By hash."""
        self.stored: Mapping[str, InstalledConnector] = {}
        """The same connectors, as the store has them."""
        self.store_problems: tuple[Problem, ...] = ()
        self.stamps: FileStamps | None = None
        """Of the last reading; None before the first."""
        self._folder = actions
        self._suite_folder = actions.parent / "suites"
        self._registry = registry

    async def may_have_changed(self) -> bool:
        """Return whether something in the folders changed since the last reading, or may have."""
        found = await asyncio.to_thread(self._read_stamps)
        last = self.stamps
        return last is None or not last.settled or found.stamps != last.stamps

    async def read(self) -> bool:
        """Read everything again; return whether actions or connectors differ, true the first time."""
        first = self.stamps is None
        self.stamps = await asyncio.to_thread(self._read_stamps)
        before = (self.actions, tuple(self.connectors), self.store_problems)
        self.actions = await asyncio.to_thread(scan, self._folder, self.actions)
        # After the files: a list is written before the files that it names.
        self.suites = await asyncio.to_thread(read_suites, self._suite_folder)
        found, self.store_problems = await self._registry.scan()
        self.connectors = {connector.identity.hash: connector for connector, _ in found}
        self.stored = {entry.identity.hash: entry for _, entry in found}
        return first or (self.actions, tuple(self.connectors), self.store_problems) != before

    async def delete_suite(self, suite_id: str) -> None:
        """Remove the list of a suite: what is left of its files is shown one by one."""
        try:
            await asyncio.to_thread(delete_suite, self._suite_folder, suite_id)
        except OSError as error:
            _log.warning("a list of added actions cannot be removed: %s", type(error).__name__)
        self.suites = tuple(each for each in self.suites if each.suite_id != suite_id)

    def _read_stamps(self) -> FileStamps:
        store = self._folder.parent / "store" / "connectors" / "sha256"
        return read_stamps(self._folder, store, self._suite_folder, now_ns=time.time_ns())
