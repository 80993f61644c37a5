"""Published suites that a command names: an archive here or at a URL, or `github://OWNER/REPO`; checked, not installed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.errors import FileProblems, Problem
from aileron_core.home.layout import Home
from aileron_core.releases.downloads import Downloads, read_url, shown_url
from aileron_core.releases.github import SCHEME, GitHub, GitHubSource
from aileron_core.releases.rules import suite_problems
from aileron_core.releases.signing import publisher_of
from aileron_core.releases.suite import Release, read_connector
from aileron_core.text import escape
from aileron_tui.cli.accepted import accepted_mirror, accepted_version
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
    """Of the action files that cannot be used."""

    def say(self, context: CommandContext) -> None:
        """Print what was installed, and who signed it."""
        said = self.connector
        say_connector(context, "installed", said)
        scopes = f": {escape(', '.join(said['scopes']))}" if said["scopes"] else ""
        context.say(f"    asks for {said['credential'] or 'no'} credential{scopes}")
        context.say(f"    from {escape(self.source)}")
        key = said["key"]
        context.say(
            f"    signed with {key}; whose key it is was not checked" if key else "    not signed"
        )


def is_published(path: str) -> bool:
    """Return whether *path* names an archive, a URL or a repository."""
    return path.startswith((SCHEME, *_URLS)) or path.endswith(_ARCHIVES)


def read_published(
    context: CommandContext, path: str, routes: Sequence[str], *, unsigned: bool
) -> Published:
    """Read the suite, or the connector alone, that *path* names; nothing is installed.

    Args:
        routes: hosts that lead to a service of this machine instead.
        unsigned: take it without a signature.

    Raises:
        FileProblems: it is damaged, changed since it was signed, or not signed; or its connector cannot
            be used.
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
        message = "is not signed, so nobody vouches for it; add --unsigned to take it"
        raise FileProblems(
            [Problem(file=suite.origin, message=message, class_="signature_failure")]
        )
    errors = tuple(
        each for each in suite_problems(suite, tries_ops=False) if each.severity == "error"
    )
    places = {suite.place(name): Path(name).stem for name in suite.actions}
    if of_all := [each for each in errors if each.file not in places]:
        raise FileProblems(of_all)
    bad = {each.file for each in errors}
    if only is not None and only not in places.values():
        raise FileProblems([Problem(file=path, message=f"has no action {only}")])
    manifest = parse_manifest(suite.manifest, suite.origin)
    return Published(
        suite=suite,
        source=named,
        connector={
            "name": manifest.name,
            "version": manifest.version,
            "hash": suite.connector_hash,
            "hosts": list(manifest.hosts),
            "credential": manifest.credential_kind,
            "scopes": _scopes(manifest),
            "source": named,
            "key": publisher.fingerprint if publisher else None,
        },
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

    guard = AddressGuard(private=bool(mirror))  # a person accepted the settings that name it
    client = OutgoingClient(routes=[route_argument(route) for route in routes], guard=guard)
    downloads = Downloads(client, on_bytes)
    try:
        if isinstance(source, str):
            found = read_url(downloads, source)
        else:
            accepted = accepted_version(Home(context.home), source.name)
            found = GitHub(downloads, mirror).read_suite(source, accepted=accepted)
    finally:
        client.close()
    print_bytes()
    return found
