"""A gateway on a real socket, an upstream that keeps every byte, and clients that write their own.

async with passing() as gateway:
    client = await gateway.client()
    await client.send(b"GET", b"/v1/models")
    head, body = await client.answer()
"""

import asyncio
import contextlib
import os
import re
import socket
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aileron_core.app import App, AppOptions
from aileron_core.console_port.view_models import TrafficView
from aileron_core.home.layout import Home
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.gateway.app import Gateway as GatewayApp
from aileron_core.server.gateway.connect import Dialer
from aileron_core.server.sockets import bind_tcp
from aileron_core.sessions.model import OpenedSession
from aileron_core.settings import GatewaySettings, Settings
from aileron_core.tracing.spans import NO_TRACER, Tracer
from tests.support.core_harness import PATIENCE, open_session

EACH_LOOP = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"use_uvloop": fast}) for fast in (False, True)],
    ids=["asyncio", "uvloop"],
)
"""The core runs on uvloop where there is one."""


@dataclass(kw_only=True)
class Seen:
    """One request as the upstream got it."""

    head: bytes
    body: bytes
    connection: int
    """Which of the upstream's connections it came over."""

    @property
    def line(self) -> bytes:
        return self.head.partition(b"\r\n")[0]

    @property
    def lines(self) -> list[bytes]:
        """The header lines, as they stood there."""
        return self.head.removesuffix(b"\r\n\r\n").split(b"\r\n")[1:]


Serving = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answering = Callable[[Seen, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering_with(data: bytes, *, closes: bool = False) -> Answering:
    async def answering(_seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if closes:
            writer.close()

    return answering


fine = answering_with(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """Return the next chunk's data; empty at the end (trailers are left)."""
    size = int((await reader.readline()).strip(), 16)
    if size == 0:
        return b""
    data = await reader.readexactly(size)
    assert await reader.readexactly(2) == b"\r\n"
    return data


async def read_chunks(reader: asyncio.StreamReader) -> list[bytes]:
    chunks: list[bytes] = []
    while chunk := await read_chunk(reader):
        chunks.append(chunk)
    assert await reader.readline() == b"\r\n"
    return chunks


async def read_body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if re.search(rb"(?im)^transfer-encoding:.*chunked", head):
        return b"".join(await read_chunks(reader))
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    return await reader.readexactly(int(length[1])) if length else b""


class Upstream:
    """A service that keeps every byte, and answers as it is told."""

    def __init__(
        self, answering: Answering = fine, serving: Serving | None = None, **server: Any
    ) -> None:
        self.answering = answering
        self.serving = serving
        self.seen: list[Seen] = []
        self.raw = bytearray()
        """Every byte that was ever sent to it."""
        self.connections = 0
        self.lost: asyncio.Queue[float] = asyncio.Queue()
        """When a connection to it ended, on the loop's clock."""
        self._server_options = server

    @contextlib.asynccontextmanager
    async def listening(self, host: str = "127.0.0.1") -> AsyncGenerator["Upstream", None]:
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._serve, host, 0, **self._server_options)
        self.port: int = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in tuple(self._writers):
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        feed = reader.feed_data

        def recording(data: bytes) -> None:
            self.raw += data
            feed(data)

        reader.feed_data = recording  # type: ignore[method-assign]
        try:
            if self.serving is not None:
                await self.serving(reader, writer)
            while not reader.at_eof():
                head = await read_head(reader)
                seen = Seen(head=head, body=b"", connection=number)
                seen.body = await read_body(head, reader)
                self.seen.append(seen)
                await self.answering(seen, reader, writer)
                await writer.drain()
                if writer.is_closing():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.lost.put_nowait(asyncio.get_running_loop().time())
            self._writers.discard(writer)
            writer.close()


@dataclass
class Client:
    """A connection to the gateway, on which a test writes what it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: bytes
    token: bytes

    async def send(
        self, method: bytes, target: bytes, *lines: bytes, body: bytes | None = None
    ) -> None:
        """Send a request below the session's prefix; *lines* are header lines as they stand."""
        first = b"%b /gw/%b%b HTTP/1.1" % (method, self.token, target)
        head = [first, b"Host: " + self.host, *lines]
        if body is not None:
            head.append(b"Content-Length: %d" % len(body))
        self.writer.write(b"\r\n".join(head) + b"\r\n\r\n" + (body or b""))
        await self.writer.drain()

    async def answer(self, *, bodiless: bool = False) -> tuple[bytes, bytes]:
        head = await read_head(self.reader)
        return head, b"" if bodiless else await read_body(head, self.reader)

    async def ask(
        self, method: bytes, target: bytes, *lines: bytes, body: bytes | None = None
    ) -> tuple[bytes, bytes]:
        await self.send(method, target, *lines, body=body)
        return await self.answer(bodiless=method == b"HEAD")

    def hang_up(self) -> None:
        self.writer.transport.abort()


@dataclass(kw_only=True)
class Gateway:
    """A running gateway with one session, and the upstream that all three providers lead to."""

    app: App
    agents: AgentApi
    upstream: Upstream
    session: OpenedSession
    port: int
    server: EmbeddedServer
    _writers: list[asyncio.StreamWriter]

    async def client(self, token: str | None = None) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        self._writers.append(writer)
        gateway_token = self.session.gateway_token if token is None else token
        return Client(reader, writer, b"127.0.0.1:%d" % self.port, gateway_token.encode())

    async def another_session(self, **terms: Any) -> OpenedSession:
        return await open_session(self.app, **terms)

    async def asking(
        self, method: bytes, target: bytes, *lines: bytes, token: str | None = None, **body: bytes
    ) -> Client:
        """Return a client that has sent a request."""
        client = await self.client(token)
        await client.send(method, target, *lines, **body)
        return client

    async def post(self, target: bytes, *lines: bytes, body: bytes) -> tuple[bytes, bytes]:
        return await (await self.client()).ask(b"POST", target, *lines, body=body)

    async def get(self, target: bytes = b"/v1/models", *lines: bytes) -> tuple[bytes, bytes]:
        return await (await self.client()).ask(b"GET", target, *lines)

    @property
    def session_id(self) -> str:
        return self.session.session.session_id

    @property
    def handler(self) -> GatewayApp:
        return self.server._server.config.loaded_app._app.state.gateway

    @property
    def traffic(self) -> TrafficView:
        found = self.app.traffic.view(self.session_id)
        assert found is not None
        return found

    async def until_traffic(self, ready: Callable[[TrafficView], bool]) -> TrafficView:
        """Return the session's numbers once they are *ready*; every turn of the loop looks again."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = self.app.traffic.view(self.session_id)
                if found is not None and ready(found):
                    return found
                await asyncio.sleep(0)


async def slow_client(gateway: Gateway, room: int = 64 * 1024) -> Client:
    """Return a client whose buffers are small, and which reads nothing by itself."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", gateway.port))
    reader, writer = await asyncio.open_connection(sock=raw, limit=64 * 1024)
    gateway._writers.append(writer)
    host = b"127.0.0.1:%d" % gateway.port
    return Client(reader, writer, host, gateway.session.gateway_token.encode())


def narrow(gateway: Gateway) -> None:
    """Have the kernel take little of what the gateway writes to its clients."""
    for side in gateway.server._server.server_state.connections:
        with socket.socket(fileno=os.dup(side.transport.get_extra_info("socket").fileno())) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@contextlib.asynccontextmanager
async def open_console(
    options: AppOptions,
    *,
    furnish: Callable[[Path], object] = lambda _: None,
    dialer: Callable[[App], Dialer] | None = None,
    **terms: Any,
) -> AsyncGenerator[dict[str, Any], None]:
    """Run a console on a port and open a session on *terms*; yields the members of a `Gateway`.

    *furnish* puts something into its new home.
    """
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        furnish(home)
        async with App.open(Home(home), options) as app:
            tcp = bind_tcp("127.0.0.1", 0)
            port: int = tcp.getsockname()[1]
            app.address.listen_on(port)
            session = await open_session(app, **terms)
            agents = AgentApi(app)
            asgi_app = create_app(app, agents=agents, dialer=dialer(app) if dialer else None)
            writers: list[asyncio.StreamWriter] = []
            async with EmbeddedServer(asgi_app, [tcp]) as server:
                try:
                    yield {
                        "app": app, "agents": agents, "session": session, "port": port,
                        "server": server, "_writers": writers,
                    }  # fmt: skip
                finally:
                    for writer in writers:
                        writer.transport.abort()


@contextlib.asynccontextmanager
async def passing(
    answering: Answering = fine,
    *,
    settings: GatewaySettings | None = None,
    dialer: Callable[[App], Dialer] | None = None,
    base: str = "",
    serving: Serving | None = None,
    tracer: Tracer = NO_TRACER,
    inspect: bool = False,
) -> AsyncGenerator[Gateway, None]:
    """Run a gateway over an upstream of the test's own, below the path *base*, unless *settings* lead elsewhere.

    It is *serving* a new connection before it is *answering* requests.
    """
    async with Upstream(answering, serving).listening() as upstream:
        url = f"http://127.0.0.1:{upstream.port}{base}"
        given = settings or GatewaySettings(anthropic=url, openai=url, gemini=url, inspect=inspect)
        options = AppOptions(settings=Settings(gateway=given), tracer=tracer)
        async with open_console(options, dialer=dialer) as made:
            yield Gateway(upstream=upstream, **made)
