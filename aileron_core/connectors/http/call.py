"""One outgoing request at socket level: its deadline, its cancellation, and when its first byte is sent.

`GuardedBackend` is the only place that opens a connection for a connector. It resolves the name,
checks every address, and connects to one that was checked. The pool above it is keyed by name, so a
reused connection never serves another name that shares the address.
"""

import contextlib
import re
import select
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias

import httpcore

from aileron_core.clock import Clock
from aileron_core.connectors.http.addresses import AddressGuard, Resolver
from aileron_core.connectors.protocol import Route

Effect: TypeAlias = Literal["accepted", "refused", "unknown"]
"""Of a request that may change something: it was taken, had no effect, or nobody knows."""

_OPEN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT})
_DEFERRED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_AWS_THROTTLING: Final = re.compile(
    rb"Throttl|TooManyRequests|ThroughputExceeded|(Request|Bandwidth)LimitExceeded|SlowDown"
)
"""Of the errors that AWS's own clients repeat as throttling, those that are nothing else."""
_CONNECT_SECONDS = 5.0
_NAME_THREADS = 32
"""As many as there are guests, each of which asks for one name at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMeaning:
    """What the host knows of an answer, whatever the connector makes of it."""

    effect: Effect
    is_deferral: bool
    """The service says that it has no room now, and may have later."""


def meaning_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> AnswerMeaning:
    """Return what *status* and *headers* say; a redirect, that it had no effect where it ends there."""
    named = {name.lower(): value for name, value in headers}
    is_throttled = _AWS_THROTTLING.search(named.get(b"x-amzn-errortype", b"")) is not None
    return AnswerMeaning(
        effect=_effect(status, may_retry=bool(named.get(b"retry-after"))),
        is_deferral=status in _DEFERRED or is_throttled,
    )


def _effect(status: int, *, may_retry: bool) -> Effect:
    if 200 <= status < 300:
        return "accepted"
    is_refusal = 300 <= status < 500 and status not in _OPEN
    if is_refusal or status == HTTPStatus.NOT_IMPLEMENTED:
        return "refused"
    deferred = status == HTTPStatus.SERVICE_UNAVAILABLE and may_retry
    return "refused" if deferred else "unknown"


class RefusedAddress(Exception):
    """The host resolves to an address that no connector may reach; nothing was sent."""


class OutgoingCall:
    """State shared by the thread that sends a request and the one that stops it.

    Args:
        deadline: monotonic seconds by which the complete response has to be there.
        on_send: called for each hop with its method and `host:port`, just before its first byte may
            be sent.
        on_response: called for each hop with the same and what its response says, once that is complete.
    """

    def __init__(
        self,
        clock: Clock,
        deadline: float,
        on_send: Callable[[str, str], None],
        on_response: Callable[[str, str, AnswerMeaning], None] = lambda _method, _place, _said: (
            None
        ),
    ) -> None:
        self._clock = clock
        self._deadline = deadline
        self._on_send = on_send
        self._on_response = on_response
        self._is_announced = False
        self._method = ""
        self._host_port = ""
        self._is_answered = True
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._stopped = threading.Event()
        self.name_resolved = threading.Event()
        self.became_get = False
        """Whether a redirect of a request that may change something was followed with a GET."""
        self.is_new_connection = False
        """Whether the hop opened a new connection instead of reusing one."""

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def remaining(self, error: type[httpcore.TimeoutException], cap: float | None = None) -> float:
        """Return the seconds left, at most *cap*.

        Raises:
            TimeoutException: none are left, or the call was stopped.
        """
        left = self._deadline - self._clock.monotonic()
        if left <= 0 or self.is_stopped:
            raise error("the time for this request has run out")
        return left if cap is None else min(left, cap)

    def stop(self) -> None:
        """End the call from another thread: a blocked read or write returns at once."""
        self._stopped.set()
        self.name_resolved.set()
        with self._lock:
            if self._socket is not None:
                # Not SSLSocket.shutdown: it drops the TLS layer first, and a write that is just
                # under way could then leave in the clear.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def set_socket(self, sock: socket.socket | None) -> None:
        """Set the socket that `stop` shuts down."""
        with self._lock:
            self._socket = sock
        if sock is not None and self.is_stopped:
            self.stop()

    @property
    def outstanding_host(self) -> str:
        """The `host:port` whose response is outstanding, empty if none is."""
        return "" if self._is_answered else self._host_port

    def begin_hop(self, method: str, host_port: str) -> None:
        """Start the request to *host_port*, or to where it was redirected."""
        self._is_announced = self._is_answered = False
        self.became_get |= method == "GET" and self._method not in {"", "GET", "HEAD"}
        self._method, self._host_port = method, host_port
        self.is_new_connection = False

    def end_hop(self, said: AnswerMeaning) -> None:
        """Record that the hop's response is complete, and what it says."""
        self._is_answered = True
        self._on_response(self._method, self._host_port, said)

    def announce_send(self) -> None:
        """Report, once per hop, that the first byte is about to be sent."""
        if not self._is_announced:
            self._is_announced = True
            self._on_send(self._method, self._host_port)


class GuardedBackend(httpcore.NetworkBackend):
    """Opens the pool's connections for the calling thread's `OutgoingCall`."""

    def __init__(
        self, resolver: Resolver, guard: AddressGuard, routes: Mapping[tuple[str, int], Route]
    ) -> None:
        self._resolver = resolver
        self._guard = guard
        self._routes = routes
        self._local = threading.local()
        self._names = ThreadPoolExecutor(_NAME_THREADS, thread_name_prefix="aileron-dns")
        self._resolving: dict[tuple[str, int], Future[list[str]]] = {}
        """Each name once, so that one that hangs takes one thread, however many calls wait for it."""
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def use_call(self, call: OutgoingCall) -> Generator[None]:
        """Make *call* the calling thread's."""
        self._local.call = call
        try:
            yield
        finally:
            call.set_socket(None)
            self._local.call = None

    def current_call(self) -> OutgoingCall:
        call: OutgoingCall = self._local.call
        return call

    def close(self) -> None:
        """Stop the name resolution threads."""
        self._names.shutdown(wait=True, cancel_futures=True)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to *host* at an allowed address, or to where it is routed.

        Raises:
            RefusedAddress: it resolves to an address that is not allowed.
            httpcore.ConnectError, httpcore.ConnectTimeout: no address could be reached.
        """
        call = self.current_call()
        route = self._routes.get((host, port))
        if route is not None:
            sock = self._connect(call, route.address, route.port)
            return _Stream(sock, self)
        problem: Exception | None = None
        for address in self._addresses(call, host, port):
            try:
                sock = self._connect(call, address, port)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
                continue
            return _Stream(self._refuse_own_address(call, sock, host), self)
        raise problem or httpcore.ConnectError("the name has no address")

    def _addresses(self, call: OutgoingCall, host: str, port: int) -> list[str]:
        """Return the addresses of *host*; if one is refused, so are all."""
        literal = _ip_literal(host)
        addresses = [literal] if literal else self._resolve(call, host, port)
        for address in addresses:
            if (problem := self._guard.problem(address, is_listed=literal is not None)) is not None:
                raise RefusedAddress(f"{host} resolves to {address}, which {problem}")
        return addresses

    def _resolve(self, call: OutgoingCall, host: str, port: int) -> list[str]:
        # In a thread of its own: no timeout reaches getaddrinfo, and nobody can stop it.
        place = (host, port)
        with self._lock:
            if (future := self._resolving.get(place)) is None:
                future = self._resolving[place] = self._names.submit(
                    self._resolver.resolve, host, port
                )
                future.add_done_callback(lambda _: self._resolving.pop(place))
        call.name_resolved.clear()
        future.add_done_callback(lambda _: call.name_resolved.set())
        call.name_resolved.wait(call.remaining(httpcore.ConnectTimeout))
        if not future.done():
            call.remaining(httpcore.ConnectTimeout)
            raise httpcore.ConnectTimeout("the DNS lookup timed out")
        try:
            return future.result()
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name cannot be resolved") from error

    def _connect(self, call: OutgoingCall, address: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            call.set_socket(sock)
            sock.settimeout(call.remaining(httpcore.ConnectTimeout, _CONNECT_SECONDS))
            sock.connect((address, port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            call.is_new_connection = True
        except TimeoutError as error:
            _close(call, sock)
            raise httpcore.ConnectTimeout("connecting took too long") from error
        except OSError as error:
            _close(call, sock)
            raise httpcore.ConnectError(error.strerror or "connecting failed") from error
        except httpcore.TimeoutException:
            _close(call, sock)
            raise
        return sock

    def _refuse_own_address(
        self, call: OutgoingCall, sock: socket.socket, host: str
    ) -> socket.socket:
        """Refuse a connection that ends on this machine, whose addresses fall in no fixed range."""
        local, peer = str(sock.getsockname()[0]), str(sock.getpeername()[0])
        if (problem := self._guard.own_address_problem(local, peer)) is not None:
            _close(call, sock)
            raise RefusedAddress(f"{host} resolves to {peer}, which {problem}")
        return sock


class _Stream(httpcore.NetworkStream):
    """A connection whose every blocking operation obeys the deadline of the current call."""

    def __init__(self, sock: socket.socket, backend: GuardedBackend) -> None:
        self._socket = sock
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        call = self._backend.current_call()
        call.set_socket(self._socket)
        self._socket.settimeout(call.remaining(httpcore.ReadTimeout))
        try:
            return self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout("reading took too long") from error
        except OSError as error:
            raise httpcore.ReadError(error.strerror or "reading failed") from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        call = self._backend.current_call()
        call.set_socket(self._socket)
        view = memoryview(buffer)
        try:
            while view:
                self._socket.settimeout(call.remaining(httpcore.WriteTimeout))
                call.announce_send()
                view = view[self._socket.send(view) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout("writing took too long") from error
        except OSError as error:
            raise httpcore.WriteError(error.strerror or "writing failed") from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        call = self._backend.current_call()
        # An IPv6 address stands in brackets in a URL and without them in a certificate.
        name = None if server_hostname is None else server_hostname.strip("[]")
        secured: socket.socket = self._socket
        try:
            # The handshake apart from the wrapping, so that `stop` can break it.
            secured = ssl_context.wrap_socket(
                self._socket, server_hostname=name, do_handshake_on_connect=False
            )
            call.set_socket(secured)
            secured.settimeout(call.remaining(httpcore.ConnectTimeout))
            assert isinstance(secured, ssl.SSLSocket)
            secured.do_handshake()
        except TimeoutError as error:
            _close(call, secured)
            raise httpcore.ConnectTimeout("the TLS handshake took too long") from error
        except ssl.SSLCertVerificationError as error:
            _close(call, secured)
            raise httpcore.ConnectError(
                f"its certificate is not trusted: {error.verify_message}"
            ) from error
        except OSError as error:
            _close(call, secured)
            raise httpcore.ConnectError("the TLS handshake failed") from error
        except httpcore.TimeoutException:
            _close(call, secured)
            raise
        return _Stream(secured, self._backend)

    def get_extra_info(self, info: str) -> Any:
        # The pool asks one thing: whether an idle connection has something to read, its end mostly.
        if info == "is_readable":
            return _readable(self._socket)
        return None


def _close(call: OutgoingCall, sock: socket.socket) -> None:
    call.set_socket(None)
    sock.close()


def _readable(sock: socket.socket) -> bool:
    descriptor = sock.fileno()
    if descriptor < 0:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _ip_literal(host: str) -> str | None:
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return None
