"""WebSocket upgrades: the head as it was, then bytes both ways."""

import asyncio
import contextlib
from typing import Any

import pytest

from tests.core.server.gateway.harness import (
    EACH_LOOP,
    PATIENCE,
    Client,
    Gateway,
    Seen,
    narrow,
    passing,
    read_head,
    slow_client,
    writes,
)

UPGRADE = (
    b"Connection: keep-alive, Upgrade",
    b"Upgrade: websocket",
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    b"Sec-WebSocket-Version: 13",
    b"OpenAI-Beta: responses_websockets=2026-02-06",
)
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
MB = 1024 * 1024


async def echo_back(_: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(SWITCHED + b"\x81\x05hello")
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def open_tunnel(gateway: Gateway) -> Client:
    client = await gateway.asking(b"GET", b"/v1/responses?x=1", *UPGRADE)
    assert await read_head(client.reader) == SWITCHED
    assert await client.reader.readexactly(7) == b"\x81\x05hello"
    return client


@EACH_LOOP
async def test_an_upgrade_passes_with_its_head_and_then_byte_for_byte() -> None:
    sent = bytes(range(256)) * (8 * MB // 256)
    async with passing(echo_back) as gateway:
        client = await open_tunnel(gateway)
        assert gateway.upstream.seen[0].lines[1:] == list(UPGRADE)
        came = bytearray()

        async def read() -> None:
            while len(came) < len(sent):
                came.extend(await client.reader.read(MB))

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            client.writer.write(sent)
            await client.writer.drain()
        assert came == sent
        numbers = gateway.traffic
        assert (numbers.in_flight, numbers.bytes_up) == (1, len(sent))
        assert numbers.bytes_down == len(sent) + 7
        client.writer.close()
        async with asyncio.timeout(PATIENCE):
            await gateway.upstream.lost.get()
        assert (await gateway.until_traffic(lambda view: not view.in_flight)).last_status == 101


async def test_frames_that_come_before_the_switch_are_not_lost() -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def late(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await release.wait()
        writer.write(SWITCHED)
        while data := await reader.read(65536):
            writer.write(data)

    async with passing(late) as gateway:
        client = await gateway.asking(b"GET", b"/v1/responses", *UPGRADE)
        await asked.wait()
        client.writer.write(b"early")
        await client.writer.drain()
        release.set()
        assert await read_head(client.reader) == SWITCHED
        client.writer.write(b" late")
        assert await client.reader.readexactly(10) == b"early late"


async def test_an_upgrade_that_the_upstream_refuses_has_an_ordinary_answer_and_the_last() -> None:
    """Nothing else may follow on either connection: the next path would go up with our token."""
    refusal = b"HTTP/1.1 426 Not Here\r\nContent-Length: 4\r\n\r\nno\r\n"
    async with passing(writes(refusal)) as gateway:
        client = await gateway.asking(b"GET", b"/v1/responses", *UPGRADE)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 426 Not Here\r\n")
        assert b"\r\nConnection: close\r\n" in head
        assert body == b"no\r\n"
        assert await client.reader.read() == b""
        assert gateway.session.gateway_token.encode() not in gateway.upstream.raw


@EACH_LOOP
async def test_nothing_is_lost_that_comes_right_behind_the_switch() -> None:
    async def stream(_: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHED)
        for frame in frames:
            for _ in range(turns):
                await asyncio.sleep(0)
            writer.write(frame)
        writer.close()

    frames = [b"frame %d" % number for number in range(6)]
    turns = 0
    async with passing(stream) as gateway:
        for count in range(8):
            turns = count
            client = await gateway.asking(b"GET", b"/v1/responses", *UPGRADE)
            assert await client.reader.read() == SWITCHED + b"".join(frames)


@EACH_LOOP
async def test_what_an_upstream_said_before_it_hung_up_reaches_a_slow_client() -> None:
    """A tunnel's clean end comes behind all that was sent."""
    said = bytes(range(200)) * 200  # more than the kernel takes, less than makes the upstream wait

    async def stream(_: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHED + b"\x81\x05hello" + said)
        writer.close()

    async with passing(stream) as gateway:
        client = await slow_client(gateway, 4096)
        while not gateway.server._server.server_state.connections:
            await asyncio.sleep(0)
        narrow(gateway)
        await client.send(b"GET", b"/v1/responses", *UPGRADE)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await gateway.until_traffic(lambda view: view.bytes_down == 7 + len(said))
        for _ in range(100):
            await asyncio.sleep(0)  # the upstream's end comes right behind
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await client.reader.read() == SWITCHED + b"\x81\x05hello" + said


@pytest.mark.parametrize("who", ["client", "upstream", "session"])
async def test_a_tunnel_ends_on_both_sides_when_one_hangs_up_or_its_session_ends(who: str) -> None:
    async def stream(_: Seen, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(SWITCHED + b"\x81\x05hello")
        await reader.read(1)
        writer.transport.abort()

    async with passing(stream) as gateway:
        client = await open_tunnel(gateway)
        if who == "client":
            client.hang_up()
        elif who == "upstream":
            client.writer.write(b"x")
        else:
            await gateway.app.session_service.end(gateway.session_id, "a test")
        async with asyncio.timeout(PATIENCE):
            await gateway.upstream.lost.get()
            if who != "client":
                with contextlib.suppress(ConnectionResetError):
                    assert await client.reader.read() == b""
        if who != "session":
            await gateway.until_traffic(lambda view: not view.in_flight)


async def test_a_request_for_another_protocol_is_answered_as_it_is() -> None:
    """`Upgrade: h2c`, as some clients send it at first: the upstream says what it likes.

    Not with a body: it and what follows it could not be told apart.
    """
    async with passing() as gateway:
        lines = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c")
        for of_body in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):
            client = await gateway.asking(b"POST", b"/v1/messages", *lines, of_body)
            head, body = await client.answer()
            assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert b"must not have a body" in body
            assert await client.reader.read() == b""
        assert gateway.upstream.connections == 0
        assert (await gateway.get(b"/v1/models", *lines))[1] == b"ok"
        client = await gateway.client()  # the other routes speak HTTP alone
        said = [b"GET /v1/health HTTP/1.1", b"Host: " + client.host, *UPGRADE, b"", b""]
        client.writer.write(b"\r\n".join(said))
        assert (await client.answer())[1] == b'{"status":"ok"}'
