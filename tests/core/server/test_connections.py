"""Connections that say nothing, or little, keep nobody else from being heard."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.server import http_protocol
from aileron_core.server.sockets import bind_unix
from tests.core.server.gateway.harness import EACH_LOOP, Client, passing, read_body, read_head
from tests.support.core_harness import PATIENCE

SOON = 5.0
"""Seconds in which an honest client must have its answer, on a busy machine too."""
_RUN = (
    b"POST /v1/actions/x/run HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer %b\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


async def trickled(client: Client, meanwhile: Callable[[], object] | None = None) -> int:
    sent = 0
    with contextlib.suppress(ConnectionError):
        while not client.writer.is_closing():
            client.writer.write(b"x")
            await client.writer.drain()
            sent += 1
            if meanwhile is not None:
                meanwhile()
            await asyncio.sleep(0.01)
    return sent


async def answered_head(client: Client, method: str, path: str, token: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {client.host.decode()}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    client.writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await read_head(client.reader)
    await read_body(head, client.reader)
    return head


def half_said(client: Client, kind: str) -> bytes:
    """Return the beginning of a request without a token that goes on for as long as one likes."""
    if kind == "silent":
        return b""
    if kind == "head":
        return b"GET /v1/health HTTP/1.1\r\nX: "
    path = b"/gw/wrong/v1/messages" if kind == "gateway" else b"/v1/sessions"
    return b"POST %b HTTP/1.1\r\nHost: %b\r\nContent-Length: 100000\r\n\r\nx" % (path, client.host)


async def test_more_connections_without_a_token_than_there_are_places_shut_nobody_out() -> None:
    """1,100 that are all in the middle of something, each with a byte now and then."""
    async with passing() as gateway:
        token = gateway.session.token
        before = await gateway.client()
        assert b" 200 " in await answered_head(before, "GET", "/v1/actions", token)
        uploading = await gateway.asking(b"POST", b"/v1/responses", b"Content-Length: 3")
        uploading.writer.write(b"a")
        await gateway.until_traffic(lambda view: view.bytes_up == 1)
        kinds = ("body", "gateway", "head", "silent")
        held = [await gateway.client() for _ in range(1100)]
        for number, client in enumerate(held):
            client.writer.write(half_said(client, kinds[number % 4]))
        for client in held[:-300:4]:  # the places are full, and each is being heard
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                assert b" 401 " in await read_head(client.reader)
        for client in held:
            if not client.writer.is_closing():
                client.writer.write(b"x")
        for _ in range(20):
            async with asyncio.timeout(SOON):
                late = await gateway.client()
                assert b" 200 " in await answered_head(late, "GET", "/v1/actions", token)
                assert b" 200 " in await answered_head(await gateway.client(), "GET", "/v1/health")
                assert (await gateway.get())[1] == b"ok"
        assert b" 200 " in await answered_head(before, "GET", "/v1/actions", token)
        uploading.writer.write(b"bc")
        assert (await uploading.answer())[1] == b"ok"
        assert gateway.upstream.seen[-1].body == b"abc"


async def test_a_session_with_all_its_places_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond goes, of its own; a silent one of another session's stays, and a request goes on."""
    monkeypatch.setattr("aileron_core.server.http_protocol._MAX_SESSION", 5)
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        token = gateway.session.token
        silent = await gateway.client()
        assert b" 200 " in await answered_head(silent, "GET", "/v1/actions", token)
        uploading = await gateway.asking(b"POST", b"/v1/responses", b"Content-Length: 3")
        uploading.writer.write(b"a")
        await gateway.until_traffic(lambda view: view.bytes_up == 1)
        greedy = (await gateway.another_session()).token
        beyond = [await gateway.client() for _ in range(12)]
        for client in beyond:
            assert b" 200 " in await answered_head(client, "GET", "/v1/actions", greedy)
        for client in beyond[:7]:
            assert await client.reader.read() == b""
        assert b" 200 " in await answered_head(beyond[-1], "GET", "/v1/actions", greedy)
        assert b" 200 " in await answered_head(silent, "GET", "/v1/actions", token)
        uploading.writer.write(b"bc")
        assert (await uploading.answer())[1] == b"ok"


@EACH_LOOP
@pytest.mark.parametrize("kind", ["body", "gateway"])
async def test_half_a_request_is_a_last_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before it are answered; so is it, and what goes on to come is no reason to stay."""
    monkeypatch.setattr(http_protocol, "_LINGER_SECONDS", 0.3)
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        client = await gateway.client("wrong")
        whole = b"GET /v1/health HTTP/1.1\r\nHost: %b\r\n\r\n" % client.host
        client.writer.write(whole * 3 + half_said(client, kind))
        for _ in range(3):
            head, _body = await client.answer()
            assert b" 200 " in head
            assert b"close" not in head.lower()
        head, body = await client.answer()
        assert b" 401 " in head
        assert b"\r\nconnection: close\r\n" in head.lower()
        assert b"error" in body
        assert await client.reader.read() == b""
        await trickled(client)


@EACH_LOOP
async def test_a_client_that_sends_all_before_it_reads_has_the_whole_answer() -> None:
    """Eight megabytes that nobody wants do not take the refusal away by a reset."""
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        client = await gateway.client()
        size = 8 * 2**20
        said = f"POST /v1/sessions HTTP/1.1\r\nHost: {client.host.decode()}\r\n"
        client.writer.write(f"{said}Content-Length: {size}\r\n\r\n".encode() + b"x" * size)
        await client.writer.drain()
        head = await read_head(client.reader)
        assert b" 413 " in head
        assert b"payload_too_large" in await read_body(head, client.reader)


async def test_a_head_without_end_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_protocol._HEAD_SECONDS == 10
    monkeypatch.setattr(http_protocol, "_HEAD_SECONDS", 0.3)
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        for earlier in (False, True):
            client = await gateway.client()
            if earlier:
                assert b" 200 " in await answered_head(client, "GET", "/v1/health")
            client.writer.write(half_said(client, "head"))
            await trickled(client)


async def test_a_sessions_slow_body_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the routes take is small and soon there; a model's request may come as it is spoken."""
    for name in ("_HEAD_SECONDS", "_BODY_SECONDS", "_SESSION_BODY_SECONDS"):
        monkeypatch.setattr(http_protocol, name, 0.3)
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        streaming = await gateway.asking(b"POST", b"/v1/responses", b"Transfer-Encoding: chunked")
        client = await gateway.client()
        client.writer.write(_RUN % (client.host, gateway.session.token.encode(), 9999))
        spoken = await trickled(client, partial(streaming.writer.write, b"1\r\nx\r\n"))
        streaming.writer.write(b"0\r\n\r\n")
        assert (await streaming.answer())[1] == b"ok"
        assert gateway.upstream.seen[-1].body == b"x" * spoken


async def test_a_body_that_stops_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept until it is whole has to come; what the gateway passes on at once may pause."""
    monkeypatch.setattr(http_protocol, "PROGRESS_SECONDS", 1.0, raising=False)
    async with passing() as gateway, asyncio.timeout(30):
        token, left = gateway.session.token.encode(), 99999
        streaming, moving = await gateway.client(), await gateway.client()
        await streaming.send(b"POST", b"/v1/responses", b"Content-Length: 1")
        moving.writer.write(_RUN % (moving.host, token, left))
        for _ in range(2):  # so that the one that goes on outlives the time twice
            stopped = await gateway.client()
            stopped.writer.write(_RUN % (stopped.host, token, 99999) + b"{")
            ended = asyncio.ensure_future(stopped.reader.read())
            while not ended.done():
                moving.writer.write(b"x")
                left -= 1
                await asyncio.sleep(0.01)
            assert ended.result() == b""
        moving.writer.write(b"x" * left)
        assert b" 400 " in await read_head(moving.reader)
        streaming.writer.write(b"x")
        assert (await streaming.answer())[1] == b"ok"


async def test_a_client_that_sends_no_more_is_gone() -> None:
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        for kind in ("silent", "head", "body", "gateway"):
            client = await gateway.client()
            client.writer.write(half_said(client, kind))
            client.writer.write_eof()
            await client.reader.read()
        while gateway.server._server.server_state.connections:
            await asyncio.sleep(0)


async def test_the_same_on_unix_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's own, where it takes the session's places, and the home's."""
    monkeypatch.setattr("aileron_core.server.http_protocol._MAX_SESSION", 20)
    monkeypatch.setattr("aileron_core.server.http_protocol._MAX_PERSON", 20)
    async with passing() as gateway, asyncio.timeout(PATIENCE):
        own, server = gateway.session_id, gateway.server._server

        def made() -> asyncio.Protocol:
            state = {"server_state": server.server_state, "app_state": server.lifespan.state}
            return server.config.http_protocol_class(config=server.config, **state)  # type: ignore[call-arg]

        loop, at_home = asyncio.get_running_loop(), bind_unix(tmp_path / "home")
        servers = [
            await gateway.server.serve_session(bind_unix(tmp_path / "own"), own, lambda _: None),
            await loop.create_unix_server(made, sock=at_home),
        ]
        for name in ("own", "home"):
            clients: list[Any] = []
            for number in range(31):
                ends = await asyncio.open_unix_connection(str(tmp_path / name))
                clients.append(client := Client(*ends, b"x", b""))
                if number < 30:
                    client.writer.write(half_said(client, "gateway" if number % 2 else "head"))
            assert b" 200 " in await answered_head(clients[-1], "GET", "/v1/health")
            for client in clients:
                client.hang_up()
        for server in servers:
            server.close()
