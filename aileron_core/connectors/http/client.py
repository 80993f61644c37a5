"""The HTTP client through which every request of a connector leaves: redirects (each is checked), `--route`, errors.

It blocks, and is meant for worker threads (measured: an async client on the core's loop costs two
to three times as much and delays every other agent). It is built on httpcore instead of httpx
because it must connect to exactly the address that was checked, while the pool, the certificate and
the Host header go by name; httpx has no hook for that.
"""

import logging
import ssl
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TypeAlias, cast
from urllib.parse import urljoin

import httpcore

from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.http.addresses import AddressGuard, Resolver, SystemResolver
from aileron_core.connectors.http.call import (
    GuardedBackend,
    OutgoingCall,
    RefusedAddress,
    meaning_of,
)
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.http.target import (
    RequestTarget,
    allowed_headers,
    check_method_name,
    parse_target,
)
from aileron_core.connectors.protocol import MIB, Credential, RequestToSign, Route
from aileron_core.errors import (
    BindingFailed,
    CapabilityDenied,
    NetworkError,
    OpFailed,
    ResourceLimitExceeded,
)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PARTIAL = frozenset({b"accept-encoding", b"range", b"if-range"})
"""Headers with which the body of an answer comes in a form that cannot be searched."""
_EVENTS = b"text/event-stream"
_MAX_CONNECTIONS = 64
_KEEPALIVE_SECONDS = 3.0

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Names and values as they stand on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request as a connector made it; the client decides what of it is sent."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingResponse:
    """The final response, after redirects."""

    status: int
    body: bytes = field(default=b"", repr=False)
    path: str = field(default="", repr=False)
    """Of the place that answered, after redirects."""
    headers: Headers = field(default_factory=Headers, repr=False)

    def header(self, name: bytes) -> bytes:
        """Return the first value of header *name* (lower case), empty if there is none."""
        return next((value for each, value in self.headers if each.lower() == name), b"")


class OutgoingClient:
    """Sends requests to listed hosts at checked addresses.

    Args:
        routes: hosts that lead to an address of this machine instead, in plain HTTP.
        resolver, guard, ssl_context: replaceable for in-process tests only. The defaults are the
            system's resolver,
            a guard without exceptions and certifi's trust store; no environment variable changes
            them.
    """

    def __init__(
        self,
        *,
        routes: Iterable[Route] = (),
        resolver: Resolver | None = None,
        guard: AddressGuard | None = None,
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        # Its debug lines quote whole headers.
        for name in ("httpcore.connection", "httpcore.http11", "httpcore.proxy"):
            logging.getLogger(name).setLevel(logging.INFO)
        places = [(_route_target(route), route) for route in routes]
        self._routes = {target.host_port: route for target, route in places}
        by_place = {(target.host, target.port): route for target, route in places}
        self._backend = GuardedBackend(resolver or SystemResolver(), guard or AddressGuard(), by_place)  # fmt: skip
        self._ssl_context = ssl_context
        self._made_pool: httpcore.ConnectionPool | None = None
        self._making_pool = threading.Lock()
        self.clock = clock or SystemClock()

    def is_routed(self, host_port: str) -> bool:
        return host_port in self._routes

    def close(self) -> None:
        """Close every connection and stop the name resolution threads."""
        with self._making_pool:
            if self._made_pool is not None:
                self._made_pool.close()
        self._backend.close()

    @contextmanager
    def _connections(self, *, is_own: bool) -> Generator[httpcore.ConnectionPool]:
        """Give the pool of connections, made for the first request, or one of a request's own."""
        if is_own:
            with self._new_pool() as pool:
                yield pool
            return
        with self._making_pool:
            if self._made_pool is None:
                self._made_pool = self._new_pool()
        yield self._made_pool

    def _new_pool(self) -> httpcore.ConnectionPool:
        if self._ssl_context is None:
            import httpx  # a start need not wait for it, and for certificates

            self._ssl_context = httpx.create_ssl_context(trust_env=False)
        return httpcore.ConnectionPool(
            ssl_context=self._ssl_context,
            max_connections=_MAX_CONNECTIONS,
            keepalive_expiry=_KEEPALIVE_SECONDS,
            network_backend=self._backend,
        )

    def send(
        self,
        request: OutgoingRequest,
        call: OutgoingCall,
        *,
        allowed: Collection[str],
        max_redirects: int = 5,
        max_body: int = 16 * MIB,
        credential: Credential | None = None,
        scrubber: Scrubber | None = None,
        on_events: Callable[[bytes], bool] | None = None,
        on_own_connection: bool = False,
    ) -> OutgoingResponse:
        """Send *request*, follow redirects and return the final response.

        Args:
            request: any method except CONNECT and TRACE.
            allowed: the exact `host:port` entries it may go to, also by redirect.
            credential: added to the request, and again where it is redirected to the same
                `host:port`; never elsewhere nor after a redirect to elsewhere, nor to a routed host.
            scrubber: removes secrets from the body of the response. The response is asked for whole
                and uncompressed then.
            on_events: takes each part of a stream of events (`text/event-stream`), and returns whether
                the rest of it is not wanted.
            on_own_connection: on one that is opened for this request: one that is kept may be ending.

        Raises:
            ValueError: URL, method or headers are malformed.
            CapabilityDenied: a host that is not listed, or an address that no connector may reach.
            NetworkError: no response; the message names host and kind, never path, query or body.
            ResourceLimitExceeded: the response body is too large.
            BindingFailed: the credential cannot be used for this request.
        """
        check_method_name(request.method)
        target = parse_target(request.url)
        headers = allowed_headers(request.headers)
        if scrubber is not None:  # what is compressed or cut in two cannot be searched
            headers = _without(headers, _PARTIAL)
        for _ in range(max_redirects + 1):
            self.check_host(target, allowed)
            with self._backend.use_call(call), _own_errors(target, call):
                call.begin_hop(request.method, target.host_port)
                signed = headers
                if credential is not None:
                    signed = self._signed(request, target, headers, credential)
                    if scrubber is not None:
                        scrubber.add(credential.secrets())
                with self._connections(is_own=on_own_connection) as pool:
                    answer = self._hop(pool, request, target, signed, max_body, call, on_events)
            call.end_hop(meaning_of(answer.status, answer.headers))
            if credential is not None and signed is not headers:
                credential.note_answer(answer.status, answer.body)
            status, location = answer.status, _location(answer)
            if status not in _REDIRECTS or location is None:
                body = _scrubbed(answer, scrubber, target)
                return replace(answer, body=body, path=target.path)
            if scrubber is not None and scrubber.finds(answer.header(b"location")):
                raise _not_retriable(
                    NetworkError(
                        f"{target.host_port} redirected to an address with the credential in it"
                    )
                )
            following = _redirected(target, location)
            if _becomes_get(request, status):
                request = replace(request, method="GET", body=None)
                headers = [
                    entry for entry in headers if not entry[0].lower().startswith(b"content-")
                ]
            if following.host_port != target.host_port:
                # For good: the place that a request was sent on to does not choose what it carries.
                headers, credential = _without(headers, {b"authorization"}), None
            target = following
        how = (
            f"more than {max_redirects} times"
            if max_redirects
            else "the request, and no redirect is followed here"
        )
        raise _not_retriable(NetworkError(f"{target.host_port} redirected {how}"))

    def check_host(self, target: RequestTarget, allowed: Collection[str]) -> None:
        """Check that *target* is in *allowed*.

        Raises:
            CapabilityDenied: it is not.
        """
        if target.host_port not in allowed:
            raise CapabilityDenied(
                f"{target.host_port} is not among the hosts of this call, which may reach "
                f"{', '.join(sorted(allowed)) or 'no host'}",
                details={
                    "requested": f"network:{target.host_port}",
                    "granted": [f"network:{entry}" for entry in sorted(allowed)],
                },
            )

    def _hop(
        self,
        pool: httpcore.ConnectionPool,
        request: OutgoingRequest,
        target: RequestTarget,
        headers: Headers,
        max_body: int,
        call: OutgoingCall,
        on_events: Callable[[bytes], bool] | None,
    ) -> OutgoingResponse:
        # A route is plain HTTP whatever the URL says; the Host header stays that of the URL.
        scheme = "http" if self.is_routed(target.host_port) else target.scheme
        wire = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=scheme, host=target.host, port=target.port, target=target.path),
            headers=_wire_headers(request, target, headers),
            content=request.body or b"",
        )
        response = self._request(
            pool, wire, may_repeat=request.method in {"GET", "HEAD"}, call=call
        )
        answer = OutgoingResponse(status=response.status, headers=response.headers)
        kind = answer.header(b"content-type").partition(b";")[0].strip().lower()
        chunks = BytesIO()  # grows in place, and is not copied at its end: an answer may be large
        stream = response.stream
        with closing(cast("_Closable", stream)):
            for chunk in cast("Iterable[bytes]", stream):
                chunks.write(chunk)
                if chunks.tell() > max_body:
                    raise ResourceLimitExceeded(
                        f"the response of {target.host_port} is larger than {max_body} bytes",
                        details={"limit": "response_body", "configured": f"{max_body} bytes"},
                    )
                if on_events is not None and kind == _EVENTS and on_events(chunk):
                    break
        return replace(answer, body=chunks.getvalue())

    def _signed(
        self,
        request: OutgoingRequest,
        target: RequestTarget,
        headers: Headers,
        credential: Credential,
    ) -> Headers:
        """Return *headers* with those of *credential*, which replace the guest's of the same names."""
        if target.host_port not in credential.hosts or self.is_routed(target.host_port):
            return headers
        if target.scheme != "https":
            raise CapabilityDenied(
                f"{target.host_port} was to get a credential in plain HTTP",
                details={"requested": f"network:{target.host_port}"},
            )
        to_sign = RequestToSign(
            method=request.method,
            host=target.host_header,
            path=target.path,
            headers={name.decode(): _text(value) for name, value in headers},
            body=request.body or b"",
        )
        added = _header_lines(credential, to_sign)
        return [*_without(headers, {name.lower() for name, _ in added}), *added]

    def _request(
        self,
        pool: httpcore.ConnectionPool,
        wire: httpcore.Request,
        *,
        may_repeat: bool,
        call: OutgoingCall,
    ) -> httpcore.Response:
        """Send a request and read the head of its response.

        A reused connection may be one that the service is just closing: a request that only reads
        is then sent again (RFC 9112, 9.3.1), until one fails on a new connection.
        """
        while True:
            try:
                return pool.handle_request(wire)
            except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
                if call.is_new_connection or call.is_stopped or not may_repeat:
                    raise


def _header_lines(credential: Credential, request: RequestToSign) -> Headers:
    """Return what *credential* adds to *request*.

    Raises:
        BindingFailed: it cannot be used. No text of another error is kept, which may quote a part of it.
    """
    try:
        return [
            (name.encode("ascii"), value.encode("latin-1"))
            for name, value in credential.headers(request).items()
        ]
    except OpFailed:
        raise
    except Exception as error:  # noqa: BLE001 - a secret that cannot be encoded, among others
        kind = type(error).__name__
    raise BindingFailed(
        f"The account's credential cannot be sent ({kind}). Bind the account again."
    )


class _Closable:
    def close(self) -> None: ...


def _location(answer: OutgoingResponse) -> str | None:
    return _text(location) if (location := answer.header(b"location")) else None


def _scrubbed(answer: OutgoingResponse, scrubber: Scrubber | None, target: RequestTarget) -> bytes:
    """Return the body without the secrets of *scrubber*."""
    if scrubber is None:
        return answer.body
    encodings = b",".join(
        value for name, value in answer.headers if name.lower() == b"content-encoding"
    )
    if not {each.strip().lower() for each in encodings.split(b",")} <= {b"", b"identity"}:
        raise _not_retriable(
            NetworkError(
                f"{target.host_port} answered compressed although it was asked not to, so the "
                "answer cannot be searched for the credential"
            )
        )
    return scrubber.scrub(answer.body)


def _without(headers: Headers, names: Collection[bytes]) -> Headers:
    return [entry for entry in headers if entry[0].lower() not in names]


def _text(header: bytes) -> str:
    """Decode a header's value: services mostly send UTF-8, whatever the standard says."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _route_target(route: Route) -> RequestTarget:
    try:
        return parse_target(f"http://{route.host.lower()}/")
    except ValueError as error:
        raise ValueError(f"a route must begin with host:port, not {route.host!r}") from error


def _wire_headers(request: OutgoingRequest, target: RequestTarget, headers: Headers) -> Headers:
    wire = [(b"Host", target.host_header.encode("ascii")), *headers]
    present = {name.lower() for name, _ in headers}
    if b"user-agent" not in present:
        wire.append((b"User-Agent", b"aileron"))
    if b"accept-encoding" not in present:
        # What comes back is counted and handed on as it is, so nothing may unfold behind the count.
        wire.append((b"Accept-Encoding", b"identity"))
    if request.body is not None or request.method in {"POST", "PUT", "PATCH"}:
        wire.append((b"Content-Length", str(len(request.body or b"")).encode()))
    return wire


def _redirected(target: RequestTarget, location: str) -> RequestTarget:
    try:
        following = parse_target(urljoin(target.url, location))
    except ValueError as error:
        raise _not_retriable(
            NetworkError(f"{target.host_port} redirected to something that is not a web address")
        ) from error
    if target.scheme == "https" and following.scheme == "http":
        raise CapabilityDenied(
            f"{target.host_port} redirected to {following.host_port} over plain HTTP, which "
            "Aileron does not follow",
            details={"requested": f"network:{following.host_port}"},
        )
    return following


def _becomes_get(request: OutgoingRequest, status: int) -> bool:
    """Return whether a redirect switches to GET: as in browsers and Go, all but 307 and 308 do."""
    return status not in {307, 308} and request.method not in {"GET", "HEAD"}


def _not_retriable(error: NetworkError) -> NetworkError:
    error.retriable = False
    return error


@contextmanager
def _own_errors(target: RequestTarget, call: OutgoingCall) -> Generator[None]:
    """Turn httpcore's errors into ours, which name only host and kind."""
    place = target.host_port
    try:
        yield
    except RefusedAddress as error:
        raise CapabilityDenied(
            f"{error}; no request may go there", details={"requested": f"network:{place}"}
        ) from error
    except httpcore.TimeoutException as error:
        what = "was stopped" if call.is_stopped else "did not answer in time"
        raise NetworkError(f"{place} {what}") from error
    except httpcore.ConnectError as error:
        raise NetworkError(f"{place} cannot be reached: {error}") from error
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise NetworkError(f"{place} closed the connection or sent something that is not HTTP") from error  # fmt: skip
    except httpcore.NetworkError as error:
        raise NetworkError(f"the connection to {place} was lost") from error
