"""Reads the files of a home: action files, connectors, their signatures, and the lists of what was added together."""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from aileron_core.actions.catalog import CatalogScan, scan
from aileron_core.actions.suites import Suite, delete_suite, finish_adding, read_suites
from aileron_core.connectors.protocol import Connector
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import OFFERED_KEYS, ConnectorStore, InstalledConnector
from aileron_core.errors import Problem
from aileron_core.library.publishers import Publishers

if TYPE_CHECKING:
    from aileron_core.releases.kept import SignedRelease
import os
from collections.abc import Iterator
from dataclasses import dataclass

_SETTLED_NS = 1_000_000_000

_Stamp = tuple[str, int, int, int, int, int, int]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamps:
    """Size, times and identity of each file, at one moment."""

    stamps: tuple[_Stamp, ...]
    settled: bool
    """Whether every later change will show: the newest one is older than the clock's tick."""


def read_stamps(
    actions: Path, store: Path, suites: Path, publishers: Path, *, now_ns: int
) -> FileStamps:
    """Return what the file system says of the action files and of the store's entries.

    Args:
        actions: the folder of action files, flat.
        store: the folder with one folder for each connector.
        suites: the folder of lists of what was added together, flat.
        publishers: the folder of keys that are offered, flat.
        now_ns: the machine's wall clock, in nanoseconds.
    """
    flat = (each for folder in (actions, suites, publishers) for each in _folder(folder, depth=1))
    seen = (*flat, *_folder(store, depth=2))
    stamps = tuple(sorted(seen))
    # One in the future, after the clock was set back, settles nothing either.
    settled = all(0 < stamp[-1] < now_ns - _SETTLED_NS for stamp in stamps)
    return FileStamps(stamps=stamps, settled=settled)


def _folder(folder: Path, *, depth: int) -> Iterator[_Stamp]:
    try:
        yield _stamp(str(folder), os.stat(folder))  # noqa: PTH116 - of what a link leads to
        with os.scandir(folder) as entries:
            for entry in entries:
                if depth > 1 and entry.is_dir(follow_symlinks=False):
                    yield from _folder(Path(entry.path), depth=depth - 1)
                else:
                    yield _stamp(entry.path, entry.stat(follow_symlinks=False))
    except OSError:
        return  # gone, or not to be read: what is missing here differs from what was seen before


def _stamp(path: str, found: os.stat_result) -> _Stamp:
    return (
        path,
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


Verified: TypeAlias = "dict[str, tuple[bytes, SignedRelease | None]]"
"""By the hash of a connector: what lies beside it as signatures, and what exactly these bytes prove."""


def read_publishers(
    home: Path,
    store: ConnectorStore,
    stored: Mapping[str, InstalledConnector],
    verified: Verified,
) -> Publishers:
    """Return what the signatures in *home* prove of its connectors *stored*, by hash.

    *verified*: what was verified before, which is not again, and has all of them then.
    """
    kept = {hash_: store.signatures(hash_) for hash_ in stored}
    if not any(kept.values()) and not (home / OFFERED_KEYS).exists():
        return Publishers({})
    from aileron_core.releases.kept import (  # loads `cryptography`: the start is measured
        read_offers,
        verified_release,
    )

    for gone in verified.keys() - kept.keys():
        del verified[gone]
    for hash_, signed in kept.items():
        if verified.get(hash_, (b"", None))[0] != signed:
            verified[hash_] = (signed, verified_release(store, stored[hash_], signed))
    releases = {hash_: each for hash_, (_, each) in verified.items() if each is not None}
    return Publishers(releases, read_offers(home))


class HomeFiles:
    """The files of a home as they were last read, whether accepted or not.

    Args:
        actions: the folder of action files; the home is its parent.
    """

    def __init__(self, actions: Path, registry: ConnectorRegistry, store: ConnectorStore) -> None:
        self.actions = CatalogScan()
        self.suites: tuple[Suite, ...] = ()
        self.connectors: Mapping[str, Connector] = {}
        """By hash."""
        self.stored: Mapping[str, InstalledConnector] = {}
        """The same connectors, as the store has them."""
        self.store_problems: tuple[Problem, ...] = ()
        self.publishers = Publishers({})
        self.stamps: FileStamps | None = None
        """Of the last reading; None before the first."""
        self._folder = actions
        self._suite_folder = actions.parent / "suites"
        self._key_folder = actions.parent / OFFERED_KEYS
        self._registry = registry
        self._store = store
        self._verified: Verified = {}

    async def may_have_changed(self) -> bool:
        """Return whether something in the folders changed since the last reading, or may have."""
        found = await asyncio.to_thread(self._read_stamps)
        last = self.stamps
        return last is None or not last.settled or found.stamps != last.stamps

    async def read(self) -> bool:
        """Read everything again; return whether actions or connectors differ, true the first time."""
        first = self.stamps is None
        await asyncio.to_thread(finish_adding, self._folder)
        self.stamps = await asyncio.to_thread(self._read_stamps)
        before = (self.actions, tuple(self.connectors), self.store_problems, self.publishers)
        self.actions = await asyncio.to_thread(scan, self._folder, self.actions)
        # After the files: a list is written before the files that it names.
        self.suites = await asyncio.to_thread(read_suites, self._suite_folder)
        scanned, self.store_problems = await self._registry.scan()
        self.connectors = {connector.identity.hash: connector for connector, _ in scanned}
        self.stored = {entry.identity.hash: entry for _, entry in scanned}
        home = self._folder.parent
        self.publishers = await asyncio.to_thread(
            read_publishers, home, self._store, self.stored, self._verified
        )
        found = (self.actions, tuple(self.connectors), self.store_problems, self.publishers)
        return first or found != before

    async def delete_suite(self, suite_id: str) -> None:
        """Remove the list of a suite: what is left of its files is shown one by one."""
        try:
            await asyncio.to_thread(delete_suite, self._suite_folder, suite_id)
        except OSError as error:
            _log.warning("a list of added actions cannot be removed: %s", type(error).__name__)
        self.suites = tuple(each for each in self.suites if each.suite_id != suite_id)

    def _read_stamps(self) -> FileStamps:
        store = self._folder.parent / "store" / "connectors" / "sha256"
        return read_stamps(
            self._folder, store, self._suite_folder, self._key_folder, now_ns=time.time_ns()
        )
