"""A service behind TLS that notes what reaches it, a client that reaches it by name; certificates, and their authority."""

import datetime
import ipaddress
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from aileron_core.clock import Clock
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.call import GuardedBackend
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from tests.support.http_service import HttpRequest, http_server, reply

HOST = "api.example"
_Key = ec.EllipticCurvePrivateKey
_START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@dataclass(slots=True, kw_only=True)
class Request:
    """One request that arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class Reply:
    """An answer that is more than a JSON body."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True, kw_only=True)
class TlsService:
    """What the service is, and what it saw."""

    port: int
    trust: ssl.SSLContext
    host: str = HOST
    seen: list[Request] = field(default_factory=list[Request])
    answer: Callable[[Request], object] = lambda _: {"done": True}
    """Its JSON; None for no body."""
    status: int | Callable[[Request], int] = 200
    take: Callable[[HttpRequest, Request], bool] = lambda _asked, _request: False
    """Answers on the connection itself, and returns whether it has."""

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    def client(self, routes: Sequence[Route], clock: Clock) -> OutgoingClient:
        """Return a client for which every name and port is the service; it trusts the service alone."""
        guard = AddressGuard(allow=[ipaddress.ip_network("127.0.0.1/32")])
        made = OutgoingClient(routes=routes, clock=clock, ssl_context=self.trust)
        made._backend = _ServiceBackend(guard, made._backend, self.port)
        return made


class _ServiceBackend(GuardedBackend):
    """Connects to one port, whatever port a URL names: the services of manifests listen on 443."""

    def __init__(self, guard: AddressGuard, replaced: GuardedBackend, port: int) -> None:
        super().__init__(OneAddress("127.0.0.1"), guard, replaced._routes)
        self._port = port

    def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
        routed = (host, port) in self._routes
        return super().connect_tcp(host, port if routed else self._port, *rest, **more)


class OneAddress:
    """A resolver that knows one address, for every name."""

    def __init__(self, address: str) -> None:
        self._address = address

    def resolve(self, host: str, port: int) -> list[str]:
        return [self._address]


@contextmanager
def tls_service(folder: Path, host: str = HOST, *others: str) -> Iterator[TlsService]:
    """Run one on a port of the loopback, its certificate (for *others* too) in *folder*."""
    path = certificate(folder, host, *others)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    service = TlsService(port=0, trust=ssl.create_default_context(cafile=str(path)), host=host)

    def answer(asked: HttpRequest, body: bytes) -> None:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        request = Request(method=asked.command, path=asked.path, headers=headers, body=body)
        service.seen.append(request)
        if service.take(asked, request):
            return
        status, said = service.status, service.answer(request)
        if not isinstance(said, Reply):
            said = Reply(status=status(request) if callable(status) else status, body=said)
        printed = said.body if isinstance(said.body, bytes) else b""
        if said.body is not None and not printed:
            printed = json.dumps(said.body).encode()
        reply(asked, said.status, printed, said.headers)

    with http_server(answer, context) as server:
        service.port = server.server_address[1]
        yield service


def certificate(folder: Path, *names: str) -> Path:
    """Write a new key and its certificate for *names* to one file, and return that."""
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / "both.pem"
    path.write_bytes(_signed(key, names, _name(names[0]), key, ca=True) + _private(key))
    return path


class Authority:
    """Signs certificates for any name; a client trusts it through the file *folder*/ca.pem."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ca.pem"
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority of the tests")
        self.file.write_bytes(_signed(self._key, (), self._name, self._key, ca=True))
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, host: str) -> ssl.SSLContext:
        if host not in self._contexts:
            key = ec.generate_private_key(ec.SECP256R1())
            path = self._folder / f"{host}.pem"
            path.write_bytes(_signed(key, (host,), self._name, self._key) + _private(key))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            self._contexts[host] = context
        return self._contexts[host]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    key: _Key, names: tuple[str, ...], issuer: x509.Name, by: _Key, *, ca: bool = False
) -> bytes:
    names_ext = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    builder = (
        x509.CertificateBuilder()
        .subject_name(issuer if key is by else _name(names[0]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_START)
        .not_valid_after(_START + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(names_ext, critical=False)
    return builder.sign(by, hashes.SHA256()).public_bytes(Encoding.PEM)


def _private(key: _Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
