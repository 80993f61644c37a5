"""A connection to an upstream: resolved, checked, and made to the address that was checked.

Which addresses an upstream may have, and the way there: the proxy of the environment, TLS with `ca_file`.
"""

import asyncio
import base64
import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

from aiohappyeyeballs import (
    start_connection,  # pyright: ignore[reportUnknownVariableType] - a bare tuple
)

from aileron_core.connectors.http.addresses import AddressGuard, Resolver, SystemResolver
from aileron_core.credentials.upstreams import Upstream
from aileron_core.server.gateway.providers import GatewayError

_RESOLVE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
_HEAD_START = 0.3
"""Of one address before the next, of the other family if there is one (RFC 8305)."""
_TLS_SECONDS = 15.0
_MAX_PROXY_HEAD = 16 * 1024
_NAMED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
        "100.64.0.0/10",
    )
)  # fmt: skip
"""What an upstream that config.toml names may lead to besides the Internet: this machine, private
networks, and the range that overlay networks use. Metadata and link-local are not among them."""

_P = TypeVar("_P", bound=asyncio.BaseProtocol)
_AddressInfo = tuple[int, int, int, str, tuple[str, int]]
"""As `socket.getaddrinfo` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proxy:
    host: str
    port: int
    credentials: bytes | None = field(repr=False)


class Proxies:
    """The proxy for https upstreams, as the console's environment named it when it started."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._no = environment.get("no_proxy", environment.get("NO_PROXY", ""))
        self._url = environment.get("https_proxy") or environment.get("HTTPS_PROXY") or ""

    @classmethod
    def of_this_process(cls) -> "Proxies":
        """Return those of the process's own environment."""
        found = getproxies_environment()
        return cls({"https_proxy": found.get("https", ""), "no_proxy": found.get("no", "")})

    def proxy_for(self, upstream: Upstream) -> _Proxy | None:
        """Return through which proxy *upstream* is reached.

        Raises:
            GatewayError: the proxy that is named cannot be used.
        """
        if upstream.scheme != "https" or not self._url:
            return None
        if _bypasses(self._no, upstream):
            return None
        text = self._url if "://" in self._url else f"http://{self._url}"
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if parts.scheme != "http" or not host:
            raise GatewayError("unavailable", "HTTPS_PROXY must be of the form http://HOST:PORT.")
        login = None
        if parts.username is not None:
            name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            login = base64.b64encode(name.encode())
        return _Proxy(host=host, port=port or 80, credentials=login)


class Dialer:
    """Opens connections to upstreams.

    Args:
        own_port: the port that the console listens on, over TCP.
        ca_file: certificates to trust besides the usual ones.
        proxies: those of the environment, unless a test gives others.
        resolver, guard: other ones are for tests, in process only.
    """

    def __init__(
        self,
        *,
        own_port: Callable[[], int],
        ca_file: str = "",
        proxies: Proxies | None = None,
        resolver: Resolver | None = None,
        guard: AddressGuard | None = None,
    ) -> None:
        self._own_port = own_port
        self._ca_file = ca_file
        self._proxies = proxies or Proxies.of_this_process()
        self._resolver = resolver or SystemResolver()
        self._guard = guard or AddressGuard()
        self._named = AddressGuard(_NAMED)
        self._names = ThreadPoolExecutor(8, thread_name_prefix="aileron-gateway-dns")
        """More than there are names: three providers, and a proxy for each."""
        self._resolving: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        """Each name once, so that one that hangs takes one thread, however many requests wait for it."""
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """End the threads that resolve names; one that hangs is not waited for."""
        self._names.shutdown(wait=False, cancel_futures=True)

    async def dial(self, upstream: Upstream, make: Callable[[], _P]) -> _P:
        """Return what *make* makes, connected to *upstream*.

        Raises:
            GatewayError: it cannot be reached, or leads where it must not.
        """
        proxy = self._proxies.proxy_for(upstream)
        if proxy is None:
            raw = await self._connect(upstream.host, upstream.port, upstream)
        else:
            raw = await self._through(proxy, upstream)
        try:
            context = await self._context() if upstream.scheme == "https" else None
            return await _wrap(raw, upstream, context, make)
        except BaseException:
            raw.close()
            raise

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(_trusting, self._ca_file)
        return self._tls

    async def _connect(self, host: str, port: int, upstream: Upstream | None) -> socket.socket:
        """Return a connection to *host*; without an *upstream* it is a proxy that a person named."""
        literal = _literal(host)
        addresses = [literal] if literal else await self._resolve(host, port)
        for address in addresses:
            problem = self._problem(address, upstream, literal=literal is not None)
            if problem is not None:
                raise GatewayError("forbidden", _refusal(host, address, problem, upstream))
        raw = await _first_of(addresses, port, host)
        local, peer = str(raw.getsockname()[0]), str(raw.getpeername()[0])
        problem = self._end_problem(local, peer, port, upstream)
        if problem is not None:
            raw.close()
            raise GatewayError("forbidden", _refusal(host, peer, problem, upstream))
        return raw

    async def _resolve(self, host: str, port: int) -> list[str]:
        place = (host, port)
        if (resolving := self._resolving.get(place)) is None:
            loop = asyncio.get_running_loop()
            resolving = loop.run_in_executor(self._names, self._resolver.resolve, host, port)
            self._resolving[place] = resolving
            resolving.add_done_callback(lambda _: self._resolving.pop(place))
            resolving.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                return await asyncio.shield(resolving)
        except TimeoutError:
            raise GatewayError("timeout", f"Resolving the name {host} took too long.") from None
        except (OSError, UnicodeError):
            raise GatewayError("unreachable", f"The name {host} cannot be resolved.") from None

    def _problem(self, address: str, upstream: Upstream | None, *, literal: bool) -> str | None:
        if upstream is None:
            return None
        if not upstream.configured:
            return self._guard.problem(address)
        if literal:
            # What a person wrote down to the last digit is meant, but for one that is no place.
            return "is not the address of a single machine" if _nowhere(address) else None
        return self._named.problem(address)

    def _end_problem(
        self, local: str, peer: str, port: int, upstream: Upstream | None
    ) -> str | None:
        if local == peer and port == self._own_port():
            return "is this console"
        if upstream is None or upstream.configured:
            return None
        return self._guard.own_address_problem(local, peer)

    async def _through(self, proxy: _Proxy, upstream: Upstream) -> socket.socket:
        # The proxy resolves the name: which address it connects to cannot be checked from here.
        raw = await self._connect(proxy.host, proxy.port, None)
        place = upstream.address
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode("ascii")
        if proxy.credentials is not None:
            head += b"Proxy-Authorization: Basic " + proxy.credentials + b"\r\n"
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.sock_sendall(raw, head + b"\r\n")
                status = await _proxy_status(raw)
        except TimeoutError:
            raw.close()
            raise GatewayError(
                "timeout", "The proxy of HTTPS_PROXY did not answer in time."
            ) from None
        except OSError:
            raw.close()
            raise GatewayError(
                "unreachable", "The proxy of HTTPS_PROXY closed the connection."
            ) from None
        except BaseException:
            raw.close()
            raise
        if not 200 <= status < 300:
            raw.close()
            message = f"The proxy of HTTPS_PROXY refused to connect to {place} (status {status})."
            raise GatewayError("unreachable", message)
        return raw


def _bypasses(listed: str, upstream: Upstream) -> bool:
    """Return whether NO_PROXY, as *listed*, names *upstream*: whole, with its port, or by a suffix."""
    for entry in listed.lower().split(","):
        name = entry.strip().lstrip("*").lstrip(".")
        if entry.strip() == "*" or name in (upstream.host, upstream.address):
            return True
        if name and f"{upstream.host} {upstream.address} ".find(f".{name} ") >= 0:
            return True
    return False


def _literal(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _nowhere(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return parsed.is_unspecified or parsed.is_multicast


def _refusal(host: str, address: str, problem: str, upstream: Upstream | None) -> str:
    where = host if host == address else f"{host} resolves to {address}, which"
    sentence = f"{where} {problem}. Nothing was sent."
    if upstream is not None and not upstream.configured:
        sentence += " To use an upstream of your own, set it under [gateway] in config.toml."
    return sentence


async def _first_of(addresses: list[str], port: int, host: str) -> socket.socket:
    """Return a connection to the first of *addresses* that answers; no other one is connected to."""
    infos = [_address_info(each, port) for each in addresses]
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await start_connection(
                infos, happy_eyeballs_delay=_HEAD_START, socket_factory=_upstream_socket
            )
    except (OSError, RuntimeError):  # uvloop has both; TimeoutError is an OSError
        raise GatewayError("unreachable", f"{host} cannot be reached on port {port}.") from None


def _address_info(address: str, port: int) -> _AddressInfo:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, 0, "", (address, port)


def _upstream_socket(info: _AddressInfo) -> socket.socket:
    raw = socket.socket(info[0], info[1])
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A model may think for minutes: silence is no fault, but a machine that is gone is one.
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return raw


async def _wrap(
    raw: socket.socket, upstream: Upstream, context: ssl.SSLContext | None, make: Callable[[], _P]
) -> _P:
    loop = asyncio.get_running_loop()
    try:
        if context is None:
            _, made = await loop.create_connection(make, sock=raw)
        else:
            _, made = await loop.create_connection(
                make,
                sock=raw,
                ssl=context,
                server_hostname=upstream.host,
                ssl_handshake_timeout=_TLS_SECONDS,
            )
    except ssl.SSLCertVerificationError as error:
        raise GatewayError(
            "unreachable",
            f"{upstream.address}: its certificate is not trusted: {error.verify_message}.",
        ) from None
    except (OSError, ssl.SSLError):
        raise GatewayError(
            "unreachable", f"{upstream.address}: the connection failed while it was being opened."
        ) from None
    return made


async def _proxy_status(raw: socket.socket) -> int:
    """Read the proxy's answer, no byte more: what follows belongs to the upstream."""
    loop = asyncio.get_running_loop()
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        one = await loop.sock_recv(raw, 1)
        if not one or len(head) > _MAX_PROXY_HEAD:
            raise OSError("the proxy closed the connection")
        head += one
    word = bytes(head).split(None, 2)[1:2]
    return int(word[0]) if word and word[0].isdigit() else 0


def _trusting(ca_file: str) -> ssl.SSLContext:
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError):
            message = "[gateway] ca_file in config.toml contains no readable certificate."
            raise GatewayError("unavailable", message) from None
    return context
