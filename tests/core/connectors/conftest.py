"""A real engine, guests written in WAT, the real mailbox, services on real sockets."""

import http.server
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from tests.support.guests import Guest, MakeEngine, install_guest, running_guest
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.tls_service import certificate

ROOT = Path(__file__).parents[3]
MANIFEST = """
[connector]
name = "local://tests/guest"
version = "1.0.0"
[capabilities.network]
hosts = [{hosts}]
"""


class Service:
    """An HTTP service whose answers the test gives: `answers[path](handler)`."""

    port = 0
    server: http.server.ThreadingHTTPServer

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[HttpRequest], object]] = {}
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.over = threading.Event()

    def answer(self, request: HttpRequest, body: bytes) -> None:
        self.seen.append((request.command, request.path, dict(request.headers), body))
        self.answers[request.path.split("?")[0]](request)

    def reply(self, path: str, body: bytes = b"{}", status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = lambda request: reply(request, status, body, named)

    def hang_up(self, path: str) -> None:
        """Answer nothing at *path*, and end the connection."""

        def answer(handler: HttpRequest) -> None:
            handler.close_connection = True

        self.answers[path] = answer

    def hold(self, path: str) -> threading.Event:
        """Say nothing at *path* until the test is over; return what a request there sets."""
        asked = threading.Event()

        def answer(handler: HttpRequest) -> None:
            asked.set()
            self.over.wait(30)
            handler.close_connection = True

        self.answers[path] = answer
        return asked


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    with http_server(service.answer) as service.server:
        service.port = service.server.server_address[1]
        yield service
        service.over.set()


@pytest.fixture
def service_over_tls(service: Service, tmp_path: Path) -> tuple[Service, ssl.SSLContext]:
    """The service behind TLS as api.example and also.example, and a trust store that knows it."""
    path = certificate(tmp_path, "api.example", "also.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    service.server.socket = context.wrap_socket(service.server.socket, server_side=True)
    service.reply("/x", b"secure")
    return service, ssl.create_default_context(cafile=str(path))


class LeapingClock(SystemClock):
    """The machine's time, ahead of it in each thread that leapt.

    A short limit may be over before its request has left. With this one a long limit is as good as over
    once the request has.
    """

    def __init__(self) -> None:
        self._ahead = threading.local()

    def monotonic(self) -> float:
        return super().monotonic() + getattr(self._ahead, "seconds", 0.0)

    def leap(self, seconds: float) -> None:
        """Be *seconds* ahead in the calling thread."""
        self._ahead.seconds = seconds

    def level(self) -> None:
        """Be ahead in no thread any more."""
        self._ahead = threading.local()


@pytest.fixture
def leaping() -> LeapingClock:
    return LeapingClock()


class TableResolver:
    """Resolves from a table, and remembers what it was asked."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        self.table = table
        self.asked: list[str] = []

    def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host not in self.table:
            raise OSError("no such name")
        return self.table[host]


LOOPBACK = AddressGuard(allow=[ipaddress.ip_network("127.0.0.1/32")])


@pytest.fixture
def resolver() -> TableResolver:
    return TableResolver({"api.example": ["127.0.0.1"]})


@pytest.fixture
def make_client() -> Iterator[Callable[..., OutgoingClient]]:
    made: list[OutgoingClient] = []

    def make(**kwargs: Any) -> OutgoingClient:
        made.append(OutgoingClient(**kwargs))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def store(tmp_path: Path) -> ConnectorStore:
    return ConnectorStore(tmp_path / "home")


@pytest.fixture
def make_engine(make_client: Callable[..., OutgoingClient]) -> Iterator[MakeEngine]:
    made: list[WasmEngine] = []

    def make(client: OutgoingClient | None = None, **kwargs: Any) -> WasmEngine:
        made.append(WasmEngine(client or make_client(), **kwargs))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def engine(make_engine: MakeEngine) -> WasmEngine:
    return make_engine()


@pytest.fixture
def guest(store: ConnectorStore, engine: WasmEngine) -> Guest:
    """Install a module in WAT, with the hosts it may reach, on the test's engine."""

    def install(
        wat: str, hosts: tuple[str, ...] = (), on: WasmEngine | None = None, more: str = ""
    ) -> WasmConnector:
        manifest = (MANIFEST.format(hosts=", ".join(f'"{host}"' for host in hosts)) + more).encode()
        return install_guest(store, on or engine, bytes(wasmtime.wat2wasm(wat)), manifest)

    return install


@pytest.fixture
def registry(store: ConnectorStore, engine: WasmEngine) -> ConnectorRegistry:
    return ConnectorRegistry(store, lambda: engine)


@pytest.fixture
def drafts(
    mailbox: Any,
    store: ConnectorStore,
    make_client: Callable[..., OutgoingClient],
    make_engine: MakeEngine,
) -> WasmConnector:
    """The example connector, routed to the mailbox."""
    route = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
    entry = store.install(ROOT / "examples" / "connectors" / "mail-drafts")
    return running_guest(entry, store, make_engine(make_client(routes=[route])))


@pytest.fixture
def routed(
    service: Service, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine
) -> WasmEngine:
    """An engine that routes api.example:443 to the test's service."""
    route = Route(host="api.example:443", address="127.0.0.1", port=service.port)
    return make_engine(make_client(routes=[route]))
