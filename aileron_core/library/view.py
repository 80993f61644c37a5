"""What lies in a home, as front ends show it."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aileron_core.actions.catalog import Catalog, CatalogEntry, cannot_run
from aileron_core.actions.model import Action
from aileron_core.actions.suites import Suite
from aileron_core.connectors.protocol import Connector
from aileron_core.console_port import LibraryItemView, NotAcceptedView, SuiteView
from aileron_core.errors import Problem
from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.library.preview_reads import KIND, reads_of

__all__ = ["LibraryState", "library_items", "not_accepted_views"]

ItemKey: TypeAlias = tuple[str, str]
"""`action` and the file's name, or `connector` and `fqn@version`."""
_HELD_BACK = "You held it back."
_NEW = "Nobody has taken it in."
_CHANGED = "It is not what was taken in: its bytes differ."
_STORED = re.compile(r"(?:^|[/\\])sha256[/\\]([0-9a-f]{64})(?:[/\\]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryState:
    """What lies in the home at one moment, and what of it was taken in."""

    catalog: Catalog
    installed: Mapping[str, Connector]
    """By hash."""
    store_problems: Sequence[Problem]
    pins: Mapping[ItemKey, AcceptanceRecord]
    refused: Collection[tuple[str, str, str]]
    """(kind, name as in `pins`, digest) of what a person held back."""
    offers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What previews tried to read by POST: the name that its pin would have, the connector's hash."""
    suites: Sequence[Suite] = ()
    """The newest first."""

    def hosts_of(self, action: Action) -> tuple[str, ...]:
        """Return every `host:port` that the installed connectors of *action* may reach, sorted."""
        found = (self.installed.get(requirement.hash) for requirement in action.requires)
        return tuple(sorted({host for each in found if each for host in each.hosts}))


def not_accepted_views(shelf: LibraryState) -> tuple[NotAcceptedView, ...]:
    """Return what was not taken in, or not in this form."""
    entries = shelf.catalog.not_accepted()
    suites = _suites(shelf, entries)
    actions = (_held_action(shelf, entry, suites.get(entry.file)) for entry in entries)
    connectors = (
        NotAcceptedView(
            kind="connector",
            name=each.identity.ref,
            file=_place(each),
            digest=each.identity.hash,
            why="changed" if ("connector", each.identity.ref) in shelf.pins else "new",
            gated=None,
            connector=each.identity.fqn,
            hosts=each.hosts,
        )
        for each in shelf.installed.values()
        if not _counts(shelf, each)
    )
    return (*_offered_reads(shelf), *actions, *connectors)


def _offered_reads(shelf: LibraryState) -> Iterator[NotAcceptedView]:
    for name, digest in shelf.offers.items():
        connector = shelf.installed.get(digest)
        if connector is not None and _counts(shelf, connector):
            yield NotAcceptedView(
                kind=KIND,
                name=name,
                file=_place(connector),
                digest=digest,
                why="new",
                gated=None,
                connector=connector.identity.fqn,
                hosts=connector.hosts,
            )


def _suites(shelf: LibraryState, entries: Sequence[CatalogEntry]) -> Mapping[str, SuiteView]:
    """Return, by file, with what each of *entries* came; one that is left over stands alone.

    So does a file with other bytes than were added, and one that a person held back by itself.
    """
    newest = {
        (file, digest): suite
        for suite in reversed(shelf.suites)
        for file, digest in suite.files.items()
    }
    found = {
        entry.file: newest[entry.file, entry.sha256]
        for entry in entries
        if (entry.file, entry.sha256) in newest
        and ("action", entry.file, entry.sha256) not in shelf.refused
    }
    counts = Counter(suite.suite_id for suite in found.values())
    views = {
        suite.suite_id: SuiteView(
            suite_id=suite.suite_id, source=suite.source, added_at=suite.added_at
        )
        for suite in shelf.suites
    }
    return {
        file: views[suite.suite_id] for file, suite in found.items() if counts[suite.suite_id] > 1
    }


def _held_action(
    shelf: LibraryState, entry: CatalogEntry, suite: SuiteView | None
) -> NotAcceptedView:
    assert entry.action is not None
    return NotAcceptedView(
        kind="action",
        name=entry.name,
        file=entry.file,
        digest=entry.sha256,
        why="changed" if ("action", entry.file) in shelf.pins else "new",
        gated=entry.action.gated,
        connector=", ".join(requirement.fqn for requirement in entry.action.requires),
        hosts=shelf.hosts_of(entry.action),
        steps=_steps(entry.action),
        cannot_run=cannot_run(entry.action),
        reads=entry.action.reads,
        suite=suite,
    )


def _steps(action: Action) -> tuple[str, ...]:
    return tuple(f"{step.connector}.{step.op}" for step in action.steps)


def library_items(shelf: LibraryState) -> tuple[LibraryItemView, ...]:
    """Return everything that lies there: actions by name, then connectors by name, then broken ones."""
    actions = [_action_item(shelf, entry) for entry in shelf.catalog.entries]
    actions.sort(key=lambda item: (item.name, item.file))
    connectors = [_connector_item(shelf, each) for each in shelf.installed.values()]
    connectors.sort(key=lambda item: (item.name, item.digest))
    return (*actions, *connectors, *_reads(shelf), *_broken_connectors(shelf))


def _action_item(shelf: LibraryState, entry: CatalogEntry) -> LibraryItemView:
    action = entry.action
    key = ("action", entry.file)
    pin = shelf.pins.get(key)
    preview = action.approval.preview if action else None
    stopped = cannot_run(action) if action else ""
    effect = (action.approval.effect or ("ask" if action.gated else "")) if action else ""
    return LibraryItemView(
        kind="action",
        name=entry.name or entry.file,
        file=entry.file,
        digest=entry.sha256,
        state="cannot_run" if entry.state == "ready" and stopped else entry.state,
        why=_error(entry.errors)
        if entry.state == "error"
        else _why(shelf, key, entry.sha256) or stopped,
        version=action.version if action else "",
        gated=action.gated if action else None,
        preview=preview.op if preview else "",
        effect=effect.upper(),
        connector=", ".join(each.fqn for each in action.requires) if action else "",
        hosts=shelf.hosts_of(action) if action else (),
        steps=_steps(action) if action else (),
        taken_in_at=pin.taken_at if pin else None,
        taken_in_by=pin.taken_by if pin else "",
    )


def _connector_item(shelf: LibraryState, connector: Connector) -> LibraryItemView:
    identity = connector.identity
    key = ("connector", identity.ref)
    pin = shelf.pins.get(key)
    state: Literal["ready", "held_back"] = "ready" if _counts(shelf, connector) else "held_back"
    return LibraryItemView(
        kind="connector",
        name=identity.ref,
        file=_place(connector),
        digest=identity.hash,
        state=state,
        why=_why(shelf, key, identity.hash),
        version=identity.version,
        gated=None,
        preview="",
        effect="",
        connector=identity.fqn,
        hosts=connector.hosts,
        taken_in_at=pin.taken_at if pin else None,
        taken_in_by=pin.taken_by if pin else "",
    )


def _reads(shelf: LibraryState) -> Iterator[LibraryItemView]:
    """Yield what previews read by POST, accepted and offered, of the connectors that count."""
    for connector in shelf.installed.values():
        if not _counts(shelf, connector):
            continue
        identity = connector.identity
        for pin in reads_of(shelf.pins.values(), identity.ref):
            if pin.digest == identity.hash:
                yield _read_item(connector, pin.name, pin, "")
        for name, digest in shelf.offers.items():
            if digest == identity.hash:
                yield _read_item(connector, name, None, _why(shelf, (KIND, name), digest))


def _read_item(
    connector: Connector, name: str, pin: AcceptanceRecord | None, why: str
) -> LibraryItemView:
    return LibraryItemView(
        kind=KIND,
        name=name,
        file=_place(connector),
        digest=connector.identity.hash,
        state="held_back" if pin is None else "ready",
        why=why,
        version=connector.identity.version,
        gated=None,
        preview="",
        effect="",
        connector=connector.identity.fqn,
        steps=(),
        hosts=connector.hosts,
        taken_in_at=pin.taken_at if pin else None,
        taken_in_by=pin.taken_by if pin else "",
    )


def _broken_connectors(shelf: LibraryState) -> tuple[LibraryItemView, ...]:
    """Return one item for each place of the store that holds no connector that can be used."""
    by_place: dict[str, list[Problem]] = {}
    for problem in shelf.store_problems:
        match = _STORED.search(problem.file)
        by_place.setdefault(f"sha256:{match[1]}" if match else problem.file, []).append(problem)
    return tuple(
        LibraryItemView(
            kind="connector",
            name=place,
            file=problems[0].file,
            digest=place if place.startswith("sha256:") else "",
            state="error",
            why=_error(problems),
            version="",
            gated=None,
            preview="",
            effect="",
            connector="",
            hosts=(),
            taken_in_at=None,
            taken_in_by="",
        )
        for place, problems in sorted(by_place.items())
    )


def _place(connector: Connector) -> str:
    """Return the folder below the home in which a person finds the connector's manifest."""
    return f"store/connectors/{connector.identity.hash.replace(':', '/', 1)}"


def _counts(shelf: LibraryState, connector: Connector) -> bool:
    pin = shelf.pins.get(("connector", connector.identity.ref))
    return pin is not None and pin.digest == connector.identity.hash


def _why(shelf: LibraryState, key: ItemKey, digest: str) -> str:
    """Return why what lies there with *digest* does not count; empty where it does."""
    pin = shelf.pins.get(key)
    if pin is not None and pin.digest == digest:
        return ""
    if (*key, digest) in shelf.refused:
        return _HELD_BACK
    return _NEW if pin is None else _CHANGED


def _error(problems: Sequence[Problem]) -> str:
    """Return the first error of *problems*, and how many more there are."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if not errors:
        return ""
    first = errors[0]
    place = f"line {first.line}: " if first.line else ""
    key = f"{first.key}: " if first.key else ""
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}{key}{first.message}{more}"
