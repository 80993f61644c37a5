"""The content of each file that a person is asked to accept, beside what was accepted before it."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from aileron_core.actions.catalog import CatalogEntry, ScannedFile, read_scanned
from aileron_core.actions.model import Action
from aileron_core.connectors.servers.table import WORDS
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.file_views import (
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
    ServerView,
)
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.comparison import compare_actions, compare_connectors
from aileron_core.library.run_time import named_run_time, run_seconds

_Accepted = Mapping[tuple[str, str], AcceptanceRecord]
_COMPARED = 2048
"""Comparisons that are remembered: the views are made anew with every change in the home."""


class FileContents:
    """Makes the contents of a home's files; has what was accepted of the changed ones in memory."""

    def __init__(self, copies: AcceptedContents) -> None:
        self._copies = copies
        self._kept: dict[str, ScannedFile | None] = {}
        """By digest; None: no copy."""
        self._compared: dict[tuple[object, ...], tuple[AcceptanceChangeView, ...]] = {}

    async def load(self, changed: Iterable[AcceptanceRecord]) -> None:
        """Read what was accepted of the action files that have *changed*; the others are forgotten."""
        wanted = {each.digest: each.name for each in changed}
        for digest in self._kept.keys() - wanted.keys():
            del self._kept[digest]
        if missing := {each: name for each, name in wanted.items() if each not in self._kept}:
            self._kept.update(await asyncio.to_thread(self._read, missing))

    def has(self, digest: str) -> bool:
        """Tell whether `load` has looked for this one."""
        return digest in self._kept

    def kept(self, changed: Iterable[AcceptanceRecord]) -> dict[str, ScannedFile]:
        """Return, by name, what was accepted of the files that have *changed*, as `load` found it."""
        found = {each.name: self._kept.get(each.digest) for each in changed}
        return {name: each for name, each in found.items() if each}

    def _read(self, wanted: Mapping[str, str]) -> dict[str, ScannedFile | None]:
        found = {digest: self._copies.read(digest) for digest in wanted}
        return {
            digest: read_scanned(wanted[digest], data) if data is not None else None
            for digest, data in found.items()
        }

    def of_action(
        self, entry: CatalogEntry, accepted: _Accepted, stored: Mapping[str, InstalledConnector]
    ) -> FileContentView | None:
        """Return the content of an action file; None of one that is no action."""
        if entry.action is None:
            return None
        text = _text(entry.scanned)
        record = accepted.get(("action", entry.file))
        if record is None or record.digest == entry.sha256:
            return FileContentView(text=text)
        kept = self._kept.get(record.digest)
        changes: tuple[AcceptanceChangeView, ...] = ()
        if kept is not None and kept.action is not None:
            changes = self._compare(record, kept.action, entry, accepted, stored)
        return FileContentView(text=text, before=_before(record, kept and _text(kept), changes))

    def _compare(
        self,
        record: AcceptanceRecord,
        old: Action,
        entry: CatalogEntry,
        accepted: _Accepted,
        stored: Mapping[str, InstalledConnector],
    ) -> tuple[AcceptanceChangeView, ...]:
        new = entry.action
        assert new is not None
        hosts = (_hosts(old, stored), _hosts(new, stored))
        named = named_run_time(new, entry.file, entry.sha256, stored, accepted)
        seconds = (
            run_seconds(old, entry.file, record.digest, stored, accepted),
            named.seconds if named is not None else new.limits.wall_seconds,
        )
        key = (old.sha256, new.sha256, hosts, seconds)
        if key not in self._compared:
            if len(self._compared) >= _COMPARED:
                self._compared.clear()
            self._compared[key] = compare_actions(
                old,
                new,
                old_hosts=hosts[0],
                new_hosts=hosts[1],
                old_seconds=seconds[0],
                new_seconds=seconds[1],
            )
        return self._compared[key]

    def of_connector(
        self,
        entry: InstalledConnector,
        accepted: _Accepted,
        stored: Mapping[str, InstalledConnector],
    ) -> FileContentView:
        """Return all that there is to read of an installed connector."""
        server = _server(entry)
        module = "" if server else entry.module_text
        content = FileContentView(text=entry.whole_text, module=module, server=server)
        record = _accepted_before(entry, accepted)
        if record is None:
            return content
        old = stored.get(record.digest)
        if old is None:
            return replace(content, before=_before(record, None, ()))
        before = _before(record, old.whole_text, compare_connectors(old, entry))
        return replace(content, before=before)


def _server(entry: InstalledConnector) -> ServerView | None:
    table = entry.manifest.server
    if table is None:
        return None
    return ServerView(
        program=table.shown_program,
        is_remote=bool(table.url),
        files_read=table.files_read,
        files_write=table.files_write,
        secrets=table.secrets,
        is_rehearsed=table.rehearse,
        tools={
            word: names
            for word in WORDS
            if (names := tuple(sorted(tool for tool, of in table.tools.items() if of == word)))
        },
    )


def _text(file: ScannedFile) -> str:
    return file.data.decode("utf-8", "backslashreplace")


def _before(
    record: AcceptanceRecord, text: str | None, changes: tuple[AcceptanceChangeView, ...]
) -> AcceptedBeforeView:
    return AcceptedBeforeView(
        name=record.name,
        digest=record.digest,
        accepted_at=record.accepted_at,
        text=text,
        changes=changes,
    )


def _accepted_before(entry: InstalledConnector, accepted: _Accepted) -> AcceptanceRecord | None:
    """Return the accepted connector that *entry* would come after: other bytes, or another version.

    None where exactly these bytes are accepted.
    """
    identity = entry.identity
    same = accepted.get(("connector", identity.ref))
    if same is not None:
        return same if same.digest != identity.hash else None
    versions = [
        each
        for (kind, name), each in accepted.items()
        if kind == "connector" and name.rpartition("@")[0] == identity.fqn
    ]
    return max(versions, key=lambda each: each.accepted_at, default=None)


def _hosts(action: Action, stored: Mapping[str, InstalledConnector]) -> tuple[str, ...] | None:
    """Return every host that the connectors of *action* may reach; None if one is not installed."""
    found = [stored.get(requirement.hash) for requirement in action.requires]
    if any(each is None for each in found):
        return None
    return tuple(sorted({host for each in found if each for host in each.manifest.hosts}))
