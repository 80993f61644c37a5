"""Suites from GitHub's releases, or from a mirror of them, without its API and without an account.

Downloads are over TLS, from named hosts alone, bounded in bytes and time.
"""

import re
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, Self, TypeVar
from urllib.parse import quote

from aileron_core.actions.catalog import MAX_FILE
from aileron_core.actions.model import is_semver, semver_order
from aileron_core.connectors.http.call import OutgoingCall
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest, OutgoingResponse
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.errors import FileProblems, Problem, ResourceLimitExceeded
from aileron_core.releases.archive import read_archive
from aileron_core.releases.suite import (
    ACTION_FILE,
    LIST_FILE,
    MAX_ARCHIVE,
    MAX_LIST,
    NEW_KEY_SIGNATURE_FILE,
    PLAIN_ARCHIVE,
    PLAIN_SIGNATURE_FILE,
    PUBLIC_KEY_FILE,
    SIGNATURE_BYTES,
    Release,
    connector_of_archive,
    limit_of,
    listed_actions,
    suite_of_archive,
)

_SECONDS: Final = 300.0
"""For all files together."""
_AT_ONCE: Final = 8
_HOPS: Final = 2
_T = TypeVar("_T")


class Downloads:
    """Fetches files with *client*, and calls *on_bytes* after each with its number of bytes.

    Every method blocks. It raises FileProblems if a host answers with an unexpected status, and the
    errors of `OutgoingClient.send` if it does not answer.
    """

    def __init__(self, client: OutgoingClient, on_bytes: Callable[[int], None]) -> None:
        self._client = client
        self._on_bytes = on_bytes
        self._until = client.clock.monotonic() + _SECONDS
        self._lock = threading.Lock()
        self._left = MAX_ARCHIVE
        """Bytes that may still be downloaded."""
        self._open: set[OutgoingCall] = set()
        self._ended = False

    def get(self, url: str, limit: int, hosts: Collection[str]) -> bytes | None:
        """Return the file at *url*, of at most *limit* bytes; None if there is none.

        Args:
            hosts: the only ones that are asked, as `host:port`, also after a redirect.
        """
        most = max(0, min(limit, self._left))
        try:
            answer = self._send("GET", url, most, hosts)
        except ResourceLimitExceeded:
            if most == limit:
                raise
            raise _too_much(url) from None
        if answer.status == 404:
            return None
        if answer.status != 200:
            message = f"answered {answer.status}"
            raise FileProblems(
                [Problem(file=shown_url(url), message=message, class_="fetch_failed")]
            )
        with self._lock:
            self._left -= len(answer.body)
            self._on_bytes(len(answer.body))
            if self._left < 0:  # several came at once
                raise _too_much(url)
        return answer.body

    def final_path(self, url: str, hosts: Collection[str]) -> str:
        """Return the path that *url* redirects to; empty if there is none."""
        answer = self._send("HEAD", url, 0, hosts)
        return answer.path if answer.status == 200 else ""

    def at_once(self, work: Sequence[Callable[[], _T]]) -> list[_T]:
        """Return the results of *work*, several at a time; a failure or Ctrl-C stops those that are running."""
        pool = ThreadPoolExecutor(_AT_ONCE)
        begun = [pool.submit(each) for each in work]
        try:
            return [each.result() for each in begun]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._ended = any(not each.done() for each in begun)
            for call in tuple(self._open):
                call.stop()

    def _send(self, method: str, url: str, limit: int, hosts: Collection[str]) -> OutgoingResponse:
        call = OutgoingCall(self._client.clock, self._until, lambda _method, _place: None)
        request = OutgoingRequest(method=method, url=url, headers={"accept-encoding": "identity"})
        self._open.add(call)
        if self._ended:  # between the two lines above, or before them
            call.stop()
        try:
            return self._client.send(
                request, call, allowed=hosts, max_redirects=_HOPS, max_body=limit
            )
        finally:
            self._open.discard(call)


def _too_much(url: str) -> FileProblems:
    message = (
        f"is too large: all files of a release may have {MAX_ARCHIVE // 1024 // 1024} MiB together"
    )
    return FileProblems([Problem(file=shown_url(url), message=message, class_="fetch_failed")])


def read_url(downloads: Downloads, url: str) -> Release:
    """Return the suite, or the connector alone, in the archive at *url*; redirects stay at its host.

    Raises:
        FileProblems: as `read_connector`; or *url* is not an `https://` URL, or nothing is there.
    """
    shown = shown_url(url)
    data = downloads.get(url, MAX_ARCHIVE, {https_place(url)})
    if data is None:
        raise FileProblems([Problem(file=shown, message="is not there", class_="fetch_failed")])
    return connector_of_archive(data, shown)


def https_place(url: str) -> str:
    """Return the `host:port` of *url*.

    Raises:
        FileProblems: it is not an `https://` URL.
    """
    try:
        target = parse_target(url)
        if target.scheme != "https":
            raise ValueError("the URL must begin with https://")
    except ValueError as error:
        # What follows a semicolon advises the author of a connector.
        message = f"cannot be fetched: {str(error).partition('; ')[0]}"
        raise FileProblems([Problem(file=shown_url(url), message=message)]) from error
    return target.host_port


def shown_url(url: str) -> str:
    """Return *url* for messages and records: without user, query and fragment, which may be secret."""
    scheme, _, rest = url.partition("?")[0].partition("#")[0].partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


SCHEME: Final = "github://"
_HOSTS: Final = frozenset(
    {
        "github.com:443",
        "objects.githubusercontent.com:443",
        "raw.githubusercontent.com:443",
        "release-assets.githubusercontent.com:443",
    }
)
_SOURCE = re.compile(
    r"github://([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})"
    r"(?:/actions/([a-z0-9][a-z0-9._-]*))?(?:@([^@]+))?"
)
_LATEST = re.compile(r"/releases/tag/v([^/]+)\Z")
_SUITE_ARCHIVE: Final = "aileron-suite.tar.gz"
_MAX_LATEST: Final = 256
_IN_REPOSITORY: Final = (LIST_FILE, PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE)
"""Files that are read from the repository, at the release's tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSource:
    """`github://OWNER/REPO[/actions/NAME][@VERSION]`."""

    owner: str
    repository: str
    action: str | None = None
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse *text*.

        Raises:
            FileProblems: it does not have this form.
        """
        match = _SOURCE.fullmatch(text)
        if match is None or match[2] in (".", "..") or (match[4] and not is_semver(match[4])):
            message = "is not github://OWNER/REPO[/actions/NAME][@VERSION]"
            raise FileProblems([Problem(file=text, message=message)])
        return cls(owner=match[1], repository=match[2], action=match[3], version=match[4])

    @property
    def name(self) -> str:
        """The repository, as connectors are named."""
        return f"{SCHEME}{self.owner}/{self.repository}"

    @property
    def place(self) -> str:
        return f"{self.owner}/{self.repository}"


class GitHub:
    """Reads releases through *downloads*; every method blocks, and raises as they do.

    Args:
        mirror: an `https://` URL to fetch from instead. It serves plain files: `OWNER/REPO/latest`, which
            contains a version, and the files of each release in `OWNER/REPO/vVERSION/`.
    """

    def __init__(self, downloads: Downloads, mirror: str = "") -> None:
        self._downloads = downloads
        self._mirror = mirror.rstrip("/")
        self._hosts = {https_place(mirror)} if mirror else _HOSTS

    def read_suite(self, source: GitHubSource, *, accepted: str = "") -> Release:
        """Return the suite that *source* names: the newest release if it states no version.

        That is one archive or, in the older layout, one for the connector and one for each action that
        `suite.toml` lists. The connector's name and version must be those that were asked for.

        Args:
            accepted: as of `newest`, where *source* states no version.
        """
        version = source.version or self.newest(source, accepted)
        shown = f"{source.name}@{version}"
        packed = self._get(self._url(source, f"v{version}", _SUITE_ARCHIVE), MAX_ARCHIVE)
        if packed is not None:
            suite = suite_of_archive(packed, shown)
        else:
            suite = self._read_single_archives(source, version, shown)
        manifest = parse_manifest(suite.manifest, suite.place(MANIFEST_FILE))
        if (manifest.name, manifest.version) != (source.name, version):
            message = f"is {manifest.name}@{manifest.version}, not what was asked for"
            problem = Problem(
                file=suite.place(MANIFEST_FILE), message=message, class_="fqn_mismatch"
            )
            raise FileProblems([problem])
        return suite

    def newest(self, source: GitHubSource, accepted: str = "") -> str:
        """Return the version of the newest release, which must not be older than the *accepted* one, if any."""
        if self._mirror:
            text = self._get(f"{self._mirror}/{source.place}/latest", _MAX_LATEST) or b""
            version = text.decode("ascii", "replace").strip().removeprefix("v")
        else:
            url = f"https://github.com/{source.place}/releases/latest"
            match = _LATEST.search(self._downloads.final_path(url, self._hosts))
            version = match[1] if match else ""
        if not is_semver(version):
            message = "has no release that is named v and a version"
            raise FileProblems([Problem(file=source.name, message=message, class_="fetch_failed")])
        if accepted and semver_order(version) < semver_order(accepted):
            message = (
                f"has {version} as its newest release, which is older than the accepted {accepted}; run "
                f"`aileron action add {source.name}@{version}` if you want it"
            )
            raise FileProblems([Problem(file=source.name, message=message, class_="fetch_failed")])
        return version

    def _url(self, source: GitHubSource, tag: str, name: str) -> str:
        """Return the URL of the file *name* in the release *tag*."""
        if self._mirror:
            return f"{self._mirror}/{source.place}/{tag}/{name}"
        if name in _IN_REPOSITORY:
            return f"https://raw.githubusercontent.com/{source.place}/{tag}/{name}"
        return f"https://github.com/{source.place}/releases/download/{quote(tag, safe='')}/{name}"

    def _get(self, url: str, limit: int) -> bytes | None:
        return self._downloads.get(url, limit, self._hosts)

    def _read_single_archives(self, source: GitHubSource, version: str, shown: str) -> Release:
        def need(tag: str, name: str, limit: int) -> bytes:
            url = self._url(source, tag, name)
            data = self._get(url, limit)
            if data is None:
                message = f"has no {url.removeprefix('https://')}"
                raise FileProblems([Problem(file=shown, message=message, class_="fetch_failed")])
            return data

        def connector() -> dict[str, bytes]:
            packed = need(f"v{version}", PLAIN_ARCHIVE, MAX_ARCHIVE)
            found = read_archive(packed, shown, limit_of)
            names = (MODULE_FILE, MANIFEST_FILE, PLAIN_SIGNATURE_FILE)
            return {name: found[name] for name in names if name in found}

        def public_key(name: str) -> dict[str, bytes]:
            found = self._get(self._url(source, f"v{version}", name), limit_of(name) or 0)
            return {} if found is None else {name: found}

        def action(name: str) -> dict[str, bytes]:
            packed = need(f"actions/{name}/v{version}", PLAIN_ARCHIVE, 2 * MAX_FILE)
            found = read_archive(packed, f"{shown} {name}", _of_action)
            if ACTION_FILE not in found:
                message = f"has no {ACTION_FILE}"
                raise FileProblems([Problem(file=f"{shown} {name}", message=message)])
            signature = found.get(PLAIN_SIGNATURE_FILE)
            signed = {} if signature is None else {f"actions/{name}.sig": signature}
            return {f"actions/{name}.md": found[ACTION_FILE], **signed}

        text = need(f"v{version}", LIST_FILE, MAX_LIST)
        listed = Release(origin=shown, files={LIST_FILE: text})
        files = dict(listed.files)
        wanted = [source.action] if source.action else listed_actions(listed)
        if source.action:
            files[LIST_FILE] = f'actions = ["actions/{source.action}"]\n'.encode()
        keys = (partial(public_key, name) for name in (PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE))
        for found in self._downloads.at_once(
            [connector, *keys, *(partial(action, name) for name in wanted)]
        ):
            files.update(found)
        for name in (MODULE_FILE, MANIFEST_FILE):
            if name not in files:
                raise FileProblems([Problem(file=shown, message=f"has no {name}")])
        return Release(origin=shown, files=files)


def _of_action(name: str) -> int | None:
    return {ACTION_FILE: MAX_FILE, PLAIN_SIGNATURE_FILE: SIGNATURE_BYTES}.get(name)
