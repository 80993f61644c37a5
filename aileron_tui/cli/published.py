"""Published suites that a command names: an archive here or at a URL, or `github://OWNER/REPO`; checked, not installed."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.console_port.view_models import PublisherView
from aileron_core.errors import FileProblems, Problem
from aileron_core.home.layout import Home
from aileron_core.library.publishers import KIND, publisher_name, publisher_view
from aileron_core.releases.github import (
    SCHEME,
    Downloads,
    GitHub,
    GitHubSource,
    read_url,
    shown_url,
)
from aileron_core.releases.kept import (
    UNSIGNED,
    offer_of,
    put_offer,
    signatures_of,
    unsigned_actions,
    verified_release,
)
from aileron_core.releases.rules import suite_problems
from aileron_core.releases.signing import PublisherKey, publisher_of
from aileron_core.releases.suite import LIST_FILE, Release, read_connector
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.cli.accepted import (
    accepted_actions,
    accepted_mirror,
    accepted_version,
    load_acceptances,
)
from aileron_tui.cli.arguments import route_argument
from aileron_tui.cli.output import CommandContext, say_connector

_ARCHIVES = (".tar.gz", ".tgz")
_URLS = ("https://", "http://")
PROGRESS_SECONDS = 1.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A suite whose connector can be used, and those of its action files that can."""

    suite: Release
    source: str
    """Where it came from, for messages and the home's records."""
    connector: Mapping[str, Any]
    """What `--json` prints about it."""
    actions: Mapping[str, bytes]
    """Their files by name."""
    problems: tuple[Problem, ...]
    """Of its other action files."""
    publisher: PublisherView | None
    """None: nobody published it."""
    gone: tuple[str, ...]
    """Accepted actions of its publisher that it does not have."""

    def install(self, store: ConnectorStore) -> InstalledConnector:
        """Put its connector into *store*, with its signatures beside it; errors as of `ConnectorStore.install`."""
        given = self.suite
        signed = signatures_of(given, store.signatures(given.connector_hash))
        return store.install_bytes(given.module, given.manifest, origin=given.origin, signed=signed)

    def say_publisher(self, context: CommandContext) -> None:
        """Print who signed it, as far as that is known."""
        whose = self.publisher
        if whose is None or not whose.key:
            context.say("    not signed: nobody vouches for it")
        elif whose.accepted:
            context.say(f"    signed with {whose.key}, which you accepted for {whose.name}")
        elif whose.known_as:
            names = escape(", ".join(whose.known_as))
            context.say(f"    signed with {whose.key}, which you accepted for {names}")
        else:
            context.say(
                f"    signed with {whose.key}, seen for the first time: compare it with the one that "
                "its publisher shows"
            )
        said: list[str] = []
        if whose is not None and whose.resembles:
            said.append(words.files.warn_resembles(whose.name, whose.resembles))
        if whose is not None and whose.other_key_of:
            said.append(words.files.warn_other_key(whose.other_key_of))
        for each in said:
            context.say(f"    ! {escape(each)}", fg="yellow")

    def say(self, context: CommandContext) -> None:
        """Print what was installed, and who signed it."""
        said = self.connector
        say_connector(context, "installed", said)
        scopes = f": {escape(', '.join(said['scopes']))}" if said["scopes"] else ""
        context.say(f"    asks for {said['credential'] or 'no'} credential{scopes}")
        context.say(f"    from {escape(self.source)}")
        self.say_publisher(context)
        for each in self.gone:
            context.say(
                f"! {escape(each)} is not in this release any more; it stays as it is until you run "
                f"`aileron action remove {escape(each)}`",
                fg="yellow",
            )


def is_published(path: str) -> bool:
    """Return whether *path* names an archive, a URL or a repository."""
    return path.startswith((SCHEME, *_URLS)) or path.endswith(_ARCHIVES)


def read_published(
    context: CommandContext, path: str, routes: Sequence[str], *, unsigned: bool
) -> Published:
    """Read the suite, or the connector alone, that *path* names; nothing is installed.

    A key that is not the accepted one of its publisher is offered in the console.

    Args:
        routes: hosts that lead to a service of this machine instead.
        unsigned: take it without a signature, unless its publisher has signed before.

    Raises:
        FileProblems: it is damaged, changed since it was signed, not signed, or signed with another key;
            or its connector cannot be used.
    """
    source = GitHubSource.parse(path) if path.startswith(SCHEME) else None
    only = source.action if source else None
    mirror = accepted_mirror(context.home) if source else ""
    if source or path.startswith(_URLS):
        named = f"{path} (from {mirror})" if mirror else shown_url(path)
        suite = _fetch(context, source or path, mirror, named, routes)
    else:
        named, suite = str(Path(path).resolve()), read_connector(Path(path))
    publisher = publisher_of(suite)
    if publisher is None and not unsigned:
        raise _refused(named, f"{UNSIGNED}; add --unsigned to take it")
    errors = tuple(
        each for each in suite_problems(suite, tries_ops=False) if each.severity == "error"
    )
    places = {suite.place(name): Path(name).stem for name in suite.actions}
    if of_all := [each for each in errors if each.file not in places]:
        raise FileProblems(of_all)
    bad = {each.file for each in errors}
    if only is not None and only not in places.values():
        raise FileProblems([Problem(file=named, message=f"has no action {only}")])
    manifest = parse_manifest(suite.manifest, suite.origin)
    whose = _known_publisher(context, named, suite, publisher_name(manifest.name), publisher)
    for name, message in (unsigned_actions(suite, publisher) if publisher else {}).items():
        is_taken = message == UNSIGNED and unsigned and not (whose and whose.accepted)
        if not is_taken and only in (None, Path(name).stem):
            bad.add(suite.place(name))
            errors += (_problem(suite.place(name), message),)
    taken = f"{named} (through --route, from this machine)" if routes else named
    gone: tuple[str, ...] = ()
    if only is None and LIST_FILE in suite.files:
        gone = tuple(
            each.name
            for each in accepted_actions(Home(context.home))
            if publisher_name(each.source) == publisher_name(manifest.name)
            and each.name not in places.values()
        )
    return Published(
        suite=suite,
        gone=gone,
        source=taken,
        connector={
            "name": manifest.name,
            "version": manifest.version,
            "hash": suite.connector_hash,
            "hosts": list(manifest.hosts),
            "credential": manifest.credential_kind,
            "scopes": _scopes(manifest),
            "source": taken,
            "key": publisher.fingerprint if publisher else None,
            "key_accepted": bool(whose and whose.key and whose.key == whose.accepted),
            "resembles": (whose and whose.resembles) or None,
        },
        publisher=whose,
        actions={
            name: suite.files[f"actions/{name}.md"]
            for place, name in places.items()
            if place not in bad and only in (None, name)
        },
        problems=errors,
    )


def _scopes(manifest: Manifest) -> list[str]:
    credential = manifest.credential
    if credential is None:
        return []
    stated = credential.oauth2.scopes if credential.oauth2 else (credential.scope,)
    return [each for each in stated if each]


def _known_publisher(
    context: CommandContext, named: str, suite: Release, name: str, key: PublisherKey | None
) -> PublisherView | None:
    """Return what is known of the publisher *name*; another key than the accepted one is offered.

    Raises:
        FileProblems: it is not signed with the key that was accepted, or not signed where others are.
    """
    home = Home(context.home)
    keys = {each.name: each.digest for each in load_acceptances(home) if each.kind == KIND}
    whose = publisher_view(name, key.fingerprint if key else "", keys)
    known = whose.accepted if whose is not None else ""
    if key is None:
        if known or (known := _signed_with(home, name)):
            message = (
                f"is not signed, but other releases of {name} are signed with {known}; --unsigned cannot "
                "replace a signed release"
            )
            raise _refused(named, message)
    elif known and known != key.fingerprint:
        put_offer(home.path, name, offer_of(name, suite, key))
        message = (
            f"is signed with {key.fingerprint}, not with {known}, which you accepted for {name}. Nothing was "
            "installed. Compare the two keys in the console. Once you have accepted the new one, add the release again"
        )
        raise _refused(named, message)
    elif known:
        put_offer(home.path, name, None)
    return whose


def _signed_with(home: Home, name: str) -> str:
    """Return the key of an installed connector of *name* that has one; empty where none has."""
    store = ConnectorStore(home.path)
    for each in store.list():
        if publisher_name(each.identity.fqn) == name:
            release = verified_release(store, each, store.signatures(each.identity.hash))
            if release is not None:
                return release.key.fingerprint
    return ""


def _refused(named: str, message: str) -> FileProblems:
    return FileProblems([_problem(named, message)])


def _problem(file: str, message: str) -> Problem:
    return Problem(file=file, message=message, class_="signature_failure")


def newest_version(
    context: CommandContext, repository: str, accepted: str, routes: Sequence[str]
) -> str:
    """Return the version of the newest release of *repository*, `github://OWNER/REPO`.

    Raises:
        FileProblems: there is none, or one that is older than the *accepted* version.
        AileronError: it cannot be asked for.
    """
    mirror = accepted_mirror(context.home)
    with _client(mirror, routes) as client:
        github = GitHub(Downloads(client, lambda _: None), mirror)
        return github.newest(GitHubSource.parse(repository), accepted)


def _client(
    mirror: str, routes: Sequence[str]
) -> contextlib.AbstractContextManager[OutgoingClient]:
    guard = AddressGuard(private=bool(mirror))  # a person accepted the settings that name it
    return contextlib.closing(
        OutgoingClient(routes=[route_argument(route) for route in routes], guard=guard)
    )


def _fetch(
    context: CommandContext,
    source: GitHubSource | str,
    mirror: str,
    named: str,
    routes: Sequence[str],
) -> Release:
    """Fetch *source*, a repository or a URL, and print the progress under the name *named*."""
    clock, read = SystemClock(), 0
    printed_at = clock.monotonic()

    def print_bytes(end: str = "") -> None:
        if not context.json:
            click.echo(f"{read:,} bytes read from {escape(named)}{end}", err=True)

    def on_bytes(more: int) -> None:
        nonlocal read, printed_at
        read += more
        if clock.monotonic() - printed_at >= PROGRESS_SECONDS:
            printed_at = clock.monotonic()
            print_bytes(" …")

    with _client(mirror, routes) as client:
        downloads = Downloads(client, on_bytes)
        if isinstance(source, str):
            found = read_url(downloads, source)
        else:
            accepted = accepted_version(Home(context.home), source.name)
            found = GitHub(downloads, mirror).read_suite(source, accepted=accepted)
    print_bytes()
    return found
