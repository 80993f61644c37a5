"""What goes through the gateway comes out as it went in: answers, and WebSockets byte for byte both ways."""

import asyncio
import contextlib
from typing import Any

import pytest

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
    read_chunks,
    read_head,
    slow_client,
)
from tests.support.traced import TRACEPARENT, Traced, is_child_of_the_agent


async def test_headers_for_one_hop_do_not_go_up_and_the_rest_does() -> None:
    """`Expect: 100-continue` is answered here: the client sends its body only then."""
    async with passing() as gateway:
        await gateway.get(
            b"/v1/models",
            b"Connection: keep-alive, X-Hop", b"x-hop: 1", b"Keep-Alive: timeout=5",
            b"Proxy-Authorization: Basic x", b"TE: trailers", b"X-Stays: 1",
        )  # fmt: skip
        assert gateway.upstream.seen[0].lines[1:] == [b"X-Stays: 1"]
        lines = (b"Expect: 100-continue", b"Content-Length: 4")
        client = await gateway.asking(b"POST", b"/v1/messages", *lines)
        assert await read_head(client.reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.writer.write(b"body")
        assert ((await client.answer())[1], gateway.upstream.seen[1].body) == (b"ok", b"body")


@EACH_LOOP
async def test_each_chunk_of_a_stream_comes_down_when_it_was_sent_and_whole() -> None:
    events = [b"data: %d\n\n" % number * (number + 1) for number in range(20)]
    read = asyncio.Event()

    async def answering(_seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for event in events:
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await read.wait()
            read.clear()
        writer.write(b"0\r\n\r\n")

    async with passing(answering) as gateway:
        client = await gateway.asking(b"POST", b"/v1/messages", body=b"{}")
        await read_head(client.reader)
        for event in events:
            assert await read_chunk(client.reader) == event
            read.set()
        assert await read_chunks(client.reader) == []


async def test_chunks_that_come_in_one_read_stay_apart_and_trailers_pass() -> None:
    said = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b"1\r\na\r\n2;ext=1\r\nbb\r\n3\r\nccc\r\n0\r\nX-Sum: 6\r\n\r\n"
    )
    async with passing(answering_with(said)) as gateway:
        client = await gateway.asking(b"GET", b"/v1/models")
        head = await read_head(client.reader)
        assert b"\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n" in head
        assert [await read_chunk(client.reader) for _ in range(4)] == [b"a", b"bb", b"ccc", b""]
        assert await client.reader.readline() == b"X-Sum: 6\r\n"


async def test_answers_without_a_body_end_where_their_heads_do() -> None:
    async def answering(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        if seen.line.startswith(b"HEAD"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
        elif b"/204" in seen.line:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        elif b"/304" in seen.line:
            writer.write(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Then\r\nContent-Length: 3\r\n\r\nend")

    async with passing(answering) as gateway:
        client = await gateway.client()
        head, _ = await client.ask(b"HEAD", b"/api/hello")
        assert head == b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"
        await client.send(b"GET", b"/204")
        assert await read_head(client.reader) == b"HTTP/1.1 204 No Content\r\n\r\n"
        await client.send(b"GET", b"/304")
        assert b" 304 Not Modified\r\nContent-Length: 9\r\n" in await read_head(client.reader)
        then = b"HTTP/1.1 200 Then\r\nContent-Length: 3\r\n\r\n"
        assert await client.ask(b"GET", b"/interim") == (then, b"end")


async def test_a_body_that_ends_with_the_connection_ends_in_a_clean_chunk() -> None:
    """HTTP/1.0 upstreams and their like: the client's connection stays. A client of HTTP/1.0 cannot read chunks."""
    said = answering_with(b"HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nall of it", closes=True)
    async with passing(said) as gateway:
        client = await gateway.client()
        for _ in range(2):
            head, body = await client.ask(b"GET", b"/v1/models")
            assert head == b"HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert body == b"all of it"
        assert gateway.upstream.connections == 2
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        gateway.upstream.answering = answering_with(chunked)
        start = b"GET /gw/%b/v1/models HTTP/1.0\r\nHost: %b\r\n\r\n"
        client.writer.write(start % (client.token, client.host))
        assert await client.reader.read() == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"


async def test_an_answer_that_comes_before_the_whole_question_passes_at_once() -> None:
    """An upstream that refuses a large body early; the client's connection stays in step."""
    said = answering_with(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
    async with passing(said) as gateway:
        client = await gateway.asking(b"POST", b"/v1/messages", b"Transfer-Encoding: chunked")
        # The upstream answers each request with its head and body read: one without a length.
        client.writer.write(b"1\r\na\r\n0\r\n\r\n")
        assert (await client.answer())[1] == b"big"
        assert (await client.ask(b"POST", b"/v1/messages", body=b"x"))[1] == b"big"


async def test_a_model_request_is_traced_without_its_path_or_contents() -> None:
    """The header goes up as it came: whoever reads it there is no concern of ours."""
    traced = Traced()
    async with passing(tracer=traced.tracer) as gateway:
        client = await gateway.client()
        header = f"traceparent: {TRACEPARENT}".encode()
        lines = (header, b"X-Canary: canary")
        await client.ask(b"POST", b"/v1/canary?q=canary", *lines, body=b"canary")
        assert header in gateway.upstream.seen[0].lines
        session = gateway.session_id
    span = traced.named("aileron.gateway_request")
    assert is_child_of_the_agent(span)
    assert span.attributes == {"aileron.session": session, "http.response.status_code": 200}
    assert "canary" not in traced.text


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
    async with passing(answering_with(refusal)) as gateway:
        client = await gateway.asking(b"GET", b"/v1/responses", *UPGRADE)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 426 Not Here\r\n")
        assert b"\r\nConnection: close\r\n" in head
        assert (body, await client.reader.read()) == (b"no\r\n", b"")
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
