"""What front ends show of a home: each file's state, why it is not accepted, which stand as one suite."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from aileron_core.actions.catalog import Catalog, CatalogEntry, cannot_run
from aileron_core.actions.model import Action, semver_order
from aileron_core.actions.suites import Suite
from aileron_core.connectors.servers.table import server_name
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import (
    LibraryItemView,
    NotAcceptedView,
    RunTimeView,
)
from aileron_core.errors import Problem
from aileron_core.library.acceptance import READS_KIND, AcceptanceRecord, reads_of, why_not_counted
from aileron_core.library.file_contents import FileContents
from aileron_core.library.publishers import KIND, Publishers, offered_keys, publisher_name
from aileron_core.library.run_time import named_run_time

ItemKey: TypeAlias = tuple[str, str]
"""`action` and the file's name, or `connector` and `fqn@version`."""
_WITHDRAWN = "You withdrew its acceptance."
_NEW = "It has not been accepted."
_CHANGED = "Its bytes differ from those that were accepted."
_UPDATE = "What was accepted before counts until you accept this."
_STORED = re.compile(r"(?:^|[/\\])sha256[/\\]([0-9a-f]{64})(?:[/\\]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryState:
    """The files of the home at one moment, and what of them is accepted."""

    catalog: Catalog
    installed: Mapping[str, InstalledConnector]
    """By hash."""
    contents: FileContents
    store_problems: Sequence[Problem]
    accepted: Mapping[ItemKey, AcceptanceRecord]
    withdrawn: Collection[tuple[str, str, str]]
    """(kind, name as in `accepted`, digest) of what a person withdrew."""
    offers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What previews tried to read by POST: the name it would be accepted by, the connector's hash."""
    suites: Sequence[Suite] = ()
    """The newest first."""
    publishers: Publishers = field(default_factory=lambda: Publishers({}))
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """The accepted keys' fingerprints, by publisher."""

    server_state: Callable[[str], tuple[str, tuple[str, ...]]] = lambda name: ("", ())
    """Returns how an MCP server ended that is not started any more, and each host that it was refused."""

    def why_not_counted(self, name: str, connector: InstalledConnector) -> str:
        """Return why the read that the acceptance *name* is about does not count; empty where it does."""
        read = name.removeprefix(f"{connector.identity.ref} ")
        return why_not_counted(read, connector.identity, self.catalog.ready().values())

    def predecessors(self, connector: InstalledConnector) -> tuple[InstalledConnector, ...]:
        """Return the accepted versions of *connector* whose accounts go along once it is accepted.

        They are older, signed like it with the publisher's accepted key, ask for the same credential and reach the
        same hosts.
        """
        of = connector.identity
        key = self.keys.get(publisher_name(of.fqn))
        if connector.credential_requirement is None or key is None:
            return ()
        asks = (connector.credential_requirement, connector.hosts)
        return tuple(
            each
            for each in self.installed.values()
            if each.identity.fqn == of.fqn
            and _is_accepted(self, each)
            and semver_order(each.identity.version) < semver_order(of.version)
            and (each.credential_requirement, each.hosts) == asks
            and self.publishers.signed_with(each) == self.publishers.signed_with(connector) == key
        )

    def is_update(self, key: ItemKey, digest: str) -> bool:
        """Whether *digest* waits beside what was accepted of *key*, which is there."""
        accepted = self.accepted.get(key)
        if accepted is None or accepted.digest == digest:
            return False
        if key[0] == "connector":
            return accepted.digest in self.installed
        return key[0] == "action" and (key[1], accepted.digest) in self.catalog

    def hosts_of(self, action: Action) -> tuple[str, ...]:
        """Return every `host:port` that the installed connectors of *action* may reach, sorted."""
        found = (self.installed.get(requirement.hash) for requirement in action.requires)
        return tuple(sorted({host for each in found if each for host in each.hosts}))


def not_accepted_views(library: LibraryState) -> tuple[NotAcceptedView, ...]:
    """Return what is not accepted, or not with these bytes."""
    entries = library.catalog.not_accepted()
    installed = [each for each in library.installed.values() if not _is_accepted(library, each)]
    connectors = [
        _connector_view(library, "connector", each.identity.ref, each) for each in installed
    ]
    actions = [_action_view(library, entry) for entry in entries]
    reads = (
        _connector_view(library, READS_KIND, name, connector)
        for name, digest in library.offers.items()
        if (connector := library.installed.get(digest)) is not None
        and _is_accepted(library, connector)
        and not library.why_not_counted(name, connector)
    )
    keys = offered_keys(library.publishers, library.keys)
    return (*keys, *reads, *_in_suites(library, [*actions, *connectors]))


def _connector_view(
    library: LibraryState,
    kind: Literal["connector", "preview"],
    name: str,
    connector: InstalledConnector,
) -> NotAcceptedView:
    is_file = kind == "connector"
    return NotAcceptedView(
        kind=kind,
        name=name,
        file=connector.folder,
        digest=connector.identity.hash,
        change="changed" if is_file and (kind, name) in library.accepted else "new",
        is_update=is_file and library.is_update((kind, name), connector.identity.hash),
        connector=connector.identity.fqn,
        hosts=connector.hosts,
        account=_account(connector) if is_file else (),
        accounts_of=tuple(
            each.identity.version for each in (library.predecessors(connector) if is_file else ())
        ),
        content=library.contents.of_connector(connector, library.accepted, library.installed)
        if is_file
        else None,
        publisher=library.publishers.of_connector(connector, library.keys) if is_file else None,
    )


def _account(connector: InstalledConnector) -> tuple[str, ...]:
    needed = connector.credential_requirement
    if needed is None:
        return ()
    return (needed.kind, *(needed.oauth2.scopes if needed.oauth2 is not None else ()))


def _in_suites(
    library: LibraryState, files: Sequence[NotAcceptedView]
) -> Iterator[NotAcceptedView]:
    """Yield *files*, each with where it was added from, and the suite that it is shown with.

    The last of a suite has none. Nor has a file with other bytes than were added, one whose acceptance was withdrawn
    by itself, or one that cannot be accepted.
    """

    def newest(least: int) -> dict[tuple[str, str], Suite]:
        lists = [each for each in reversed(library.suites) if len(each.files) >= least]
        return {each: suite for suite in lists for each in suite.files.items()}

    added, together = newest(1), newest(2)
    keys = [(each.file, each.digest.removeprefix("sha256:")) for each in files]
    found = [together.get(each) for each in keys]
    for number, each in enumerate(files):
        name = each.file if each.kind == "action" else each.name
        if each.is_refused or (each.kind, name, each.digest) in library.withdrawn:
            found[number] = None
    counts = Counter(suite.suite_id for suite in found if suite is not None)
    for each, key, suite in zip(files, keys, found, strict=True):
        source = added[key].view.source if key in added else ""
        if suite is None or counts[suite.suite_id] == 1:
            yield replace(each, source=source)
            continue
        yield replace(each, suite=suite.view, source=source)


def _action_view(library: LibraryState, entry: CatalogEntry) -> NotAcceptedView:
    assert entry.action is not None
    preview = entry.action.approval.preview
    return NotAcceptedView(
        kind="action",
        name=entry.name,
        file=entry.file,
        digest=entry.sha256,
        change="changed" if ("action", entry.file) in library.accepted else "new",
        is_update=library.is_update(("action", entry.file), entry.sha256),
        gated=entry.action.gated,
        connector=", ".join(requirement.fqn for requirement in entry.action.requires),
        hosts=library.hosts_of(entry.action),
        steps=_steps(entry.action),
        preview=preview.op if preview else "",
        cannot_run=cannot_run(entry.action),
        is_read_only=entry.action.is_read_only,
        run_time=_run_time(library, entry),
        content=_content(library, entry),
        publisher=library.publishers.of_action(entry, library.keys),
    )


def _content(library: LibraryState, entry: CatalogEntry) -> FileContentView | None:
    found = library.contents.of_action(entry, library.accepted, library.installed)
    return found and replace(found, is_kept=library.catalog.is_kept(entry))


def _run_time(library: LibraryState, entry: CatalogEntry) -> RunTimeView | None:
    if entry.action is None:
        return None
    return named_run_time(
        entry.action, entry.file, entry.sha256, library.installed, library.accepted
    )


def _steps(action: Action) -> tuple[str, ...]:
    return tuple(f"{step.connector}.{step.op}" for step in action.steps)


def library_items(library: LibraryState) -> tuple[LibraryItemView, ...]:
    """Return everything in the home: actions by name, then connectors by name, then broken ones."""
    actions = [_action_item(library, entry) for entry in library.catalog.entries]
    # Once it is accepted, the row that stands in an update's place is the same file's.
    actions.sort(key=lambda item: (item.name, item.file, not item.is_update))
    connectors = [
        _connector_item(library, "connector", each.identity.ref, each)
        for each in library.installed.values()
    ]
    connectors.sort(key=lambda item: (item.name, not item.is_update, item.digest))
    keys = (
        _publisher_item(each) for key, each in sorted(library.accepted.items()) if key[0] == KIND
    )
    return (*actions, *connectors, *_reads(library), *keys, *_broken_connectors(library))


def _action_item(library: LibraryState, entry: CatalogEntry) -> LibraryItemView:
    action = entry.action
    key = ("action", entry.file)
    accepted = library.accepted.get(key)
    preview = action.approval.preview if action else None
    stopped = cannot_run(action) if action else ""
    effect = (action.approval.effect or ("ask" if action.gated else "")) if action else ""
    return LibraryItemView(
        kind="action",
        name=entry.name or entry.file,
        file=entry.file,
        digest=entry.sha256,
        state="cannot_run" if entry.state == "ready" and stopped else entry.state,
        reason=_error(entry.errors)
        if entry.state == "error"
        else _why(library, key, entry.sha256) or stopped,
        is_update=library.is_update(key, entry.sha256),
        version=action.version if action else "",
        gated=action.gated if action else None,
        preview=preview.op if preview else "",
        effect=effect.upper(),
        connector=", ".join(each.fqn for each in action.requires) if action else "",
        hosts=library.hosts_of(action) if action else (),
        steps=_steps(action) if action else (),
        accepted_at=accepted.accepted_at if accepted else None,
        accepted_by=accepted.accepted_by if accepted else "",
        run_time=_run_time(library, entry),
        content=_content(library, entry),
        publisher=library.publishers.of_action(entry, library.keys) if action else None,
    )


def _publisher_item(record: AcceptanceRecord) -> LibraryItemView:
    return LibraryItemView(
        kind="publisher",
        name=record.name,
        file="",
        digest=record.digest,
        state="ready",
        reason="",
        accepted_at=record.accepted_at,
        accepted_by=record.accepted_by,
    )


def _connector_item(
    library: LibraryState,
    kind: Literal["connector", "preview"],
    name: str,
    connector: InstalledConnector,
    why: str = "",
) -> LibraryItemView:
    """Return an installed connector, or a read that its previews ask for; *why* that one does not count."""
    identity = connector.identity
    accepted = library.accepted.get((kind, name))
    counts = accepted is not None and accepted.digest == identity.hash
    is_server = counts and connector.manifest.server is not None
    held, refused = library.server_state(server_name(identity.fqn)) if is_server else ("", ())
    why = why or (
        held
        and f"It ended three times within a minute; the last time it {held}. Press s to have it started again."
    )
    return LibraryItemView(
        kind=kind,
        name=name,
        file=connector.folder,
        digest=identity.hash,
        state="held_back" if not counts else "cannot_run" if why else "ready",
        is_held=bool(held),
        refused_hosts=refused,
        reason=why or _why(library, (kind, name), identity.hash),
        is_update=library.is_update((kind, name), identity.hash),
        version=identity.version,
        connector=identity.fqn,
        hosts=connector.hosts,
        accepted_at=accepted.accepted_at if accepted else None,
        accepted_by=accepted.accepted_by if accepted else "",
        content=library.contents.of_connector(connector, library.accepted, library.installed)
        if kind == "connector"
        else None,
        publisher=library.publishers.of_connector(connector, library.keys)
        if kind == "connector"
        else None,
    )


def _reads(library: LibraryState) -> Iterator[LibraryItemView]:
    """Yield what previews read by POST, accepted and offered, of the accepted connectors."""
    for connector in library.installed.values():
        if not _is_accepted(library, connector):
            continue
        ref, digest = connector.identity.ref, connector.identity.hash
        accepted = {each.name: each.digest for each in reads_of(library.accepted.values(), ref)}
        for name, of in (*accepted.items(), *library.offers.items()):
            if of == digest:
                why = library.why_not_counted(name, connector)
                yield _connector_item(library, READS_KIND, name, connector, why)


def _broken_connectors(library: LibraryState) -> tuple[LibraryItemView, ...]:
    """Return one item for each place in the store whose connector cannot be used."""
    by_place: dict[str, list[Problem]] = {}
    for problem in library.store_problems:
        match = _STORED.search(problem.file)
        by_place.setdefault(f"sha256:{match[1]}" if match else problem.file, []).append(problem)
    return tuple(
        LibraryItemView(
            kind="connector",
            name=place,
            file=problems[0].file,
            digest=place if place.startswith("sha256:") else "",
            state="error",
            reason=_error(problems),
        )
        for place, problems in sorted(by_place.items())
    )


def _is_accepted(library: LibraryState, connector: InstalledConnector) -> bool:
    accepted = library.accepted.get(("connector", connector.identity.ref))
    return accepted is not None and accepted.digest == connector.identity.hash


def _why(library: LibraryState, key: ItemKey, digest: str) -> str:
    """Return why *digest* is not accepted; empty where it is."""
    accepted = library.accepted.get(key)
    if accepted is not None and accepted.digest == digest:
        return ""
    if (*key, digest) in library.withdrawn:
        return _WITHDRAWN
    if accepted is None:
        return _NEW
    return _UPDATE if library.is_update(key, digest) else _CHANGED


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
