"""A service behind TLS that notes what reaches it, and a client of this process that reaches it by name."""

import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aileron_core.clock import Clock
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.call import GuardedBackend
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from tests.support.tls import certificate

HOST = "api.example"


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

    @property
    def place(self) -> str:
        """Its `host:port`, as a manifest lists it."""
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
        super().__init__(_Loopback(), guard, replaced._routes)
        self._port = port

    def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
        routed = (host, port) in self._routes
        return super().connect_tcp(host, port if routed else self._port, *rest, **more)


class _Loopback:
    def resolve(self, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]


@contextmanager
def tls_service(folder: Path, host: str = HOST, *others: str) -> Iterator[TlsService]:
    """Run one on a port of the loopback, its certificate (for *others* too) in *folder*."""
    found: list[TlsService] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            service = found[0]
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(method=self.command, path=self.path, headers=headers, body=body)
            service.seen.append(request)
            status, answer = service.status, service.answer(request)
            if not isinstance(answer, Reply):
                number = status(request) if callable(status) else status
                answer = Reply(status=number, body=answer)
            printed = b"" if answer.body is None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(printed)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(printed)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    path = certificate(folder, host, *others)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    trust = ssl.create_default_context(cafile=str(path))
    found.append(TlsService(port=server.server_address[1], trust=trust, host=host))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
