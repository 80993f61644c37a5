"""How a passing ends: whole, broken, slow, or because somebody hung up."""

import asyncio
import json
import resource
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from aileron_core.console_port.view_models import TrafficView
from aileron_core.server.embedded import _raise_file_limit
from aileron_core.server.gateway import client as client_module
from tests.core.server.gateway.harness import (
    EACH_LOOP,
    PATIENCE,
    STREAM_HEAD,
    Client,
    Gateway,
    Seen,
    answering_with,
    narrow,
    passing,
    read_chunk,
    read_head,
    slow_client,
)

MB = 1024 * 1024


async def streams(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD + b"2\r\nhi\r\n")
    await writer.drain()
    await reader.read()


async def streaming(gateway: Gateway, token: str | None = None) -> Client:
    """Return a client whose stream has begun."""
    client = await gateway.asking(b"GET", b"/v1/responses/x", token=token)
    assert (await read_head(client.reader)).startswith(b"HTTP/1.1 200 ")
    return client


@EACH_LOOP
@pytest.mark.parametrize(
    "start",
    [
        STREAM_HEAD + b"5\r\nhello\r\n",
        STREAM_HEAD + b"5\r\nhello\r\n64\r\npart of a chunk",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
    ],
)
async def test_an_upstream_that_dies_in_mid_stream_breaks_the_clients_stream(start: bytes) -> None:
    async with passing(answering_with(start, closes=True)) as gateway:
        whole = await (await gateway.asking(b"POST", b"/v1/messages", body=b"{}")).reader.read()
        head, _, body = whole.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"hello" in body
        assert not body.endswith(b"0\r\n\r\n")
        assert len(body) < 100
        assert (await gateway.until_traffic(lambda view: not view.in_flight)).last_status == 200


async def test_a_stream_that_is_reset_breaks_for_a_client_of_http_1_0_as_well() -> None:
    """Its body ends with the connection: only a reset tells that it is not whole."""

    async def answering(_seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + b"5\r\nhello\r\n")
        await writer.drain()
        writer.transport.abort()

    async with passing(answering) as gateway:
        client = await gateway.client()
        start = b"GET /gw/%b/v1/models HTTP/1.0\r\nHost: %b\r\n\r\n"
        client.writer.write(start % (client.token, client.host))
        with pytest.raises(ConnectionResetError):
            await client.reader.read()


async def test_an_upstream_that_dies_before_its_head_is_an_error_in_the_providers_shape() -> None:
    """A request with a body is never sent twice, whatever the connection was."""

    async def answering(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        if b"die" in seen.body:
            writer.close()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with passing(answering) as gateway:
        client = await gateway.client()
        for target, lines, status, kind in (
            (b"/v1/messages", (), 502, "api_error"),
            (b"/v1/responses", (), 502, "server_error"),
            (b"/v1beta/models/g:generateContent", (), 503, "UNAVAILABLE"),
            (b"/v1/models", (b"Anthropic-Version: 1",), 502, "api_error"),
        ):
            for _ in range(2):  # over a new connection, and over one that was kept
                head, body = await client.ask(b"POST", target, *lines, body=b"die")
                assert head.startswith(b"HTTP/1.1 %d " % status)
                assert b"\r\nContent-Type: application/json\r\n" in head
                error = json.loads(body)["error"]
                assert kind in (error.get("type"), error.get("status"))
                await client.ask(b"POST", target, *lines, body=b"live")
        assert [seen.body for seen in gateway.upstream.seen] == [b"die", b"live"] * 8
        assert gateway.traffic.gateway_errors == 8


async def test_an_upstream_that_dies_while_a_body_is_awaited_is_reported_at_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.close()

    async with passing(serving=serve) as gateway:
        client = await gateway.asking(b"POST", b"/v1/responses", b"Content-Length: 1000000")
        client.writer.write(b"only the beginning")
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"closed the connection without an answer" in body


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000,
    ],
)
async def test_what_is_no_answer_is_no_answer_to_the_client(nonsense: bytes) -> None:
    async with passing(answering_with(nonsense)) as gateway:
        head, _ = await gateway.get(b"/v1/responses")
        if head.startswith(b"HTTP/1.1 200 "):
            assert b"Set-Cookie" in head  # a bare LF ends a line, as it does for the client
        else:
            assert head.startswith(b"HTTP/1.1 502 ")


async def test_an_answer_that_nobody_asked_for_reaches_nobody() -> None:
    """Behind a whole answer, or on a connection that is kept: else it would answer the next one."""
    extra = b"HTTP/1.1 200 Forged\r\nContent-Length: 6\r\n\r\nforged"

    async def answering(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nreal"
        if seen.line.startswith(b"HEAD"):
            whole = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
        writer.write(whole + extra)

    async with passing(answering) as gateway:
        client = await gateway.client()
        for method in (b"GET", b"HEAD", b"GET", b"GET"):
            head, body = await client.ask(method, b"/v1/models")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert body == (b"" if method == b"HEAD" else b"real")
        assert gateway.upstream.connections == 4


async def test_a_kept_connection_that_died_is_replaced_for_what_only_reads() -> None:
    async def answering(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        if gateway_connections[seen.connection] > 0:
            writer.transport.abort()  # the second one of a connection
            return
        gateway_connections[seen.connection] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    gateway_connections = [0] * 100
    async with passing(answering) as gateway:
        client = await gateway.client()
        for method in (b"GET", b"HEAD", b"GET", b"GET"):
            head, _ = await client.ask(method, b"/v1/models")
            assert head.startswith(b"HTTP/1.1 200 ")
        head, _ = await client.ask(b"DELETE", b"/v1/files/1")
        assert head.startswith(b"HTTP/1.1 502 ")
        assert len([s for s in gateway.upstream.seen if s.line.startswith(b"DELETE")]) == 1


async def test_a_kept_connection_is_closed_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_IDLE_SECONDS", 0.05)
    async with passing() as gateway:
        client = await gateway.client()
        await client.ask(b"GET", b"/v1/models")
        async with asyncio.timeout(PATIENCE):
            await gateway.upstream.lost.get()
        await client.ask(b"GET", b"/v1/models")
        assert gateway.upstream.connections == 2


@EACH_LOOP
async def test_a_client_that_hangs_up_has_its_upstream_closed_within_50_ms() -> None:
    async def answering(seen: Seen, reader: Any, writer: asyncio.StreamWriter) -> None:
        if b"stream" in seen.line:
            writer.write(STREAM_HEAD + b"2\r\nhi\r\n")
        asked.set()
        await reader.read()

    asked = asyncio.Event()

    async def one(gateway: Gateway, how: str) -> float:
        asked.clear()
        client = await gateway.client()
        if how == "stream":
            await client.send(b"POST", b"/v1/responses/stream", body=b"{}")
            await read_head(client.reader)
        elif how == "waiting":
            await client.send(b"POST", b"/v1/responses", body=b"{}")
            await asked.wait()
        else:
            numbers = gateway.app.traffic.view(gateway.session_id)
            before = numbers.bytes_up if numbers else 0
            await client.send(b"POST", b"/v1/responses", b"Content-Length: 1000")
            client.writer.write(b"begun")
            await gateway.until_traffic(lambda view: view.bytes_up > before)
        began = asyncio.get_running_loop().time()
        if how == "waiting":
            client.writer.close()
        else:
            client.hang_up()
        async with asyncio.timeout(PATIENCE):
            return await gateway.upstream.lost.get() - began

    async with passing(answering) as gateway:
        for how in ("stream", "waiting", "body"):
            took = [await one(gateway, how) for _ in range(9)]
            assert statistics.median(took) < 0.05, (how, took)
        assert (await gateway.until_traffic(lambda view: not view.in_flight)).requests == 27


@EACH_LOOP
async def test_a_slow_client_slows_its_upstream_and_fills_no_memory() -> None:
    """What the upstream could send before it had to wait is bounded by buffers, not by the body."""
    total = 64 * MB
    wrote = 0

    async def answering(_seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        nonlocal wrote
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        piece = b"x" * (256 * 1024)
        while wrote < total:
            writer.write(piece)
            await writer.drain()
            wrote += len(piece)

    async with passing(answering) as gateway:
        client = await slow_client(gateway)
        await client.send(b"POST", b"/v1/responses", body=b"{}")
        await gateway.until_traffic(lambda view: view.bytes_down > 0)
        await wait_until_stable(lambda: wrote + gateway.traffic.bytes_down)
        assert gateway.traffic.bytes_down < 16 * MB
        assert wrote < 24 * MB
        assert (await read_head(client.reader)).startswith(b"HTTP/1.1 200 ")
        left = total
        while left:
            left -= len(await client.reader.read(min(left, MB)))
        assert (await gateway.until_traffic(lambda view: not view.in_flight)).bytes_down == total


def _most_unsent(gateway: Gateway) -> int:
    sides = gateway.server._server.server_state.connections
    return max(side.client_transport.get_write_buffer_size() for side in sides)


@EACH_LOOP
async def test_a_connection_that_waited_for_a_slow_client_serves_the_next_one() -> None:
    """The answer was whole while its client still took none of it: the upstream is read again."""
    piece = b"2000\r\n" + b"x" * 8192 + b"\r\n"
    sent = 0

    def all_taken(view: TrafficView) -> bool:
        return view.bytes_down == sent

    async def answering(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while b"/slow" in seen.line and _most_unsent(gateway) < 48 * 1024:
            writer.write(piece)
            sent += 8192
            await gateway.until_traffic(all_taken)
        # The last bytes are what fills it, and come in one read with the end.
        writer.write(piece * 3 + b"0\r\n\r\n")
        sent += 3 * 8192

    async with passing(answering) as gateway:
        slow = await slow_client(gateway, 4096)
        await slow.ask(b"GET", b"/gone")
        narrow(gateway)
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await slow.send(b"GET", b"/slow")
        await gateway.until_traffic(lambda view: view.requests == 2 and not view.in_flight)
        assert any(side.client_is_full for side in gateway.server._server.server_state.connections)
        assert len((await gateway.get(b"/next"))[1]) == 3 * 8192
        assert gateway.upstream.connections == 1
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len((await slow.answer())[1]) == sent - 2 * 3 * 8192


async def test_a_slow_upstream_slows_its_client_and_fills_no_memory() -> None:
    release = asyncio.Event()
    total = 64 * MB

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await read_head(reader)).startswith(b"POST /v1/responses ")
        await release.wait()
        left = total
        while left:
            left -= len(await reader.read(min(left, MB)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with passing(serving=serve) as gateway:
        client = await gateway.asking(b"POST", b"/v1/responses", b"Content-Length: %d" % total)
        client.writer.write(b"y" * total)
        await gateway.until_traffic(lambda view: view.bytes_up > 0)
        assert await wait_until_stable(lambda: gateway.traffic.bytes_up) < 16 * MB
        release.set()
        assert (await client.answer())[1] == b"ok"
        assert gateway.traffic.bytes_up == total


async def wait_until_stable(number: Callable[[], int]) -> int:
    """Return *number* once it stays as it is; both ends and the gateway are on this very loop."""
    last, turns = number(), 0
    async with asyncio.timeout(PATIENCE):
        while turns < 2000:
            await asyncio.sleep(0)
            last, turns = (last, turns + 1) if number() == last else (number(), 0)
    return last


async def test_a_sessions_end_cuts_its_streams_and_nobody_elses() -> None:
    """Also what ctrl+k does: it ends every session."""
    async with passing(streams) as gateway:
        other = await gateway.another_session()
        mine, theirs = await gateway.client(), await gateway.client(other.gateway_token)
        for client in (mine, theirs):
            await client.send(b"POST", b"/v1/messages", body=b"{}")
            await read_head(client.reader)
            assert await read_chunk(client.reader) == b"hi"
        await gateway.app.session_service.end(gateway.session_id, "a test")
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await mine.reader.readexactly(1)
        await gateway.upstream.lost.get()
        head, _ = await gateway.get()
        assert head.startswith(b"HTTP/1.1 401 ")
        assert gateway.app.traffic.view(other.session.session_id).in_flight == 1


async def test_a_session_has_at_most_256_requests_open_and_room_again_after_one() -> None:
    async with passing(streams) as gateway:
        clients = [await streaming(gateway) for _ in range(256)]
        head, body = await gateway.get(b"/v1/responses/x")
        assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
        assert json.loads(body)["error"]["code"] == "rate_limit_exceeded"
        await streaming(gateway, (await gateway.another_session()).gateway_token)
        clients[0].hang_up()
        await gateway.until_traffic(lambda view: view.in_flight == 255)
        await streaming(gateway)


async def test_all_sessions_together_leave_the_rest_of_the_process_files_to_open() -> None:
    """A quarter of them: the next request is refused, and passes once one has ended."""
    async with passing(streams) as gateway:
        places = gateway.handler._places
        assert 0 < places.total <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
        places.total = 2
        first = await streaming(gateway)
        await streaming(gateway, (await gateway.another_session()).gateway_token)
        head, body = await gateway.get(b"/v1/responses/x")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"too many open requests (1)" in body
        first.hang_up()
        await gateway.until_traffic(lambda view: view.in_flight == 0)
        await streaming(gateway)


async def test_a_session_with_all_places_of_model_requests_has_no_other_one_refused() -> None:
    """Where few files may be open, 256 requests of one session were all that there were."""
    async with passing(streams) as gateway:
        gateway.handler._places.total = 4
        for _ in range(4):
            await streaming(gateway)
        await streaming(gateway, (await gateway.another_session()).gateway_token)
        head, body = await gateway.get(b"/v1/responses/x")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"too many open requests (4)" in body


def test_a_console_asks_for_more_files_where_it_was_started_with_few() -> None:
    """macOS begins with 256: each request takes two."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, limits[1]))
        _raise_file_limit()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert soft == (10_240 if hard < 0 else min(hard, 10_240))
