"""Downloads of releases: over TLS, from named hosts alone, bounded in bytes and time."""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from aileron_core.connectors.http.call import OutgoingCall
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest, OutgoingResponse
from aileron_core.connectors.http.target import parse_target
from aileron_core.errors import FileProblems, Problem, ResourceLimitExceeded
from aileron_core.releases.suite import MAX_ARCHIVE, Release, connector_of_archive

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
